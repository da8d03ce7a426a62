"""A TCP proxy in front of a gateway that can block WebSocket, hold bytes back, cut connections."""

import asyncio
from collections.abc import Coroutine
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

from tests.stream_server import StreamServer, abort


class Upgrades(StrEnum):
    """What becomes of a request for a WebSocket."""

    PASS = "pass"
    ANSWER_502 = "answer 502"
    HANG_UP = "hang up"
    SWALLOW = "grant, then carry nothing"


_HTML_502 = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 11\r\nConnection: close\r\n\r\n<h1>no</h1>"


class Proxy:
    def __init__(self, port: int) -> None:
        self.upgrades = Upgrades.PASS
        #: How many requests for a WebSocket have come.
        self.asked = 0
        #: How many requests have been passed on.
        self.passed = 0
        #: Requests that begin otherwise are passed on, but their connection ends instead of their answer.
        self.answers_only = b""
        #: Whether new connections are taken at all.
        self.is_open = True
        self._target = port
        self._to_gateway = asyncio.Event()
        self._to_client = asyncio.Event()
        self._server = StreamServer(self._pass_on)
        self.flow()

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        self.url = f"http://127.0.0.1:{self._server.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flow()
        await self._server.__aexit__(kind, exc, trace)

    def hold(self, *, to_gateway: bool = True, to_client: bool = True) -> None:
        """Stop passing bytes on, as a network without a route does."""
        if to_gateway:
            self._to_gateway.clear()
        if to_client:
            self._to_client.clear()

    def flow(self) -> None:
        """Pass bytes on again."""
        self._to_gateway.set()
        self._to_client.set()

    def cut(self) -> None:
        """Reset every connection."""
        self._server.cut()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            return
        head = await reader.readuntil(b"\r\n\r\n")
        is_upgrade = b"upgrade: websocket" in head.lower()
        if is_upgrade:
            self.asked += 1
            if self.upgrades is Upgrades.ANSWER_502:
                writer.write(_HTML_502)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
            if self.upgrades in (Upgrades.ANSWER_502, Upgrades.HANG_UP):
                return
        there, here = await asyncio.open_connection("127.0.0.1", self._target)
        self.passed += 1
        try:
            here.write(head)
            if not head.startswith(self.answers_only):
                await _both(_pump(reader, here, self._to_gateway), _answered(there))
                return
            if is_upgrade and self.upgrades is Upgrades.SWALLOW:
                writer.write(await there.readuntil(b"\r\n\r\n"))
                await reader.read()
                return
            await _both(_pump(reader, here, self._to_gateway), _pump(there, writer, self._to_client))
        finally:
            await abort(here)


async def _both(first: Coroutine[Any, Any, None], second: Coroutine[Any, Any, None]) -> None:
    """Return when one direction has ended."""
    tasks = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answered(reader: asyncio.StreamReader) -> None:
    await reader.read(1)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    while True:
        await gate.wait()
        data = await reader.read(65536)
        if not data:
            # What was sent last must arrive before the connection goes.
            writer.close()
            await writer.wait_closed()
            return
        await gate.wait()
        writer.write(data)
        await writer.drain()
