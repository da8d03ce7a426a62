"""Accept connections, a few at a time, with descriptors kept in reserve."""

import asyncio
import contextlib
import errno
import socket
import ssl
from functools import partial
from typing import Final

from csp.core.admission import HEAD_S
from csp.gateway.answers import refusal_bytes
from csp.gateway.connections import Guest
from csp.gateway.protocol import HEAD_END, HttpServer

#: How many connections are accepted before the loop gets its turn.
AT_ONCE: Final = 64
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
        """Accept no more; new callers wait for the next gateway."""
        self._loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()

    def _resume(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                peer, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as exc:
                self._on_failure(exc)
                return
            peer.setblocking(False)
            self._take(peer)

    def _on_failure(self, error: OSError) -> None:
        if error.errno not in _NO_FILES:
            raise error
        if not self._server.guests.drop_oldest():
            self._loop.remove_reader(self._listener)
            self._pause = self._loop.call_later(PAUSE_S, self._resume)

    def _take(self, peer: socket.socket) -> None:
        early = b"" if self._tls else _read_early(peer)
        refused = self._server.guests.refusal(early) if HEAD_END in early else None
        if refused is not None:
            _refuse(peer, refusal_bytes(refused))
            return
        task = self._loop.create_task(self._connect(peer, early))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, peer: socket.socket, early: bytes) -> None:
        task = asyncio.current_task()
        assert task is not None
        guest = self._server.guests.open(partial(_cancel, task))
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


def _read_early(peer: socket.socket) -> bytes:
    """Return what a caller has sent by now: most send all of their request at once."""
    try:
        return peer.recv(EARLY_BYTES)
    except OSError:
        return b""


def _refuse(peer: socket.socket, answer: bytes) -> None:
    with contextlib.suppress(OSError):
        peer.send(answer)
    peer.close()


def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
