"""The brain's end of the socket to its relay."""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Callable
from typing import Final

from csp.sidecar.relay import relay_frames

log = logging.getLogger(__name__)

#: The relay releases held keys on its own after this time.
MAX_HOLD_S: Final = 1.5

OnFrame = Callable[[bytes, bytes], None]


class RelayPort(asyncio.Protocol):
    """The connection to the relay; `on_frame` gets its frames, `closed` is done when the relay is gone."""

    def __init__(self, link: socket.socket, on_frame: OnFrame) -> None:
        self._link = link
        self._on_frame = on_frame
        self._decoder = relay_frames.Decoder()
        self._tag = 0
        self._written: dict[int, asyncio.Future[bool]] = {}
        self._transport: asyncio.WriteTransport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: self, sock=self._link)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Decode data from the relay."""
        for kind, payload in self._decoder.feed(data):
            if kind in (relay_frames.DONE, relay_frames.REFUSED):
                written = self._written.pop(int.from_bytes(payload, "big"), None)
                if written is not None and not written.done():
                    written.set_result(kind == relay_frames.DONE)
            else:
                self._on_frame(kind, payload)

    def connection_lost(self, exc: Exception | None) -> None:
        """Record that the relay has gone."""
        if not self.closed.done():
            self.closed.set_result(None)
        for written in self._written.values():
            written.cancel()
        self._written.clear()

    # --- to the relay ----------------------------------------------------------------------------

    def write(self, keys: bytes) -> "asyncio.Future[bool]":
        """Write to the child; the future is done when the child has read the last byte."""
        tag, written = self._new_tag()
        self._send(relay_frames.INPUT, tag + keys)
        return written

    def write_unless(self, keys_seen: int, keys: bytes) -> "asyncio.Future[bool]":
        """Write to the child, or return False if the person has sent more than `keys_seen` bytes."""
        tag, written = self._new_tag()
        self._send(relay_frames.INPUT_UNLESS, tag + keys_seen.to_bytes(8, "big") + keys)
        return written

    def _new_tag(self) -> "tuple[bytes, asyncio.Future[bool]]":
        self._tag = (self._tag + 1) & 0xFFFFFFFF
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._written[self._tag] = written
        return self._tag.to_bytes(4, "big"), written

    def hold_keys(self, seconds: float = MAX_HOLD_S) -> None:
        """Hold the person's keys back until `release_keys`, or for at most `seconds`."""
        self._send(relay_frames.HOLD, struct.pack(">d", seconds))

    def release_keys(self) -> None:
        self._send(relay_frames.RELEASE)

    def claim_words(self, words: tuple[str, ...]) -> None:
        """Intercept these lines: a person who types one sends it here instead of to the child."""
        self._send(relay_frames.OURS, "\n".join(words).encode())

    def keep_note(self, note: bytes) -> None:
        """Store a note for the next brain."""
        if len(note) <= relay_frames.MAX_NOTE_BYTES:
            self._send(relay_frames.NOTE, note)
        else:
            log.warning("note for the next brain was too long", extra={"bytes": len(note)})

    def redraw(self) -> None:
        """Make the child redraw its screen."""
        self._send(relay_frames.NUDGE)

    def signal(self, number: int) -> None:
        """Send a signal to the child's process group."""
        self._send(relay_frames.SIGNAL, struct.pack(">i", number))

    def start_again(self, argv: list[str], env: dict[str, str] | None = None) -> None:
        """End the child and start `argv` in its place."""
        plan = {"argv": argv} | ({"env": env} if env is not None else {})
        self._send(relay_frames.AGAIN, json.dumps(plan).encode())

    def _send(self, kind: bytes, payload: bytes = b"") -> None:
        if self._transport is not None and not self.closed.done():
            self._transport.write(relay_frames.encode(kind, payload))
