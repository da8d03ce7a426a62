"""Decisions that a person can make about a session: on a tie, a nearly reached limit or a reached one."""

from typing import Final

from csp.protocol.session_parts import EndReason
from csp.room.sessions.modes import EMERGENCIES
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import Session
from csp.room.sessions.votes import tally_of

#: The choices that leave a tie undecided, acknowledge a limit, and end a session.
NONE: Final = "none"
NOTED: Final = "ok"
END: Final = "end"


def is_tied(sessions: Sessions, session: Session) -> bool:
    """Return whether a session's vote is tied and waits for a decision."""
    return _is_open(sessions, session) and session.reason is EndReason.TIE


def is_cut_short(sessions: Sessions, session: Session) -> bool:
    """Return whether a limit ended a session that nobody has continued since."""
    return _is_open(sessions, session) and session.reason in EMERGENCIES


def is_near_limit(session: Session) -> bool:
    """Return whether people were notified that a running session has nearly reached a limit."""
    return not session.is_over and bool(session.warned) and not session.is_settled


def _is_open(sessions: Sessions, session: Session) -> bool:
    is_newest = sessions.threads.get(session.thread) == session.id
    return session.is_over and is_newest and not session.is_settled


def choices_for(sessions: Sessions, session: Session) -> dict[str, str]:
    """Return the available choices and their labels; empty if the session waits for no decision."""
    if is_tied(sessions, session):
        leaders = tally_of(session).leaders
        return {one.label: f"{one.label} ({one.agent})" for one in leaders} | {NONE: "Leave it open"}
    if is_near_limit(session):
        return {NOTED: "Let it continue", END: "End it now"}
    return {NOTED: "OK"} if is_cut_short(sessions, session) else {}
