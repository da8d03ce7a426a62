"""Connections: a light reader until the head of the first request, then aiohttp's protocol.

Until the head is complete, a connection has no parser and no task. Then its token decides whether it
gets a place at all, and aiohttp takes it over.
"""

import asyncio
import re
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from csp.gateway.connections import Connections, Guest
from csp.gateway.responses import refusal_bytes

MAX_HEAD_BYTES: Final = 64 * 1024
_FIRST_LINE: Final = re.compile(rb"[A-Z]+ \S+ HTTP/1\.[01]\r\n")
HEAD_END: Final = b"\r\n\r\n"


class HttpConnection(RequestHandler):
    """aiohttp's connection; it cancels the work for a caller that has hung up."""

    __slots__ = ("_connections", "guest", "work")

    def __init__(self, server: "HttpServer", guest: Guest, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._connections = server.guests
        self.guest = guest
        #: The work for the caller, if it may be cancelled.
        self.work: asyncio.Task[Any] | None = None

    def data_received(self, data: bytes) -> None:
        guest = self.guest
        if data and not guest.is_busy and guest.since is None:
            guest.since = self._loop.time()
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        work, self.work = self.work, None
        self._connections.close(self.guest)
        super().connection_lost(exc)
        if work is not None:
            work.cancel()


class HttpServer(web.Server):
    """aiohttp's server, with a reader of heads in front of each connection."""

    def __init__(self, handler: Any, guests: Connections, request_factory: Any, **options: Any) -> None:
        super().__init__(handler, request_factory=request_factory)
        self.guests = guests
        self._options = options

    def __call__(self, guest: Guest | None = None, early: bytes = b"") -> "HeadReader":  # type: ignore[override]  # it hands over to one
        return HeadReader(self, guest, early)

    def take_over(self, guest: Guest) -> HttpConnection:
        """Return aiohttp's side of a connection."""
        return HttpConnection(self, guest, **self._options)

    def pre_shutdown(self) -> None:
        self.guests.close_strangers()
        super().pre_shutdown()


class HeadReader(asyncio.Protocol):
    """Collects the head of the first request; `early` is what was read before."""

    __slots__ = ("_early", "_guest", "_head", "_server", "_transport")

    def __init__(self, server: HttpServer, guest: Guest | None, early: bytes) -> None:
        self._server = server
        self._guest = guest
        self._early = early
        self._head = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        guests = self._server.guests
        if self._guest is None:
            self._guest = guests.open(self._transport.abort)
        guests.connected(self._guest, self._transport)
        if self._early:
            self.data_received(self._early)

    def data_received(self, data: bytes) -> None:
        looked_at = max(0, len(self._head) - len(HEAD_END) + 1)
        self._head += data
        if self._head.find(HEAD_END, looked_at) >= 0 or not _may_be_head(self._head):
            self._hand_over()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._guest is not None:
            self._server.guests.close(self._guest)

    def _hand_over(self) -> None:
        assert self._transport is not None and self._guest is not None
        if self._transport.is_closing():
            return
        head = bytes(self._head)
        refused = self._server.guests.refusal(head)
        if refused is not None:
            self._transport.write(refusal_bytes(refused))
            self._transport.close()
            return
        connection = self._server.take_over(self._guest)
        self._transport.set_protocol(connection)
        connection.connection_made(self._transport)
        connection.data_received(head)


def _may_be_head(data: bytearray) -> bool:
    """Return whether to wait for the rest of a head; aiohttp answers what is not a head."""
    if len(data) > MAX_HEAD_BYTES or b"\n\n" in data:
        return False
    if b"\n" in data:
        return _FIRST_LINE.match(data) is not None
    return data[:1].isalpha()
