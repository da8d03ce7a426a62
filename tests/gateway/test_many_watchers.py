"""Many watchers, one that never reads, some that come late: all get all, and the room goes on."""

import asyncio
import resource
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.gateway.watchers import Watcher, events
from tests.rooms import LiveRoom, Room, ThreadRoom
from tests.waiting import wait_until

LATE = 5
TALKERS = 4
MESSAGES = 60


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open a few thousand files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.full)])
async def test_many_watchers_get_every_event(tmp_path: Path, count: int) -> None:
    with ThreadRoom(tmp_path) if count < 100 else LiveRoom(tmp_path) as room:
        first = room.gateway.post("/message", {"to": "all", "content": "the first"})["seq"]
        stuck = await Watcher.connect(room.port, room.token, receive_bytes=4096)
        stuck.stop_reading()
        watchers = await _connect_all(room, count)

        talking = asyncio.gather(*(asyncio.to_thread(_talk, room) for _ in range(TALKERS)))
        late = [await Watcher.connect(room.port, room.token, 0) for _ in range(LATE)]
        await talking
        health = await asyncio.to_thread(room.gateway.get, "/health")
        last = health["seq"]
        for watcher in [*watchers, *late]:
            await wait_until(partial(_has, watcher, last), 60, "the last event")

        past = events(late[0].stream)
        assert [event["seq"] for event in past] == list(range(first, last + 1))
        assert {watcher.stream for watcher in late} == {late[0].stream}
        assert {watcher.stream for watcher in watchers} == {watchers[0].stream}
        assert events(watchers[0].stream) == past[1:]
        assert (health["status"], health["watchers"]) == ("ok", count + LATE + 1)
        await asyncio.gather(*(watcher.close() for watcher in [*watchers, *late, stuck]))


def _has(watcher: Watcher, seq: int) -> bool:
    """Tell whether an event has arrived, without taking all of the stream apart."""
    return b'"seq":%d,' % seq in watcher.tail


def _talk(room: Room) -> None:
    """Send messages one after the other."""
    for number in range(MESSAGES // TALKERS):
        room.gateway.post("/message", {"to": "all", "content": f"text {number}"})


async def _connect_all(room: Room, count: int) -> list[Watcher]:
    watchers: list[Watcher] = []
    for _ in range(count // 50):
        watchers += await asyncio.gather(*(Watcher.connect(room.port, room.token) for _ in range(50)))
    return watchers
