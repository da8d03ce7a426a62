"""A connection to NATS servers that is replaced when it is lost."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from csp.cluster.bus import DEAD_S, STALL_S, Bus
from csp.cluster.servers import NatsServers
from csp.errors import Broken, LogLost
from tests.cluster.nats_servers import NatsServer
from tests.rooms import free_port
from tests.stream_server import StreamServer
from tests.waiting import wait_until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path) as server:
        yield server


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[Bus]:
    bus = await Bus.open([server.url])
    yield bus
    await bus.close()


async def answers(bus: Bus) -> bool:
    try:
        return "error" not in await bus.ask("INFO", {}, timeout_s=1)
    except LogLost:
        return False


async def test_a_request_is_answered(bus: Bus) -> None:
    assert (await bus.ask("INFO", {}, timeout_s=5))["streams"] == 0
    assert bus.max_payload == 1 << 20


async def test_a_subject_without_listeners_is_no_answer(bus: Bus) -> None:
    with pytest.raises(LogLost, match="no responders"):
        await bus.request("nobody.here", b"", timeout_s=5)


async def test_no_server_is_an_error_that_names_it(server: NatsServer) -> None:
    url = f"nats://127.0.0.1:{free_port()}"
    with pytest.raises(LogLost, match=url):
        await Bus.open([url])
    bus = await Bus.open([url, server.url])
    is_connected = bus.is_connected
    await bus.close()

    assert (is_connected, bus.is_connected) == (True, False)


@pytest.mark.parametrize("is_frozen", [False, True])
async def test_a_lost_server_is_replaced_by_another(tmp_path: Path, is_frozen: bool) -> None:
    with NatsServer(tmp_path / "one") as one, NatsServer(tmp_path / "two") as two:
        bus = await Bus.open([one.url])
        bus._servers = NatsServers((two.url,))
        if is_frozen:
            one.signal(signal.SIGSTOP)
        else:
            await asyncio.to_thread(one.kill)
        asked: Callable[[], bool | Awaitable[bool]] = partial(answers, bus)
        await wait_until(asked)
        await bus.close()


async def test_a_process_that_was_held_up_keeps_its_connection(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bus._client
    assert client is not None
    flush, pings = client.flush, list[float]()

    async def held_up(timeout: int = 10) -> None:
        pings.append(time.monotonic())
        if len(pings) == 1:
            # Before the ping has left.
            time.sleep(DEAD_S + 2 * STALL_S)
        await flush(timeout)

    monkeypatch.setattr(client, "flush", held_up)
    await wait_until(lambda: len(pings) > 2 or bus._client is not client)

    assert bus._client is client


async def test_requests_wait_for_the_next_connection(server: NatsServer, bus: Bus) -> None:
    await asyncio.to_thread(server.kill)
    await wait_until(lambda: not bus.is_connected)
    waiting = asyncio.ensure_future(bus.ask("INFO", {}, timeout_s=60))
    with pytest.raises(LogLost, match="TimeoutError"):
        await bus.ask("INFO", {}, timeout_s=0.01)
    await asyncio.to_thread(server.start)

    assert "error" not in await waiting


async def test_a_reader_hears_of_a_gap_and_goes_on(server: NatsServer, bus: Bus) -> None:
    heard: list[bytes | None] = []

    def hear(message: Any) -> None:
        heard.append(message and message.data)

    async def say(word: bytes) -> None:
        # Over the bus itself, so that the subscription is known to the server before.
        async with bus._answering(60) as client:
            await client.publish("news", word)

    end = await bus.follow("news", hear)
    await say(b"one")
    await wait_until(lambda: heard)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await wait_until(lambda: len(heard) == 2)
    await say(b"two")
    await wait_until(lambda: len(heard) == 3)
    await end()

    assert heard == [b"one", None, b"two"]


async def test_two_readers_of_one_subject_get_each_message_once(bus: Bus) -> None:
    heard: list[str] = []
    ends = [await bus.follow("news", lambda message, name=name: heard.append(name)) for name in "ab"]  # type: ignore[misc]

    async def say() -> None:
        async with bus._answering(60) as client:
            await client.publish("news", b"")
            await client.flush()

    await say()
    await wait_until(lambda: len(heard) == 2)
    await ends[0]()
    await say()
    await wait_until(lambda: len(heard) == 3)
    await ends[1]()
    await say()
    # A new reader begins with the next message.
    end = await bus.follow("news", lambda message: heard.append("c"))
    await say()
    await wait_until(lambda: len(heard) == 4)
    await end()

    assert heard == ["a", "b", "b", "c"]


@pytest.mark.parametrize("version", ["2.9.10", "2.10.26"])
async def test_a_server_that_is_too_old_is_refused_with_the_reason(version: str) -> None:
    async def be_old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"server_id": "x", "version": version, "max_payload": 1 << 20, "headers": True, "proto": 1}
        writer.write(b"INFO " + json.dumps(info).encode() + b"\r\n")
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")

    async with StreamServer(be_old) as old:
        with pytest.raises(Broken, match=f"version {version}, expected 2.11 or newer") as refused:
            await Bus.open([f"nats://127.0.0.1:{old.port}"])

    assert "two writers" in refused.value.hint
