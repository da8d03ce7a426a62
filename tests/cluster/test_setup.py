"""Streams are created as a log needs them; one that would lose events is refused."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from csp.cluster.bus import Bus
from csp.cluster.setup import API_S, open_stream, stream_config
from csp.errors import Broken, LogLost
from tests.cluster.nats_servers import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path) as server:
        yield server


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[Bus]:
    bus = await Bus.open([server.url])
    yield bus
    await bus.close()


async def test_a_stream_is_created_once_by_many(bus: Bus) -> None:
    await asyncio.gather(*(open_stream(bus, 3, 1) for _ in range(5)))
    found = await bus.ask("STREAM.INFO.CSP_J_3", {}, timeout_s=API_S)

    assert {key: found["config"][key] for key in stream_config(3, 1)} == stream_config(3, 1)


async def test_a_stream_that_is_there_is_not_changed(bus: Bus) -> None:
    config = stream_config(0, 1) | {"max_bytes": 1 << 20, "description": "of an operator"}
    await bus.ask("STREAM.CREATE.CSP_J_0", config, timeout_s=API_S)
    before = await bus.ask("STREAM.INFO.CSP_J_0", {}, timeout_s=API_S)
    await open_stream(bus, 0, 1)
    after = await bus.ask("STREAM.INFO.CSP_J_0", {}, timeout_s=API_S)

    assert after["config"] == before["config"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("discard", "old"),
        ("storage", "memory"),
        ("max_age", 3600 * 10**9),
        ("max_msgs_per_subject", 5),
        ("allow_direct", False),
        ("subjects", ["csp.j.0.one"]),
        ("republish", None),
        ("retention", "interest"),
    ],
)
async def test_a_stream_that_would_lose_events_is_refused(bus: Bus, key: str, value: object) -> None:
    config = stream_config(0, 1) | {key: value}
    made = await bus.ask("STREAM.CREATE.CSP_J_0", config, timeout_s=API_S)
    assert "error" not in made

    with pytest.raises(Broken, match=f"stream CSP_J_0 has {key} = "):
        await open_stream(bus, 0, 1)


async def test_a_server_that_cannot_hold_streams_is_named(bus: Bus) -> None:
    with pytest.raises(LogLost, match="stream CSP_J_0 cannot be used: "):
        await open_stream(bus, 0, 3)
