"""A disk that takes no more: the room turns read-only, loses nothing, goes on by itself."""

import asyncio
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.errors import CspError, StorageFull
from csp.fast_start.atomic_files import sync_data, write_all
from csp.journal import jsonl_journal
from tests.gateway.processes import SmallDisk
from tests.gateway.served import ServedRoom
from tests.waiting import wait_until, wait_until_sync


class FullDisk:
    """Makes the writes or the syncs of a journal fail as on a full disk, the writes in the middle."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.write_fails = False
        self.sync_fails = False
        monkeypatch.setattr(jsonl_journal, "write_all", self._write)
        monkeypatch.setattr(jsonl_journal, "sync_data", self._sync)

    def _write(self, fd: int, data: bytes, offset: int) -> None:
        if self.write_fails or self.sync_fails:
            write_all(fd, data if self.sync_fails else data[: len(data) // 2], offset)
        if self.write_fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_all(fd, data, offset)

    def _sync(self, fd: int) -> None:
        if self.sync_fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync_data(fd)

    def recover(self) -> None:
        self.write_fails = self.sync_fails = False


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[FullDisk]:
    full = FullDisk(monkeypatch)
    yield full
    full.recover()


async def _is_well(room: ServedRoom) -> bool:
    return bool((await room.get("/health"))["status"] == "ok")


@pytest.mark.parametrize("where", ["write_fails", "sync_fails"])
async def test_a_failed_write_leaves_no_trace(room: ServedRoom, disk: FullDisk, where: str) -> None:
    claude = await room.join("claude")
    safe = await room.send("claude", "safe")
    watching, listening = await room.connect(), await room.connect(claude.token)
    journal = (room.folder / "journal.jsonl").read_bytes()
    setattr(disk, where, True)

    calls = [room.call("POST", "/message", {"to": "claude", "content": f"lost {n}"}) for n in range(10)]
    calls += [room.call("POST", "/register", {"agentId": "codex"}), room.call("POST", "/agents/claude/pause")]
    answers, op = await asyncio.gather(
        asyncio.gather(*calls), watching.ask("message", to="claude", content="lost too")
    )

    assert {answer.status for answer in answers} == {507}
    assert all(answer.data["error"] and answer.data["hint"] for answer in answers)
    assert "disk" in op["error"]
    assert (await room.call("DELETE", "/agents/claude")).status == 507
    assert (await room.get("/health"))["status"] == "read-only"
    assert [item["text"] for item in await room.history()] == ["safe"]
    assert await room.inbox(claude) == [safe]
    assert [view["state"] for view in await room.get("/agents")] == ["idle"]
    assert (room.folder / "journal.jsonl").read_bytes() == journal

    disk.recover()
    await room.until(lambda: _is_well(room), "the room writable again")
    after = await room.post("/message", {"to": "claude", "content": "after"})
    await watching.until_seq(after["seq"])
    await wait_until(lambda: listening.delivers[-1]["id"] == after["id"])

    assert after["seq"] == 3
    assert watching.texts == ["after"]
    assert [deliver["text"] for deliver in listening.delivers] == ["safe", "after"]
    await room.restart()
    assert [item["text"] for item in await room.history()] == ["safe", "after"]


async def test_what_was_decided_after_the_failed_batch_is_lost_with_it(
    room: ServedRoom, disk: FullDisk
) -> None:
    await room.join("claude")
    disk.sync_fails = True

    first = asyncio.ensure_future(room.call("POST", "/message", {"to": "claude", "content": "one"}))
    rest = [room.call("POST", "/message", {"to": "claude", "content": "more"}) for _ in range(50)]
    answers = await asyncio.gather(first, *rest)

    assert {answer.status for answer in answers} == {507}
    assert await room.history() == []


async def test_an_offline_agent_can_still_read_on_a_full_disk(room: ServedRoom, disk: FullDisk) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    await room.post("/state", {"state": "offline"}, claude.token)
    disk.write_fails = True

    assert await room.inbox(claude) == [message]


async def test_a_removal_on_a_full_disk_is_507(room: ServedRoom, disk: FullDisk) -> None:
    await room.join("claude")
    message = await room.send("claude", "a secret")
    await room.send("all", "hello")
    disk.write_fails = True

    redact = await room.call("POST", f"/messages/{message}/redact")
    prune = await room.call("POST", "/history/prune", {"before": 2})

    assert (redact.status, prune.status) == (507, 507)
    disk.recover()
    await room.until(lambda: _is_well(room), "the room writable again")
    assert (await room.call("POST", f"/messages/{message}/redact")).status == 200


# --- a disk of one megabyte ----------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    with SmallDisk(tmp_path) as room:
        yield room


def _talk_until_full(room: SmallDisk, size: int = 3000) -> list[str]:
    """Send messages until one is refused; return the texts of those that were acknowledged."""
    sent: list[str] = []
    while True:
        try:
            room.gateway.post("/message", {"to": "claude", "content": f"{len(sent)} " + "x" * size})
        except StorageFull:
            return sent
        sent.append(str(len(sent)))


def _texts(room: SmallDisk) -> list[str]:
    items = room.gateway.get("/history", after=0, limit=1000)["items"]
    return [item["text"].split()[0] for item in items]


def test_a_room_on_a_full_disk_reads_on_and_recovers(small: SmallDisk) -> None:
    gateway = small.gateway
    gateway.post("/register", {"agentId": "claude"})
    small.fill(but_bytes=32 * 1024)

    sent = _talk_until_full(small)
    said = [_status(small, path) for path in ("/register", "/message", f"/messages/m-{len(sent)}/redact")]

    assert len(sent) > 0
    assert (said, gateway.get("/health")["status"]) == ([507] * 3, "read-only")
    assert _texts(small) == sent
    assert len(gateway.get("/inbox/claude")["items"]) == len(sent)

    small.free()
    wait_until_sync(lambda: gateway.get("/health")["status"] == "ok", what="the room writable again")
    gateway.post("/message", {"to": "claude", "content": "after"})

    assert _texts(small) == [*sent, "after"]
    assert "Traceback" not in small.said()


def test_a_room_starts_on_a_full_disk(small: SmallDisk) -> None:
    small.gateway.post("/register", {"agentId": "claude"})
    small.fill(but_bytes=32 * 1024)
    sent = _talk_until_full(small)

    small.kill9()
    small.wait()
    # Whatever the crash has given back is taken away again.
    small.fill()

    assert _texts(small) == sent
    assert _status(small, "/message") == 507
    small.free()
    wait_until_sync(lambda: _status(small, "/message") == 200, what="the room writable again")
    assert _texts(small) == [*sent, "text"]


def test_a_snapshot_that_does_not_fit_is_done_without(small: SmallDisk) -> None:
    small.gateway.post("/register", {"agentId": "claude"})
    for number in range(3):
        small.gateway.post("/message", {"to": "claude", "content": f"{number} " + "x" * 60_000})
    small.fill(but_bytes=16 * 1024)
    small.gateway.post("/message", {"to": "claude", "content": "a little more"})

    code = small.end()

    assert code == 0
    assert "snapshot not saved" in small.said()
    assert "Traceback" not in small.said()


def _status(room: SmallDisk, path: str) -> int:
    bodies = {
        "/register": {"agentId": "codex"},
        "/message": {"to": "claude", "content": "text " + "x" * 9000},
    }
    try:
        room.gateway.post(path, bodies.get(path, {}))
    except CspError as error:
        return error.status
    return 200
