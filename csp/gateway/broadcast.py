"""Fan-out of committed events to all watchers.

Each watcher has a place in one shared tail of frames. A pass walks the watchers in small steps, so
that a thousand of them never hold up the room, and gives each everything since its place in one write.
"""

import asyncio
from collections import deque
from typing import Final

from csp.gateway.websocket_frames import Pipe, text_frame
from csp.journal.history_query import Concerns
from csp.protocol.enums import AgentId
from csp.protocol.events import AnyEvent

#: How many watchers are served before the loop gets its turn.
STEP: Final = 16
#: How many events are looked through for watchers before the loop gets its turn.
STEP_EVENTS: Final = 512
#: With this much unsent data, agents have to wait.
MAX_LAG: Final = 512
MAX_LAG_BYTES: Final = 4 * 1024 * 1024
#: With many of them, readers that wait for any news are woken this often.
WAKE_S: Final = 0.1
MANY_WAITING: Final = 64


class EventWatcher:
    """A reader of events; `agent` limits it to the events that agent may read."""

    def __init__(self, pipe: Pipe, agent: AgentId | None) -> None:
        self.pipe = pipe
        self.agent = agent
        self.place = 0


class Broadcast:
    """`concerns` returns whether an agent may read an event."""

    def __init__(self, concerns: Concerns) -> None:
        self._concerns = concerns
        self.watchers: dict[EventWatcher, None] = {}
        self._tail: deque[tuple[AnyEvent, bytes]] = deque()
        #: The position of the tail's first entry since the start.
        self._first = 0
        self._tail_bytes = 0
        self._pass: list[EventWatcher] = []
        self._joined: dict[tuple[int, AgentId | None], bytes] = {}
        #: One future for all readers that wait for the same news: any news (None), or an agent's inbox.
        self._news: dict[AgentId | None, asyncio.Future[None]] = {}
        self._asked = 0
        self._waking: asyncio.TimerHandle | None = None
        self._woken_at = 0.0
        #: Whether nothing will be published any more.
        self.is_closed = False

    @property
    def _end(self) -> int:
        return self._first + len(self._tail)

    def add(self, watcher: EventWatcher) -> None:
        """Send `watcher` everything published from now on."""
        watcher.place = self._end
        self.watchers[watcher] = None

    def remove(self, watcher: EventWatcher) -> None:
        """Forget `watcher`."""
        self.watchers.pop(watcher, None)

    def publish(self, committed: list[tuple[AnyEvent, bytes]]) -> None:
        """Hand committed events to all watchers, in order."""
        if self.watchers:
            frames = [(event, text_frame(line)) for event, line in committed]
            self._tail.extend(frames)
            self._tail_bytes += sum([len(frame) for _, frame in frames])
            if not self._pass:
                self._pass = self._in_order()
                self._step()
        self._wake_all()

    def is_behind(self) -> bool:
        """Return whether so much is unsent that nothing should be added."""
        return len(self._tail) > MAX_LAG or self._tail_bytes > MAX_LAG_BYTES

    def _wake_all(self) -> None:
        """Wake the readers that wait for any news; many of them at most ten times a second."""
        if self._waking is not None:
            return
        loop = asyncio.get_running_loop()
        wait_s = self._woken_at + WAKE_S - loop.time() if self._asked > MANY_WAITING else 0.0
        if wait_s > 0:
            self._waking = loop.call_later(wait_s, self._wake_crowd)
        else:
            self._wake_crowd()

    def _wake_crowd(self) -> None:
        self._waking, self._asked = None, 0
        self._woken_at = asyncio.get_running_loop().time()
        self.wake(None)

    def next_news(self, agent: AgentId | None = None) -> "asyncio.Future[None]":
        """Return a future for the next publication, or for the next news in the inbox of `agent`.

        A reader that gets it before reading misses nothing.
        """
        if agent is None:
            self._asked += 1
        if agent not in self._news:
            self._news[agent] = asyncio.get_running_loop().create_future()
        return self._news[agent]

    def wake(self, agent: AgentId | None) -> None:
        """Wake the readers that wait for this news."""
        waiter = self._news.pop(agent, None)
        if waiter is not None:
            waiter.set_result(None)

    def close(self) -> None:
        """Wake all readers that wait for news; there will be none."""
        self.is_closed = True
        for agent in list(self._news):
            self.wake(agent)

    def _in_order(self) -> list[EventWatcher]:
        """Return all watchers, people first."""
        return sorted(self.watchers, key=lambda watcher: watcher.agent is not None)

    def _step(self) -> None:
        self._joined.clear()
        served = looked_at = 0
        while served < len(self._pass) and served < STEP and looked_at < STEP_EVENTS:
            watcher = self._pass[served]
            looked_at += self._end - watcher.place
            self._serve(watcher)
            served += 1
        del self._pass[:served]
        if self._pass:
            asyncio.get_running_loop().call_soon(self._step)
            return
        done = min((watcher.place for watcher in self.watchers), default=self._end)
        while self._first < done:
            self._tail_bytes -= len(self._tail.popleft()[1])
            self._first += 1
        if self._tail:
            self._pass = self._in_order()
            asyncio.get_running_loop().call_soon(self._step)

    def _serve(self, watcher: EventWatcher) -> None:
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
