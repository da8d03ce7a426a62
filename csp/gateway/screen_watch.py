"""Forward agents' screens to their watchers.

Nothing here is recorded in the journal. An agent sends its screen only while somebody watches it.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from csp.errors import Refused
from csp.gateway.broadcast import Pipe, text_frame
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId
from csp.protocol.screen_frames import LiveBody, LiveFrame, LiveView, ScreenView

#: The timeout for a request for one screen.
FRESH_S: Final = 2.0
#: A watcher with more unread data gets only the newest screen once it has caught up.
MAX_UNREAD_BYTES: Final = 64 * 1024

_ON: Final = text_frame(encode(LiveFrame(live=LiveView(watch=True))))
_OFF: Final = text_frame(encode(LiveFrame(live=LiveView(watch=False))))
Tell = Callable[[AgentId, bytes], int]


class Elsewhere(Protocol):
    """The screens at other gateways of the room."""

    def has(self, agent: AgentId) -> bool: ...
    def is_wanted(self, agent: AgentId) -> bool: ...
    def want(self, agent: AgentId) -> None: ...
    def rest(self, agent: AgentId) -> None: ...
    def show(self, agent: AgentId, body: LiveBody) -> None: ...


class LiveFeed:
    """Live frames for one watcher; a slow watcher gets only the newest screens."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._newest: dict[AgentId, bytes] = {}
        self._draining: asyncio.Task[None] | None = None

    def take(self, agent: AgentId, frame: bytes, *, is_screen: bool) -> None:
        """Send a frame now; if the watcher is slow, keep a screen for later but drop any other frame."""
        if self._draining is None and self._pipe.unsent_bytes < MAX_UNREAD_BYTES:
            self._pipe.write(frame)
        elif is_screen:
            self._newest[agent] = frame
            if self._draining is None:
                self._draining = asyncio.ensure_future(self._drain())

    def forget(self, agent: AgentId) -> None:
        """Stop sending screens from `agent`."""
        self._newest.pop(agent, None)

    async def _drain(self) -> None:
        while self._newest and await self._pipe.drain():
            agent = next(iter(self._newest))
            self._pipe.write(self._newest.pop(agent))
        self._draining = None

    def close(self) -> None:
        """Stop sending."""
        if self._draining is not None:
            self._draining.cancel()


class ScreenWatch:
    """Tracks screen watchers; `tell` sends a frame to an agent and returns its number of connections."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._feeds: dict[AgentId, dict[LiveFeed, None]] = {}
        self._fresh: dict[AgentId, set[asyncio.Future[ScreenView]]] = {}
        #: None if this is the only gateway of the room.
        self.elsewhere: Elsewhere | None = None

    def greeting(self, agent: AgentId) -> bytes:
        """Return the first frame for an agent's new connection."""
        return _ON if self._is_watched(agent) else b""

    def watch(self, agent: AgentId, feed: LiveFeed) -> None:
        """Forward the screens of `agent` to `feed` from now on, starting with the current one."""
        feeds = self._feeds.setdefault(agent, {})
        if feed not in feeds:
            feeds[feed] = None
            self._ask(agent)

    def unwatch(self, agent: AgentId, feed: LiveFeed) -> None:
        """Stop forwarding screens to `feed`."""
        feed.forget(agent)
        feeds = self._feeds.get(agent, {})
        if feeds.pop(feed, feed) is None:
            self._rest(agent)

    def leave(self, feed: LiveFeed) -> None:
        """Remove a feed whose connection has closed."""
        feed.close()
        for agent in [agent for agent, feeds in self._feeds.items() if feed in feeds]:
            self.unwatch(agent, feed)

    async def fresh(self, agent: AgentId) -> ScreenView:
        """Return the current screen of `agent`."""
        waiter: asyncio.Future[ScreenView] = asyncio.get_running_loop().create_future()
        waiting = self._fresh.setdefault(agent, set())
        waiting.add(waiter)
        try:
            if not self._ask(agent):
                raise Refused(f"{agent} has no screen to show", "only an agent with a sidecar has one")
            return await asyncio.wait_for(waiter, FRESH_S)
        except TimeoutError as exc:
            raise Refused(f"{agent} did not show its screen in {FRESH_S:g} s", "try again") from exc
        finally:
            waiting.discard(waiter)
            self._rest(agent)

    def show(self, agent: AgentId, body: LiveBody) -> None:
        """Forward a frame from an agent to its watchers."""
        if self.elsewhere is not None:
            self.elsewhere.show(agent, body)
        self.receive(agent, body)

    def receive(self, agent: AgentId, body: LiveBody) -> None:
        """Forward a frame to the watchers at this gateway."""
        if body.screen is not None:
            for waiter in self._fresh.get(agent, ()):
                if not waiter.done():
                    waiter.set_result(body.screen)
        feeds = self._feeds.get(agent)
        if feeds:
            view = LiveView(agent=agent, screen=body.screen, text=body.text)
            frame = text_frame(encode(LiveFrame(live=view)))
            for feed in list(feeds):
                feed.take(agent, frame, is_screen=body.screen is not None)

    def remind(self, agent: AgentId) -> None:
        """Tell an agent whether it is watched, after that has changed elsewhere."""
        self._tell(agent, _ON if self._is_watched(agent) else _OFF)

    def _ask(self, agent: AgentId) -> bool:
        """Ask an agent for its screen; return whether it is connected anywhere."""
        is_there = self._tell(agent, _ON) > 0
        if self.elsewhere is not None:
            self.elsewhere.want(agent)
            is_there = is_there or self.elsewhere.has(agent)
        return is_there

    def _is_watched(self, agent: AgentId) -> bool:
        is_wanted = self.elsewhere is not None and self.elsewhere.is_wanted(agent)
        return is_wanted or self._is_watched_here(agent)

    def _is_watched_here(self, agent: AgentId) -> bool:
        return bool(self._feeds.get(agent) or self._fresh.get(agent))

    def _rest(self, agent: AgentId) -> None:
        """Tell an agent to stop sending screens once nobody watches it."""
        for watching in (self._feeds, self._fresh):
            if not watching.get(agent, True):
                del watching[agent]
        if self.elsewhere is not None and not self._is_watched_here(agent):
            self.elsewhere.rest(agent)
        if not self._is_watched(agent):
            self._tell(agent, _OFF)
