"""Who is here: open WebSockets, the time of the last call."""

from collections import Counter
from collections.abc import Callable, Iterable

from csp.protocol.enums import AgentId


class Presence:
    """Know it from the connections alone; the room is only told when it changes."""

    def __init__(self, clock: Callable[[], float], offline_after_s: float) -> None:
        self._clock = clock
        self._offline_after_s = offline_after_s
        # After a start nobody has had a chance to call yet.
        self._started = clock()
        self._sockets: Counter[AgentId] = Counter()
        self._last_call: dict[AgentId, float] = {}

    def touch(self, agent: AgentId) -> None:
        """Note a call of `agent`."""
        self._last_call[agent] = self._clock()

    def connect(self, agent: AgentId) -> None:
        """Note an open WebSocket of `agent`."""
        self._sockets[agent] += 1

    def disconnect(self, agent: AgentId) -> None:
        """Note that a WebSocket of `agent` has closed."""
        self._sockets[agent] -= 1
        self.touch(agent)

    def forget(self, agent: AgentId) -> None:
        """Drop what is known of a participant that was removed."""
        self._last_call.pop(agent, None)

    def last_seen(self, agent: AgentId, otherwise: float) -> float:
        """Return when `agent` last gave a sign of life."""
        return self._clock() if self._sockets[agent] > 0 else self._last_call.get(agent, otherwise)

    def silent(self, online: Iterable[AgentId]) -> list[AgentId]:
        """Return those with no WebSocket and no call for too long."""
        limit = self._clock() - self._offline_after_s
        return [a for a in online if self._sockets[a] <= 0 and self._last_call.get(a, self._started) < limit]
