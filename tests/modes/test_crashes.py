"""A gateway that dies in any phase of a debate of demo agents: it ends as if nothing had happened."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.modes.acceptance import POSTED, ModeRoom
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("modes crashes")]

AGENTS: Final = ("ada", "bob", "cy")
TOPIC: Final = "Shall we use tabs or spaces?"
ROUNDS: Final = 3
#: Each agent is asked for its position, for two responses, for its vote.
ASKED: Final = 4

Moment = tuple[str, int, str | None]
#: When the gateway is killed: in which phase, in which round, at whose turn.
MOMENTS: Final[tuple[Moment, ...]] = (
    ("positions", 0, "ada"),
    ("responses", 1, "ada"),
    ("responses", 1, "bob"),
    ("responses", 1, "cy"),
    ("responses", 2, "ada"),
    ("responses", 2, "bob"),
    ("responses", 2, "cy"),
    ("ballot", 2, "ada"),
)
#: One in each phase, at the turn of each agent.
SOME: Final = (MOMENTS[0], MOMENTS[2], MOMENTS[6], MOMENTS[7])


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModeRoom]:
    with ModeRoom(tmp_path_factory.mktemp("crashes")) as room:
        for name in AGENTS:
            # So fast that it does not take long, so slow that a crash hits somebody at work.
            room.join(name, speed="4")
        room.ready()
        yield room


def outcome(room: ModeRoom, moments: tuple[Moment, ...]) -> dict[str, Any]:
    """Hold a debate in which the gateway is killed at each of the moments, then at the end."""
    room.begin("debate", TOPIC, agents=list(AGENTS), rounds=ROUNDS, ballot=True)
    for moment in moments:
        wait_until_sync(lambda moment=moment: now(room) == moment, 60, f"{moment}")  # type: ignore[misc]
        room.room.kill9()
        room.room.start()
    if moments:
        room.wait_end()
        room.room.kill9()
        room.room.start()
    return room.wait_end()


def now(room: ModeRoom) -> Moment:
    view = room.mode()
    return view["phase"], view["round"], view["currentTurn"]


@pytest.mark.parametrize(
    "moments", [pytest.param(SOME, id="some"), pytest.param(MOMENTS, id="all", marks=pytest.mark.full)]
)
def test_a_debate_is_asked_and_answered_once_whatever_crash_there_is(
    room: ModeRoom, moments: tuple[Moment, ...]
) -> None:
    whole = outcome(room, ())
    crashed = outcome(room, moments)

    for view in (whole, crashed):
        assert (view["reason"], view["mode"]) == ("done", "freeform")
        assert set(view["votes"]) == set(AGENTS)
        for name in AGENTS:
            asked = room.prompts(name, view)
            headers = [prompt.splitlines()[0] for prompt in asked]
            assert len(set(headers)) == len(headers), f"{name} was asked twice: {headers}"
            assert len(headers) in (ASKED, ASKED + 1), f"{name}: {headers}"
            assert set(view["roundOutputs"][name]) == {"round0", "round1", "round2"}
        replies = [(item["sender"], item["turn"]) for item in room.items(view)]
        assert len(set(replies)) == len(replies)
        assert not any(item.get("late") for item in room.items(view, POSTED))
        signals = [item["turn"] for item in room.items(view, "turn_signal")]
        assert sorted(turn for _, turn in replies) == sorted(signals)
    assert [item["sender"] for item in room.items(crashed)][3:9] == [*AGENTS, *AGENTS]
    assert room.notices(crashed).count("DEBATE complete.") == 1


def test_a_stop_holds_over_a_crash(room: ModeRoom) -> None:
    view = room.begin("autopilot", "Go on for ever.", agents=list(AGENTS))
    wait_until_sync(lambda: len(room.items(view)) > 2, 60, "some turns")
    room.room.gateway.post("/stop", {})
    posted = [item["id"] for item in room.items(view, POSTED)]
    room.room.kill9()
    room.room.start()
    wait_until_sync(lambda: all(room.agent(name)["online"] for name in AGENTS), 30, "all back again")
    room.ready()

    assert room.mode()["reason"] == "stopped_by_user"
    assert [item["id"] for item in room.items(view, POSTED)] == posted
