"""What has come in for the consumer, each thing once."""

import asyncio
import logging
from collections import deque
from copy import copy
from typing import Final

from csp.client.incoming_frames import Item, Live
from csp.errors import CspError
from csp.protocol.enums import AgentId
from csp.protocol.events import AnyEvent, DeliveryMoved
from csp.protocol.responses import Deliver
from csp.room.messages.delivery import PENDING

log = logging.getLogger(__name__)

MAX_ITEMS: Final = 1000
MAX_BYTES: Final = 8 * 1024 * 1024
#: A frame that was on its way when its delivery ended may still come in.
ENDED_KEPT: Final = 4096


class Inbox:
    """A queue with a bound, and the memory of what has been in it.

    Events wait in the journal while the queue is full. Deliveries are taken all the same: the room bounds
    how many of them there can be.
    """

    def __init__(self, after: int | None, agent: AgentId | None) -> None:
        #: The seq of the last event taken in; None until the room's place is known.
        self.last_seq = after
        #: The seq of the last event handed out.
        self.handed_seq = after
        #: How many new things were taken in, ever.
        self.taken = 0
        self._agent = agent
        self._items: deque[tuple[Item, int]] = deque()
        self._bytes = 0
        #: The deliveries that are known, each with its seq.
        self._open: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._arrived = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._is_closed = False
        self._error: CspError | None = None

    # --- in --------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Tell whether events have to wait."""
        return len(self._items) >= MAX_ITEMS or self._bytes >= MAX_BYTES

    def find_place(self, room_seq: int) -> int:
        """Return the seq to go on after, now that the room's own is known."""
        if self.last_seq is None:
            self.last_seq = self.handed_seq = room_seq
        elif self.last_seq > room_seq:
            log.warning("room has gone back", extra={"had_seq": self.last_seq, "room_seq": room_seq})
            self.last_seq = room_seq
            # A journal from a backup gives out its later ids once more, to other messages.
            self._open = {one: seq for one, seq in self._open.items() if seq <= room_seq}
            self._ended = {one: seq for one, seq in self._ended.items() if seq <= room_seq}
        return self.last_seq

    def skip_to(self, seq: int) -> None:
        """Note that nothing up to `seq` is still to come."""
        if self.last_seq is None or seq > self.last_seq:
            self.last_seq = seq

    def take_event(self, event: AnyEvent, size: int) -> None:
        """Queue an event unless it was here before."""
        if self.last_seq is not None and event.seq <= self.last_seq:
            return
        self.last_seq = event.seq
        if isinstance(event, DeliveryMoved) and event.agent == self._agent and event.state not in PENDING:
            self.end(event.message)
        self._put(event, size)

    def take_deliver(self, deliver: Deliver, size: int) -> None:
        """Queue a delivery unless it was here before."""
        if deliver.id not in self._open and deliver.id not in self._ended:
            self._open[deliver.id] = deliver.seq
            self._put(deliver, size)

    def take_live(self, live: Live, size: int) -> None:
        """Queue what matters only now, or drop it; whether anybody watches is never dropped."""
        if live.watch is not None or not self.is_full:
            self._put(live, size)

    def end(self, deliver_id: str) -> None:
        """Note that a delivery has ended, so that it need not be remembered for long."""
        seq = self._open.pop(deliver_id, None)
        if seq is None:
            return
        self._ended[deliver_id] = seq
        if len(self._ended) > ENDED_KEPT:
            del self._ended[next(iter(self._ended))]

    def _put(self, item: Item, size: int) -> None:
        self._items.append((item, size))
        self._bytes += size
        self.taken += 1
        self._arrived.set()
        if self.is_full:
            self._drained.clear()

    # --- out -------------------------------------------------------------------------------------

    async def get(self) -> Item | None:
        """Return the next item; after `close` None, or what was the reason is raised."""
        while not self._items:
            if self._error is not None:
                raise copy(self._error)
            if self._is_closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        item, size = self._items.popleft()
        self._bytes -= size
        if len(self._items) <= MAX_ITEMS // 2 and self._bytes <= MAX_BYTES // 2:
            self._drained.set()
        if not isinstance(item, Deliver | Live):
            self.handed_seq = item.seq
        return item

    async def drained(self) -> None:
        """Return when there is room again."""
        await self._drained.wait()

    def close(self, error: CspError | None = None) -> None:
        """Let the consumer finish what is here; then comes the end, or `error`."""
        self._is_closed = True
        self._error = self._error or error
        self._arrived.set()
