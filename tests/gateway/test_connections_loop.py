"""The loop's lanes: people first, agents a few at a time."""

import asyncio
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Any

import pytest

from csp.gateway.connections import SERVED, LaneSelector, lanes_of, new_event_loop
from csp.room.caller_limits import Lane

READ = selectors.EVENT_READ


@pytest.fixture
def selector() -> Iterator[LaneSelector]:
    made = LaneSelector()
    yield made
    made.close()


@pytest.fixture
def ready() -> Iterator[list[socket.socket]]:
    """Sockets with something to read."""
    with ExitStack() as stack:
        found = []
        for _ in range(3 * SERVED[Lane.AGENTS]):
            one, other = socket.socketpair()
            stack.enter_context(one)
            stack.enter_context(other)
            other.send(b"x")
            found.append(one)
        yield found


def served(selector: LaneSelector) -> list[Any]:
    return [key.data for key, _ in selector.select(0)]


def test_a_pass_serves_all_people_but_only_some_agents(
    selector: LaneSelector, ready: list[socket.socket]
) -> None:
    people, agents = ready[:20], ready[20:]
    for agent in agents:
        selector.put(agent.fileno(), Lane.AGENTS)
        selector.register(agent, READ, "agent")
    for person in people:
        selector.register(person, READ, "person")

    assert served(selector) == ["person"] * 20 + ["agent"] * SERVED[Lane.AGENTS]


def test_every_agent_is_served_in_its_turn(selector: LaneSelector, ready: list[socket.socket]) -> None:
    for number, agent in enumerate(ready):
        selector.register(agent.fileno(), READ, number)
        selector.put(agent.fileno(), Lane.AGENTS)
    found = [served(selector) for _ in range(3)]

    assert sorted(chain.from_iterable(found)) == list(range(len(ready)))


def test_a_socket_keeps_its_lane_while_it_is_not_read(
    selector: LaneSelector, ready: list[socket.socket]
) -> None:
    for agent in ready:
        selector.put(agent.fileno(), Lane.AGENTS)
        selector.register(agent.fileno(), READ, "agent")
        selector.unregister(agent.fileno())
        selector.register(agent.fileno(), READ, "agent")

    assert len(served(selector)) == SERVED[Lane.AGENTS]
    assert len(selector.get_map()) == len(ready) + len(SERVED)


def test_the_next_owner_of_a_descriptor_begins_as_everybody(
    selector: LaneSelector, ready: list[socket.socket]
) -> None:
    for agent in ready:
        selector.put(agent.fileno(), Lane.AGENTS)
        selector.register(agent.fileno(), READ, "agent")
        selector.forget(agent.fileno())

    assert len(served(selector)) == len(ready)
    assert selector.get_key(ready[0].fileno()).data == "agent"
    assert selector.modify(ready[0].fileno(), READ, "other").data == "other"


def test_a_loop_of_its_own_knows_its_lanes() -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        loop = runner.get_loop()
        runner.run(asyncio.sleep(0))
        assert isinstance(lanes_of(loop), LaneSelector)


async def test_any_other_loop_has_none() -> None:
    assert lanes_of(asyncio.get_running_loop()) is None
