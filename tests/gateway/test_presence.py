"""Who is connected, here and at other gateways."""

from csp.gateway.presence import Presence
from csp.protocol.enums import AgentId
from tests.gateway.served import Clock

ADA, BOB = AgentId("ada"), AgentId("bob")


def test_an_agent_at_another_gateway_is_seen_now_and_not_silent() -> None:
    clock = Clock()
    presence = Presence(clock, 60.0)
    clock.now += 100
    presence.hear("other", [ADA], {})

    assert presence.last_seen(ADA, 1.0) == clock.now
    assert presence.silent([ADA, BOB]) == [BOB]
    assert presence.is_elsewhere(ADA)
    assert not presence.is_elsewhere(BOB)


def test_a_call_at_another_gateway_counts_with_its_age() -> None:
    clock = Clock()
    presence = Presence(clock, 60.0)
    clock.now += 100
    presence.hear("other", [], {ADA: 59.0, BOB: 61.0})

    assert presence.silent([ADA, BOB]) == [BOB]
    assert presence.last_seen(ADA, 1.0) == clock.now - 59.0


def test_what_another_gateway_says_does_not_make_an_agent_older() -> None:
    clock = Clock()
    presence = Presence(clock, 60.0)
    presence.touch(ADA)
    presence.hear("other", [], {ADA: 50.0})

    assert presence.last_seen(ADA, 1.0) == clock.now


def test_the_agents_of_a_gateway_that_died_were_alive_until_then() -> None:
    clock = Clock()
    presence = Presence(clock, 60.0)
    presence.hear("dead", [ADA], {})
    presence.hear("alive", [BOB], {})
    clock.now += 100
    presence.keep(frozenset({"alive"}))
    assert presence.silent([ADA, BOB]) == []
    clock.now += 61

    assert presence.silent([ADA, BOB]) == [ADA]


def test_only_what_matters_is_told() -> None:
    clock = Clock()
    presence = Presence(clock, 60.0)
    changes: list[int] = []
    presence.on_change = lambda: changes.append(1)
    presence.connect(ADA)
    presence.touch(BOB)
    clock.now += 10
    assert (presence.connected(), presence.ages()) == ([ADA], {BOB: 10.0})
    presence.disconnect(ADA)
    clock.now += 55

    assert (presence.connected(), presence.ages()) == ([], {ADA: 55.0})
    assert len(changes) == 2


def test_a_gateway_with_nothing_to_tell_rests_until_somebody_calls() -> None:
    clock = Clock()
    presence = Presence(clock, 60.0)
    changes: list[int] = []
    presence.on_change = lambda: changes.append(1)
    assert presence.rest()
    presence.touch(ADA)
    presence.touch(ADA)
    assert (len(changes), presence.rest()) == (1, False)
    clock.now += 61
    assert presence.rest()
    presence.hear("other", [BOB], {})
    presence.wake()
    presence.wake()

    assert (len(changes), presence.rest()) == (2, False)
