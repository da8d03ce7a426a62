"""Files of a room that are not its own: of another room, an older copy, a pipe; one that was deleted."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from csp.errors import JournalLocked
from csp.gateway.journal_maintenance import finish_rewrites
from csp.journal import jsonl_journal
from csp.journal.jsonl_journal import JsonlJournal
from tests.chaos.readers import deadline
from tests.gateway.served import ServedRoom, served
from tests.waiting import wait_until


async def _names(room: ServedRoom) -> list[str]:
    return sorted(agent["id"] for agent in await room.get("/agents") if agent["id"] != "human")


async def test_a_journal_of_another_room_is_not_mixed_with_snapshots_of_this_one(tmp_path: Path) -> None:
    async with served(tmp_path / "other") as other:
        await other.join("codex")
        for number in range(9):
            await other.send("codex", f"other {number}")
    async with served(tmp_path / "room") as room:
        await room.join("claude")
        await room.send("claude", "this one")
        await room.stop()
        assert list(room.folder.glob("snapshot-*.json"))
        shutil.copyfile(tmp_path / "other/journal.jsonl", room.folder / "journal.jsonl")
        await room.start()

        assert await _names(room) == ["codex"]


async def test_what_a_failing_disk_may_have_lost_is_not_found_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error of fsync the kernel may call the next one a success though the bytes are lost."""

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    room = served(tmp_path / "room", durability="fsync")
    await room.start()
    try:
        await room.join("claude")
        before = (room.folder / "journal.jsonl").read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(jsonl_journal, "sync_data", fail)
            answer = await room.call("POST", "/message", {"to": "claude", "content": "unsafe"})
            await wait_until(lambda: room.gateway.writer.broken.done())
        assert room.gateway.writer.broken.exception() is not None
    finally:
        await room.stop()

    assert answer.status == 500
    assert (room.folder / "journal.jsonl").read_bytes() == before


def test_a_deleted_lock_file_lets_no_second_gateway_in(tmp_path: Path) -> None:
    first = JsonlJournal.open(tmp_path)
    (tmp_path / "journal.lock").unlink()
    with pytest.raises(JournalLocked):
        JsonlJournal.open(tmp_path)
    first.close()

    JsonlJournal.open(tmp_path).close()


@pytest.mark.parametrize("name", ["pages.json", "rewrite.json", "journal.torn", "snapshot"])
async def test_a_pipe_in_the_place_of_a_file_does_not_hold_up_the_start(room: ServedRoom, name: str) -> None:
    await room.send("all", "before")
    await room.stop()
    with (room.folder / "journal.jsonl").open("ab") as journal:
        journal.write(b"torn")
    path = next(room.folder.glob("snapshot-*.json")) if name == "snapshot" else room.folder / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with deadline():
        await room.start()
        await finish_rewrites(room.gateway)

    assert [item["text"] for item in await room.history("?types=human_message")] == ["before"]


@pytest.mark.parametrize("name", ["pages.json", "rewrite.json", "snapshot"])
async def test_a_file_that_is_nested_too_deep_is_passed_over(room: ServedRoom, name: str) -> None:
    await room.send("all", "before")
    await room.stop()
    path = next(room.folder.glob("snapshot-*.json")) if name == "snapshot" else room.folder / name
    path.write_bytes(b"[" * 200_000 if name == "pages.json" else b'{"a":' * 200_000)
    await room.start()
    await finish_rewrites(room.gateway)

    assert [item["text"] for item in await room.history("?types=human_message")] == ["before"]
