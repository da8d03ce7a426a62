"""Serve one WebSocket: send events and deliveries, and receive operations."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec
from aiohttp import WSMsgType, web, web_ws

from csp.errors import BadInput, Broken, CspError, TooLarge, TooMany
from csp.gateway import line_routes, operations, session_routes
from csp.gateway.agent_throttle import Ticket
from csp.gateway.auth import SUBPROTOCOL, Caller
from csp.gateway.broadcast import DeliveryPush, EventWatcher, Pipe, text_frame
from csp.gateway.connections import is_person
from csp.gateway.gateway import MAX_SOCKETS, Gateway
from csp.gateway.route_table import Call, body_of
from csp.gateway.screen_watch import LiveFeed
from csp.journal import Cursor
from csp.protocol.codec import encode, parse, parse_request
from csp.protocol.enums import MAX_BODY_BYTES, AgentId, Role
from csp.protocol.events import decode_event
from csp.protocol.requests import NoBody, Op, WatchBody
from csp.protocol.responses import Done
from csp.protocol.screen_frames import MAX_LIVE_BYTES
from csp.room.permissions import OPS as ROLES
from csp.room.permissions import check_call

#: The amount of the journal sent to a lagging reader in one pass of the event loop.
CATCH_UP_BYTES: Final = 16 * 1024
#: The share of the loop's time that catching up may use while the room is busy.
CATCH_UP_SHARE: Final = 0.1
BUSY_S: Final = 0.05
MAX_OPS_IN_FLIGHT: Final = 512
HEARTBEAT_S: Final = 30.0
#: The amount of a peer's input that is parsed ahead; aiohttp would buffer half a megabyte per peer.
READ_AHEAD_BYTES: Final = 8 * 1024

# aiohttp has no option for this.
web_ws.DEFAULT_CHUNK_SIZE = READ_AHEAD_BYTES  # type: ignore[attr-defined]  # not exported


class _Said(msgspec.Struct, frozen=True):
    op: str
    content: str = ""


Action = Callable[[Gateway, Any], Awaitable[msgspec.Struct]]

OPS: Final[dict[str, Action]] = {
    "message": operations.send_message,
    "output": operations.post_output,
    "delivery": operations.report_delivery,
    "working": operations.report_working,
    "state": operations.report_state,
    "control_done": operations.finish_control,
    "live": operations.show_live,
    # Also available here, because a browser allows only a few connections.
    "stop": session_routes.stop,
    "line": line_routes.line,
}
_BODIES: Final = {name: body_of(action) or NoBody for name, action in OPS.items()}


async def serve_socket(
    gateway: Gateway, caller: Caller, request: web.BaseRequest, after: int | None
) -> web.WebSocketResponse:
    """Serve one WebSocket until it closes; `after` is the last event that its reader has."""
    if len(gateway.sockets) >= MAX_SOCKETS:
        raise TooMany(f"there are {MAX_SOCKETS} connections", "close some of them")
    if not is_person(caller):
        gateway.check_sockets_of(caller.id)
    socket = web.WebSocketResponse(
        protocols=(SUBPROTOCOL,), compress=False, max_msg_size=MAX_BODY_BYTES, heartbeat=HEARTBEAT_S
    )
    await socket.prepare(request)
    connection = SocketSession(gateway, caller, socket, Pipe(request))
    gateway.sockets.add(connection)
    try:
        await connection.run(after)
    finally:
        gateway.sockets.discard(connection)
    return socket


class SocketSession:
    def __init__(self, gateway: Gateway, caller: Caller, socket: web.WebSocketResponse, pipe: Pipe) -> None:
        self._gateway = gateway
        self._caller = caller
        self._socket = socket
        self._pipe = pipe
        self._agent: AgentId | None = None if caller.role is Role.ROOM else caller.id
        # The id may be removed or taken over after the token was checked.
        self._epoch = caller.epoch
        self._watcher = EventWatcher(pipe, self._agent)
        self._feed = LiveFeed(pipe)
        self._catch_up: asyncio.Task[None] | None = None
        self._ops: set[asyncio.Task[None]] = set()

    async def run(self, after: int | None) -> None:
        """Serve until the peer disconnects."""
        self.drop_if_stale()
        outbox: DeliveryPush | None = None
        if self._agent is not None:
            outbox = DeliveryPush(self._pipe, self._agent, self._gateway.writer, self._gateway.pacer)
            self._gateway.presence.connect(self._agent)
            self._gateway.attach(self._agent, outbox)
        try:
            self._watch(after)
            await self._read()
        finally:
            self._unwatch()
            self._gateway.screen_watch.leave(self._feed)
            for op in self._ops:
                op.cancel()
            if self._agent is not None and outbox is not None:
                self._gateway.detach(self._agent, outbox)
                self._gateway.presence.disconnect(self._agent)

    def drop(self, code: int, reason: str) -> None:
        """Close without waiting for the peer."""
        self._pipe.drop(code, reason)

    def drop_if_stale(self) -> None:
        """Close if this connection's token was revoked."""
        if self._caller.page and not self._gateway.page_tokens.is_in(self._caller.page):
            self._pipe.drop(4001, "page session ended; run: csp web")
        participant = self._gateway.writer.room.participants.get(self._agent) if self._agent else None
        if (participant.epoch if participant else 0) != self._epoch:
            self._pipe.drop(4001, "this token is no longer valid; register again")

    # --- output ----------------------------------------------------------------------------------

    def _watch(self, after: int | None) -> None:
        self._unwatch()
        if after is None:
            self._gateway.broadcast.add(self._watcher)
        else:
            self._catch_up = asyncio.ensure_future(self._send_past(after))

    def _unwatch(self) -> None:
        self._gateway.broadcast.remove(self._watcher)
        if self._catch_up is not None:
            self._catch_up.cancel()
            self._catch_up = None

    async def _send_past(self, seq: int) -> None:
        """Send the journal after `seq` at the reader's pace, then switch to live events."""
        journal = self._gateway.writer.journal
        cursor: Cursor | None = None
        while not self._gateway.writer.is_leading and journal.view.seq < seq:
            # The reader comes from a gateway that is ahead of this one.
            await self._gateway.broadcast.next_news()
        while await self._pipe.drain():
            began = time.monotonic()
            chunk = journal.view.read_after(seq, CATCH_UP_BYTES, cursor)
            frames = [
                text_frame(line)
                for line in chunk.lines
                if self._agent is None or self._gateway.is_visible(decode_event(line), self._agent)
            ]
            if frames and not self._pipe.write(b"".join(frames)):
                return
            seq, cursor = chunk.last_seq, chunk.cursor
            if chunk.end:
                # Nothing can be committed between reaching the end of the journal and this line.
                self._gateway.broadcast.add(self._watcher)
                return
            await asyncio.sleep(self._pause_s(began))

    def _pause_s(self, began: float) -> float:
        """Return how long to pause for other work on the loop, so that catching up does not add latency."""
        now = time.monotonic()
        is_busy = now - self._gateway.last_commit < BUSY_S
        return (now - began) * (1 / CATCH_UP_SHARE - 1) if is_busy else 0

    # --- input -----------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                self._answer_error(None, BadInput("binary frames are not supported", "send JSON as text"))
                continue
            data = message.data.encode(errors="replace")
            if len(data) > operations.LONG_REPLY:
                # Input after a long reply waits here until the reply is parsed, which keeps the order.
                with contextlib.suppress(BadInput):
                    said = parse(_Said, data)
                    await operations.read_ahead(said.content if said.op == "output" else "")
            ticket: Ticket | None = None
            if not is_person(self._caller):
                # An agent's input is not read until it may continue, which makes the agent wait too.
                await self._gateway.throttle.keep_rate(self._caller.id)
                ticket = Ticket(self._caller.id)
                await self._gateway.throttle.enter(ticket)
            # Tasks start in the order of creation, so operations are decided in the order sent, while one
            # fdatasync acknowledges many of them.
            task = asyncio.ensure_future(self._operate(data))
            self._ops.add(task)
            task.add_done_callback(partial(self._end_op, ticket))
            while len(self._ops) >= MAX_OPS_IN_FLIGHT:
                await asyncio.wait(self._ops, return_when=asyncio.FIRST_COMPLETED)

    def _end_op(self, ticket: Ticket | None, task: "asyncio.Task[None]") -> None:
        self._ops.discard(task)
        if ticket is not None:
            self._gateway.throttle.leave(ticket)

    async def _operate(self, data: bytes) -> None:
        ref: int | str | None = None
        try:
            op = parse(Op, data)
            ref = op.ref
            view = await self._run_op(op.op, data)
        except CspError as error:
            self._answer_error(ref, error)
        else:
            self._pipe.write(text_frame(b'{"ref":%b,"ok":true,%b' % (encode(ref), encode(view)[1:])))

    async def _run_op(self, name: str, data: bytes) -> msgspec.Struct:
        self._gateway.recheck(self._caller)
        if name not in ROLES:
            raise BadInput(f"unknown op {name!r}", f"expected one of: {', '.join(ROLES)}")
        check_call(ROLES[name], self._caller.party, f"send {name!r}")
        if name != "state":
            await self._gateway.arrive(self._caller)
        if name in ("watch", "unwatch"):
            self._change_watch(parse(WatchBody, data), is_on=name == "watch")
            return Done()
        if name == "live" and len(data) > MAX_LIVE_BYTES:
            raise TooLarge(f"a live frame is over {MAX_LIVE_BYTES} bytes", "show less of it")
        # A screen contains many values and has its own limit.
        read = parse if name == "live" else parse_request
        call = Call(self._caller, {}, None, read(_BODIES[name], data))
        return await self._gateway.at_latest(lambda: OPS[name](self._gateway, call))

    def _change_watch(self, body: WatchBody, *, is_on: bool) -> None:
        """Start or stop watching a screen, or all events."""
        if body.screen is None:
            if is_on:
                self._watch(body.after)
            else:
                self._unwatch()
        elif is_on:
            agent = operations.check_watch(self._gateway, self._caller, body.screen)
            self._gateway.screen_watch.watch(agent, self._feed)
        else:
            self._gateway.screen_watch.unwatch(AgentId(body.screen), self._feed)

    def _answer_error(self, ref: int | str | None, error: CspError) -> None:
        if isinstance(error, Broken):
            self._gateway.metrics.requests[error.status] += 1
        said = encode({"error": error.message, "hint": error.hint, "status": error.status})[1:]
        self._pipe.write(text_frame(b'{"ref":%b,%b' % (encode(ref), said)))
