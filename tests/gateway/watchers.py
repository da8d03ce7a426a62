"""WebSocket readers on bare sockets: a thousand of them fit into one test, and one can refuse to read."""

import asyncio
import json
import socket
from collections.abc import Iterator
from struct import unpack
from typing import Any, Final, Self

from tests.waiting import wait_until

TEXT: Final = 0x1
CLOSE: Final = 0x8
_HEAD_END: Final = b"\r\n\r\n"


class Watcher(asyncio.Protocol):
    """Keeps the bytes that came, so that whole streams can be compared."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._received = bytearray()
        self.is_closed = False

    @classmethod
    async def connect(
        cls, port: int, token: str, after: int | None = None, *, receive_bytes: int | None = None
    ) -> Self:
        """Open a WebSocket; return when the gateway has accepted it."""
        query = "" if after is None else f"?after={after}"
        lines = [
            f"GET /ws{query} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"X-Auth-Token: {token}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        ]
        opened = socket.socket()
        if receive_bytes is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        opened.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(opened, ("127.0.0.1", port))
        _, watcher = await loop.create_connection(
            lambda: cls(("\r\n".join(lines) + "\r\n\r\n").encode()), sock=opened
        )
        await wait_until(lambda: _HEAD_END in watcher._received or watcher.is_closed, 60, "the handshake")
        assert watcher._received.startswith(b"HTTP/1.1 101 "), bytes(watcher._received)
        return watcher

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True

    def stop_reading(self) -> None:
        self.transport.pause_reading()

    def read_on(self) -> None:
        self.transport.resume_reading()

    @property
    def stream(self) -> bytes:
        """Everything after the handshake."""
        return bytes(self._received).partition(_HEAD_END)[2]

    @property
    def tail(self) -> bytes:
        """The last few kilobytes that came."""
        return bytes(self._received[-4096:])

    async def close(self) -> None:
        self.transport.abort()
        await wait_until(lambda: self.is_closed)


def frames(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (opcode, payload) of each whole frame of a server."""
    at = 0
    while at + 2 <= len(stream):
        opcode, size = stream[at] & 0x0F, stream[at + 1]
        at += 2
        if size == 126:
            (size,), at = unpack("!H", stream[at : at + 2]), at + 2
        elif size == 127:
            (size,), at = unpack("!Q", stream[at : at + 8]), at + 8
        if at + size > len(stream):
            return
        yield opcode, stream[at : at + size]
        at += size


def events(stream: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream."""
    found = [json.loads(payload) for opcode, payload in frames(stream) if opcode == TEXT]
    return [frame for frame in found if "seq" in frame]


def closing_code(stream: bytes) -> int | None:
    """Return the code of the closing frame, if there is one."""
    codes = [unpack("!H", payload[:2])[0] for opcode, payload in frames(stream) if opcode == CLOSE]
    return codes[0] if codes else None
