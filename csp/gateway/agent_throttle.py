"""Limit agents' operations: per second for each agent, and in flight for all agents together.

People are not limited. An operation is in flight from the decision until its events are on disk, so a
batch is never longer than the maximum number of operations in flight.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from csp.errors import TooMany
from csp.gateway.connections import AGAIN_S
from csp.protocol.enums import AgentId
from csp.room.caller_limits import MAX_QUOTA, OPERATIONS_PER_S, Bucket, draw, is_full, next_quota

MAX_UNDER_WAY: Final = 64
MAX_OF_ONE: Final = 16
#: The interval for checking lagging readers while agents wait for them.
LAG_S: Final = 0.005
#: The maximum number of rate buckets; the least recently used ones are dropped.
MAX_BUCKETS: Final = 1024


class Ticket:
    """The place of one operation in the queue or among the operations in flight."""

    __slots__ = ("agent", "is_in")

    def __init__(self, agent: AgentId) -> None:
        self.agent = agent
        self.is_in = False


_TURN: ContextVar[tuple["Throttle", Ticket] | None] = ContextVar("turn", default=None)
_Waiting = deque[tuple["asyncio.Future[None]", Ticket]]


class Throttle:
    """Limits agents; `is_behind` returns whether they must wait for readers to catch up."""

    def __init__(self, is_behind: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_behind = is_behind
        self._clock = clock
        self._buckets: dict[AgentId, Bucket] = {}
        self._waiting: OrderedDict[AgentId, _Waiting] = OrderedDict()
        self._under_way = 0
        self._of_agent: dict[AgentId, int] = {}
        self._quota = self._left = MAX_QUOTA
        self._scheduled_at: float | None = None
        self._loop = asyncio.get_running_loop()

    # --- the rate of one agent -------------------------------------------------------------------

    def check_rate(self, agent: AgentId) -> None:
        """Count an operation, or raise TooMany."""
        if self._draw(agent) > 0:
            raise _too_fast(agent)

    def refusal(self, agent: AgentId) -> TooMany | None:
        """Return the error for an agent that is too fast, without counting an operation."""
        bucket = self._buckets.get(agent)
        is_over = bucket is not None and draw(bucket, self._clock())[1] > 0
        return _too_fast(agent) if is_over else None

    async def keep_rate(self, agent: AgentId) -> None:
        """Wait until the agent's rate allows an operation, then count it."""
        while (wait_s := self._draw(agent)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(wait_s)

    def _draw(self, agent: AgentId) -> float:
        now = self._clock()
        if len(self._buckets) >= MAX_BUCKETS:
            self._buckets = {key: one for key, one in self._buckets.items() if not is_full(one, now)}
        self._buckets[agent], wait_s = draw(self._buckets.get(agent), now)
        return wait_s

    # --- the turn of each agent ------------------------------------------------------------------

    @asynccontextmanager
    async def turn(self, agent: AgentId) -> AsyncIterator[None]:
        """Wait for the agent's turn and keep it until the block ends."""
        ticket = Ticket(agent)
        await self.enter(ticket)
        token = _TURN.set((self, ticket))
        try:
            yield
        finally:
            _TURN.reset(token)
            self.leave(ticket)

    async def enter(self, ticket: Ticket) -> None:
        """Wait for this operation's turn."""
        if not self._waiting and self._may_enter(ticket.agent):
            self._let_in(ticket)
            self._schedule()
            return
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.setdefault(ticket.agent, deque()).append((done, ticket))
        self._schedule()
        try:
            await done
        except BaseException:
            self.leave(ticket)
            queue = self._waiting.get(ticket.agent)
            if queue is not None and (done, ticket) in queue:
                queue.remove((done, ticket))
                if not queue:
                    del self._waiting[ticket.agent]
            raise

    def leave(self, ticket: Ticket) -> None:
        """End an operation's turn; may be called twice."""
        if not ticket.is_in:
            return
        ticket.is_in = False
        self._under_way -= 1
        self._of_agent[ticket.agent] -= 1
        if not self._of_agent[ticket.agent]:
            del self._of_agent[ticket.agent]
        if self._waiting:
            self._schedule()

    def _may_enter(self, agent: AgentId) -> bool:
        is_free = self._left > 0 and self._under_way < MAX_UNDER_WAY
        return is_free and self._of_agent.get(agent, 0) < MAX_OF_ONE and not self._is_behind()

    def _let_in(self, ticket: Ticket) -> None:
        ticket.is_in = True
        self._left -= 1
        self._under_way += 1
        self._of_agent[ticket.agent] = self._of_agent.get(ticket.agent, 0) + 1

    # --- passes ----------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self._scheduled_at is None:
            # CPU time of this thread, because on a busy machine even a pass with little work is slow.
            self._scheduled_at = time.thread_time()
            self._loop.call_soon(self._pass)

    def _pass(self) -> None:
        """Admit waiting operations up to a new quota per pass of the loop; a slow loop has a smaller one."""
        began = self._scheduled_at
        self._scheduled_at = None
        if began is not None:
            self._quota = next_quota(self._quota, time.thread_time() - began)
        self._left = self._quota
        skipped = 0
        while self._waiting and skipped < len(self._waiting) and self._left > 0:
            agent, queue = self._waiting.popitem(last=False)
            if queue[0][0].done():
                # The caller has disconnected; its task is about to be cancelled.
                queue.popleft()
            elif self._may_enter(agent):
                done, ticket = queue.popleft()
                self._let_in(ticket)
                done.set_result(None)
                skipped = 0
            else:
                skipped += 1
            if queue:
                self._waiting[agent] = queue
        if self._waiting and self._is_behind():
            self._loop.call_later(LAG_S, self._schedule)
        elif self._waiting and self._left <= 0:
            self._schedule()


async def wait_for_news(news: "asyncio.Future[None]", timeout_s: float) -> None:
    """Wait for news without occupying the turn."""
    turn = _TURN.get()
    if turn is not None:
        turn[0].leave(turn[1])
    await asyncio.wait([news], timeout=timeout_s)
    if turn is not None:
        await turn[0].enter(turn[1])


def _too_fast(agent: AgentId) -> TooMany:
    problem = f"{agent} exceeds {OPERATIONS_PER_S:g} operations per second"
    return TooMany(problem, f"try again in {AGAIN_S:g} s", after_s=AGAIN_S)
