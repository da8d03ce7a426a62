"""Queue incoming items for the consumer, without duplicates."""

import asyncio
import logging
from collections import deque
from copy import copy
from typing import Final

from csp.client.http_calls import RoomPlace
from csp.client.incoming_frames import Item, Live
from csp.errors import CspError
from csp.protocol.enums import PENDING, AgentId
from csp.protocol.events import AnyEvent, DeliveryMoved
from csp.protocol.responses import Deliver

log = logging.getLogger(__name__)

MAX_ITEMS: Final = 1000
MAX_BYTES: Final = 8 * 1024 * 1024
#: The number of finished deliveries to remember, because a frame may arrive after its delivery has ended.
ENDED_KEPT: Final = 4096


class Inbox:
    """A bounded queue that remembers its past items.

    Events wait in the journal while the queue is full. Deliveries are always queued, because the room limits
    their number.
    """

    def __init__(self, after: int | None, agent: AgentId | None) -> None:
        #: The seq of the last event queued; None until the room's seq is known.
        self.last_seq = after
        #: The seq of the last event returned.
        self.handed_seq = after
        #: The number of items ever queued.
        self.taken = 0
        self._agent = agent
        self._room_id = ""
        self._items: deque[tuple[Item, int]] = deque()
        self._bytes = 0
        #: The known deliveries with their seqs.
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
        """Return whether events have to wait for space."""
        return len(self._items) >= MAX_ITEMS or self._bytes >= MAX_BYTES

    def find_place(self, room: RoomPlace) -> int:
        """Return the seq to continue after.

        A room has gone back if it is another one, or if its journal is shorter, as after a restore. A replica
        that is shorter has only not caught up yet.
        """
        is_other = bool(self._room_id) and bool(room.room_id) and room.room_id != self._room_id
        self._room_id = room.room_id or self._room_id
        if self.last_seq is None:
            self.last_seq = self.handed_seq = room.seq
        elif is_other or (self.last_seq > room.seq and not room.replica):
            extra = {"had_seq": self.last_seq, "room_seq": room.seq, "is_other": is_other}
            log.warning("room has gone back", extra=extra)
            # If nothing was read of the other one, nothing of this one is skipped.
            self.last_seq = room.seq if self.last_seq > 0 else 0
            # A journal restored from a backup reuses its later ids for other messages.
            kept_seq = 0 if is_other else room.seq
            self._open = {one: seq for one, seq in self._open.items() if seq <= kept_seq}
            self._ended = {one: seq for one, seq in self._ended.items() if seq <= kept_seq}
        return self.last_seq

    def add_event(self, event: AnyEvent, size: int) -> None:
        """Queue an event unless it is a duplicate."""
        if self.last_seq is not None and event.seq <= self.last_seq:
            return
        self.last_seq = event.seq
        if isinstance(event, DeliveryMoved) and event.agent == self._agent and event.state not in PENDING:
            self.end(event.message)
        self._put(event, size)

    def add_delivery(self, deliver: Deliver, size: int) -> None:
        """Queue a delivery unless it is a duplicate."""
        if deliver.id not in self._open and deliver.id not in self._ended:
            self._open[deliver.id] = deliver.seq
            self._put(deliver, size)

    def add_live(self, live: Live, size: int) -> None:
        """Queue a live frame, or drop it if the queue is full; watch frames are never dropped."""
        if live.watch is not None or not self.is_full:
            self._put(live, size)

    def end(self, deliver_id: str) -> None:
        """Record that a delivery has ended, so that it can soon be forgotten."""
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
        """Return the next item; after `close` return None or raise its error."""
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
        """Wait until the queue has space."""
        await self._drained.wait()

    def close(self, error: CspError | None = None) -> None:
        """Let the consumer read the queued items and then end, with `error` if given."""
        self._is_closed = True
        self._error = self._error or error
        self._arrived.set()
