"""A reader that comes back gets exactly what it has missed, whatever goes on meanwhile."""

import asyncio
import random
from pathlib import Path

import pytest

from csp.gateway import broadcast
from csp.gateway.broadcast import MAX_UNSENT_BYTES
from tests.gateway.served import ServedRoom, served
from tests.gateway.sockets import Socket
from tests.gateway.watchers import Watcher, closing_code, events
from tests.waiting import wait_until

#: More than the kernel's own buffers and the gateway's limit together can hide.
MUCH = 200
LONG = "x" * 100_000


async def _talk(room: ServedRoom, count: int, text: str = "text") -> int:
    """Send many messages; return the seq of the last event."""
    socket = await room.connect()
    for number in range(count):
        await socket.send({"op": "message", "ref": number, "to": "all", "content": f"{text} {number}"})
    await wait_until(lambda: len(socket.answers) == count, 60, "all answers")
    await socket.close()
    return room.gateway.writer.safe_seq


@pytest.mark.parametrize("is_restarted", [True, False])
async def test_after_n_gives_exactly_what_came_after_n(room: ServedRoom, is_restarted: bool) -> None:
    last = await _talk(room, 20)
    if is_restarted:
        await room.restart()

    for after in (0, 1, 7, last - 1, last):
        socket = await room.connect(after=after)
        await room.send("all", "one more")
        last += 1
        await socket.until_seq(last)

        assert socket.seqs == list(range(after + 1, last + 1))


async def test_without_after_only_news_come(room: ServedRoom) -> None:
    await _talk(room, 5)
    socket = await room.connect()

    await room.send("all", "news")
    await socket.until_seq(6)

    assert socket.seqs == [6]


async def test_after_the_end_waits_for_what_comes(room: ServedRoom) -> None:
    await _talk(room, 3)
    socket = await room.connect(after=1000)

    await room.send("all", "news")
    await socket.until_seq(4)

    assert socket.texts == ["news"]


async def test_a_long_past_arrives_whole(room: ServedRoom) -> None:
    last = await _talk(room, 3000)

    socket = await room.connect(after=0)
    await socket.until_seq(last, 60)

    assert socket.seqs == list(range(1, last + 1))


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_or_doubled_while_many_write(room: ServedRoom, seed: int) -> None:
    chance = random.Random(seed)
    claude = await room.join("claude")
    done = asyncio.Event()

    async def write(name: str) -> None:
        member = await room.join(name)
        for number in range(60):
            to = chance.choice(["all", "claude", "human"])
            await room.send(to, f"{name} {number}", member.token)

    async def read(token: str) -> tuple[int, list[int]]:
        for _ in range(chance.randrange(40)):
            await asyncio.sleep(0)
        first = after = chance.randrange(room.gateway.writer.safe_seq + 1)
        seqs: list[int] = []
        while True:
            is_last = done.is_set()
            socket = await room.connect(token, after)
            await _read_some(socket, chance.randrange(1, 40), done)
            if is_last and after < room.gateway.writer.safe_seq:
                await socket.until_seq(room.gateway.writer.safe_seq, 60)
            await socket.close()
            seqs += socket.seqs
            after = max([after, *socket.seqs])
            if is_last:
                return first, seqs

    readers = [asyncio.ensure_future(read(room.token)) for _ in range(8)]
    readers += [asyncio.ensure_future(read(claude.token)) for _ in range(4)]
    await asyncio.gather(*(write(f"writer-{number}") for number in range(6)))
    await room.send("all", "the end")
    done.set()
    results = await asyncio.gather(*readers)

    last = room.gateway.writer.safe_seq
    concerning = await _concerning(room, claude.token)
    assert all(seqs == list(range(first + 1, last + 1)) for first, seqs in results[:8])
    assert all(seqs == [s for s in concerning if s > first] for first, seqs in results[8:])


async def _read_some(socket: Socket, count: int, done: asyncio.Event) -> None:
    await wait_until(lambda: len(socket.events) >= count or done.is_set(), 60)


async def _concerning(room: ServedRoom, token: str) -> list[int]:
    """Return the seqs an agent sees in a quiet room."""
    socket = await room.connect(token, after=0)
    await socket.until_seq(room.gateway.writer.safe_seq)
    return socket.seqs


async def _flood(room: ServedRoom, reader: Socket) -> tuple[int, int]:
    """Send more than a stuck reader can be given; return the last seq and the most that waited for one."""
    most = 0
    for number in range(MUCH):
        sent = await room.post("/message", {"to": "all", "content": f"{LONG} {number}"})
        await reader.until_seq(sent["seq"])
        most = max([most, *(_unsent(connection) for connection in room.gateway.sockets)])
    return int(sent["seq"]), most


def _unsent(connection: object) -> int:
    return int(connection._pipe.unsent_bytes)  # type: ignore[attr-defined]  # what waits in memory for one reader


async def test_a_reader_that_falls_behind_is_dropped_and_resumes(tmp_path: Path) -> None:
    async with served(tmp_path / "room", durability="flush") as room:
        reader = await room.connect()
        stuck = await Watcher.connect(room.port, room.token, receive_bytes=4096)
        stuck.stop_reading()

        last, most = await _flood(room, reader)
        stuck.read_on()
        await wait_until(lambda: stuck.is_closed, 60, "the end of the stuck reader")
        before = events(stuck.stream)
        again = await room.connect(after=before[-1]["seq"])
        await again.until_seq(last, 60)

        seqs = [event["seq"] for event in before] + again.seqs
        assert reader.seqs == list(range(1, last + 1))
        assert closing_code(stuck.stream) == 1013
        assert seqs == list(range(1, last + 1))
        assert most < MAX_UNSENT_BYTES + 4 * len(LONG)


async def test_a_reader_that_never_reads_is_gone_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "GOING_S", 0.5)
    async with served(tmp_path / "room", durability="flush") as room:
        reader = await room.connect()
        stuck = [
            await Watcher.connect(room.port, room.token, after, receive_bytes=4096) for after in (None, None)
        ]
        for watcher in stuck:
            watcher.stop_reading()
        await _flood(room, reader)

        await wait_until(lambda: len(room.gateway.sockets) == 1, 60, "the end of those that never read")

        assert not reader.is_closed
        assert (await room.get("/health"))["watchers"] == 1
        for watcher in stuck:
            await watcher.close()


async def test_catching_up_without_reading_costs_little_memory(tmp_path: Path) -> None:
    async with served(tmp_path / "room", durability="flush") as room:
        reader = await room.connect()
        last, _ = await _flood(room, reader)
        stuck = await Watcher.connect(room.port, room.token, 0, receive_bytes=4096)
        stuck.stop_reading()
        quick = await room.connect(after=0)
        await quick.until_seq(last, 60)

        most = max(_unsent(connection) for connection in room.gateway.sockets)
        stuck.read_on()
        await wait_until(lambda: len(events(stuck.stream)) >= last, 60)

        assert most < MAX_UNSENT_BYTES
        assert [event["seq"] for event in events(stuck.stream)] == list(range(1, last + 1))
        await stuck.close()
