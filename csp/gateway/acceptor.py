"""Accept connections, a few at a time, with descriptors kept in reserve."""

import asyncio
import contextlib
import errno
import socket
import ssl
import time
from functools import partial
from typing import Final

from csp.gateway.connection_protocol import HEAD_END, HttpServer
from csp.gateway.connections import Guest
from csp.gateway.responses import refusal_bytes
from csp.room.admission import HEAD_S

#: How many connections are accepted, at least and at most, before the loop gets its turn. A caller that is
#: not accepted in time may wait for seconds, so accepting goes before all work for agents.
AT_LEAST: Final = 16
AT_MOST: Final = 512
ACCEPT_S: Final = 0.008
EARLY_BYTES: Final = 16 * 1024
#: The pause when the system has no descriptor left, nor a connection that could make room.
PAUSE_S: Final = 0.1
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


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
        """Stop accepting; new callers wait for the next gateway."""
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
        early = _read_early(peer)
        if early is None:
            guest = self._server.guests.open(partial(self._drop, peer))
            self._server.guests.read_from(guest, peer.fileno())
            self._loop.add_reader(peer.fileno(), self._read_first, peer, guest)
        elif not self._is_refused(peer, early):
            self._go_on(peer, self._server.guests.open(peer.close), early)

    def _read_first(self, peer: socket.socket, guest: Guest) -> None:
        """Read the first bytes of a caller that had sent nothing when it was accepted."""
        early = _read_early(peer)
        if early is None:
            return
        self._loop.remove_reader(peer.fileno())
        if not early or self._is_refused(peer, early):
            self._give_up(guest, peer)
        else:
            self._go_on(peer, guest, early)

    def _drop(self, peer: socket.socket) -> None:
        self._loop.remove_reader(peer.fileno())
        peer.close()

    def _is_refused(self, peer: socket.socket, early: bytes) -> bool:
        refused = self._server.guests.refusal(early) if HEAD_END in early else None
        if refused is not None:
            with contextlib.suppress(OSError):
                peer.send(refusal_bytes(refused))
            peer.close()
        return refused is not None

    def _go_on(self, peer: socket.socket, guest: Guest, early: bytes) -> None:
        task = self._loop.create_task(self._connect(peer, guest, early))
        guest.abort = partial(_cancel, task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, peer: socket.socket, guest: Guest, early: bytes) -> None:
        try:
            await self._loop.connect_accepted_socket(
                partial(self._server, guest, early),
                peer,
                ssl=self._tls,
                ssl_handshake_timeout=HEAD_S if self._tls else None,
            )
        except (OSError, asyncio.CancelledError):
            # It was dropped, it hung up, or it does not speak TLS.
            self._give_up(guest, peer)

    def _give_up(self, guest: Guest, peer: socket.socket) -> None:
        self._server.guests.close(guest)
        peer.close()


def _read_early(peer: socket.socket) -> bytes | None:
    """Return what a caller has sent so far, usually its whole request; None if nothing."""
    try:
        return peer.recv(EARLY_BYTES)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""


def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
