"""One state for everything that is known of a pane."""

import itertools

import pytest

from csp.protocol.enums import HeldReason, ReportedAgentState
from csp.terminal.gates import GateRules, PaneFacts, agent_state, asks_permission, closed_gate
from csp.terminal.screen_reader import ScreenDialog

RULES = GateRules()
NOW = 100.0


def facts(**changes: bool | float | None) -> PaneFacts:
    return PaneFacts(**{"is_end_known": True, **changes})  # type: ignore[arg-type]  # a table of changes


@pytest.mark.parametrize(
    ("known", "state"),
    [
        ({}, "idle"),
        ({"is_blocked": True}, "needs_human"),
        ({"is_blocked": True, "has_dialog": True, "is_ready": False}, "needs_human"),
        ({"has_dialog": True}, "needs_approval"),
        ({"is_asking": True}, "needs_approval"),
        ({"is_asking": True, "is_turn_open": True}, "needs_approval"),
        ({"has_dialog": True, "is_ready": False}, "needs_approval"),
        ({"is_ready": False}, "starting"),
        ({"is_ready": False, "is_turn_open": True}, "starting"),
        ({"is_turn_open": True}, "busy"),
        ({"quiet_since": None}, "busy"),
        ({"is_end_known": False, "quiet_since": NOW - 0.1}, "busy"),
        ({"is_end_known": False, "quiet_since": NOW - 0.4}, "idle"),
        ({"is_turn_open": True, "is_composer_gone": True}, "busy"),
        ({"is_composer_gone": True}, "needs_human"),
        ({"is_stopped": True}, "needs_human"),
        ({"is_paused": True}, "idle"),
        ({"draft": True}, "idle"),
        ({"last_key": NOW}, "idle"),
    ],
)
def test_what_needs_a_person_comes_first(known: dict[str, bool | float | None], state: str) -> None:
    assert agent_state(facts(**known), RULES, NOW) == state


@pytest.mark.parametrize(
    ("known", "is_permission", "state"),
    [
        ({}, False, "limited"),
        ({"is_turn_open": True}, False, "limited"),
        ({"is_ready": False}, False, "limited"),
        ({"has_dialog": True}, False, "limited"),
        ({"has_dialog": True}, True, "needs_approval"),
        ({"is_blocked": True}, False, "needs_human"),
    ],
)
def test_a_limit_hides_all_but_a_question_about_a_tool(
    known: dict[str, bool | float | None], is_permission: bool, state: str
) -> None:
    assert agent_state(facts(**known), RULES, NOW, is_limited=True, is_permission=is_permission) == state


def test_no_agent_is_idle_while_a_dialog_holds_its_messages() -> None:
    names = ("is_blocked", "has_dialog", "is_asking", "is_composer_gone", "is_turn_open", "is_stopped")
    for values in itertools.product([False, True], repeat=len(names)):
        known = facts(**dict(zip(names, values, strict=True)))
        held = closed_gate(known, RULES, NOW)
        state = agent_state(known, RULES, NOW)

        assert (state is ReportedAgentState.IDLE) == (held is None)
        if held is HeldReason.DIALOG:
            assert state in (ReportedAgentState.NEEDS_APPROVAL, ReportedAgentState.NEEDS_HUMAN)


@pytest.mark.parametrize(
    ("kind", "is_told", "is_asking", "answer"),
    [
        (None, False, False, False),
        ("menu", False, False, False),
        ("permission", False, False, True),
        ("permission", False, True, True),
        ("menu", True, True, True),
        (None, True, True, True),
        ("permission", True, False, False),
    ],
)
def test_a_cli_that_tells_is_believed_before_its_screen(
    kind: str | None, is_told: bool, is_asking: bool, answer: bool
) -> None:
    dialog = None if kind is None else ScreenDialog(kind=kind, question="Run it?", subject="", choices=())

    assert asks_permission(dialog, is_told=is_told, is_asking=is_asking) == answer
