"""Maintain a WebSocket connection to the gateway, or to one of several.

If a room has several gateways, the connection moves to the next one as soon as it is lost, and pauses only
after all of them have failed. A gateway counts as lost after two seconds without a sign of life; on a machine
that is too busy for that, each round of failures doubles the patience.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from csp.client.http_calls import TIMEOUT_S, HttpCalls
from csp.client.inbox import Inbox
from csp.client.outbox import Outbox
from csp.client.websocket_link import KEEPALIVE_S, WebSocketLink, open_link
from csp.errors import CspError, Forbidden, Unauthenticated
from csp.protocol.screen_frames import LiveBody

log = logging.getLogger(__name__)

#: The minimum and the maximum delay between two attempts.
FIRST_S: Final = 0.1
LAST_S: Final = 5.0
#: A connection that has lasted this long resets the backoff.
STEADY_S: Final = 5.0
#: The patience with one of several gateways.
PATIENCE_S: Final = 1.0


class Status(NamedTuple):
    """The state of the connection, and the reason if there is none."""

    is_connected: bool = False
    why: str = ""


OnStatus = Callable[[Status], None]


class Backoff:
    """A delay that doubles with each attempt; jitter keeps many clients from retrying at once."""

    def __init__(self) -> None:
        self._tries = 0

    def reset(self) -> None:
        """Reset to the minimum delay."""
        self._tries = 0

    def next_s(self) -> float:
        """Return the next delay, between half of the full one and all of it."""
        full = min(LAST_S, FIRST_S * 2.0 ** min(self._tries, 16))
        self._tries += 1
        return full * random.uniform(0.5, 1.0)


class Connection:
    """The connection that fills the inbox and empties the outbox, and reconnects whenever it is lost.

    `give_up_s` limits the time of the retries; None means no limit.
    """

    def __init__(
        self, http: HttpCalls, inbox: Inbox, outbox: Outbox, on_status: OnStatus, give_up_s: float | None
    ) -> None:
        self.status = Status(why="not connected yet")
        self.give_up_s = give_up_s
        self._http = http
        self._inbox = inbox
        self._outbox = outbox
        self._on_status = on_status
        self._backoff = Backoff()
        #: How many gateways have been tried since the last pause, and how many rounds without success.
        self._tried = self._rounds = 0
        #: How many gateways have refused the token since the last connection.
        self._refusals = 0
        self._link: WebSocketLink | None = None
        #: The agents whose screens are watched; sent again on each connection.
        self.screens: dict[str, None] = {}

    async def show(self, body: LiveBody) -> bool:
        """Send a live frame if connected; return whether there is a connection."""
        if self._link is None or not self.status.is_connected:
            return False
        await self._link.show(body)
        return True

    async def run(self) -> None:
        """Connect and reconnect; raise Unauthenticated, Forbidden or, on giving up, the last error."""
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
                is_too_late = self.give_up_s is not None and now - good_at > self.give_up_s
                # One of several gateways may not know a token yet that the room accepts.
                self._refusals = 0 if was_connected else self._refusals
                self._refusals += isinstance(error, Unauthenticated | Forbidden)
                if is_too_late or self._refusals >= len(self._http):
                    raise
                if self._progress != before or (was_connected and now - started > STEADY_S):
                    self._backoff.reset()
                    self._tried = self._rounds = 0
            except asyncio.CancelledError:
                self.status = Status(why="the client is closed")
                raise
            self._http.move_on()
            self._tried += 1
            if self._tried >= len(self._http):
                self._tried = 0
                self._rounds += 1
                await asyncio.sleep(self._backoff.next_s())

    @property
    def _progress(self) -> tuple[int, int]:
        return self._inbox.taken, self._outbox.settled

    async def _stay(self) -> None:
        """Connect and serve the connection until it is lost."""
        is_only = len(self._http) == 1
        patience_s = KEEPALIVE_S if is_only else PATIENCE_S * 2.0 ** min(self._rounds, 16)
        self._inbox.find_place(await self._http.place(TIMEOUT_S if is_only else min(patience_s, TIMEOUT_S)))
        link = self._link = await open_link(self._http, self._inbox.last_seq or 0, patience_s)
        try:
            self._tell(Status(is_connected=True))
            await link.run(self._inbox, self._outbox, list(self.screens))
        finally:
            self._link = None
            await link.close()

    def _tell(self, status: Status) -> None:
        if status != self.status:
            self.status = status
            log.debug("connection changed", extra={"connected": status.is_connected, "why": status.why})
            self._on_status(status)
