"""Live screens between gateways: who wants to see an agent, and what it shows.

A wish is repeated while it lasts and is forgotten when it is not, so that a gateway that died wants nothing.
Frames are published only while another gateway wants them. Both may be lost, as live frames may be anyway.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from csp.cluster.bus import Message
from csp.cluster.names import screen_subject, wish_subject
from csp.cluster.node import ClusterRoom
from csp.errors import LogLost
from csp.gateway.presence import Presence
from csp.gateway.screen_watch import ScreenWatch
from csp.protocol.enums import AgentId
from csp.protocol.screen_frames import LiveBody

log = logging.getLogger(__name__)

REPEAT_S: Final = 2.0
#: A wish that has not been repeated for so long is over.
FORGOTTEN_S: Final = 3 * REPEAT_S


class _Wish(msgspec.Struct, frozen=True):
    """Another gateway wants to see an agent, or no longer does."""

    process: str
    agent: AgentId
    is_on: bool


_wish: Final = msgspec.json.Decoder(_Wish)
_frame: Final = msgspec.json.Decoder(LiveBody)


class SharedScreens:
    """The screens of agents at other gateways, for the watchers here, and the other way round."""

    def __init__(self, watch: ScreenWatch, presence: Presence, cluster: ClusterRoom) -> None:
        self._watch = watch
        self._presence = presence
        self._bus = cluster.node.bus
        self._room = cluster.name
        self._process = cluster.process
        #: The agents that are watched here, with what ends their subscription.
        self._wanted: dict[AgentId, Callable[[], Awaitable[None]] | None] = {}
        #: Until when each agent is wanted elsewhere, by gateway.
        self._wishes: dict[AgentId, dict[str, float]] = {}
        self._changed = asyncio.Event()
        watch.elsewhere = self

    # --- for ScreenWatch -------------------------------------------------------------------------

    def has(self, agent: AgentId) -> bool:
        """Return whether an agent is connected to another gateway."""
        return self._presence.is_elsewhere(agent)

    def is_wanted(self, agent: AgentId) -> bool:
        """Return whether another gateway wants to see an agent."""
        return bool(self._wishes.get(agent))

    def want(self, agent: AgentId) -> None:
        """Ask for the frames of an agent."""
        if agent not in self._wanted:
            self._wanted[agent] = None
            self._changed.set()

    def rest(self, agent: AgentId) -> None:
        """Want no more frames of an agent."""
        end = self._wanted.pop(agent, None)
        self._spawn(self._stop(agent, end))

    def show(self, agent: AgentId, body: LiveBody) -> None:
        """Send a frame to the gateways that want it."""
        if self.is_wanted(agent):
            self._spawn(self._publish(screen_subject(self._room, agent), msgspec.json.encode(body)))

    # --- sharing ---------------------------------------------------------------------------------

    async def work(self) -> None:
        """Share until cancelled."""
        end = await self._bus.follow(wish_subject(self._room), self._hear)
        try:
            while True:
                self._changed.clear()
                await self._repeat()
                now = time.monotonic()
                for agent, wishes in list(self._wishes.items()):
                    self._wishes[agent] = {process: end for process, end in wishes.items() if end > now}
                    self._end_unwanted(agent)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REPEAT_S if self._wanted or self._wishes else None):
                        await self._changed.wait()
        finally:
            await end()

    async def _repeat(self) -> None:
        for agent in list(self._wanted):
            if self._wanted.get(agent) is None:
                end = await self._bus.follow(screen_subject(self._room, agent), self._receiver(agent))
                if agent not in self._wanted:
                    await end()
                    continue
                self._wanted[agent] = end
            await self._say(agent, is_on=True)

    def _receiver(self, agent: AgentId) -> Callable[[Message | None], None]:
        def receive(message: Message | None) -> None:
            if message is not None:
                with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    self._watch.receive(agent, _frame.decode(message.data))

        return receive

    def _hear(self, message: Message | None) -> None:
        if message is None:
            self._changed.set()
            return
        try:
            wish = _wish.decode(message.data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
            log.warning("wish not understood", extra={"problem": str(exc)})
            return
        if wish.process == self._process:
            return
        if wish.is_on:
            if not self._wishes:
                # From now on wishes may be forgotten.
                self._changed.set()
            self._wishes.setdefault(wish.agent, {})[wish.process] = time.monotonic() + FORGOTTEN_S
            self._watch.remind(wish.agent)
        elif wish.agent in self._wishes:
            self._wishes[wish.agent].pop(wish.process, None)
            self._end_unwanted(wish.agent)

    def _end_unwanted(self, agent: AgentId) -> None:
        if not self._wishes[agent]:
            del self._wishes[agent]
            self._watch.remind(agent)

    async def _stop(self, agent: AgentId, end: Callable[[], Awaitable[None]] | None) -> None:
        if end is not None:
            await end()
        if agent not in self._wanted:
            await self._say(agent, is_on=False)

    async def _say(self, agent: AgentId, *, is_on: bool) -> None:
        wish = msgspec.json.encode(_Wish(self._process, agent, is_on))
        await self._publish(wish_subject(self._room), wish)

    async def _publish(self, subject: str, data: bytes) -> None:
        with contextlib.suppress(LogLost):
            await self._bus.publish(subject, data)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        _running.add(task)
        task.add_done_callback(_running.discard)


#: The loop keeps no reference of its own to a task.
_running: Final[set["asyncio.Future[None]"]] = set()
