"""The agents in the room and the running mode, kept up to date for the bottom line."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from csp.config import nearest
from csp.errors import BadInput, Broken, CspError, NotFound
from csp.http_client import field, objects
from csp.human.status_bar import AgentStatus
from csp.protocol.enums import ALL, HUMAN, AgentState
from csp.protocol.events import AnyEvent, ControlSent, Joined, Left, MessageEvent, NoticePosted, Redacted
from csp.session_status import SessionStatus, session_of

#: Changes arrive in bursts, so they share one request, and requests are limited.
_GATHER_S: Final = 0.15
_REST_S: Final = 0.6
_NOT_READY: Final = (AgentState.STARTING, AgentState.OFFLINE)

Ask = Callable[[str, str], Awaitable[Any]]


class Roster:
    """The last responses of GET /agents and GET /mode."""

    def __init__(self, ask: Ask, changed: Callable[[], None]) -> None:
        self._ask = ask
        self._changed = changed
        self._stale = asyncio.Event()
        self._agents: list[dict[str, Any]] = []
        self.is_known = False
        self.groups: dict[str, tuple[str, ...]] = {}
        self.session = SessionStatus()
        #: Agents that were starting when the user joined, and that are not ready yet.
        self._starting: set[str] = set()

    @property
    def ids(self) -> list[str]:
        return [str(item.get("id")) for item in self._agents]

    @property
    def seats(self) -> list[AgentStatus]:
        return [
            AgentStatus(
                id=str(one.get("id")), state=str(one.get("state")), queued=int(one.get("queued") or 0)
            )
            for one in self._agents
        ]

    def summary(self) -> str:
        """Return a short description of who is here."""
        names = [f"{seat.id} {seat.state.replace('_', ' ')}" for seat in self.seats]
        return ", ".join(names) or "no agents yet"

    def watch_starting(self) -> None:
        """Remember which agents are starting, so that `take_ready` returns them later."""
        self._starting = {seat.id for seat in self.seats if seat.state == AgentState.STARTING}

    def take_ready(self) -> list[str]:
        """Return, once each, the watched agents that are ready."""
        states = {seat.id: seat.state for seat in self.seats}
        ready = [one for one in self.ids if one in self._starting and states[one] not in _NOT_READY]
        self._starting.difference_update(ready)
        return ready

    # --- names -----------------------------------------------------------------------------------

    async def learn_groups(self) -> None:
        """Request the groups, which are names for several agents."""
        # A gateway of another version may not support groups.
        with contextlib.suppress(NotFound, Broken):
            found = field(await self._ask("GET", "/catalogue"), "groups", dict)
            self.groups = {name: tuple(map(str, members)) for name, members in found.items()}

    def names(self) -> list[str]:
        """Return the names that can be addressed: the agents, then the groups."""
        return [*self.ids, *(name for name in self.groups if name not in self.ids)]

    def known(self, agent: str) -> str:
        """Return an agent's id as used in the room; raise for an unknown one if the roster is known."""
        wanted = agent.removeprefix("@").lower()
        if wanted == HUMAN:
            raise BadInput("that is you", "name an agent, or all")
        if self.is_known and wanted not in (ALL, *self.ids):
            hint = nearest(wanted, [*self.ids, ALL]) or (
                f"here are: {', '.join(self.ids)}" if self.ids else "nobody has joined yet"
            )
            raise NotFound(f"no agent {wanted!r} is here", hint)
        return wanted

    def addressees(self, to: str) -> str:
        """Return the recipients of a message, separated by commas; raise for an unknown name."""
        names = [self._addressee(name.removeprefix("@").lower()) for name in to.split(",")]
        return ",".join(dict.fromkeys(names))

    def _addressee(self, name: str) -> str:
        if name in self.groups and name not in self.ids:
            return name
        if self.groups and self.is_known and name not in (ALL, HUMAN, *self.ids):
            known = [*self.ids, ALL, *self.groups]
            hint = nearest(name, known) or f"known: {', '.join(known)}"
            raise NotFound(f"no agent or group {name!r} is here", hint)
        return self.known(name)

    # --- updates ---------------------------------------------------------------------------------

    def note(self, event: AnyEvent) -> None:
        """Schedule an update after an event that the bottom line may show; add new agents immediately."""
        if isinstance(event, Joined) and event.sender not in self.ids:
            self._agents.append({"id": event.sender, "state": AgentState.STARTING})
        elif isinstance(event, Left) and event.removed:
            self._agents = [item for item in self._agents if item.get("id") != event.sender]
        is_talk = isinstance(event, NoticePosted | ControlSent | Redacted) and not self.session.is_running
        is_unread = isinstance(event, MessageEvent) and not event.recipients
        if not is_talk and not is_unread:
            self.wake()

    def wake(self) -> None:
        """Schedule an update."""
        self._stale.set()

    async def keep_fresh(self) -> None:
        """Update the state whenever something has changed, until cancelled."""
        while True:
            await self._stale.wait()
            await asyncio.sleep(_GATHER_S)
            self._stale.clear()
            with contextlib.suppress(CspError):
                await self.look()
            await asyncio.sleep(_REST_S)

    async def look(self) -> None:
        """Request the agents and the mode; a gateway without modes is in freeform."""
        self._agents = [item for item in objects(await self._ask("GET", "/agents")) if field(item, "id", str)]
        self.is_known = True
        try:
            self.session = session_of(await self._ask("GET", "/mode"))
        except CspError:
            self.session = SessionStatus()
        self._changed()
