"""The brain's end of the line to its relay: frames in, frames out."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest import mock

import pytest

from csp.sidecar.brain_socket import MAX_HOLD_S, RelayPort
from csp.sidecar.relay import relay_frames
from csp.sidecar.relay.relay_frames import Decoder, encode


class Line:
    """A port with the relay's end of its socket."""

    def __init__(self) -> None:
        self.relay, its = socket.socketpair()
        self.relay.settimeout(60)
        self.heard: list[tuple[bytes, bytes]] = []
        self.port = RelayPort(its, lambda kind, payload: self.heard.append((kind, payload)))
        self._decoder = Decoder()

    async def told(self) -> list[tuple[bytes, bytes]]:
        """Return what the relay was told, at least one frame."""
        found: list[tuple[bytes, bytes]] = []
        while not found:
            found = self._decoder.feed(await asyncio.to_thread(self.relay.recv, 1 << 20))
        return found


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    opened = Line()
    await opened.port.open()
    yield opened
    opened.relay.close()
    await opened.port.closed


async def test_what_the_relay_says_is_handed_on_but_for_the_fate_of_our_input() -> None:
    async with line() as opened:
        written, refused = opened.port.write(b"a"), opened.port.write_unless(5, b"b")
        later = opened.port.write(b"c")
        said = [
            encode(relay_frames.OUTPUT, b"hello"),
            encode(relay_frames.REFUSED, (2).to_bytes(4, "big")),
            encode(relay_frames.DONE, (1).to_bytes(4, "big")),
            encode(relay_frames.DONE, (99).to_bytes(4, "big")),
        ]
        data = b"".join(said)
        for at in range(len(data)):
            opened.port.data_received(data[at : at + 1])

        assert opened.heard == [(relay_frames.OUTPUT, b"hello")]
        assert (await written, await refused, later.done()) == (True, False, False)


async def test_each_order_is_one_frame() -> None:
    async with line() as opened:
        port = opened.port
        port.write(b"keys")
        port.write_unless(7, b"more")
        port.hold_keys()
        port.hold_keys(0.5)
        port.release_keys()
        port.claim_words(("/share", "/pause"))
        port.redraw()
        port.signal(-2)
        told = await opened.told()

        assert MAX_HOLD_S == 1.5
        assert told == [
            (relay_frames.INPUT, b"\0\0\0\1keys"),
            (relay_frames.INPUT_UNLESS, b"\0\0\0\2" + (7).to_bytes(8, "big") + b"more"),
            (relay_frames.HOLD, struct.pack("!d", 1.5)),
            (relay_frames.HOLD, struct.pack("!d", 0.5)),
            (relay_frames.RELEASE, b""),
            (relay_frames.OURS, b"/share\n/pause"),
            (relay_frames.NUDGE, b""),
            (relay_frames.SIGNAL, struct.pack("!i", -2)),
        ]


async def test_the_cli_is_started_again_with_its_own_environment_or_a_new_one() -> None:
    async with line() as opened:
        opened.port.start_again(["cat"])
        opened.port.start_again(["cat", "-u"], {})
        plans = [(kind, json.loads(payload)) for kind, payload in await opened.told()]

        assert plans == [
            (relay_frames.AGAIN, {"argv": ["cat"]}),
            (relay_frames.AGAIN, {"argv": ["cat", "-u"], "env": {}}),
        ]


async def test_a_note_that_is_too_long_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    async with line() as opened:
        opened.port.keep_note(b"x" * (relay_frames.MAX_NOTE_BYTES + 1))
        opened.port.keep_note(b"x")
        assert await opened.told() == [(relay_frames.NOTE, b"x")]
        assert caplog.messages == ["note for the next brain was too long"]
        opened.port.keep_note(b"y" * relay_frames.MAX_NOTE_BYTES)

        assert [len(payload) for _, payload in await opened.told()] == [relay_frames.MAX_NOTE_BYTES]


async def test_the_names_of_inputs_begin_again_after_four_bytes() -> None:
    async with line() as opened:
        opened.port._tag = 0xFFFFFFFF - 1
        for _ in range(2):
            opened.port.write(b"")

        assert [payload for _, payload in await opened.told()] == [b"\xff\xff\xff\xff", b"\0\0\0\0"]


async def test_without_a_relay_nothing_is_waited_for_or_sent() -> None:
    async with line() as opened:
        waiting = opened.port.write(b"a")
        opened.relay.close()
        await opened.port.closed
        await asyncio.sleep(0)

        assert waiting.cancelled()
        opened.port.connection_lost(None)
        opened.port._transport = transport = mock.Mock()
        opened.port.release_keys()
        assert not transport.write.called


async def test_what_is_said_before_the_line_is_open_is_said_to_nobody() -> None:
    unopened = Line()
    unopened.port.release_keys()
    await unopened.port.open()
    unopened.port.redraw()

    assert await unopened.told() == [(relay_frames.NUDGE, b"")]
    unopened.relay.close()
    await unopened.port.closed
