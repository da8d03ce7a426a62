"""Agents take turns with what they do."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from csp.errors import TooMany
from csp.gateway import agent_throttle as throttle_module
from csp.gateway.agent_throttle import MAX_OF_ONE, MAX_UNDER_WAY, Throttle, Ticket, wait_for_news
from csp.protocol.enums import AgentId
from csp.room.caller_limits import BURST, MAX_QUOTA, OPERATIONS_PER_S
from tests.gateway.served import Clock
from tests.waiting import wait_until

A, B = AgentId("a"), AgentId("b")


class Crowd:
    """Operations that stay under way until the test ends them."""

    def __init__(self) -> None:
        self.is_behind = False
        self.clock = Clock(0.0)
        self.throttle = Throttle(lambda: self.is_behind, self.clock)
        self.entered: list[Ticket] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def come(self, agent: AgentId, count: int = 1) -> None:
        for _ in range(count):
            self.tasks.append(asyncio.ensure_future(self._enter(Ticket(agent))))
        await self.settle()

    async def _enter(self, ticket: Ticket) -> None:
        await self.throttle.enter(ticket)
        self.entered.append(ticket)

    async def settle(self) -> None:
        for _ in range(20 + MAX_UNDER_WAY):
            await asyncio.sleep(0)

    def of(self) -> Counter[str]:
        return Counter(ticket.agent for ticket in self.entered if ticket.is_in)


async def test_one_agent_has_only_so_many_under_way() -> None:
    crowd = Crowd()
    await crowd.come(A, MAX_OF_ONE + 5)
    await crowd.come(B)
    before = crowd.of()
    for ticket in list(crowd.entered):
        crowd.throttle.leave(ticket)
    await crowd.settle()

    assert before == {A: MAX_OF_ONE, B: 1}
    assert crowd.of() == {A: 5}


async def test_all_agents_together_have_a_bound_and_share_it() -> None:
    crowd = Crowd()
    agents = [AgentId(f"agent{number}") for number in range(100)]
    for agent in agents:
        await crowd.come(agent, 2)
    first = crowd.of()
    while sum(crowd.of().values()):
        assert sum(crowd.of().values()) <= MAX_UNDER_WAY
        for ticket in [one for one in crowd.entered if one.is_in]:
            crowd.throttle.leave(ticket)
        await crowd.settle()

    assert sum(first.values()) == MAX_UNDER_WAY
    assert Counter(ticket.agent for ticket in crowd.entered) == dict.fromkeys(agents, 2)


async def test_a_pass_lets_in_no_more_than_its_quota() -> None:
    crowd = Crowd()
    for number in range(MAX_QUOTA + 8):
        crowd.tasks.append(asyncio.ensure_future(crowd._enter(Ticket(AgentId(f"agent{number}")))))
    await asyncio.sleep(0)
    first = len(crowd.entered)
    await crowd.settle()

    assert (first, len(crowd.entered)) == (MAX_QUOTA, MAX_QUOTA + 8)


async def test_nobody_enters_while_readers_are_behind() -> None:
    crowd = Crowd()
    crowd.is_behind = True
    await crowd.come(A, 3)
    before = len(crowd.entered)
    crowd.is_behind = False
    await wait_until(lambda: len(crowd.entered) == 3)

    assert before == 0


async def test_who_hangs_up_while_it_waits_leaves_no_trace() -> None:
    crowd = Crowd()
    await crowd.come(A, MAX_OF_ONE + 2)
    crowd.tasks[-1].cancel()
    crowd.tasks[-2].cancel()
    crowd.throttle.leave(crowd.entered[0])
    await crowd.settle()
    await crowd.come(A)

    assert crowd.of() == {A: MAX_OF_ONE}
    assert not crowd.throttle._waiting


async def test_who_has_news_waits_for_a_turn_again() -> None:
    crowd = Crowd()
    news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    read: list[str] = []

    async def poll() -> None:
        async with crowd.throttle.turn(A):
            await wait_for_news(news, 60.0)
            read.append("the news")

    reading = asyncio.ensure_future(poll())
    await crowd.settle()
    await crowd.come(A, MAX_OF_ONE)
    news.set_result(None)
    await crowd.settle()
    before = list(read)
    crowd.throttle.leave(crowd.entered[0])
    await reading

    assert (before, read) == ([], ["the news"])


async def test_who_waits_for_news_lets_others_have_the_turn() -> None:
    crowd = Crowd()
    news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def poll() -> None:
        async with crowd.throttle.turn(A):
            await wait_for_news(news, 60.0)

    polls = [asyncio.ensure_future(poll()) for _ in range(MAX_OF_ONE)]
    await crowd.settle()
    await crowd.come(A, MAX_OF_ONE)
    entered = crowd.of()
    for ticket in list(crowd.entered):
        crowd.throttle.leave(ticket)
    news.set_result(None)
    await asyncio.gather(*polls)

    assert entered == {A: MAX_OF_ONE}
    assert crowd.throttle._under_way == 0


async def test_a_poll_that_is_broken_off_while_it_waits_has_no_turn_to_leave() -> None:
    crowd = Crowd()
    news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def poll() -> None:
        async with crowd.throttle.turn(A):
            await wait_for_news(news, 60.0)

    task = asyncio.ensure_future(poll())
    await crowd.settle()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    assert crowd.throttle._under_way == 0


async def test_an_agent_over_its_rate_is_told_when_to_come_back() -> None:
    crowd = Crowd()
    for _ in range(int(BURST)):
        crowd.throttle.check_rate(A)
    with pytest.raises(TooMany, match=f"a exceeds {OPERATIONS_PER_S:g} operations per second") as caught:
        crowd.throttle.check_rate(A)
    early = crowd.throttle.refusal(A)
    crowd.throttle.check_rate(B)
    crowd.clock.now += 1.0
    crowd.throttle.check_rate(A)

    assert caught.value.after_s == 1.0
    assert early is not None
    assert (crowd.throttle.refusal(A), crowd.throttle.refusal(AgentId("new"))) == (None, None)


async def test_over_a_websocket_the_next_operation_waits_for_the_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = Crowd()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        crowd.clock.now += seconds + 1e-9

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for _ in range(int(BURST) + 2):
        await crowd.throttle.keep_rate(A)

    assert slept == [pytest.approx(1 / OPERATIONS_PER_S, rel=1e-3)] * 2


async def test_buckets_of_agents_that_rest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle_module, "MAX_BUCKETS", 3)
    crowd = Crowd()
    for number in range(3):
        crowd.throttle.check_rate(AgentId(f"agent{number}"))
    crowd.clock.now += 3600.0
    crowd.throttle.check_rate(A)

    assert set(crowd.throttle._buckets) == {A}
