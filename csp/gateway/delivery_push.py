"""Push pending deliveries to the participants' connections."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from csp.gateway.room_writer import RoomWriter
from csp.gateway.websocket_frames import MAX_UNSENT_BYTES, Pipe, text_frame
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId, DeliverKind
from csp.protocol.responses import DeliverFrame
from csp.room.messages.inbox import pending

#: How many connections are served before the loop gets its turn, and how many frames each.
PUSHED_AT_ONCE: Final = 8
MESSAGES_AT_ONCE: Final = 64

Push = Callable[["DeliveryPush"], None]


class Pacer:
    """Lets a few connections push in each pass of the loop."""

    def __init__(self) -> None:
        self._waiting: dict[DeliveryPush, Push] = {}
        self._is_scheduled = False

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def add(self, pushes: "Iterable[tuple[DeliveryPush, Push]]") -> None:
        """Queue pushes; the first ones run now, unless others wait."""
        for outbox, push in pushes:
            if push is DeliveryPush.rewind or outbox not in self._waiting:
                self._waiting[outbox] = push
        if not self._is_scheduled:
            self._is_scheduled = True
            self._push_some()

    def forget(self, outbox: "DeliveryPush") -> None:
        """Remove a connection that pushes no more."""
        self._waiting.pop(outbox, None)

    def _push_some(self) -> None:
        for outbox in list(islice(self._waiting, PUSHED_AT_ONCE)):
            self._waiting.pop(outbox)(outbox)
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._push_some)


class DeliveryPush:
    """The deliver frames of one connection, in the order of the journal.

    What is due is computed from the room, so nothing can be forgotten: a lost frame is sent again after a
    reconnect, until its delivery has ended.
    """

    def __init__(self, pipe: Pipe, agent: AgentId, writer: RoomWriter, pacer: Pacer | None = None) -> None:
        self._pipe = pipe
        self._agent = agent
        self._writer = writer
        self._pacer = pacer or Pacer()
        self._sent_seq = 0
        #: Controls that went out before older messages.
        self._ahead: set[str] = set()
        self._draining: asyncio.Task[None] | None = None

    def rewind(self) -> None:
        """Send everything due again; readers recognise duplicates by id."""
        self._sent_seq = 0
        self._ahead.clear()
        self.push()

    def tell(self, frame: bytes) -> None:
        """Send a frame that is not kept."""
        if frame:
            self._pipe.write(frame)

    def push(self) -> None:
        """Send new deliveries, as fast as the reader reads."""
        if self._draining is not None or self._agent not in self._writer.room.participants:
            return
        if not self._pipe.is_open:
            return
        frames: list[bytes] = []
        size = 0
        room, safe = self._writer.room, self._writer.safe_seq
        for deliver in pending(room, self._agent, after=self._sent_seq, upto=safe):
            if deliver.id in self._ahead:
                continue
            frame = text_frame(encode(DeliverFrame(deliver=deliver)))
            frames.append(frame)
            size += len(frame)
            if deliver.kind is DeliverKind.CONTROL:
                self._ahead.add(deliver.id)
            else:
                self._sent_seq = deliver.seq
            if size > MAX_UNSENT_BYTES // 4:
                self._draining = asyncio.ensure_future(self._drain())
                break
            if len(frames) >= MESSAGES_AT_ONCE:
                # The rest follows in the next passes of the loop.
                asyncio.get_running_loop().call_soon(self._pacer.add, [(self, DeliveryPush.push)])
                break
        else:
            self._sent_seq = safe
            self._ahead.clear()
        if frames:
            self._pipe.write(b"".join(frames))

    async def _drain(self) -> None:
        is_open = await self._pipe.drain()
        self._draining = None
        if is_open:
            self._pacer.add([(self, DeliveryPush.push)])

    def close(self) -> None:
        """Stop sending."""
        self._pacer.forget(self)
        if self._draining is not None:
            self._draining.cancel()
