"""Track open connections and their owners, and serve people before agents.

asyncio handles everything that is ready in one pass, so every busy agent makes passes longer. Here the
sockets of agents are in a separate selector, and a pass handles only a few of them. If there are too many
connections, some are closed.
"""

import asyncio
import re
import resource
import selectors
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from csp.errors import CspError, TooMany
from csp.gateway.auth import Caller
from csp.protocol.enums import AgentId, Role
from csp.room.caller_limits import HEAD_S, Lane, admit, in_turn, places_for

#: The number of sockets of a lane that are served in one pass; people have no limit.
SERVED: Final = {Lane.STRANGERS: 32, Lane.AGENTS: 16}

Ready = list[tuple[selectors.SelectorKey, int]]
FileObject = Any
#: The interval for checking connections for overdue requests.
SWEEP_S: Final = 1.0
#: The time after which a refused agent may try again; until then its connection is not read.
AGAIN_S: Final = 1.0
#: The number of bytes read at once; handling them cannot be interrupted.
READ_BYTES: Final = {Lane.PEOPLE: 256 * 1024, Lane.AGENTS: 16 * 1024, Lane.STRANGERS: 16 * 1024}
_TOKEN: Final = re.compile(
    rb"\r\n(?:x-auth-token[ \t]*:|authorization[ \t]*:[ \t]*bearer[ \t])[ \t]*([!-~]+)", re.IGNORECASE
)


class LaneSelector(selectors.BaseSelector):
    """A selector with one lane per kind of caller; sockets start in the lane for people."""

    def __init__(self) -> None:
        self._lanes = {lane: selectors.DefaultSelector() for lane in Lane}
        self._first = self._lanes[Lane.PEOPLE]
        self._lane_of: dict[int, Lane] = {}
        self._last = dict.fromkeys(SERVED, -1)
        #: Whether callers are waiting to be accepted; agents are then not served for one pass.
        self.is_crowded = False
        for lane in SERVED:
            # A selector's own descriptor is readable when one of its sockets is ready.
            self._first.register(self._lanes[lane].fileno(), selectors.EVENT_READ, lane)

    def put(self, fd: int, lane: Lane) -> None:
        """Move a descriptor to this lane."""
        before = self._lane_of.get(fd, Lane.PEOPLE)
        if before is lane:
            return
        self._lane_of[fd] = lane
        key = self._lanes[before].get_map().get(fd)
        if key is not None:
            self._lanes[before].unregister(fd)
            self._lanes[lane].register(key.fileobj, key.events, key.data)

    def forget(self, fd: int) -> None:
        """Reset the lane of a descriptor, which may be reused."""
        self.put(fd, Lane.PEOPLE)
        self._lane_of.pop(fd, None)

    def register(self, fileobj: FileObject, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector_of(fileobj).register(fileobj, events, data)

    def unregister(self, fileobj: FileObject) -> selectors.SelectorKey:
        return self._selector_of(fileobj).unregister(fileobj)

    def modify(self, fileobj: FileObject, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector_of(fileobj).modify(fileobj, events, data)

    def get_key(self, fileobj: FileObject) -> selectors.SelectorKey:
        return self._selector_of(fileobj).get_key(fileobj)

    def get_map(self) -> Mapping[FileObject, selectors.SelectorKey]:
        return ChainMap(*[dict(selector.get_map()) for selector in self._lanes.values()])

    def select(self, timeout: float | None = None) -> Ready:
        found = self._first.select(timeout)
        ready = [one for one in found if not isinstance(one[0].data, Lane)]
        if len(ready) < len(found):
            lanes = {key.data for key, _ in found if isinstance(key.data, Lane)}
            for lane, most in SERVED.items():
                if lane not in lanes or (self.is_crowded and lane is Lane.AGENTS):
                    continue
                found = self._lanes[lane].select(0)
                if len(found) > most:
                    by_fd = {one[0].fd: one for one in found}
                    chosen = in_turn(list(by_fd), self._last[lane], most)
                    self._last[lane] = chosen[-1]
                    found = [by_fd[fd] for fd in chosen]
                ready += found
        self.is_crowded = False
        return ready

    def close(self) -> None:
        for selector in self._lanes.values():
            selector.close()

    def _selector_of(self, fileobj: FileObject) -> selectors.BaseSelector:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        return self._lanes[self._lane_of.get(fd, Lane.PEOPLE)]


_SELECTORS: WeakKeyDictionary[asyncio.AbstractEventLoop, LaneSelector] = WeakKeyDictionary()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop with lanes, or a plain one if selectors have no descriptor on this system."""
    if not hasattr(selectors.DefaultSelector, "fileno"):
        return asyncio.new_event_loop()
    selector = LaneSelector()
    loop = asyncio.SelectorEventLoop(selector)
    _SELECTORS[loop] = selector
    return loop


def lanes_of(loop: asyncio.AbstractEventLoop) -> LaneSelector | None:
    """Return the lanes of a loop created by `new_event_loop`; None for a plain loop."""
    return _SELECTORS.get(loop)


class Guest:
    """One accepted connection."""

    __slots__ = ("abort", "agent", "fd", "is_busy", "lane", "since", "transport")

    def __init__(self, abort: Callable[[], object], since: float) -> None:
        self.abort = abort
        self.lane = Lane.STRANGERS
        self.agent: AgentId | None = None
        self.fd = -1
        #: Whether a request is being answered.
        self.is_busy = False
        #: The time since which the rest of a request's head has been awaited; None if no head is incomplete.
        self.since: float | None = since
        self.transport: asyncio.Transport | None = None

    def end_request(self) -> None:
        """Record that a request was answered; a caller without a token must send the next one at once."""
        self.is_busy = False
        if self.lane is Lane.STRANGERS:
            self.since = asyncio.get_running_loop().time()

    def hold(self, seconds: float) -> None:
        """Stop reading for `seconds`."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return

        def resume() -> None:
            if not transport.is_closing():
                transport.resume_reading()

        transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, resume)


def token_in(head: bytes) -> str:
    """Return the token in a request's head, found by a quick search without parsing."""
    found = _TOKEN.search(head)
    return found[1].decode("ascii") if found else ""


class Connections:
    """All connections of a process.

    `identify` returns the caller with a token, given the head of its request; `too_fast` returns the error
    for an agent over its rate. The agents of several rooms have ids that differ.
    """

    def __init__(
        self, identify: Callable[[str, bytes], Caller], too_fast: Callable[[AgentId], TooMany | None]
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
        self._sweep_at = 0.0

    def count(self, lane: Lane) -> int:
        """Return the number of connections in a lane."""
        return len(self._lanes[lane])

    # --- open and close --------------------------------------------------------------------------

    def open(self, abort: Callable[[], None]) -> Guest:
        """Add a connection whose caller is unknown; the oldest such connection may be closed to make room."""
        strangers = self._lanes[Lane.STRANGERS]
        while len(strangers) >= self.places.strangers:
            self.drop_oldest()
        guest = Guest(abort, self._loop.time())
        strangers[guest] = None
        if self._timer is None:
            self._sweep_later()
        return guest

    def connected(self, guest: Guest, transport: asyncio.Transport) -> None:
        """Set the transport of a connection."""
        guest.transport, guest.abort = transport, transport.abort
        socket = transport.get_extra_info("socket")
        guest.fd = socket.fileno() if socket is not None else -1
        self._serve_in_lane(guest)

    def read_from(self, guest: Guest, fd: int) -> None:
        """Serve a connection that has no transport yet by its descriptor, in its lane."""
        guest.fd = fd
        self._serve_in_lane(guest)

    def put_agents_off(self) -> None:
        """Reserve the next pass of the loop for people and new callers."""
        if self._selector is not None:
            self._selector.is_crowded = True

    def drop_oldest(self) -> bool:
        """Close the oldest connection without a token, preferably one without a request in progress."""
        strangers = self._lanes[Lane.STRANGERS]
        guest = next((one for one in strangers if not one.is_busy), next(iter(strangers), None))
        if guest is not None:
            self._drop(guest)
        return guest is not None

    def close(self, guest: Guest) -> None:
        """Remove a connection that has ended."""
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

    def _sweep_later(self) -> None:
        self._sweep_at = self._loop.time() + SWEEP_S
        self._timer = self._loop.call_at(self._sweep_at, self._sweep)

    def _sweep(self) -> None:
        # While the loop could not run, as on a machine that was suspended, no caller could be read either.
        stalled_s = self._loop.time() - self._sweep_at
        if stalled_s > SWEEP_S:
            for guest in (one for guests in self._lanes.values() for one in guests):
                guest.since = None if guest.since is None else guest.since + stalled_s
        late = self._loop.time() - HEAD_S
        for guests in self._lanes.values():
            for guest in [one for one in guests if one.since is not None and one.since <= late]:
                self._drop(guest)
        self._timer = None
        if any(self._lanes.values()):
            self._sweep_later()

    # --- owners ----------------------------------------------------------------------------------

    def refusal(self, head: bytes) -> TooMany | None:
        """Return the error if this head's sender is refused; it must be fast, because it stops floods."""
        token = token_in(head)
        if not token:
            return None
        try:
            caller = self._identify(token, head)
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
                if len(self._lanes[Lane.PEOPLE]) >= self.places.people:
                    raise TooMany(f"people have {self.places.people} connections", "close some of them")
                self._move(guest, Lane.PEOPLE, None)
            return
        if guest.agent == caller.id:
            return
        verdict = admit(caller.id, self._counts, self.places)
        if verdict.gives_way is not None:
            # Close an idle connection of that agent, or else its newest one if the verdict allows it.
            guests = self._of_agent.get(verdict.gives_way, {})
            idle = next((one for one in guests if not one.is_busy), None)
            leaving = idle or (next(reversed(guests), None) if verdict.is_in else None)
            if leaving is None:
                raise self._no_place(caller.id)
            self._drop(leaving)
        self._move(guest, Lane.AGENTS, caller.id)

    def _no_place(self, agent: AgentId) -> TooMany:
        hint = f"close some of them, or try again in {AGAIN_S:g} s"
        return TooMany(f"{agent} has {self._counts.get(agent, 0)} connections", hint, after_s=AGAIN_S)

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
            # Plain asyncio transports have `max_size`; TLS transports do not.
            guest.transport.max_size = READ_BYTES[guest.lane]  # type: ignore[union-attr]  # see above
        if self._selector is not None and guest.fd >= 0:
            self._selector.put(guest.fd, guest.lane)


def is_person(caller: Caller) -> bool:
    """Return whether a caller is a person: the room's token, or a page opened by a person."""
    return caller.role is Role.ROOM or bool(caller.page)
