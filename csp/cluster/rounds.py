"""The ticks of all seats of a process: one timer for thousands of rooms.

A seat needs its tick only if something may be wrong: its owner is late, its calls are unanswered, or the room
has no owner. A process that serves rooms which are fine spends next to nothing on them.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Final, Protocol

from csp.cluster.background import end_task
from csp.cluster.bus import Bus
from csp.cluster.peers import HEARTBEAT_S, Peers

if TYPE_CHECKING:
    from nats.aio.msg import Msg

TICK_S: Final = 0.05
#: After a longer pause between two ticks, this process was stopped, and what it knows is old.
PAUSED_S: Final = 0.8
#: An owner whose heartbeat is later than this is asked whether it listens.
LATE_S: Final = HEARTBEAT_S + 0.05
#: The servers announce each election of a stream's leader. The last one may have stored a batch without
#: passing it on.
ELECTED: Final = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED"


class Ticked(Protocol):
    """A seat, as its ticks see it."""

    stream: str

    @property
    def owner(self) -> str:
        """The process that owns the room, "" if nobody does."""

    @property
    def is_uneasy(self) -> bool:
        """Whether the seat needs ticks although the owner is heard."""

    def tick(self, now: float, *, is_owner_late: bool) -> None:
        """Look at the room, and do what is due in the background."""

    def look(self) -> None:
        """Look for new batches in the log."""


class Rounds:
    """Calls `tick` of every seat that needs it."""

    def __init__(self, bus: Bus, peers: Peers) -> None:
        self._bus = bus
        self._peers = peers
        self._seats: set[Ticked] = set()
        self._going: asyncio.Task[None] | None = None
        #: Since when this process has been running without a pause.
        self.fresh_since = 0.0

    def add(self, seat: Ticked) -> None:
        """Tick a seat from now on."""
        self._seats.add(seat)
        if self._going is None:
            self._going = asyncio.create_task(self._go())

    def discard(self, seat: Ticked) -> None:
        """Tick a seat no more."""
        self._seats.discard(seat)

    async def open(self) -> None:
        """Hear of the elections of leaders."""
        await self._bus.follow(f"{ELECTED}.*", self._hear_election)

    async def close(self) -> None:
        """End."""
        await end_task(self._going)

    def _hear_election(self, message: "Msg | None") -> None:
        # After a lost connection every log is read anyway.
        stream = "" if message is None else message.subject.rpartition(".")[2]
        for seat in [seat for seat in self._seats if seat.stream == stream]:
            seat.look()

    async def _go(self) -> None:
        ticked_at = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            if now - ticked_at > PAUSED_S:
                self.fresh_since = now
            ticked_at = now
            late: dict[str, bool] = {}
            for seat in list(self._seats):
                owner = seat.owner
                is_late = late.get(owner)
                if is_late is None:
                    is_late = late[owner] = self._is_late(owner, now)
                if is_late or seat.is_uneasy:
                    seat.tick(now, is_owner_late=is_late)

    def _is_late(self, owner: str, now: float) -> bool:
        if not self._bus.is_connected:
            return True
        if owner == self._peers.me:
            return False
        return now - self._peers.heard_at(owner) > LATE_S or self._peers.left_at(owner) is not None
