"""Nothing is said before it is safe: acknowledgement, events, deliveries wait for the disk."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.gateway.served import ServedRoom, served
from tests.gateway.watchers import Watcher, closing_code
from tests.waiting import wait_until


class SlowDisk:
    """Stops every sync of a journal until it is told to go on."""

    def __init__(self, room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
        journal = room.gateway.writer.journal
        self._sync = journal.sync
        self._permits = threading.Semaphore(0)
        self._is_stopped = False
        self.began = 0
        self.ended = 0
        monkeypatch.setattr(journal, "sync", self._slow_sync)

    def _slow_sync(self) -> None:
        self.began += 1
        if self._is_stopped:
            assert self._permits.acquire(timeout=120), "nobody let the disk go on"
        self._sync()
        self.ended += 1

    def stop(self) -> None:
        self._is_stopped = True

    def sync_once(self) -> None:
        self._permits.release()

    def go_on(self) -> None:
        self._is_stopped = False
        self._permits.release(1000)

    async def until_syncing(self) -> None:
        await wait_until(lambda: self.began > self.ended, what="a sync")


@pytest.fixture
def disk(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    slow = SlowDisk(room, monkeypatch)
    yield slow
    slow.go_on()


async def _let_others_answer(room: ServedRoom) -> None:
    """Give requests that could be answered now the time for it, by being served again and again."""
    for _ in range(20):
        await room.get("/health")


async def test_nothing_is_acknowledged_or_told_before_the_sync(room: ServedRoom, disk: SlowDisk) -> None:
    claude = await room.join("claude")
    watching, listening = await room.connect(), await room.connect(claude.token)
    disk.stop()
    sending = asyncio.ensure_future(room.send("claude", "hello"))
    op = asyncio.ensure_future(watching.ask("message", to="claude", content="hello too"))
    await disk.until_syncing()
    catching_up = await room.connect(after=0)
    late = await room.connect(claude.token)
    health = await room.get("/health")
    seen = (watching.events, listening.events, listening.delivers, late.delivers, late.events)
    told = [await room.history(), await room.inbox(claude), *map(list, seen)]
    acknowledged = (sending.done(), op.done())

    disk.go_on()
    message = await sending
    await op
    for socket in (watching, listening, catching_up):
        await socket.until_seq(3)
    await wait_until(lambda: len(listening.delivers) == len(late.delivers) == 2)

    assert told == [[]] * 7
    assert (acknowledged, health["seq"]) == ((False, False), 1)
    assert catching_up.seqs == [1, 2, 3]
    assert message in await room.inbox(claude)


async def test_the_states_of_a_message_wait_for_the_disk(room: ServedRoom, disk: SlowDisk) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    disk.stop()
    body = {"id": message, "state": "confirmed"}
    reporting = asyncio.ensure_future(room.call("POST", "/delivery", body, token=claude.token))
    await disk.until_syncing()
    asking = [asyncio.ensure_future(room.get(path)) for path in (f"/messages/{message}", "/queue", "/agents")]
    await _let_others_answer(room)
    answered = [question.done() for question in (reporting, *asking)]

    disk.go_on()
    states, queue, agents = await asyncio.gather(*asking)

    assert answered == [False] * 4
    assert states["recipients"]["claude"]["state"] == "confirmed"
    assert (queue["items"], agents[0]["queued"]) == ([], 0)
    assert (await reporting).status == 200


#: These show no room, or only what is in the journal on disk.
ANSWERED_AT_ONCE: Final = {
    *("/me", "/agents/{id}/screen", "/inbox/{id}", "/history", "/catalogue", "/health", "/metrics"),
    "/openapi.json",
}
QUERIES: Final = {"/board/search": "?q=x", "/markdown": "?ids=n-1"}


async def test_every_view_of_the_room_waits_for_the_disk(room: ServedRoom, disk: SlowDisk) -> None:
    described = (await room.get("/openapi.json"))["paths"]
    views = {path for path, methods in described.items() if "get" in methods} - ANSWERED_AT_ONCE
    disk.stop()
    sending = asyncio.ensure_future(room.send("all", "hello"))
    await disk.until_syncing()
    asking = {
        path: asyncio.ensure_future(room.call("GET", path.replace("{id}", "n-1") + QUERIES.get(path, "")))
        for path in sorted(views)
    }
    await _let_others_answer(room)
    answered = [path for path, question in asking.items() if question.done()]

    disk.go_on()
    await asyncio.gather(sending, *asking.values())

    assert len(views) >= 14
    assert answered == []


async def test_one_sync_serves_all_who_wait(room: ServedRoom, disk: SlowDisk) -> None:
    await room.join("claude")
    before = disk.ended
    disk.stop()
    first = asyncio.ensure_future(room.send("claude", "first"))
    await disk.until_syncing()
    rest = [asyncio.ensure_future(room.send("claude", f"text {n}")) for n in range(100)]
    await wait_until(lambda: room.gateway.writer.room.seq == 102, what="all of them decided")
    disk.go_on()
    await asyncio.gather(first, *rest)

    assert disk.ended - before == 2
    assert len(await room.history("?limit=1000")) == 101


async def test_a_repeated_message_waits_for_the_first_one(room: ServedRoom, disk: SlowDisk) -> None:
    await room.join("claude")
    disk.stop()
    first = asyncio.ensure_future(room.send("claude", "hello", id="mine"))
    await disk.until_syncing()
    second = asyncio.ensure_future(room.send("claude", "hello", id="mine"))
    await _let_others_answer(room)
    is_answered = second.done()

    disk.go_on()

    assert (await first, await second) == ("mine", "mine")
    assert not is_answered
    assert len(await room.history()) == 1


async def test_a_registration_names_no_event_that_could_be_lost(room: ServedRoom, disk: SlowDisk) -> None:
    disk.stop()
    joining = asyncio.ensure_future(room.post("/register", {"agentId": "claude"}))
    await disk.until_syncing()
    sending = asyncio.ensure_future(room.send("all", "not safe yet"))
    await wait_until(lambda: room.gateway.writer.room.seq == 2, what="the message decided")
    disk.sync_once()
    said = await joining

    assert (said["seq"], sending.done()) == (1, False)
    disk.go_on()
    await sending


async def test_a_websocket_opened_while_its_owner_is_removed_is_closed(
    room: ServedRoom, disk: SlowDisk
) -> None:
    claude = await room.join("claude")
    await room.post("/state", {"state": "offline"}, claude.token)
    disk.stop()
    # An agent that was offline is back with its first call, which waits for the disk.
    connecting = asyncio.ensure_future(Watcher.connect(room.port, claude.token, 0))
    await disk.until_syncing()
    removing = asyncio.ensure_future(room.call("DELETE", "/agents/claude"))
    await wait_until(lambda: not room.gateway.writer.room.participants, what="the removal decided")

    disk.go_on()
    watcher = await connecting
    await wait_until(lambda: watcher.is_closed, what="the end of the WebSocket")

    assert (await removing).status == 200
    assert closing_code(watcher.stream) == 4001
    assert room.gateway.sockets == set()


@pytest.mark.parametrize("durability", ["none", "flush", "fsync"])
async def test_every_durability_makes_the_round_trip(tmp_path: Path, durability: str) -> None:
    async with served(tmp_path / "room", durability=durability) as room:
        claude = await room.join("claude")
        socket = await room.connect(claude.token)
        message = await room.send("claude", "hello")
        await wait_until(lambda: socket.delivers)
        await socket.ask("delivery", id=message, state="confirmed")
        answer = await room.post("/agent-output", {"content": "hi", "replyTo": message}, claude.token)
        await socket.until_seq(answer["seq"])
        await room.restart()

        assert await room.states(message) == {"claude": "confirmed"}
        assert [item["text"] for item in await room.history()] == ["hello", "hi"]


@pytest.mark.parametrize("durability", ["none", "flush"])
async def test_only_fsync_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    async with served(tmp_path / "room", durability=durability) as room:
        disk = SlowDisk(room, monkeypatch)
        disk.stop()

        await room.send("all", "hello")
        waited_for = disk.began
        # The journal is synced when it is closed, whatever its durability.
        disk.go_on()

        assert waited_for == 0
