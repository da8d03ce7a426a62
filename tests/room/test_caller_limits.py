"""Places: nobody can take those of another kind."""

import random

import pytest

from csp.protocol.enums import AgentId
from csp.room.caller_limits import (
    MAX_AGENTS,
    MAX_CONNECTIONS,
    MAX_PER_AGENT,
    MAX_STRANGERS,
    RESERVED_FILES,
    AdmissionVerdict,
    Places,
    admit,
    places_for,
)

A, B, C = AgentId("a"), AgentId("b"), AgentId("c")
SMALL = Places(people=4, agents=6, strangers=2, per_agent=4)


@pytest.mark.parametrize("max_files", [0, 64, 100, 200, 256, 1024, 4096, 20_000, 65_536, 10**9])
def test_every_kind_has_places_within_the_descriptors(max_files: int) -> None:
    places = places_for(max_files)
    total = places.people + places.agents + places.strangers

    assert min(places) > 0
    assert total <= max(8, min(MAX_CONNECTIONS, max_files - RESERVED_FILES))
    assert places.people >= total // 4
    assert (places.agents <= MAX_AGENTS, places.strangers <= MAX_STRANGERS) == (True, True)
    assert places.per_agent <= min(MAX_PER_AGENT, places.agents)


def test_an_agent_with_all_its_places_replaces_one_of_its_own() -> None:
    assert admit(A, {A: 4}, SMALL) == AdmissionVerdict(False, A)


def test_there_is_room_while_there_are_places() -> None:
    assert admit(A, {A: 3, B: 2}, SMALL) == AdmissionVerdict(True)
    assert admit(A, {}, SMALL) == AdmissionVerdict(True)


def test_the_greediest_makes_room_for_one_that_has_less() -> None:
    assert admit(C, {A: 4, B: 2}, SMALL) == AdmissionVerdict(True, A)


def test_equals_take_nothing_from_each_other() -> None:
    assert admit(A, {A: 3, B: 3}, SMALL) == AdmissionVerdict(False, A)


def test_agents_never_have_more_than_their_places_however_they_come() -> None:
    chance = random.Random(7)
    counts: dict[AgentId, int] = {}
    for _ in range(5000):
        agent = chance.choice((A, B, C))
        verdict = admit(agent, counts, SMALL)
        if verdict.gives_way is not None and verdict.is_in:
            counts[verdict.gives_way] -= 1
        if verdict.is_in:
            counts[agent] = counts.get(agent, 0) + 1
        if chance.random() < 0.3 and counts.get(agent):
            counts[agent] -= 1
        assert sum(counts.values()) <= SMALL.agents
        assert max(counts.values()) <= SMALL.per_agent
