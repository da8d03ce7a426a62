"""WebSocket frames that are encoded once for all readers.

aiohttp's own sender would frame, lock, flush per reader and message. A server's frames are unmasked,
so the same bytes serve everybody; they are written to the transport between aiohttp's own frames.
"""

import asyncio
from struct import pack
from typing import Final

from aiohttp import web

#: A reader with more unsent data is dropped as too slow.
MAX_UNSENT_BYTES: Final = 1024 * 1024
#: How long a dropped reader may take to read what was sent before.
GOING_S: Final = 10.0
_TEXT: Final = 0x81
_CLOSE: Final = 0x88


def text_frame(payload: bytes) -> bytes:
    """Return an unfragmented text frame."""
    return _head(_TEXT, len(payload)) + payload


def close_frame(code: int, reason: str) -> bytes:
    """Return a closing frame; a reason has at most 123 bytes."""
    payload = pack("!H", code) + reason.encode()[:123]
    return _head(_CLOSE, len(payload)) + payload


def _head(opcode: int, size: int) -> bytes:
    if size < 126:
        return pack("!BB", opcode, size)
    if size < 65536:
        return pack("!BBH", opcode, 126, size)
    return pack("!BBQ", opcode, 127, size)


class Pipe:
    """The sending side of one WebSocket."""

    def __init__(self, request: web.BaseRequest) -> None:
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the caller is gone")
        self._transport: asyncio.WriteTransport = transport
        self.closed_reason = ""

    @property
    def is_open(self) -> bool:
        return not self.closed_reason and not self._transport.is_closing()

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def write(self, frames: bytes) -> bool:
        """Send encoded frames; a reader that is too slow gets a closing frame and is dropped."""
        if not self.is_open:
            return False
        if self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self.drop(1013, "fell behind; reconnect with after=<the last seq you have>")
            return False
        self._transport.write(frames)
        return True

    def drop(self, code: int, reason: str) -> None:
        """Close without waiting for a peer that may never read again."""
        if not self.is_open:
            return
        self.closed_reason = reason
        self._transport.write(close_frame(code, reason))
        self._transport.close()
        asyncio.get_running_loop().call_later(GOING_S, self._abort)

    def _abort(self) -> None:
        # A closed transport has nothing left to send, and asyncio's fails when aborted twice.
        if self._transport.get_write_buffer_size():
            self._transport.abort()

    async def drain(self) -> bool:
        """Wait until the peer has read most of what was sent; return whether it is still connected."""
        # A transport reports drained buffers only to its protocol, which is aiohttp's.
        while self.is_open and self.unsent_bytes > MAX_UNSENT_BYTES // 8:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return self.is_open
