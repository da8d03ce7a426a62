"""Derive the state of an agent from the facts about its pane."""

from csp.protocol.enums import ReportedAgentState
from csp.terminal.dialogs import ScreenDialog
from csp.terminal.gates import GateRules, PaneFacts, is_busy


def agent_state(
    facts: PaneFacts, rules: GateRules, now: float, *, is_limited: bool = False, is_permission: bool = False
) -> ReportedAgentState:
    """Return the state that the room should show: what needs a person first.

    `is_limited` says that a limit of the account holds; `is_permission` that what is asked is a question
    about a tool, which can be answered all the same, not a menu such as one that offers to lift the limit.
    """
    if facts.is_blocked:
        return ReportedAgentState.NEEDS_HUMAN
    if is_limited and not is_permission:
        return ReportedAgentState.LIMITED
    if facts.has_dialog or facts.is_asking:
        return ReportedAgentState.NEEDS_APPROVAL
    if not facts.is_ready:
        return ReportedAgentState.STARTING
    if is_busy(facts, rules, now):
        return ReportedAgentState.BUSY
    # Something that nobody can answer from outside takes the keys: a menu without numbers, a stopped program.
    is_lost = facts.is_composer_gone or facts.is_stopped
    return ReportedAgentState.NEEDS_HUMAN if is_lost else ReportedAgentState.IDLE


def asks_permission(dialog: ScreenDialog | None, *, is_told: bool, is_asking: bool) -> bool:
    """Tell whether a tool waits for a yes: by the CLI's own word where it `is_told`, else by its dialog."""
    return is_asking if is_told else dialog is not None and dialog.kind == "permission"
