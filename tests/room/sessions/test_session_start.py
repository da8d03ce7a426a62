"""Who takes part in a session, on which terms."""

from typing import Any

import pytest

from csp.errors import BadInput, Refused
from csp.protocol.enums import HUMAN, JoinRole, ParticipantKind
from csp.protocol.events import ModeChanged
from csp.protocol.session_parts import Change, Limits
from csp.room.commands import Join, Leave, SetMode
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import BOSS, Play


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "debat"}, "unknown mode 'debat'"),
        ({"agents": ()}, "agents is empty"),
        ({"agents": ("mallory",)}, "unknown agent 'mallory'"),
        ({"agents": ("human", "claude")}, "'human' is a person"),
        ({"agents": ("paul", "claude")}, "'paul' is a person"),
        ({"agents": ("claude", "codex", "Claude ")}, "an agent is named twice"),
        ({"agents": ("claude",)}, "debate needs at least 2 agents, got 1"),
        ({"first": "mallory"}, "first 'mallory' is not among the agents"),
        ({"agents": ("claude", "codex"), "first": "gemini"}, "first 'gemini' is not among the agents"),
        ({"synth": "mallory"}, "synth 'mallory' is not among the agents"),
    ],
)
def test_bad_terms_are_refused_with_the_reason(options: dict[str, Any], words: str) -> None:
    play = Play()
    play.do(Join(name="paul", kind=ParticipantKind.HUMAN))
    error = play.refuse(SetMode(sender=HUMAN, **({"mode": "debate"} | options)), BadInput)

    assert words in error.message
    assert error.hint


def test_nobody_here_is_too_few() -> None:
    play = Play(CLAUDE)
    play.do(Leave(agent=CLAUDE, reason="closed"))

    assert (
        "needs at least 1 agents, got 0"
        in play.refuse(SetMode(sender=HUMAN, mode="single"), BadInput).message
    )
    assert "got 0" in play.refuse(SetMode(sender=HUMAN, mode="orchestrator"), BadInput).message


def test_all_who_are_online_take_part_in_the_order_of_their_coming() -> None:
    play = Play(CLAUDE, CODEX, GEMINI)
    play.join_boss()
    play.do(Join(name="paul", kind=ParticipantKind.HUMAN))
    play.do(Leave(agent=CODEX, reason="closed"))
    play.start("round_robin")

    assert play.session.agents == (CLAUDE, GEMINI)


def test_who_is_named_takes_part_in_that_order_online_or_not() -> None:
    play = Play()
    play.do(Leave(agent=CODEX, reason="closed"))
    play.start("round_robin", agents=("gemini", "codex"))

    assert play.session.agents == (GEMINI, CODEX)


def test_first_turns_the_order_round() -> None:
    play = Play()
    play.start("round_robin", first="codex")

    assert play.session.agents == (CODEX, GEMINI, CLAUDE)


@pytest.mark.parametrize(
    ("mode", "options", "rounds"),
    [
        ("collaborate", {}, 6),
        ("collaborate", {"rounds": 2}, 2),
        ("debate", {}, 3),
        ("debate", {"steps": 5}, 5),
        ("round_robin", {}, 10),
        ("round_robin", {"steps": 4}, 4),
        ("round_robin", {"rounds": 4}, 4),
        ("consensus", {"rounds": 9}, 2),
        ("single", {"rounds": 9}, 2),
        ("autopilot", {}, None),
    ],
)
def test_rounds_are_those_of_the_mode_or_those_given(mode: str, options: Any, rounds: int | None) -> None:
    play = Play()
    play.start(mode, **options)

    assert play.session.setup.rounds == rounds


def test_limits_of_the_house_hold_where_nothing_else_ends_a_mode() -> None:
    play = Play()
    play.start("autopilot", limits=Limits(tokens=5))
    assert play.session.setup.limits == Limits(turns=200, tokens=5, minutes=20.0)

    play.start("collaborate", limits=Limits(cost=0.5))
    assert play.session.setup.limits == Limits(cost=0.5)


def test_new_mode_takes_the_place_of_the_one_before() -> None:
    play = Play()
    play.start("autopilot")
    before = play.session.id
    play.start("debate")
    old = play.room.sessions.by_id[before]

    assert (old.reason, play.session.setup.mode) == ("superseded", "debate")
    assert [str(event.change) for event in play.all(ModeChanged)] == [
        *("started", "phase", "ended", "started", "phase"),
    ]


def test_freeform_ends_what_runs() -> None:
    play = Play()
    play.start("autopilot")
    play.start("freeform")

    assert play.ended == "canceled"
    assert "Collaboration canceled by user." in play.notices
    assert play.notices[-1] == "Mode: FREEFORM"
    assert play.start("freeform") == []


def test_cli_agent_is_in_one_session_at_a_time() -> None:
    play = Play()
    play.start("single", agents=("claude",))
    command = SetMode(sender=HUMAN, mode="single", agents=("codex", "claude"), thread="dev")

    assert play.refuse(command, Refused).message == f"claude is in session {play.session.id} (single)"


def test_agent_of_another_session_cannot_write_the_synthesis() -> None:
    play = Play()
    play.start("single", agents=(CLAUDE,))
    command = SetMode(sender=HUMAN, mode="debate", agents=(CODEX, GEMINI), synth=CLAUDE, thread="dev")

    assert play.refuse(command, Refused).message == f"claude is in session {play.session.id} (single)"


def test_api_agent_is_in_many_sessions() -> None:
    play = Play(CLAUDE, kind=ParticipantKind.API)
    for _ in range(3):
        play.do(SetMode(sender=HUMAN, mode="single", thread=None))

    assert len({session.thread for session in play.room.sessions.live()}) == 3


def test_session_says_who_began_it() -> None:
    play = Play()
    play.do(Join(name="orchestrator", role=JoinRole.ORCHESTRATOR))
    play.do(SetMode(sender=BOSS, mode="single"))
    (begun,) = (event for event in play.all(ModeChanged) if event.change is Change.STARTED)

    assert begun.sender == BOSS
    assert "Topic: " not in "".join(play.notices)
