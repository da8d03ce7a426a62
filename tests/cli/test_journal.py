"""csp journal: a journal goes into a cluster and comes out again, and journals are compared."""

import asyncio
import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from csp.cli import INTERRUPTED, main
from csp.cli.output import Progress
from csp.cluster.bus import Bus
from csp.cluster.names import shard_of
from csp.cluster.setup import stream_config
from csp.journal import Batch
from tests.cluster.nats_servers import NatsCluster, NatsServer, nats_server
from tests.cluster.stream_stores import StreamStore
from tests.journal.log_stores import START, base_line
from tests.journal.making import encoded, lines_to, said, write_journal

__all__ = ["nats_server"]

#: More than two batches, and more than is read at once.
LINES: Final = 3000
Csp = Callable[..., tuple[int, str, str]]


@pytest.fixture
def csp(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Csp:
    """Run a form; return its exit code, its data and its messages."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        code = main(["journal", *map(str, words)])
        return (code, *capsys.readouterr())

    return run


@pytest.fixture
def room(nats_server: NatsServer) -> str:
    """A room of its own that does not exist yet."""
    return f"{nats_server.url}/room-{uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return lines_to(LINES)


@pytest.fixture
def source(tmp_path: Path, lines: list[bytes]) -> Path:
    return write_lines(tmp_path / "source", lines)


def write_lines(folder: Path, lines: list[bytes]) -> Path:
    return write_journal(folder, b"".join(line + b"\n" for line in lines))


# --- copying -------------------------------------------------------------------------------------


def test_a_journal_comes_out_of_a_cluster_as_it_went_in(
    csp: Csp, source: Path, room: str, tmp_path: Path
) -> None:
    assert csp("copy", source.parent, room) == (0, "", f"copied {LINES:,} lines\n")
    assert csp("copy", room, tmp_path / "back", "--json") == (
        *(0, json.dumps({"lines": LINES, "from": room, "to": str(tmp_path / "back")}) + "\n", ""),
    )
    assert (tmp_path / "back" / "journal.jsonl").read_bytes() == source.read_bytes()
    assert csp("compare", source, "back", room) == (0, f"equal: 3 journals of {LINES:,} lines\n", "")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == ["journal.jsonl"]


@pytest.mark.full
def test_a_million_lines_come_out_as_they_went_in(csp: Csp, tmp_path: Path) -> None:
    path = tmp_path / "source" / "journal.jsonl"
    path.parent.mkdir()
    with path.open("wb") as file:
        for first in range(1, 1_000_001, 1000):
            file.writelines(line + b"\n" for line in encoded(said(first + at) for at in range(1000)))
    with NatsCluster(tmp_path / "nats") as cluster:
        room = f"{','.join(cluster.urls)}/million"
        assert csp("copy", path, room)[0] == 0
        assert csp("copy", room, "back")[0] == 0
        assert csp("compare", path, "back", room)[:2] == (0, "equal: 3 journals of 1,000,000 lines\n")


def test_a_pruned_journal_is_copied_with_its_base(csp: Csp, room: str, tmp_path: Path) -> None:
    pruned = write_lines(tmp_path / "pruned", [base_line(700), *lines_to(1500)[700:]])
    assert csp("copy", pruned, room)[0] == 0
    assert csp("compare", pruned, room)[:2] == (0, "equal: 2 journals of 801 lines\n")


def test_nothing_is_overwritten(csp: Csp, source: Path, room: str, tmp_path: Path) -> None:
    other = write_lines(tmp_path / "other", lines_to(3))
    csp("copy", source, room)
    code, _, error = csp("copy", other, room)
    assert (code, f"{room} exists already" in error) == (1, True)
    code, _, error = csp("copy", room, other)
    assert (code, f"{str(other)!r} exists already" in error) == (1, True)
    assert csp("compare", source, room)[0] == 0
    assert other.read_bytes() == b"".join(line + b"\n" for line in lines_to(3))


def test_a_copy_that_ctrl_c_has_ended_goes_on_with_resume(
    csp: Csp, source: Path, room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def show(_self: Progress, line: str) -> None:
        shown.append(line)
        if len(shown) == 2:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "show", show)
        stopped = csp("copy", source, room)
    assert stopped == (INTERRUPTED, "", "stopped; continue with the same command and --resume\n")
    code, out, _ = csp("compare", source, room)
    assert (code, f"{room}: ends before it" in out) == (1, True)
    assert csp("copy", source, room)[0] == 1
    assert csp("copy", source, room, "--resume") == (0, "", f"copied {LINES:,} lines\n")
    assert csp("compare", source, room)[0] == 0
    # Once more does no harm.
    assert csp("copy", source, room, "--resume")[0] == 0
    assert csp("compare", source, room)[0] == 0


def test_a_copy_to_a_file_that_is_interrupted_leaves_nothing(
    csp: Csp, source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Progress, "show", lambda *_: signal.raise_signal(signal.SIGINT))

    assert csp("copy", source, "back")[0] == INTERRUPTED
    assert list((tmp_path / "back").iterdir()) == []


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as server:
        yield server


async def test_a_full_server_ends_a_copy_which_goes_on_when_there_is_space(
    csp: Csp, source: Path, own_server: NatsServer
) -> None:
    config = stream_config(shard_of("review"), 1)
    await configured(own_server, "CREATE", config | {"max_bytes": 200_000})
    code, error = await in_thread(csp, "copy", source, f"{own_server.url}/review")
    assert (code, "no space left" in error) == (1, True)
    await configured(own_server, "UPDATE", config)
    assert await in_thread(csp, "copy", source, f"{own_server.url}/review", "--resume") == (
        *(0, f"copied {LINES:,} lines\n"),
    )


async def configured(server: NatsServer, how: str, config: dict[str, Any]) -> None:
    bus = await Bus.open([server.url])
    answer = await bus.ask(f"STREAM.{how}.{config['name']}", config, timeout_s=60)
    await bus.close()
    assert "error" not in answer


async def in_thread(csp: Csp, *words: object) -> tuple[int, str]:
    """Run a form beside the test's own event loop; return its exit code and its messages."""
    code, _, error = await asyncio.to_thread(csp, *words)
    return code, error


def test_only_a_part_of_the_same_copy_is_continued(
    csp: Csp, room: str, tmp_path: Path, lines: list[bytes]
) -> None:
    part = write_lines(tmp_path / "part", lines[:-1])
    csp("copy", part, room)
    other = write_lines(tmp_path / "other", [*lines[:-2], *encoded([said(LINES - 1, "something else")])])
    code, _, error = csp("copy", other, room, "--resume")
    assert (code, "is not a part of" in error) == (1, True)
    assert csp("compare", part, room)[0] == 0


async def test_a_room_that_a_gateway_has_opened_is_not_continued(
    csp: Csp, source: Path, nats_server: NatsServer
) -> None:
    store = StreamStore(nats_server.url)
    await store.open()
    await store.log.append(Batch(lines=(), first_seq=1, epoch=1, owner="gw1"), START)
    await store.close()
    code, error = await in_thread(csp, "copy", source, f"{nats_server.url}/{store.room}", "--resume")

    assert (code, "has been opened by a gateway" in error) == (1, True)


# --- journals that cannot be copied --------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\n".join([*lines_to(2), b"damaged", *lines_to(4)[3:]]) + b"\n", "line 3 of .* is damaged"),
        (b"\n".join([lines_to(1)[0], lines_to(3)[2]]) + b"\n", "seqs are missing after #1"),
        (b"\n".join(lines_to(2)), "the last line of .* is incomplete"),
    ],
)
def test_a_broken_journal_does_not_go_into_a_cluster(
    csp: Csp, room: str, tmp_path: Path, data: bytes, problem: str
) -> None:
    code, _, error = csp("copy", write_journal(tmp_path / "broken", data), room)

    assert code == 2
    assert re.search(problem, error)


def test_what_is_not_there_is_named(csp: Csp, room: str, own_server: NatsServer) -> None:
    for name in (room, f"{own_server.url}/review"):
        assert csp("copy", name, "back") == (1, "", f"csp: no room at {name}\n")
    code, _, error = csp("compare", "nowhere", room)
    assert (code, "no journal at" in error) == (1, True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("copy a", "expected copy FROM TO"),
        ("compare a", "expected compare A B ..."),
        ("", "expected compare A B ..."),
        ("copy a nats://127.0.0.1:4222", "names no room"),
        ("copy a nats://127.0.0.1/Review", "expected a room name"),
        ("copy a nats://other.example/review", "is on another machine"),
        ("copy a b --resume", "--resume is for a copy into a cluster"),
        ("compare a b --resume", "does not accept --resume"),
    ],
)
def test_what_makes_no_sense_is_refused(csp: Csp, words: str, problem: str) -> None:
    code, out, error = csp(*words.split())

    assert (code, out) == (2, "")
    assert problem in error


# --- comparing -----------------------------------------------------------------------------------


def test_the_first_difference_of_each_journal_is_shown(
    csp: Csp, source: Path, tmp_path: Path, lines: list[bytes]
) -> None:
    changed = [*lines[:6], *encoded([said(7, "changed")]), *lines[7:8], *encoded([said(9, "changed too")])]
    other = write_lines(tmp_path / "other", changed)
    same = write_lines(tmp_path / "same", lines)
    code, out, _ = csp("compare", source, same, other)

    assert code == 1
    assert out.splitlines() == [
        f"{other} differs from {source} in line 7:",
        f"  {source}: {lines[6].decode()[:120]}…",
        f"  {other}: {changed[6].decode()[:120]}…",
    ]


def test_a_journal_that_ends_early_differs(
    csp: Csp, source: Path, tmp_path: Path, lines: list[bytes]
) -> None:
    short = write_lines(tmp_path / "short", lines[:10])
    code, out, _ = csp("compare", short, source, "--json")

    assert code == 1
    assert json.loads(out) == {
        "equal": False,
        "lines": 10,
        "differences": [
            {"name": str(source), "line": 11, "expected": None, "found": lines[10].decode()},
        ],
    }
