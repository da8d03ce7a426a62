"""What csp replay and csp logs show."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.cli import replay as replaying
from csp.cli.parser import parse
from csp.cli.verb_call import VerbCall
from csp.config import Settings
from tests.cli.live import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    place.gateway()
    place.agent("ann")
    for text in ("one", "two", "three"):
        place.csp("send", "ann", text)
    yield place
    place.close()


def texts(out: str) -> list[str]:
    return [line.rpartition(": ")[2] for line in out.splitlines()]


def test_replay_shows_what_history_shows(place: Place) -> None:
    done = place.csp("replay", "--speed", "1000")

    assert done.code == 0, done.err
    assert texts(done.out) == ["one", "two", "three"]
    assert done.out == place.csp("history").out


def test_replay_needs_no_gateway_and_passes_over_damage(place: Place) -> None:
    place.running[0].send_signal(signal.SIGTERM)
    place.running[0].communicate(timeout=90)
    journal = place.history / "default/journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"two", b"too"))
    done = place.csp("replay", "--speed", "1000", "--history", str(place.history))

    assert texts(done.out) == ["one", "three"]


def test_replay_can_be_cut_to_the_newest(place: Place) -> None:
    assert texts(place.csp("replay", "--speed", "1000", "--limit", "1").out) == ["three"]
    assert texts(place.csp("replay", "--speed", "1000", "--limit", "2").out) == ["two", "three"]


@pytest.mark.parametrize(
    ("options", "pauses"),
    [
        (["--speed", "2"], [0.5, 1.0, 0.0, 3.0]),
        ([], [0.125, 0.25, 0.0, 3.0]),
        (["--speed", "0.5", "--limit", "3"], [0.0, 3.0]),
        (["--speed", "0"], []),
    ],
)
def test_replay_keeps_the_pauses_up_to_a_longest(
    options: list[str], pauses: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody watches a night go by, and a clock that was set back is no pause at all."""
    rested: list[float] = []
    items = [{"seq": n, "ts": at, "sender": "ann", "text": "x"} for n, at in enumerate([5, 6, 8, 7, 9000])]
    monkeypatch.setattr(replaying, "journal_items", lambda path: iter(items))
    monkeypatch.setattr(replaying, "journal_path", lambda call: tmp_path)
    monkeypatch.setattr("csp.cli.replay.time.sleep", rested.append)
    _, args = parse(["replay", *options])

    assert replaying.replay(VerbCall(args=args, settings=Settings(), cwd=tmp_path)) == 0
    assert rested == pauses


def test_replay_of_no_room_says_so(tmp_path: Path) -> None:
    bare = Place(tmp_path / "bare")
    done = bare.csp("replay", "--history", str(bare.history))

    assert done.code == 1
    assert done.err.startswith("csp: no journal at ")


def test_logs_show_the_gateway_and_the_sidecars(place: Place) -> None:
    (place.state / "default.gateway.log").write_text("g1\ng2\ng3\nhalf")
    folder = place.state / "default.agents" / "ann"
    folder.mkdir(parents=True)
    (folder / "brain.log").write_text("b1\n")

    assert place.csp("logs", "--limit", "2").out == "gateway | g2\ngateway | g3\nann     | b1\n"
    assert place.csp("logs", "ann").out == "b1\n"
    unknown = place.csp("logs", "bob")
    assert (unknown.code, unknown.err) == (
        1,
        "csp: no log of 'bob' in room 'default' (there are: gateway, ann)\n",
    )


def test_logs_go_on_with_what_comes(place: Place) -> None:
    log = place.state / "default.gateway.log"
    log.write_text("old\n")
    process = place.start("logs", "gateway", "--follow")
    assert process.stdout is not None
    assert process.stdout.readline() == "old\n"
    with log.open("a") as file:
        file.write("new\n")
    assert process.stdout.readline() == "new\n"
    log.write_text("x\n")

    assert process.stdout.readline() == "x\n"


def test_a_gateway_in_its_own_terminal_has_no_log(place: Place) -> None:
    done = place.csp("logs", "gateway")

    assert done.code == 1
    assert "it logs to the terminal it runs in" in done.err
