"""What the people are told of a session as it goes on."""

from csp.protocol.enums import AgentId, Mode
from csp.protocol.session_parts import Change
from csp.room.sessions.limits import limits_near, near_text
from csp.room.sessions.modes import respects_final, row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_state import Session

_RUNNING = "Autopilot running. Say 'Allstop' to end."
_SUGGESTS = "Agent suggests finish: press ALLSTOP to end or let them continue."


def remind(draft: SessionDraft, agent: AgentId) -> None:
    """Say after a reply of `agent` what a person may want to act on."""
    session = draft.session
    is_open = row_of(session.setup).is_limited and not respects_final(session.setup)
    if is_open and session.last is not None and session.last.final:
        draft.notice(f"{_SUGGESTS} ({agent})")
    _, repeats = session.echoes[agent]
    if repeats == 1:
        draft.notice(f"{agent} said the same as before.")
        draft.wake(f"it stalls: {agent} said the same as before")
    warn_of_limits(draft)
    due = _reminders_due(draft, session)
    if due > session.reminders:
        draft.change(Change.REMINDED, "reminded", rounds=due)
        draft.notice(_RUNNING)


def warn_of_limits(draft: SessionDraft) -> None:
    """Say once of each limit that it is nearly used up."""
    for reason in limits_near(draft.session):
        if reason not in draft.session.warned:
            draft.change(Change.WARNED, "warned", reason=reason)
            draft.notice(near_text(draft.session, reason))


def _reminders_due(draft: SessionDraft, session: Session) -> int:
    if session.setup.mode is not Mode.AUTOPILOT:
        return 0
    return max(session.replies // draft.rules.soft_turns, session.used.new // draft.rules.soft_tokens)
