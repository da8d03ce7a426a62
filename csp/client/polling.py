"""Polling over HTTP, where WebSocket is blocked.

Polling carries what the history shows: what was said, notices, votes. The machinery of the room (who joined,
which state, how far a delivery) is not in the history, so it does not come this way.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Never

import msgspec

from csp.client.background_tasks import until_first
from csp.client.http_calls import HttpCalls
from csp.client.inbox import Inbox
from csp.client.incoming_frames import CallAnswer, read_event
from csp.client.outbox import Outbox, Pending
from csp.client.websocket_link import WebSocketLink
from csp.errors import BadInput, CspError, Refused, TooMany, Unreachable
from csp.http_client import segment
from csp.protocol.enums import AgentId, Struct
from csp.protocol.events import HISTORY_TYPES
from csp.protocol.responses import InboxView

log = logging.getLogger(__name__)

WAIT_S: Final = 25.0
PAGE: Final = 100
#: How often the inbox is read from the start: released messages have an old seq.
SWEEP_S: Final = 25.0
FIRST_PROBE_S: Final = 5.0
LAST_PROBE_S: Final = 60.0
TYPES: Final = ",".join(sorted(HISTORY_TYPES | {"activity", "late", "mode", "note", "turn_signal"}))

PATHS: Final = {
    "message": "/message",
    "output": "/agent-output",
    "delivery": "/delivery",
    "control_done": "/delivery",
    "state": "/state",
    "working": "/turn/working",
}
Probe = Callable[[], Awaitable[WebSocketLink | None]]


class _Page(Struct, frozen=True):
    items: tuple[msgspec.Raw, ...]


class Polling:
    """A period of polling."""

    def __init__(self, http: HttpCalls, inbox: Inbox, outbox: Outbox, agent: AgentId | None) -> None:
        self._http = http
        self._inbox = inbox
        self._outbox = outbox
        self._agent = agent

    async def try_out(self) -> None:
        """Raise if the gateway refuses us; a long poll would report it only at its end."""
        await self._http.get(_Page, "/history", limit=1)

    async def run(self, room_seq: int, probe: Probe | None) -> WebSocketLink:
        """Poll and send until `probe` finds a WebSocket link; raise the error that ends polling."""
        self._outbox.rewind()
        works: list[Coroutine[Any, Any, WebSocketLink]] = [self._poll_events(room_seq), self._send()]
        if self._agent is not None:
            works.append(self._poll_delivers(self._agent))
        if probe is not None:
            works.append(_find_link(probe))
        return await until_first(*works)

    # --- in --------------------------------------------------------------------------------------

    async def _poll_events(self, room_seq: int) -> Never:
        while True:
            await self._inbox.drained()
            after = self._inbox.last_seq
            page = await self._http.get(_Page, "/history", WAIT_S, after=after, limit=PAGE, types=TYPES)
            for line in page.items:
                self._add_event(bytes(line))
            if not page.items:
                # The room was at this seq before we asked, so events up to it are not wanted.
                self._inbox.skip_to(room_seq)
                room_seq = await self._http.seq()

    def _add_event(self, line: bytes) -> None:
        try:
            self._inbox.add_event(read_event(line), len(line))
        except BadInput as exc:
            log.warning("event not understood", extra={"problem": exc.message, "size": len(line)})

    async def _poll_delivers(self, agent: AgentId) -> Never:
        loop = asyncio.get_running_loop()
        after, next_sweep = 0, loop.time() + SWEEP_S
        while True:
            page = await self._http.get(InboxView, f"/inbox/{segment(agent)}", WAIT_S, after=after)
            for deliver in page.items:
                self._inbox.add_delivery(deliver, len(deliver.text))
            after = page.next
            if loop.time() > next_sweep:
                after, next_sweep = 0, loop.time() + SWEEP_S

    # --- out -------------------------------------------------------------------------------------

    async def _send(self) -> Never:
        """Send one operation after the other, to keep their order."""
        while True:
            pending = await self._outbox.next()
            self._outbox.settle(pending.ref, await self._ask(pending))

    async def _ask(self, pending: Pending) -> CallAnswer:
        if pending.name not in PATHS:
            problem = f"{pending.name} needs a WebSocket, and none gets through to {self._http.url}"
            return CallAnswer(error=problem, hint="ask for one screen at a time", status=Refused.status)
        try:
            return await self._http.post(CallAnswer, PATHS[pending.name], pending.body)
        except Unreachable:
            raise
        except CspError as error:
            return CallAnswer(error=error.message, hint=error.hint, status=error.status)


async def _find_link(probe: Probe) -> WebSocketLink:
    delay_s = FIRST_PROBE_S
    while True:
        await asyncio.sleep(delay_s)
        delay_s = min(LAST_PROBE_S, 2 * delay_s)
        with contextlib.suppress(Unreachable, TooMany):
            link = await probe()
            if link is not None:
                return link
