"""Push what is due to the participants' connections."""

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

#: How many connections are sent what is due before the loop gets its turn, and how much of it each.
PUSHED_AT_ONCE: Final = 8
MESSAGES_AT_ONCE: Final = 64

Push = Callable[["DeliveryPush"], None]


class Pacer:
    """Has outboxes push, a few in each pass of the loop."""

    def __init__(self) -> None:
        self._waiting: dict[DeliveryPush, Push] = {}
        self._is_scheduled = False

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def add(self, pushes: "Iterable[tuple[DeliveryPush, Push]]") -> None:
        """Let outboxes push: the first of them now, unless others wait."""
        for outbox, push in pushes:
            if push is DeliveryPush.rewind or outbox not in self._waiting:
                self._waiting[outbox] = push
        if not self._is_scheduled:
            self._is_scheduled = True
            self._push_some()

    def forget(self, outbox: "DeliveryPush") -> None:
        """Let an outbox push no more."""
        self._waiting.pop(outbox, None)

    def _push_some(self) -> None:
        for outbox in list(islice(self._waiting, PUSHED_AT_ONCE)):
            self._waiting.pop(outbox)(outbox)
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._push_some)


class DeliveryPush:
    """The deliver frames of one connection, in the order of the journal.

    What is due is asked of the room, so nothing can be forgotten: a lost frame is sent again after a
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
        """Start again with everything due; readers know what they have by its id."""
        self._sent_seq = 0
        self._ahead.clear()
        self.push()

    def tell(self, frame: bytes) -> None:
        """Send a live frame, of which nothing is kept."""
        if frame:
            self._pipe.write(frame)

    def push(self) -> None:
        """Send what has become due, as far as the reader keeps up."""
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
                # The rest goes out in the next passes of the loop.
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
