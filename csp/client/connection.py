"""Keep a connection to the gateway, over WebSocket or by polling."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from csp.client.backoff import Backoff
from csp.client.http_calls import HttpCalls
from csp.client.inbox import Inbox
from csp.client.outbox import Outbox
from csp.client.polling import Polling
from csp.client.websocket_link import WebSocketLink, open_link
from csp.errors import CspError, Forbidden, Unauthenticated, Unreachable
from csp.protocol.enums import AgentId
from csp.protocol.screen_frames import LiveBody

log = logging.getLogger(__name__)

#: A connection that has lasted this long resets the backoff.
STEADY_S: Final = 5.0
#: After this many failed handshakes while plain HTTP works, something blocks WebSocket.
MAX_BROKEN_HANDSHAKES: Final = 3


class Transport(StrEnum):
    AUTO = "auto"
    WEBSOCKET = "websocket"
    HTTP = "http"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of the connection: its transport, or why there is none."""

    transport: Transport | None = None
    why: str = ""

    @property
    def is_connected(self) -> bool:
        return self.transport is not None


OnStatus = Callable[[Status], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a connection; `give_up_s` limits the retries, None is no limit."""

    transport: Transport
    give_up_s: float | None
    keepalive_s: float


class Connection:
    """Fills the inbox and empties the outbox; reconnects whenever it is lost."""

    def __init__(
        self,
        http: HttpCalls,
        inbox: Inbox,
        outbox: Outbox,
        agent: AgentId | None,
        options: Options,
        tell: OnStatus,
    ) -> None:
        self.status = Status(why="not connected yet")
        self._http = http
        self._inbox = inbox
        self._outbox = outbox
        self._options = options
        self._tell_owner = tell
        self._polling = Polling(http, inbox, outbox, agent)
        self._backoff = Backoff()
        self._broken_handshakes = 0
        self._link: WebSocketLink | None = None
        #: The agents whose screens are watched; sent again with each connection.
        self.screens: dict[str, None] = {}

    async def show(self, body: LiveBody) -> bool:
        """Send a live frame if there is a WebSocket; return whether there is one."""
        if self._link is None or self.status.transport is not Transport.WEBSOCKET:
            return False
        await self._link.show(body)
        return True

    async def run(self) -> None:
        """Connect and reconnect; raise Unauthenticated, Forbidden, or the last error on giving up."""
        loop = asyncio.get_running_loop()
        good_at = loop.time()
        while True:
            started, before = loop.time(), self._progress
            try:
                await self._stay()
            except CspError as error:
                now, was_connected = loop.time(), self.status.is_connected
                self._tell(Status(why=error.message))
                good_at = now if was_connected else good_at
                if self._is_hopeless(error, now - good_at):
                    raise
                if self._progress != before or (was_connected and now - started > STEADY_S):
                    self._backoff.reset()
            except asyncio.CancelledError:
                self.status = Status(why="the client is closed")
                raise
            await asyncio.sleep(self._backoff.next_s())

    def _is_hopeless(self, error: CspError, in_vain_s: float) -> bool:
        give_up_s = self._options.give_up_s
        return isinstance(error, Unauthenticated | Forbidden) or (
            give_up_s is not None and in_vain_s > give_up_s
        )

    @property
    def _progress(self) -> tuple[int, int]:
        return self._inbox.taken, self._outbox.settled

    async def _stay(self) -> None:
        """Connect, by polling if WebSocket is blocked, until the connection is lost."""
        room_seq = await self._http.seq()
        self._inbox.find_place(room_seq)
        probe = self._open if self._options.transport is Transport.AUTO else None
        try:
            link = None if self._options.transport is Transport.HTTP else await self._open()
            if link is None:
                await self._polling.try_out()
                self._tell(Status(transport=Transport.HTTP))
                link = await self._polling.run(room_seq, probe)
            self._tell(Status(transport=Transport.WEBSOCKET))
            await link.run(self._inbox, self._outbox, list(self.screens))
        finally:
            await self._hang_up()

    async def _open(self) -> WebSocketLink | None:
        try:
            self._link = await open_link(self._http, self._inbox.last_seq or 0, self._options.keepalive_s)
        except Unreachable:
            self._broken_handshakes += 1
            is_fluke = self._broken_handshakes < MAX_BROKEN_HANDSHAKES
            if is_fluke or self._options.transport is Transport.WEBSOCKET:
                raise
        if self._link is not None:
            self._broken_handshakes = 0
        elif self._options.transport is Transport.WEBSOCKET:
            raise Unreachable(f"no WebSocket gets through to {self._http.url}", "let the client poll instead")
        return self._link

    async def _hang_up(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _tell(self, status: Status) -> None:
        if status != self.status:
            self.status = status
            log.debug("connection changed", extra={"transport": status.transport, "why": status.why})
            self._tell_owner(status)
