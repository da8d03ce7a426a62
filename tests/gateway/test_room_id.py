"""A room is recognised by its id, which it keeps through everything but a new beginning."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from csp.journal import jsonl_journal
from csp.protocol.events import room_id_in
from tests.compatibility.views import JOURNALS
from tests.gateway.served import ServedRoom, served


async def id_of(room: ServedRoom) -> str:
    return str((await room.get("/health"))["roomId"])


def lines_of(room: ServedRoom) -> list[bytes]:
    return (room.folder / "journal.jsonl").read_bytes().splitlines()


async def test_the_first_line_of_a_journal_alone_has_the_id_of_its_room(room: ServedRoom) -> None:
    before = await id_of(room)
    socket = await room.connect()
    await room.join("claude")
    await room.send("claude", "hello")
    await socket.until_seq(2)

    assert [room_id_in(line) for line in lines_of(room)] == [before, ""]
    # Watchers get the bytes of the journal.
    assert [event.get("room_id") for event in socket.events] == [before, None]
    assert await id_of(room) == before


async def test_a_room_keeps_its_id(room: ServedRoom) -> None:
    known = await id_of(room)
    message = await room.send("all", "the first line")
    await room.send("all", "the second line")
    await room.restart()
    restarted = await id_of(room)
    await room.post(f"/messages/{message}/redact")
    await room.restart()
    redacted = await id_of(room)
    await room.post("/history/prune", {"before": 3})
    for path in room.folder.glob("snapshot-*.json"):
        path.unlink()
    await room.restart()

    assert (restarted, redacted, await id_of(room)) == (known, known, known)


async def test_a_room_of_an_earlier_version_keeps_its_id(tmp_path: Path) -> None:
    room = served(tmp_path / "room")
    room.folder.mkdir()
    shutil.copyfile(JOURNALS / "a_debate_with_a_vote.jsonl", room.folder / "journal.jsonl")
    async with room:
        known = await id_of(room)
        assert not any(map(room_id_in, lines_of(room)))
        await room.restart()
        restarted = await id_of(room)
        last = await room.send("all", "one more")
        await room.post("/history/prune", {"before": int(last.removeprefix("m-"))})
        await room.restart()

        assert (restarted, await id_of(room)) == (known, known)
        assert room_id_in(lines_of(room)[0]) == known


async def test_a_room_that_begins_again_has_another_id(room: ServedRoom) -> None:
    await room.send("all", "before")
    known = await id_of(room)
    await room.stop()
    (room.folder / "journal.jsonl").unlink()
    await room.start()

    assert await id_of(room) != known


async def test_a_journal_that_was_restored_is_the_same_room(room: ServedRoom) -> None:
    await room.send("all", "before")
    backup, known = (room.folder / "journal.jsonl").read_bytes(), await id_of(room)
    await room.send("all", "after")
    await room.stop()
    (room.folder / "journal.jsonl").write_bytes(backup)
    await room.start()

    assert (await id_of(room), len(lines_of(room))) == (known, 1)


async def test_a_first_line_that_could_not_be_written_states_the_id_the_next_time(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    known = await id_of(room)
    with monkeypatch.context() as patched:
        patched.setattr(jsonl_journal, "sync_data", fail)
        assert (await room.call("POST", "/message", {"to": "all", "content": "no"})).status == 507

    async def is_writable() -> bool:
        return bool((await room.get("/health"))["journal"]["writable"])

    await room.until(is_writable)
    await room.send("all", "yes")
    await room.restart()

    assert [room_id_in(line) for line in lines_of(room)] == [known]
    assert await id_of(room) == known
