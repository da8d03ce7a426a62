"""Connections to the link's port reach the socket of ssh, as long as there is one."""

import asyncio
import socketserver
import threading
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from csp.join import forwarder as forwarder_module
from csp.join.forwarder import Forwarder
from tests.stream_server import StreamServer


class Echo(socketserver.StreamRequestHandler):
    """Answers in capitals until the other side has said everything."""

    def handle(self) -> None:
        while data := self.connection.recv(65536):
            self.connection.sendall(data.upper())


@pytest.fixture
async def way(tmp_path: Path) -> AsyncIterator[tuple[Forwarder, int]]:
    """A forwarder to an echo, and its port."""
    path = tmp_path / "sock"
    forwarder = Forwarder(path)
    with socketserver.ThreadingUnixStreamServer(str(path), Echo) as echo:
        echo.daemon_threads = True
        serving = threading.Thread(target=echo.serve_forever)
        serving.start()
        async with StreamServer(forwarder.serve) as here:
            yield forwarder, here.port
        echo.shutdown()
        serving.join()


async def ask(port: int, data: bytes) -> bytes:
    """Send bytes and close that direction; return all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.transport.abort()


async def ended(reading: Awaitable[bytes]) -> bool:
    """Return whether nothing more comes, whichever way the connection ends."""
    try:
        return await reading == b""
    except ConnectionResetError:
        return True


async def test_bytes_go_both_ways_and_so_does_the_end(way: tuple[Forwarder, int]) -> None:
    forwarder, port = way
    forwarder.open()
    data = b"hello " * 100_000

    assert await ask(port, data) == data.upper()


async def test_a_connection_waits_for_a_link_that_is_about_to_be_up(way: tuple[Forwarder, int]) -> None:
    forwarder, port = way
    asking = asyncio.create_task(ask(port, b"early"))
    await asyncio.sleep(0)
    forwarder.open()

    assert await asking == b"EARLY"


async def test_a_connection_ends_if_the_link_stays_down(
    way: tuple[Forwarder, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder_module, "PATIENCE_S", 0.01)
    assert await ended(ask(way[1], b"never"))


async def test_a_lost_link_ends_the_connections(way: tuple[Forwarder, int]) -> None:
    forwarder, port = way
    forwarder.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"x")
    assert await reader.read(1) == b"X"
    forwarder.cut()
    assert await ended(reader.read(1))
    writer.transport.abort()
