"""The bottom line, at any width."""

import pytest

from csp.human.status_bar import AgentStatus, bottom_text, session_text
from csp.human.theme import ASCII, UNICODE
from csp.protocol.enums import AgentState
from csp.session_status import SessionStatus, session_of

DEBATE = {
    "mode": "debate",
    "topic": "tabs",
    "round": 1,
    "maxRounds": 3,
    "turnOrder": ["claude", "codex"],
    "currentTurn": "codex",
    "waitingFor": ["codex"],
    "sessionId": "s-4",
    "status": "running",
    "deadline": 142.9,
}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Debate 2/3 · codex 0:42"),
        ({"deadline": 40.0}, "Debate 2/3 · codex 0:00"),
        ({"deadline": None}, "Debate 2/3 · codex"),
        ({"deadline": 100 + 754}, "Debate 2/3 · codex 12:34"),
        ({"waitingFor": ["codex", "claude", "ada"]}, "Debate 2/3 · codex +2 0:42"),
        ({"status": "paused"}, "Debate 2/3 (paused) · codex 0:42"),
        ({"mode": "autopilot", "maxRounds": 0, "round": 16}, "Autopilot turn 17 · codex 0:42"),
        ({"mode": "round_robin"}, "Round robin 2/3 · codex 0:42"),
        ({"phase": "responses"}, "Debate 2/3 · codex 0:42"),
        ({"phase": "ballot"}, "Debate 2/3 ballot · codex 0:42"),
        ({"phase": "synthesis"}, "Debate 2/3 synthesis · codex 0:42"),
        ({"currentTurn": "co\x1bdex"}, "Debate 2/3 · co␛dex 0:42"),
        ({"currentTurn": None, "waitingFor": []}, "Debate 2/3"),
        ({"mode": "freeform", "status": "ended"}, ""),
    ],
)
def test_the_mode_is_shown_with_its_turn_clock(changes: dict[str, object], text: str) -> None:
    assert session_text(session_of(DEBATE | changes), UNICODE, 100.0) == text


@pytest.mark.parametrize(
    "answer", [None, [], "x", {}, {"mode": None, "round": "x", "waitingFor": 3, "deadline": "y"}]
)
def test_an_answer_of_another_shape_is_freeform(answer: object) -> None:
    assert session_of(answer) == SessionStatus()


SEATS = [AgentStatus(id="claude", state="idle"), AgentStatus(id="codex", state="needs_approval", queued=2)]


def test_everybody_is_shown_where_there_is_room() -> None:
    text = bottom_text(SEATS, session_of(DEBATE), UNICODE, 100.0, 120)

    assert text == "claude idle · codex NEEDS APPROVAL | Debate 2/3 · codex 0:42 | 2 waiting"


def test_a_lost_gateway_comes_first() -> None:
    assert bottom_text(SEATS, SessionStatus(), ASCII, 0.0, 120, "refused").startswith(
        "NO GATEWAY | claude idle | "
    )


def test_without_a_gateway_nobody_knows_who_is_here() -> None:
    assert bottom_text([], SessionStatus(), UNICODE, 0.0, 80, "refused") == "NO GATEWAY"


def test_a_narrow_line_counts_and_still_names_who_calls() -> None:
    seats = [*(AgentStatus(id=f"agent-{number}", state="idle") for number in range(9)), *SEATS]

    assert (
        bottom_text(seats, SessionStatus(), UNICODE, 0.0, 60) == "codex NEEDS APPROVAL · 10 idle | 2 waiting"
    )


@pytest.mark.parametrize("width", [10, 20, 40, 80])
def test_the_line_is_never_wider_than_the_terminal(width: int) -> None:
    seats = [AgentStatus(id=f"agent-{state}", state=state, queued=1) for state in AgentState]

    assert len(bottom_text(seats, session_of(DEBATE), UNICODE, 0.0, width, "away")) <= width


def test_nobody_is_said_in_words() -> None:
    assert bottom_text([], SessionStatus(), UNICODE, 0.0, 80) == "no agents yet"


def test_a_state_of_another_version_is_shown_as_it_is() -> None:
    assert (
        bottom_text([AgentStatus(id="ada", state="dreaming")], SessionStatus(), UNICODE, 0.0, 80)
        == "ada dreaming"
    )


def test_a_line_that_just_fits_is_shown_as_it_is() -> None:
    whole = "claude idle · codex NEEDS APPROVAL | 2 waiting"

    assert bottom_text(SEATS, SessionStatus(), UNICODE, 0.0, len(whole)) == whole
    assert bottom_text(SEATS, SessionStatus(), UNICODE, 0.0, len(whole) - 1).startswith(
        "codex NEEDS APPROVAL · "
    )


def test_each_call_has_its_word_and_stands_before_the_rest() -> None:
    states = ("YOUR TURN", "limited", "needs_human", "idle", "Ab")
    seats = [AgentStatus(id=f"a{number}", state=state) for number, state in enumerate(states)]
    line = "a2 NEEDS YOU · a1 limited · a4 Ab · a0 YOUR TURN · a3 idle"
    cut = bottom_text([*seats, *seats[3:4]], SessionStatus(), UNICODE, 0.0, 60)

    assert bottom_text(seats, SessionStatus(), UNICODE, 0.0, 200) == (
        "a0 YOUR TURN · a1 limited · a2 NEEDS YOU · a3 idle · a4 Ab"
    )
    assert cut == line.replace("a3 idle", "2 idle")


def test_all_that_the_gateway_says_of_a_mode_is_kept() -> None:
    assert session_of(DEBATE | {"phase": "ballot"}) == SessionStatus(
        mode="debate",
        round=1,
        max_rounds=3,
        current="codex",
        waiting_for=("codex",),
        status="running",
        deadline=142.9,
        id="s-4",
        phase="ballot",
        agents=("claude", "codex"),
    )
