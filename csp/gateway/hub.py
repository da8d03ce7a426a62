"""Fan-out of committed events to everybody who watches.

Each watcher has a place in one shared tail of frames. A pass walks the watchers in small steps, so
that a thousand of them never hold up the room, and gives each everything since its place in one write.
"""

import asyncio
from collections import deque
from typing import Final

from csp.events import AnyEvent
from csp.gateway.frames import Pipe, text_frame
from csp.journal.query import Concerns
from csp.wire import AgentId

#: How many watchers are served before the loop gets its turn.
STEP: Final = 16


class Watcher:
    """One reader of events: the room's token sees all, an agent what concerns it."""

    def __init__(self, pipe: Pipe, agent: AgentId | None) -> None:
        self.pipe = pipe
        self.agent = agent
        self.place = 0


class Hub:
    """`concerns` is the room's rule of what an agent may read."""

    def __init__(self, concerns: Concerns) -> None:
        self._concerns = concerns
        self.watchers: dict[Watcher, None] = {}
        self._tail: deque[tuple[AnyEvent, bytes]] = deque()
        #: The place of the tail's first entry, counted over the hub's life.
        self._first = 0
        self._pass: list[Watcher] = []
        self._joined: dict[tuple[int, AgentId | None], bytes] = {}
        #: One future for all who wait for the same news: any, or that of one agent's inbox.
        self._news: dict[AgentId | None, asyncio.Future[None]] = {}
        #: Whether nothing will be published any more, so that there is nothing to wait for.
        self.is_closed = False

    @property
    def _end(self) -> int:
        return self._first + len(self._tail)

    def add(self, watcher: Watcher) -> None:
        """Serve `watcher` with what is published from now on."""
        watcher.place = self._end
        self.watchers[watcher] = None

    def remove(self, watcher: Watcher) -> None:
        """Forget `watcher`."""
        self.watchers.pop(watcher, None)

    def publish(self, committed: list[tuple[AnyEvent, bytes]]) -> None:
        """Hand committed events to all watchers, in order."""
        if self.watchers:
            self._tail.extend((event, text_frame(line)) for event, line in committed)
            if not self._pass:
                self._start_pass()
        self.wake(None)

    def next_news(self, agent: AgentId | None = None) -> "asyncio.Future[None]":
        """Return what is done with the next publication, or with the next one that `agent` must act on.

        Who takes it before looking misses none.
        """
        if agent not in self._news:
            self._news[agent] = asyncio.get_running_loop().create_future()
        return self._news[agent]

    def wake(self, agent: AgentId | None) -> None:
        """Let those look again who wait for this news."""
        waiter = self._news.pop(agent, None)
        if waiter is not None:
            waiter.set_result(None)

    def close(self) -> None:
        """Let go of everybody who waits for news."""
        self.is_closed = True
        for agent in list(self._news):
            self.wake(agent)

    def _start_pass(self) -> None:
        self._pass = list(self.watchers)
        self._step()

    def _step(self) -> None:
        self._joined.clear()
        for watcher in self._pass[:STEP]:
            self._serve(watcher)
        del self._pass[:STEP]
        if self._pass:
            asyncio.get_running_loop().call_soon(self._step)
            return
        self._trim()
        if self._tail:
            self._pass = list(self.watchers)
            asyncio.get_running_loop().call_soon(self._step)

    def _serve(self, watcher: Watcher) -> None:
        if watcher.place == self._end or watcher not in self.watchers:
            return
        key = (watcher.place, watcher.agent)
        frames = self._joined.get(key)
        if frames is None:
            frames = self._joined[key] = self._join(*key)
        watcher.place = self._end
        if frames and not watcher.pipe.write(frames):
            self.remove(watcher)

    def _join(self, place: int, agent: AgentId | None) -> bytes:
        skip = place - self._first
        if skip == 0 and agent is None:
            return b"".join([frame for _, frame in self._tail])
        entries = list(self._tail)[skip:]
        return b"".join([frame for event, frame in entries if agent is None or self._concerns(event, agent)])

    def _trim(self) -> None:
        done = min((watcher.place for watcher in self.watchers), default=self._end)
        while self._first < done:
            self._tail.popleft()
            self._first += 1
