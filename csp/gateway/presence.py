"""The connected agents: those of this gateway and, in a cluster, of the others."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from csp.cluster.bus import Message
from csp.cluster.names import presence_subject
from csp.cluster.node import ClusterRoom
from csp.errors import LogLost
from csp.protocol.enums import AgentId

log = logging.getLogger(__name__)

#: How often a gateway tells the others what has not changed.
REPEAT_S: Final = 1.0
#: Changes within this time are told together.
GATHER_S: Final = 0.05


class Presence:
    """Tracks connected agents; the room records only changes."""

    def __init__(self, clock: Callable[[], float], offline_after_s: float) -> None:
        self._clock = clock
        self._offline_after_s = offline_after_s
        # After a start, no agent has had a chance to call yet.
        self._started = clock()
        self._sockets: Counter[AgentId] = Counter()
        self._last_call: dict[AgentId, float] = {}
        #: The agents that are connected to each other gateway.
        self._elsewhere: dict[str, frozenset[AgentId]] = {}
        #: Called when an agent connects or disconnects, and with the first call after a rest.
        self.on_change: Callable[[], None] = lambda: None
        self._is_resting = False

    def touch(self, agent: AgentId) -> None:
        """Record a call by `agent`."""
        self._last_call[agent] = self._clock()
        self.wake()

    def connect(self, agent: AgentId) -> None:
        """Record an open WebSocket of `agent`."""
        self._sockets[agent] += 1
        self.on_change()

    def disconnect(self, agent: AgentId) -> None:
        """Record that a WebSocket of `agent` has closed."""
        self._sockets[agent] -= 1
        self.touch(agent)
        self.on_change()

    def forget(self, agent: AgentId) -> None:
        """Remove the record of a removed participant."""
        self._last_call.pop(agent, None)

    def last_seen(self, agent: AgentId, otherwise: float) -> float:
        """Return when `agent` was last seen."""
        return self._clock() if self._is_connected(agent) else self._last_call.get(agent, otherwise)

    def silent(self, online: Iterable[AgentId]) -> list[AgentId]:
        """Return the agents without a WebSocket and without a recent call."""
        limit = self._clock() - self._offline_after_s
        return [
            agent
            for agent in online
            if not self._is_connected(agent) and self._last_call.get(agent, self._started) < limit
        ]

    def _is_connected(self, agent: AgentId) -> bool:
        return self._sockets[agent] > 0 or self.is_elsewhere(agent)

    # --- other gateways --------------------------------------------------------------------------

    def is_elsewhere(self, agent: AgentId) -> bool:
        """Return whether `agent` is connected to another gateway."""
        return any(agent in connected for connected in self._elsewhere.values())

    def connected(self) -> list[AgentId]:
        """Return the agents that are connected to this gateway."""
        return [agent for agent, count in self._sockets.items() if count > 0]

    def ages(self) -> dict[AgentId, float]:
        """Return how many seconds ago each agent called here, as far as it matters."""
        now = self._clock()
        ages = {agent: now - at for agent, at in self._last_call.items()}
        return {agent: age for agent, age in ages.items() if age < self._offline_after_s}

    def rest(self) -> bool:
        """Return whether there is nothing to tell the others, until `on_change` is called."""
        self._is_resting = not self.connected() and not self.ages() and not any(self._elsewhere.values())
        return self._is_resting

    def wake(self) -> None:
        """End a rest."""
        if self._is_resting:
            self._is_resting = False
            self.on_change()

    def hear(self, process: str, connected: Iterable[AgentId], ages: Mapping[AgentId, float]) -> None:
        """Record what another gateway knows."""
        now = self._clock()
        self._elsewhere[process] = frozenset(connected)
        for agent, age in ages.items():
            self._last_call[agent] = max(self._last_call.get(agent, 0.0), now - age)

    def keep(self, living: frozenset[str]) -> None:
        """Drop the gateways that have died: their agents were alive until now."""
        for process in [process for process in self._elsewhere if process not in living]:
            for agent in self._elsewhere.pop(process):
                self.touch(agent)


class _Told(msgspec.Struct, frozen=True):
    """The report of a gateway to the others."""

    process: str
    connected: tuple[AgentId, ...]
    ages: dict[AgentId, float]


_decoder: Final = msgspec.json.Decoder(_Told)


class PresenceSharing:
    """Tells the other gateways who is connected here, and listens to them."""

    def __init__(self, presence: Presence, cluster: ClusterRoom) -> None:
        self._presence = presence
        self._process = cluster.process
        self._peers = cluster.node.peers
        self._bus = cluster.node.bus
        self._subject = presence_subject(cluster.name)
        self._news = asyncio.Event()
        presence.on_change = self._news.set

    async def work(self) -> None:
        """Share until cancelled."""
        end = await self._bus.follow(self._subject, self._hear)
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if self._presence.rest() else REPEAT_S):
                        await self._news.wait()
                await asyncio.sleep(GATHER_S)
                self._news.clear()
                self._presence.keep(self._peers.living())
                await self._tell()
        finally:
            await end()

    async def _tell(self) -> None:
        told = _Told(self._process, tuple(self._presence.connected()), self._presence.ages())
        with contextlib.suppress(LogLost):
            await self._bus.publish(self._subject, msgspec.json.encode(told))

    def _hear(self, message: Message | None) -> None:
        if message is None:
            self._news.set()
            return
        try:
            told = _decoder.decode(message.data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
            log.warning("presence not understood", extra={"problem": str(exc)})
            return
        if told.process != self._process:
            self._presence.hear(told.process, told.connected, told.ages)
            if told.connected:
                # A gateway that dies is noticed by those that do not rest.
                self._presence.wake()
