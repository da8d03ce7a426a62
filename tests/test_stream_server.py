"""What the TCP servers of the tests leave behind: nothing."""

import asyncio
import gc
import socket
import sys
from contextlib import ExitStack

import pytest

from tests.stream_server import StreamServer, abort

CLIENTS = 20


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readexactly(1))
    await asyncio.Event().wait()


async def _serve(stack: ExitStack, *, steps: int) -> list[socket.socket]:
    """Let clients connect, and end the server after some steps of the loop."""
    async with StreamServer(_hang) as server:
        address = ("127.0.0.1", server.port)
        clients = [stack.enter_context(socket.create_connection(address, 60)) for _ in range(CLIENTS)]
        for client in clients:
            client.sendall(b"x")
        for _ in range(steps):
            await asyncio.sleep(0)
    return clients


@pytest.mark.parametrize("steps", range(9))
def test_no_connection_outlives_its_server(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: warned.append(found.exc_value))
    with ExitStack() as stack:
        asyncio.run(_serve(stack, steps=steps))
        gc.collect()

    assert warned == []


async def test_a_cut_ends_each_handler_and_each_connection() -> None:
    async with StreamServer(_hang) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        server.cut()
        rest = await reader.read()
        await abort(writer)

    assert rest == b""
