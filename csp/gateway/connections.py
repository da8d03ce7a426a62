"""The open connections, their owners, and which to close when there are too many."""

import asyncio
import re
import resource
from collections.abc import Callable
from typing import Final

from csp.errors import CspError, TooMany
from csp.gateway.auth import Caller
from csp.gateway.priority_loop import lanes_of
from csp.protocol.enums import AgentId, Role
from csp.room.admission import HEAD_S, Lane, admit, places_for

#: How often connections are checked for requests that are overdue.
SWEEP_S: Final = 1.0
#: When a refused agent may try again; until then its connection is not read.
AGAIN_S: Final = 1.0
#: How much is read at once: handling it cannot be interrupted.
READ_BYTES: Final = {Lane.PEOPLE: 256 * 1024, Lane.AGENTS: 16 * 1024, Lane.STRANGERS: 16 * 1024}
_TOKEN: Final = re.compile(
    rb"\r\n(?:x-auth-token[ \t]*:|authorization[ \t]*:[ \t]*bearer[ \t])[ \t]*([!-~]+)", re.IGNORECASE
)


class Guest:
    """One accepted connection."""

    __slots__ = ("abort", "agent", "fd", "is_busy", "lane", "since", "transport")

    def __init__(self, abort: Callable[[], None], since: float) -> None:
        self.abort = abort
        self.lane = Lane.STRANGERS
        self.agent: AgentId | None = None
        self.fd = -1
        #: Whether a request is being answered.
        self.is_busy = False
        #: Since when the rest of a request's head is due; None if nothing is due.
        self.since: float | None = since
        self.transport: asyncio.Transport | None = None

    def end_request(self) -> None:
        """Record that a request was answered; without a token, the next one is due at once."""
        self.is_busy = False
        if self.lane is Lane.STRANGERS:
            self.since = asyncio.get_running_loop().time()

    def hold(self, seconds: float) -> None:
        """Read nothing for a while."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, _resume, transport)


def _resume(transport: asyncio.Transport) -> None:
    if not transport.is_closing():
        transport.resume_reading()


def token_in(head: bytes) -> str:
    """Return the token in the head of a request, by a quick search."""
    found = _TOKEN.search(head)
    return found[1].decode("ascii") if found else ""


class Connections:
    """All connections of a gateway; `too_fast` returns the error for an agent over its rate."""

    def __init__(
        self, identify: Callable[[str], Caller], too_fast: Callable[[AgentId], TooMany | None]
    ) -> None:
        self.places = places_for(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._identify = identify
        self._too_fast = too_fast
        self._lanes: dict[Lane, dict[Guest, None]] = {lane: {} for lane in Lane}
        self._of_agent: dict[AgentId, dict[Guest, None]] = {}
        self._counts: dict[AgentId, int] = {}
        self._loop = asyncio.get_running_loop()
        self._selector = lanes_of(self._loop)
        self._timer: asyncio.TimerHandle | None = None

    def count(self, lane: Lane) -> int:
        """Return how many connections are in a lane."""
        return len(self._lanes[lane])

    # --- come and go -----------------------------------------------------------------------------

    def open(self, abort: Callable[[], None]) -> Guest:
        """Add a connection without a caller; the oldest of its kind may be closed for it."""
        strangers = self._lanes[Lane.STRANGERS]
        while len(strangers) >= self.places.strangers:
            self.drop_oldest()
        guest = Guest(abort, self._loop.time())
        strangers[guest] = None
        if self._timer is None:
            self._timer = self._loop.call_later(SWEEP_S, self._sweep)
        return guest

    def connected(self, guest: Guest, transport: asyncio.Transport) -> None:
        """Set the transport of a connection."""
        guest.transport, guest.abort = transport, transport.abort
        socket = transport.get_extra_info("socket")
        guest.fd = socket.fileno() if socket is not None else -1
        self._serve_in_lane(guest)

    def read_from(self, guest: Guest, fd: int) -> None:
        """Serve the descriptor of a connection that has no transport yet in its lane."""
        guest.fd = fd
        self._serve_in_lane(guest)

    def put_agents_off(self) -> None:
        """Leave the next pass of the loop to people and new callers."""
        if self._selector is not None:
            self._selector.is_crowded = True

    def drop_oldest(self) -> bool:
        """Close the oldest connection without a token, preferably one without a request."""
        strangers = self._lanes[Lane.STRANGERS]
        guest = next((one for one in strangers if not one.is_busy), next(iter(strangers), None))
        if guest is not None:
            self._drop(guest)
        return guest is not None

    def close(self, guest: Guest) -> None:
        """Forget a connection that has ended."""
        self._lanes[guest.lane].pop(guest, None)
        if guest.agent is not None and guest in self._of_agent.get(guest.agent, ()):
            del self._of_agent[guest.agent][guest]
            self._count(guest.agent)
        if self._selector is not None and guest.fd >= 0:
            self._selector.forget(guest.fd)
            guest.fd = -1

    def close_strangers(self) -> None:
        """Close all connections without a token, when the gateway ends."""
        for guest in list(self._lanes[Lane.STRANGERS]):
            self._drop(guest)
        if self._timer is not None:
            self._timer.cancel()

    def _drop(self, guest: Guest) -> None:
        self.close(guest)
        guest.abort()

    def _sweep(self) -> None:
        late = self._loop.time() - HEAD_S
        for guests in self._lanes.values():
            for guest in [one for one in guests if one.since is not None and one.since <= late]:
                self._drop(guest)
        is_empty = not any(self._lanes.values())
        self._timer = None if is_empty else self._loop.call_later(SWEEP_S, self._sweep)

    # --- whose it is -----------------------------------------------------------------------------

    def refusal(self, head: bytes) -> TooMany | None:
        """Return why the sender of this head is refused, if it is; cheap, because floods end here."""
        token = token_in(head)
        if not token:
            return None
        try:
            caller = self._identify(token)
        except CspError:
            return None
        if is_person(caller):
            return None
        if self._counts.get(caller.id, 0) < self.places.per_agent:
            return self._too_fast(caller.id)
        has_idle = any(not guest.is_busy for guest in self._of_agent[caller.id])
        return self._too_fast(caller.id) if has_idle else self._no_place(caller.id)

    def place(self, guest: Guest, caller: Caller) -> None:
        """Assign a connection to its caller, or raise TooMany."""
        if is_person(caller):
            if guest.lane is not Lane.PEOPLE:
                self._place_person(guest)
            return
        if guest.agent == caller.id:
            return
        verdict = admit(caller.id, self._counts, self.places)
        if verdict.gives_way is not None and not self._make_room(verdict.gives_way, may_break=verdict.is_in):
            raise self._no_place(caller.id)
        self._move(guest, Lane.AGENTS, caller.id)

    def _place_person(self, guest: Guest) -> None:
        if len(self._lanes[Lane.PEOPLE]) >= self.places.people:
            raise TooMany(f"people have {self.places.people} connections", "close some of them")
        self._move(guest, Lane.PEOPLE, None)

    def _no_place(self, agent: AgentId) -> TooMany:
        hint = f"close some of them, or try again in {AGAIN_S:g} s"
        return TooMany(f"{agent} has {self._counts.get(agent, 0)} connections", hint, after_s=AGAIN_S)

    def _make_room(self, agent: AgentId, *, may_break: bool) -> bool:
        """Close a connection of an agent: an idle one, or else the newest if it can be cancelled."""
        guests = self._of_agent.get(agent, {})
        idle = next((guest for guest in guests if not guest.is_busy), None)
        guest = idle or (next(reversed(guests), None) if may_break else None)
        if guest is not None:
            self._drop(guest)
        return guest is not None

    def _move(self, guest: Guest, lane: Lane, agent: AgentId | None) -> None:
        fd = guest.fd
        self.close(guest)
        guest.lane, guest.agent, guest.fd = lane, agent, fd
        self._lanes[lane][guest] = None
        if agent is not None:
            self._of_agent.setdefault(agent, {})[guest] = None
            self._count(agent)
        self._serve_in_lane(guest)

    def _count(self, agent: AgentId) -> None:
        self._counts[agent] = len(self._of_agent[agent])
        if not self._counts[agent]:
            del self._counts[agent], self._of_agent[agent]

    def _serve_in_lane(self, guest: Guest) -> None:
        if hasattr(guest.transport, "max_size"):
            # asyncio's own transports have it, those with TLS do not.
            guest.transport.max_size = READ_BYTES[guest.lane]  # type: ignore[union-attr]  # so it says
        if self._selector is not None and guest.fd >= 0:
            self._selector.put(guest.fd, guest.lane)


def is_person(caller: Caller) -> bool:
    """Return whether a caller is a person: the room's token, or a page opened by a person."""
    return caller.role is Role.ROOM or bool(caller.page)
