"""The gateways of a cluster: which of them live.

Each process says four times a second that it lives. It says so over NATS's plain messages, which go on while
a stream elects its leader, so an election makes no gateway look dead.
"""

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from csp.cluster.background import end_task
from csp.cluster.bus import Bus
from csp.cluster.names import heartbeat_subject
from csp.errors import LogLost

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger(__name__)

HEARTBEAT_S: Final = 0.25
#: After this much silence a process is dead, and its connections are closed.
DEAD_S: Final = 5.0
#: A page may use another process for as long after the death of its own.
URL_S: Final = 86400.0
MOST_URLS: Final = 64


class Heartbeat(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sign of life of a process, with its wall time, and where browsers reach which room."""

    process: str
    at: float
    has_left: bool = False
    url: str = ""
    room: str = ""


class Peer(msgspec.Struct):
    """A process, when it was last heard, when it left, and by how much its clock is ahead of ours."""

    heard_at: float
    left_at: float | None = None
    ahead_s: float = 0.0


_decoder: Final = msgspec.json.Decoder(Heartbeat)


class Peers:
    """Says that this process lives, and listens to the others."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        #: The name of this process; never used twice.
        self.me = uuid4().hex[:16]
        self.known: dict[str, Peer] = {}
        #: The URL at which browsers reach this process, and the only room that it serves, if it is not a hub.
        self.url = self.room = ""
        #: The URLs of the others that serve the same, with the time of the last sign.
        self._urls: dict[str, float] = {}
        self._beating: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin."""
        await self._bus.follow(heartbeat_subject("*"), self._hear)
        self._beating = asyncio.create_task(self._beat())

    def living(self) -> frozenset[str]:
        """Return the processes that were heard lately, this one included."""
        now = time.monotonic()
        alive = (
            name for name, peer in self.known.items() if peer.left_at is None and now - peer.heard_at < DEAD_S
        )
        return frozenset((*alive, self.me))

    def heard_at(self, process: str) -> float:
        """Return when a process was last heard; 0 for never."""
        peer = self.known.get(process)
        return peer.heard_at if peer is not None else 0.0

    def left_at(self, process: str) -> float | None:
        """Return when a process said that it ends."""
        peer = self.known.get(process)
        return peer.left_at if peer is not None else None

    def urls(self) -> tuple[str, ...]:
        """Return the URLs at which browsers reach the same rooms, also of processes that died lately."""
        oldest = time.monotonic() - URL_S
        return tuple(url for url, heard_at in self._urls.items() if heard_at > oldest and url != self.url)

    async def close(self) -> None:
        """Say that this process ends."""
        await end_task(self._beating)
        await self._say(has_left=True)

    async def _beat(self) -> None:
        while True:
            await self._say()
            await asyncio.sleep(HEARTBEAT_S)

    async def _say(self, *, has_left: bool = False) -> None:
        beat = msgspec.json.encode(Heartbeat(self.me, time.time(), has_left, self.url, self.room))
        with contextlib.suppress(LogLost):
            await self._bus.publish(heartbeat_subject(self.me), beat)

    def _hear(self, message: "Msg | None") -> None:
        beat = _read(message)
        if beat is None or beat.process == self.me:
            return
        now = time.monotonic()
        peer = self.known.setdefault(beat.process, Peer(heard_at=now))
        peer.heard_at, peer.ahead_s = now, beat.at - time.time()
        if beat.has_left:
            peer.left_at = now
        if beat.url and beat.room == self.room:
            self._urls[beat.url] = now
            if len(self._urls) > MOST_URLS:
                del self._urls[min(self._urls, key=lambda url: self._urls[url])]
        if len(self.known) > 1000:
            # Of processes that are gone, only the latest matter.
            self.known = {name: one for name, one in self.known.items() if now - one.heard_at < 60}


async def clock_offsets(bus: Bus, listen_s: float) -> dict[str, float]:
    """Listen to the gateways for a while; return by how much the clock of each is ahead of ours."""
    ahead_s: dict[str, float] = {}

    def hear(message: "Msg | None") -> None:
        beat = _read(message)
        if beat is not None:
            ahead_s[beat.process] = beat.at - time.time()

    end = await bus.follow(heartbeat_subject("*"), hear)
    await asyncio.sleep(listen_s)
    await end()
    return ahead_s


def _read(message: "Msg | None") -> Heartbeat | None:
    """Return what a message says; None if it is not understood."""
    if message is None:
        return None
    try:
        return _decoder.decode(message.data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        log.warning("heartbeat not understood", extra={"problem": str(exc)})
        return None
