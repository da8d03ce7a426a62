"""Presence of agents: open WebSockets and the time of the last call."""

from collections import Counter
from collections.abc import Callable, Iterable

from csp.protocol.enums import AgentId


class Presence:
    """Tracks presence by connections; the room only records changes."""

    def __init__(self, clock: Callable[[], float], offline_after_s: float) -> None:
        self._clock = clock
        self._offline_after_s = offline_after_s
        # After a start no agent has had a chance to call yet.
        self._started = clock()
        self._sockets: Counter[AgentId] = Counter()
        self._last_call: dict[AgentId, float] = {}

    def touch(self, agent: AgentId) -> None:
        """Record a call of `agent`."""
        self._last_call[agent] = self._clock()

    def connect(self, agent: AgentId) -> None:
        """Record an open WebSocket of `agent`."""
        self._sockets[agent] += 1

    def disconnect(self, agent: AgentId) -> None:
        """Record that a WebSocket of `agent` has closed."""
        self._sockets[agent] -= 1
        self.touch(agent)

    def forget(self, agent: AgentId) -> None:
        """Forget a removed participant."""
        self._last_call.pop(agent, None)

    def last_seen(self, agent: AgentId, otherwise: float) -> float:
        """Return when `agent` was last seen."""
        return self._clock() if self._sockets[agent] > 0 else self._last_call.get(agent, otherwise)

    def silent(self, online: Iterable[AgentId]) -> list[AgentId]:
        """Return the agents without a WebSocket and without a recent call."""
        limit = self._clock() - self._offline_after_s
        return [a for a in online if self._sockets[a] <= 0 and self._last_call.get(a, self._started) < limit]
