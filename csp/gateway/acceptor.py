"""Accept TCP connections in small batches and read the head of each first request.

Until that head is complete, a connection has no parser and no task. Then its token decides whether it is
admitted at all, and aiohttp takes it over. Some file descriptors are always kept in reserve.
"""

import asyncio
import contextlib
import errno
import re
import socket
import ssl
import time
from functools import partial
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from csp.gateway.connections import Connections, Guest
from csp.gateway.responses import refusal_bytes
from csp.room.caller_limits import HEAD_S

MAX_HEAD_BYTES: Final = 64 * 1024
_FIRST_LINE: Final = re.compile(rb"[A-Z]+ \S+ HTTP/1\.[01]\r\n")
HEAD_END: Final = b"\r\n\r\n"
#: The minimum and maximum numbers of connections to accept in one pass of the event loop. A caller that is
#: not accepted in time may wait for seconds, so accepting has priority over all work for agents.
AT_LEAST: Final = 16
AT_MOST: Final = 512
ACCEPT_S: Final = 0.008
EARLY_BYTES: Final = 16 * 1024
#: The pause when the system is out of file descriptors and no connection can be closed to free one.
PAUSE_S: Final = 0.1
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class HttpConnection(RequestHandler):
    """An aiohttp connection that cancels a request's work when its caller disconnects."""

    __slots__ = ("_connections", "guest", "work")

    def __init__(self, server: "HttpServer", guest: Guest, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._connections = server.guests
        self.guest = guest
        #: The task that serves the caller, if it may be cancelled.
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
    """An aiohttp server that puts a `HeadReader` in front of each connection."""

    def __init__(self, handler: Any, guests: Connections, request_factory: Any, **options: Any) -> None:
        super().__init__(handler, request_factory=request_factory)
        self.guests = guests
        self._options = options

    def __call__(self, guest: Guest | None = None, early: bytes = b"") -> "HeadReader":  # type: ignore[override]  # it becomes a RequestHandler
        return HeadReader(self, guest, early)

    def take_over(self, guest: Guest) -> HttpConnection:
        """Return the aiohttp handler for a connection whose head is complete."""
        return HttpConnection(self, guest, **self._options)

    def pre_shutdown(self) -> None:
        self.guests.close_strangers()
        super().pre_shutdown()


class HeadReader(asyncio.Protocol):
    """Collects the head of the first request; `early` contains the bytes that were read before."""

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
        assert self._transport is not None and self._guest is not None
        is_complete = self._head.find(HEAD_END, looked_at) >= 0 or not _may_be_head(self._head)
        if not is_complete or self._transport.is_closing():
            return
        head = bytes(self._head)
        refused = self._server.guests.refusal(head)
        if refused is not None:
            self._transport.write(refusal_bytes(refused.message, refused.hint, refused.after_s))
            self._transport.close()
            return
        connection = self._server.take_over(self._guest)
        self._transport.set_protocol(connection)
        connection.connection_made(self._transport)
        connection.data_received(head)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._guest is not None:
            self._server.guests.close(self._guest)


def _may_be_head(data: bytearray) -> bool:
    """Return whether the bytes may be an incomplete head; aiohttp rejects anything else."""
    if len(data) > MAX_HEAD_BYTES or b"\n\n" in data:
        return False
    if b"\n" in data:
        return _FIRST_LINE.match(data) is not None
    return data[:1].isalpha()


class Acceptor:
    """Serves a listening socket until `close`."""

    def __init__(self, server: HttpServer, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._server = server
        self._listener = listener
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._resume()

    def close(self) -> None:
        """Stop accepting connections; new callers wait for the next gateway."""
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()

    def _resume(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        began = time.thread_time()
        for number in range(AT_MOST):
            if number >= AT_LEAST and time.thread_time() - began > ACCEPT_S:
                self._server.guests.put_agents_off()
                return
            try:
                peer, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as exc:
                if exc.errno not in _NO_FILES:
                    raise
                if not self._server.guests.drop_oldest():
                    self._loop.remove_reader(self._listener)
                    self._pause = self._loop.call_later(PAUSE_S, self._resume)
                return
            peer.setblocking(False)
            self._admit(peer)

    def _admit(self, peer: socket.socket) -> None:
        if self._tls is not None:
            self._go_on(peer, self._server.guests.open(peer.close), b"")
            return

        def drop() -> None:
            self._loop.remove_reader(peer.fileno())
            peer.close()

        def read_first() -> None:
            """Read the first bytes from a caller that had sent nothing when it was accepted."""
            first = _read_early(peer)
            if first is None:
                return
            self._loop.remove_reader(peer.fileno())
            if not first or self._is_refused(peer, first):
                self._give_up(guest, peer)
            else:
                self._go_on(peer, guest, first)

        early = _read_early(peer)
        if early is None:
            guest = self._server.guests.open(drop)
            self._server.guests.read_from(guest, peer.fileno())
            self._loop.add_reader(peer.fileno(), read_first)
        elif not self._is_refused(peer, early):
            self._go_on(peer, self._server.guests.open(peer.close), early)

    def _is_refused(self, peer: socket.socket, early: bytes) -> bool:
        refused = self._server.guests.refusal(early) if HEAD_END in early else None
        if refused is not None:
            with contextlib.suppress(OSError):
                peer.send(refusal_bytes(refused.message, refused.hint, refused.after_s))
            peer.close()
        return refused is not None

    def _go_on(self, peer: socket.socket, guest: Guest, early: bytes) -> None:
        async def connect() -> None:
            handshake_s = HEAD_S if self._tls else None
            protocol = partial(self._server, guest, early)
            try:
                await self._loop.connect_accepted_socket(
                    protocol, peer, ssl=self._tls, ssl_handshake_timeout=handshake_s
                )
            except (OSError, asyncio.CancelledError):
                # The connection was dropped or closed, or the peer does not speak TLS.
                self._give_up(guest, peer)

        task = self._loop.create_task(connect())
        guest.abort = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _give_up(self, guest: Guest, peer: socket.socket) -> None:
        self._server.guests.close(guest)
        peer.close()


def _read_early(peer: socket.socket) -> bytes | None:
    """Return the bytes received so far, usually the whole request; None if there are none yet."""
    try:
        return peer.recv(EARLY_BYTES)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""
