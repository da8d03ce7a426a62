"""What a person can decide about a session: a tie, a limit that is near, a limit that ended it."""

from typing import Final

from csp.protocol.session_parts import EndReason
from csp.room.sessions.modes import EMERGENCIES
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import Session
from csp.room.sessions.votes import tally_of

#: The choice that leaves a tie as it is, the one that notes a limit, the one that ends a session.
NONE: Final = "none"
NOTED: Final = "ok"
END: Final = "end"


def is_tied(sessions: Sessions, session: Session) -> bool:
    """Tell whether the vote of a session waits for somebody who decides it."""
    return _is_open(sessions, session) and session.reason is EndReason.TIE


def is_cut_short(sessions: Sessions, session: Session) -> bool:
    """Tell whether a limit has ended a session, and nobody has gone on since."""
    return _is_open(sessions, session) and session.reason in EMERGENCIES


def is_near_limit(session: Session) -> bool:
    """Tell whether a session that runs has nearly used up a limit, as people were told."""
    return not session.is_over and bool(session.warned) and not session.is_settled


def _is_open(sessions: Sessions, session: Session) -> bool:
    is_newest = sessions.threads.get(session.thread) == session.id
    return session.is_over and is_newest and not session.is_settled


def choices_for(sessions: Sessions, session: Session) -> dict[str, str]:
    """Return what can be chosen, with a label for each; nothing if the session waits for no decision."""
    if is_tied(sessions, session):
        leaders = tally_of(session).leaders
        return {one.label: f"{one.label} ({one.agent})" for one in leaders} | {NONE: "Leave it open"}
    if is_near_limit(session):
        return {NOTED: "Let it go on", END: "End it now"}
    return {NOTED: "OK"} if is_cut_short(sessions, session) else {}
