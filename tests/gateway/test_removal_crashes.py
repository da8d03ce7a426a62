"""Removals that were cut off: by a crash at any step, by a full disk, by a room that changed its mind."""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest

from csp.errors import Refused
from csp.gateway.gateway import Gateway
from csp.gateway.journal_maintenance import finish_rewrites, prune, redact
from csp.journal.history import History
from csp.protocol.enums import HUMAN
from csp.protocol.notices import NoticeCode
from csp.room.commands import AnyCommand, Notice
from tests.gateway.served import ServedRoom, served

SECRET = "marzipan"
NOTE = "rewrite.json"
COPY = "journal.jsonl.new"


class Crash(Exception):
    """The end of a process: nobody catches it, nothing is cleared up."""


def _crash(*arguments: object, **keywords: object) -> None:
    raise Crash


def _no_space(fd: int, data: bytes, offset: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _refuse(gateway: Gateway, command: AnyCommand) -> None:
    raise Refused("the room thought better of it", "leave it")


@dataclass(frozen=True)
class Removal:
    """One way to take the secret, which is in the first message, out of a room."""

    remove: Callable[[Gateway, str], Awaitable[object]]
    event: bytes
    path: str
    body: object
    left: list[str]


REMOVALS = [
    Removal(redact, b'"type":"redacted"', "/messages/{}/redact", {}, ["[redacted]", "kept"]),
    Removal(lambda g, _: prune(g, 2), b'"type":"pruned"', "/history/prune", {"before": 2}, ["kept"]),
]
both = pytest.mark.parametrize("removal", REMOVALS, ids=["redact", "prune"])


async def _fill(room: ServedRoom) -> str:
    message = await room.send("all", f"the {SECRET}")
    await room.send("all", "kept")
    return message


def _files_with(room: ServedRoom, text: str) -> list[str]:
    found: list[str] = []
    for path in room.folder.iterdir():
        # A snapshot on its way changes its name.
        with suppress(FileNotFoundError):
            if text.encode() in path.read_bytes():
                found.append(path.name)
    return found


def _promises(room: ServedRoom, removal: Removal) -> int:
    return (room.folder / "journal.jsonl").read_bytes().count(removal.event)


def _leftovers(room: ServedRoom) -> list[str]:
    return [path.name for path in room.folder.iterdir() if path.name in (NOTE, COPY)]


@asynccontextmanager
async def _after_crash(room: ServedRoom) -> AsyncIterator[ServedRoom]:
    """Start on a copy of the folder as it is right now; what the dead room still does changes nothing."""
    folder = Path(f"{room.folder}-after")
    # A snapshot may just be on its way, under a name that is gone in a moment.
    shutil.copytree(room.folder, folder, ignore=shutil.ignore_patterns("*.tmp"))
    async with served(folder) as started:
        await finish_rewrites(started.gateway)
        yield started


@both
@pytest.mark.parametrize(
    "step",
    ["csp.journal.rewrite.prepare", "csp.journal.rewrite.sync_data", "csp.gateway.gateway.Gateway.submit"],
)
async def test_a_removal_that_crashed_before_its_promise_never_was(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, step: str, removal: Removal
) -> None:
    message = await _fill(room)
    with monkeypatch.context() as dying:
        dying.setattr(step, _crash)
        with pytest.raises(Crash):
            await removal.remove(room.gateway, message)
    assert NOTE in _leftovers(room)

    async with _after_crash(room) as started:
        assert [item["text"] for item in await started.history()] == [f"the {SECRET}", "kept"]
        assert (_promises(started, removal), _leftovers(started)) == (0, [])


@both
@pytest.mark.parametrize(
    "step",
    [
        "csp.journal.rewrite.finish",
        "csp.journal.rewrite.snapshots.delete_all",
        "csp.journal.rewrite.delete_files",
        "csp.journal.rewrite.os.replace",
        "csp.journal.rewrite.sync_folder",
        "csp.gateway.journal_maintenance._drop_note",
    ],
)
async def test_a_removal_that_crashed_after_its_promise_is_carried_out(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, step: str, removal: Removal
) -> None:
    message = await _fill(room)
    alone = room.gateway.writer.alone

    async def alone_and_dying(action: Callable[[], None]) -> None:
        dying.setattr(step, _crash)
        await alone(action)

    with monkeypatch.context() as dying:
        dying.setattr(room.gateway.writer, "alone", alone_and_dying)
        with pytest.raises(Crash):
            await removal.remove(room.gateway, message)
    assert NOTE in _leftovers(room)

    async with _after_crash(room) as started:
        assert _files_with(started, SECRET) == []
        assert [item["text"] for item in await started.history()] == removal.left
        assert (_promises(started, removal), _leftovers(started)) == (1, [])
        await started.restart()
        assert [item["text"] for item in await started.history()] == removal.left


@both
async def test_a_copy_that_finds_no_space_promises_nothing(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, removal: Removal
) -> None:
    path = removal.path.format(await _fill(room))
    with monkeypatch.context() as full:
        full.setattr("csp.journal.rewrite.write_all", _no_space)
        answer = await room.call("POST", path, removal.body)
    texts = [item["text"] for item in await room.history()]

    assert (answer.status, texts) == (507, [f"the {SECRET}", "kept"])
    assert (_promises(room, removal), _leftovers(room)) == (0, [])
    await room.post(path, removal.body)
    assert _files_with(room, SECRET) == []
    assert _promises(room, removal) == 1


@both
async def test_a_note_that_finds_no_space_promises_nothing(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, removal: Removal
) -> None:
    path = removal.path.format(await _fill(room))
    with monkeypatch.context() as full:
        full.setattr("csp.fast_start.atomic_files.write_all", _no_space)
        answer = await room.call("POST", path, removal.body)

    assert answer.status == 507
    assert (_promises(room, removal), _leftovers(room)) == (0, [])


@both
async def test_a_room_that_refuses_after_the_copy_promises_nothing(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, removal: Removal
) -> None:
    path = removal.path.format(await _fill(room))
    with monkeypatch.context() as refusing:
        refusing.setattr(Gateway, "submit", _refuse)
        answer = await room.call("POST", path, removal.body)

    assert answer.status == 409
    assert (_promises(room, removal), _leftovers(room)) == (0, [])
    assert _files_with(room, SECRET) == ["journal.jsonl"]


def _fail_to_finish(full: pytest.MonkeyPatch, gateway: Gateway) -> None:
    """Let the disk be full for the little that came after the copy was made."""
    alone = gateway.writer.alone

    async def alone_and_full(action: Callable[[], None]) -> None:
        full.setattr("csp.journal.rewrite.write_all", _no_space)
        await alone(action)

    full.setattr(gateway.writer, "alone", alone_and_full)


@both
async def test_asking_again_for_a_removal_that_could_not_be_finished_promises_it_once(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, removal: Removal
) -> None:
    path = removal.path.format(await _fill(room))
    with monkeypatch.context() as full:
        _fail_to_finish(full, room.gateway)
        answer = await room.call("POST", path, removal.body)
    left = _files_with(room, SECRET)
    await room.post(path, removal.body)

    assert (answer.status, left) == (507, ["journal.jsonl"])
    assert _files_with(room, SECRET) == []
    assert (_promises(room, removal), _leftovers(room)) == (1, [])


@both
async def test_the_next_removal_carries_out_one_that_could_not_be_finished(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, removal: Removal
) -> None:
    path = removal.path.format(await _fill(room))
    other = await room.send("all", "another one")
    with monkeypatch.context() as full:
        _fail_to_finish(full, room.gateway)
        await room.call("POST", path, removal.body)
    await room.post(f"/messages/{other}/redact")

    assert _files_with(room, SECRET) == _files_with(room, "another one") == []
    assert [item["text"] for item in await room.history()] == [*removal.left, "[redacted]"]
    assert _leftovers(room) == []


async def test_a_removal_that_finds_no_space_at_the_start_is_carried_out_later(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await _fill(room)
    with monkeypatch.context() as full:
        _fail_to_finish(full, room.gateway)
        await room.call("POST", f"/messages/{message}/redact")
        await room.restart()
        await finish_rewrites(room.gateway)
    left = _leftovers(room)
    await room.restart()
    await finish_rewrites(room.gateway)

    assert left == [NOTE]
    assert _files_with(room, SECRET) == _leftovers(room) == []


@pytest.mark.parametrize("durability", ["none", "flush", "fsync"])
async def test_what_is_not_even_written_yet_can_be_pruned(tmp_path: Path, durability: str) -> None:
    async with served(tmp_path / "room", durability=durability) as room:
        for _ in range(20):
            written = [
                room.gateway.submit(Notice(words=NoticeCode.JOURNAL_REPAIRED(warning=SECRET), target=HUMAN))
                for _ in range(9)
            ]
            await prune(room.gateway, room.gateway.writer.room.seq)
            await asyncio.gather(*written)
        await room.send("all", "kept")
        await prune(room.gateway, room.gateway.writer.room.seq)
        await room.restart()

        assert _files_with(room, SECRET) == []
        assert [item["text"] for item in await room.history()] == ["kept"]


def _is_no_event(line: bytes) -> bytes:
    """Return the line with a right checksum, but as no event that anybody could read."""
    body = line[: line.rindex(b',"crc"')].replace(b'"ts":', b'"ts":"x","was":')
    return b'%b,"crc":"%08x"}' % (body, crc32(body))


@pytest.mark.parametrize("place", [0, 1])
async def test_an_intact_line_that_is_no_event_does_not_keep_a_room_from_pruning(
    room: ServedRoom, place: int
) -> None:
    for text in ("one", SECRET, "kept"):
        await room.send("all", text)
    await room.stop()
    for path in room.folder.glob("snapshot-*"):
        path.unlink()
    path = room.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines()
    lines[place] = _is_no_event(lines[place])
    path.write_bytes(b"\n".join(lines) + b"\n")
    await room.start()
    seq = (await room.history("?limit=1"))[0]["seq"]
    await room.post("/history/prune", {"before": seq})
    await room.restart()

    assert _files_with(room, SECRET) == []
    assert [item["text"] for item in await room.history()] == ["kept"]


@pytest.mark.parametrize(
    "note",
    [b"", b"nonsense", b"\xff", b'{"prune":"x"}', b'{"prune":9999}', b'{"redact":"no"}', b"{}", b"[]"],
)
async def test_a_note_that_makes_no_sense_does_not_keep_the_room_from_anything(
    room: ServedRoom, note: bytes
) -> None:
    message = await _fill(room)
    await room.stop()
    (room.folder / NOTE).write_bytes(note)
    await room.start()
    await finish_rewrites(room.gateway)
    texts = [item["text"] for item in await room.history()]
    await room.post(f"/messages/{message}/redact")

    assert texts == [f"the {SECRET}", "kept"]
    assert _files_with(room, SECRET) == _leftovers(room) == []


async def test_nobody_sees_the_old_text_while_a_promise_is_kept(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await _fill(room)
    with monkeypatch.context() as dying:
        dying.setattr(History, "load_recent", _crash)
        with pytest.raises(Crash):
            await redact(room.gateway, message)

    assert SECRET not in str(await room.history())
