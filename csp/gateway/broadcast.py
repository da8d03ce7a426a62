"""Send committed events to all WebSocket watchers, and deliveries to their recipients.

Frames are encoded once for all readers; aiohttp's own sender would frame, lock and flush per reader
and message. Server frames are unmasked, so all readers can receive the same bytes. They are written to the
transport between aiohttp's own frames.

Each watcher has a position in one shared tail of frames and is sent everything after it in one write. A pass
visits the watchers in small steps, so that a thousand of them never block the room.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from struct import pack
from typing import Final

from aiohttp import web

from csp.gateway.room_writer import RoomWriter
from csp.journal.history_query import Concerns
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId, DeliverKind
from csp.protocol.events import AnyEvent
from csp.protocol.responses import DeliverFrame
from csp.room.messages import pending

#: A reader with more unsent data is too slow and is dropped.
MAX_UNSENT_BYTES: Final = 1024 * 1024
#: The time that a dropped reader has to read data sent earlier.
GOING_S: Final = 10.0
_TEXT: Final = 0x81
_CLOSE: Final = 0x88
#: The number of connections served in one pass of the event loop, and the number of frames for each.
PUSHED_AT_ONCE: Final = 8
MESSAGES_AT_ONCE: Final = 64
#: The number of watchers served in one pass of the event loop.
STEP: Final = 16
#: The number of events checked for watchers in one pass of the event loop.
STEP_EVENTS: Final = 512
#: Agents have to wait while more frames, or more bytes of them, are unsent.
MAX_LAG: Final = 512
MAX_LAG_BYTES: Final = 4 * 1024 * 1024
#: The interval for waking readers that wait for any news, once there are many of them.
WAKE_S: Final = 0.1
MANY_WAITING: Final = 64

Push = Callable[["DeliveryPush"], None]


def text_frame(payload: bytes) -> bytes:
    """Return an unfragmented text frame."""
    return _head(_TEXT, len(payload)) + payload


def close_frame(code: int, reason: str) -> bytes:
    """Return a close frame; the reason is truncated to 123 bytes."""
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
        """Send encoded frames; a reader that is too slow gets a close frame and is dropped."""
        if not self.is_open:
            return False
        if self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self.drop(1013, "fell behind; reconnect with after=<the last seq you have>")
            return False
        self._transport.write(frames)
        return True

    def drop(self, code: int, reason: str) -> None:
        """Close without waiting for the peer, which may never read again."""
        if not self.is_open:
            return
        self.closed_reason = reason
        self._transport.write(close_frame(code, reason))
        self._transport.close()

        def abort() -> None:
            # A closed transport has nothing left to send, and an asyncio transport fails when aborted twice.
            if self._transport.get_write_buffer_size():
                self._transport.abort()

        asyncio.get_running_loop().call_later(GOING_S, abort)

    async def drain(self) -> bool:
        """Wait until the peer has read most of what was sent; return whether it is still connected."""
        # A transport reports a drained buffer only to its protocol, which belongs to aiohttp.
        while self.is_open and self.unsent_bytes > MAX_UNSENT_BYTES // 8:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return self.is_open


class Pacer:
    """Spreads pushes over several passes of the event loop, with a few connections in each."""

    def __init__(self) -> None:
        self._waiting: dict[DeliveryPush, Push] = {}
        self._is_scheduled = False

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def add(self, pushes: "Iterable[tuple[DeliveryPush, Push]]") -> None:
        """Queue pushes; the first ones run now, unless others are already waiting."""
        for outbox, push in pushes:
            if push is DeliveryPush.rewind or outbox not in self._waiting:
                self._waiting[outbox] = push
        if not self._is_scheduled:
            self._is_scheduled = True
            self._push_some()

    def forget(self, outbox: "DeliveryPush") -> None:
        """Remove a connection that has stopped pushing."""
        self._waiting.pop(outbox, None)

    def _push_some(self) -> None:
        for outbox in list(islice(self._waiting, PUSHED_AT_ONCE)):
            self._waiting.pop(outbox)(outbox)
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._push_some)


class DeliveryPush:
    """Sends the deliver frames for one connection, in journal order.

    Due deliveries are computed from the room, so none can be lost: a lost frame is sent again after a
    reconnect, until its delivery has ended.
    """

    def __init__(self, pipe: Pipe, agent: AgentId, writer: RoomWriter, pacer: Pacer | None = None) -> None:
        self._pipe = pipe
        self._agent = agent
        self._writer = writer
        self._pacer = pacer or Pacer()
        self._sent_seq = 0
        #: Controls that were sent before older messages.
        self._ahead: set[str] = set()
        self._draining: asyncio.Task[None] | None = None

    def rewind(self) -> None:
        """Send all due deliveries again; readers recognise duplicates by id."""
        self._sent_seq = 0
        self._ahead.clear()
        self.push()

    def tell(self, frame: bytes) -> None:
        """Send a frame that is never repeated."""
        if frame:
            self._pipe.write(frame)

    def push(self) -> None:
        """Send new deliveries at the reader's pace."""
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


@dataclass(eq=False, slots=True)
class EventWatcher:
    """A reader of events; if `agent` is not None, it gets only events that the agent may read."""

    pipe: Pipe
    agent: AgentId | None
    place: int = 0


class Broadcast:
    """Sends events to watchers; `concerns` returns whether an agent may read an event."""

    def __init__(self, concerns: Concerns) -> None:
        self._concerns = concerns
        self.watchers: dict[EventWatcher, None] = {}
        self._tail: deque[tuple[AnyEvent, bytes]] = deque()
        #: The position of the tail's first entry, counted from the start of the gateway.
        self._first = 0
        self._tail_bytes = 0
        self._pass: list[EventWatcher] = []
        self._joined: dict[tuple[int, AgentId | None], bytes] = {}
        #: One future for all readers that wait for the same news: any news (None) or an agent's inbox.
        self._news: dict[AgentId | None, asyncio.Future[None]] = {}
        self._asked = 0
        self._waking: asyncio.TimerHandle | None = None
        self._woken_at = 0.0
        #: Whether publishing has ended.
        self.is_closed = False

    @property
    def _end(self) -> int:
        return self._first + len(self._tail)

    def add(self, watcher: EventWatcher) -> None:
        """Send everything published from now on to `watcher`."""
        watcher.place = self._end
        self.watchers[watcher] = None

    def remove(self, watcher: EventWatcher) -> None:
        """Stop sending to `watcher`."""
        self.watchers.pop(watcher, None)

    def publish(self, committed: list[tuple[AnyEvent, bytes]]) -> None:
        """Send committed events to all watchers, in order."""
        if self.watchers:
            frames = [(event, text_frame(line)) for event, line in committed]
            self._tail.extend(frames)
            self._tail_bytes += sum([len(frame) for _, frame in frames])
            if not self._pass:
                self._pass = self._in_order()
                self._step()
        # Wake the readers that wait for any news; if there are many, at most ten times a second.
        if self._waking is None:
            loop = asyncio.get_running_loop()
            wait_s = self._woken_at + WAKE_S - loop.time() if self._asked > MANY_WAITING else 0.0
            if wait_s > 0:
                self._waking = loop.call_later(wait_s, self._wake_crowd)
            else:
                self._wake_crowd()

    def is_behind(self) -> bool:
        """Return whether too much is unsent to publish more."""
        return len(self._tail) > MAX_LAG or self._tail_bytes > MAX_LAG_BYTES

    def _wake_crowd(self) -> None:
        self._waking, self._asked = None, 0
        self._woken_at = asyncio.get_running_loop().time()
        self.wake(None)

    def next_news(self, agent: AgentId | None = None) -> "asyncio.Future[None]":
        """Return a future for the next publication, or for the next change in the inbox of `agent`.

        A reader misses nothing if it gets the future before it reads.
        """
        if agent is None:
            self._asked += 1
        if agent not in self._news:
            self._news[agent] = asyncio.get_running_loop().create_future()
        return self._news[agent]

    def wake(self, agent: AgentId | None) -> None:
        """Wake the readers that wait for this news."""
        waiter = self._news.pop(agent, None)
        if waiter is not None:
            waiter.set_result(None)

    def close(self) -> None:
        """Wake all readers that wait for news, because no more will follow."""
        self.is_closed = True
        for agent in list(self._news):
            self.wake(agent)

    def _in_order(self) -> list[EventWatcher]:
        """Return all watchers, people first."""
        return sorted(self.watchers, key=lambda watcher: watcher.agent is not None)

    def _step(self) -> None:
        self._joined.clear()
        served = looked_at = 0
        while served < len(self._pass) and served < STEP and looked_at < STEP_EVENTS:
            watcher = self._pass[served]
            looked_at += self._end - watcher.place
            self._serve(watcher)
            served += 1
        del self._pass[:served]
        if self._pass:
            asyncio.get_running_loop().call_soon(self._step)
            return
        done = min((watcher.place for watcher in self.watchers), default=self._end)
        while self._first < done:
            self._tail_bytes -= len(self._tail.popleft()[1])
            self._first += 1
        if self._tail:
            self._pass = self._in_order()
            asyncio.get_running_loop().call_soon(self._step)

    def _serve(self, watcher: EventWatcher) -> None:
        if watcher.place == self._end or watcher not in self.watchers:
            return
        place, agent = key = (watcher.place, watcher.agent)
        frames = self._joined.get(key)
        if frames is None:
            entries = islice(self._tail, place - self._first, None)
            frames = self._joined[key] = b"".join(
                [frame for event, frame in entries if agent is None or self._concerns(event, agent)]
            )
        watcher.place = self._end
        if frames and not watcher.pipe.write(frames):
            self.remove(watcher)
