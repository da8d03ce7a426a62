"""The bench of the gateway measures a real one."""

import json
from pathlib import Path

import pytest

from csp.cli.parser import parse
from csp.journal import snapshots
from csp.protocol.events import decode_event
from csp.room.room_reducer import replay
from csp.room.room_state import dump
from tests.bench.machine.figures import short, table
from tests.bench.machine.gateway import (
    Effort,
    burst_plan,
    closed_plan,
    lone_plan,
    measure,
    paced_plan,
    search_ms,
)
from tests.bench.machine.journals import COMMON, RARE, make_journal
from tests.bench.machine.process import ROOM, Server, run_load, start_gateway


def test_every_watcher_gets_every_message(tmp_path: Path) -> None:
    with start_gateway(tmp_path, "flush") as server:
        found = run_load(closed_plan(server, 0.2, 4, watchers=3))

    assert found.sent == found.least == len(found.latencies) > 0


def test_a_lone_message_has_arrived_before_the_next(tmp_path: Path) -> None:
    with start_gateway(tmp_path, "flush") as server:
        found = run_load(lone_plan(server, 0.2, 3))

    assert found.sent == found.least == len(found.latencies) > 0


def test_a_burst_reaches_every_watcher(tmp_path: Path) -> None:
    with start_gateway(tmp_path) as server:
        found = run_load(burst_plan(server, 0.2, watchers=3))

    assert found.sent == found.least > 0


def test_messages_are_sent_at_their_rate(tmp_path: Path) -> None:
    with start_gateway(tmp_path, "none") as server:
        found = run_load(paced_plan(server, 0.2))

    assert found.sent == len(found.latencies) == 200


def test_a_journal_has_its_snapshot(tmp_path: Path) -> None:
    make_journal(tmp_path, 500)
    lines = (tmp_path / ROOM / "journal.jsonl").read_bytes().splitlines()
    snapshot = snapshots.load(tmp_path / ROOM, 500)

    assert snapshot is not None
    assert snapshot.state == dump(replay(map(decode_event, lines)))


def test_a_journal_can_be_searched(tmp_path: Path) -> None:
    make_journal(tmp_path, 1000)
    with start_gateway(tmp_path) as server:
        assert _hits(server, COMMON) == 50
        assert _hits(server, RARE) == 1
        assert search_ms(server, COMMON) > 0


def _hits(server: Server, needle: str) -> int:
    return len(server.ask(f"/history?q={needle}")["items"])


def test_everything_is_measured() -> None:
    steps: list[str] = []
    figures = measure(Effort(seconds=0.05, lines=1000, rounds=1), steps.append)
    values = [figure.as_json() for figure in figures.all()]

    assert json.loads(json.dumps(values)) == values
    assert len(table(figures.all())) == len(values) + 1
    assert steps[-1] == "round 1 of 1: start, memory, search with 1,000 lines"


def test_the_command_line_knows_the_bench() -> None:
    verb, args = parse(["bench", "gateway", "--quick", "--json"])

    assert (verb.name, args.subject, args.quick, args.json, args.seconds) == (
        "bench",
        "gateway",
        True,
        True,
        None,
    )


@pytest.mark.parametrize(("value", "text"), [(0.123, "0.12"), (12.34, "12.3"), (1234.5, "1,234")])
def test_a_number_has_the_digits_that_mean_something(value: float, text: str) -> None:
    assert short(value) == text
