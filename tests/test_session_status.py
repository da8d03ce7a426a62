"""The word for whose turn it is."""

from typing import Any

import pytest

from csp.protocol.enums import AgentState
from csp.session_status import bracketed, session_of

VIEW: dict[str, Any] = {"mode": "debate", "turnOrder": ["ada", "bob"], "waitingFor": ["ada"]}


@pytest.mark.parametrize(
    ("changes", "agent", "word"),
    [
        ({}, "ada", "YOUR TURN"),
        ({}, "bob", "WAITING"),
        ({}, "eve", "idle"),
        ({"waitingFor": ["bob", "ada"]}, "bob", "YOUR TURN"),
        ({"waitingFor": []}, "ada", "WAITING"),
        ({"mode": "freeform", "status": "ended"}, "ada", "idle"),
        ({"mode": None}, "bob", "idle"),
        ({"turnOrder": None}, "bob", "idle"),
    ],
)
def test_who_rests_in_a_mode_is_waiting_or_has_the_turn(
    changes: dict[str, Any], agent: str, word: str
) -> None:
    assert session_of(VIEW | changes).word_for(agent, "idle") == word


@pytest.mark.parametrize("state", [state for state in AgentState if state is not AgentState.IDLE])
def test_any_other_state_keeps_its_word(state: AgentState) -> None:
    session = session_of(VIEW)

    assert (session.word_for("ada", state), session.word_for("bob", state)) == (state, state)


def test_only_turns_are_in_brackets() -> None:
    assert [bracketed(word) for word in ("YOUR TURN", "WAITING", "busy")] == [
        "[YOUR TURN]",
        "[WAITING]",
        "busy",
    ]
