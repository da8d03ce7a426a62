"""A thousand watchers, one that never reads and one from the start: all of them, and the room goes on."""

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.gateway.watchers import Watcher, events
from tests.rooms import LiveRoom
from tests.waiting import wait_until

WATCHERS = 1000
MESSAGES = 100


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open a few thousand files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_a_thousand_watchers_get_every_event(tmp_path: Path) -> None:
    with LiveRoom(tmp_path) as room:
        gateway = room.gateway
        first = gateway.post("/message", {"to": "all", "content": "the first"})["seq"]
        stuck = await Watcher.connect(room.port, room.token, receive_bytes=4096)
        stuck.stop_reading()
        watchers = await _connect_all(room)
        slowest_s = 0.0

        for number in range(MESSAGES):
            began = monotonic()
            body = {"to": "all", "content": f"text {number}"}
            last = (await asyncio.to_thread(gateway.post, "/message", body))["seq"]
            slowest_s = max(slowest_s, monotonic() - began)
        history = await Watcher.connect(room.port, room.token, 0)
        await wait_until(lambda: len(history.stream) > 0 and events(history.stream)[-1]["seq"] == last, 30)
        past = events(history.stream)
        await wait_until(
            lambda: len({watcher.stream_bytes for watcher in watchers}) == 1, 60, "equal streams"
        )
        await wait_until(lambda: events(watchers[0].stream)[-1]["seq"] == last, 60, "the last event")
        await wait_until(
            lambda: len({watcher.stream_bytes for watcher in watchers}) == 1, 60, "equal streams"
        )
        health = await asyncio.to_thread(gateway.get, "/health")

        assert [event["seq"] for event in past] == list(range(first, last + 1))
        assert len({watcher.stream for watcher in watchers}) == 1
        assert events(watchers[0].stream) == past[1:]
        assert (health["status"], health["watchers"]) == ("ok", WATCHERS + 2)
        assert slowest_s < 5
        for watcher in [*watchers, stuck, history]:
            await watcher.close()


async def _connect_all(room: LiveRoom) -> list[Watcher]:
    watchers: list[Watcher] = []
    for _ in range(WATCHERS // 50):
        watchers += await asyncio.gather(*(Watcher.connect(room.port, room.token) for _ in range(50)))
    return watchers
