"""Push what is due to the participants' connections."""

import asyncio

from csp.core.queues import pending
from csp.gateway.frames import MAX_UNSENT_BYTES, Pipe, text_frame
from csp.gateway.writer import RoomWriter
from csp.wire import AgentId, DeliverFrame, DeliverKind, encode


class Outbox:
    """The deliver frames of one connection, in the order of the journal.

    What is due is asked of the room, so nothing can be forgotten: a lost frame is sent again after a
    reconnect, until its delivery has ended.
    """

    def __init__(self, pipe: Pipe, agent: AgentId, writer: RoomWriter) -> None:
        self._pipe = pipe
        self._agent = agent
        self._writer = writer
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
        else:
            self._sent_seq = safe
            self._ahead.clear()
        if frames:
            self._pipe.write(b"".join(frames))

    async def _drain(self) -> None:
        is_open = await self._pipe.drain()
        self._draining = None
        if is_open:
            self.push()

    def close(self) -> None:
        """Stop sending."""
        if self._draining is not None:
            self._draining.cancel()
