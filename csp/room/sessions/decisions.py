"""Decisions that a person can make about a session: on a tie, a nearly reached limit or a reached one."""

from typing import Final

from csp.protocol.enums import AgentId
from csp.protocol.session_parts import EndReason, Status, WaitKind
from csp.room.sessions.modes import EMERGENCIES
from csp.room.sessions.session_limits import amount_of
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import Session
from csp.room.sessions.votes import tally_of

#: The choices that leave a tie undecided, acknowledge a limit, and end a session.
NONE: Final = "none"
NOTED: Final = "ok"
END: Final = "end"
#: The choices that ask an agent again in spite of its limit or raise the session's limit, and skip the agent.
CONTINUE: Final = "continue"
SKIP: Final = "skip"


def is_tied(sessions: Sessions, session: Session) -> bool:
    """Return whether a session's vote is tied and waits for a decision."""
    return _is_open(sessions, session) and session.reason is EndReason.TIE


def is_cut_short(sessions: Sessions, session: Session) -> bool:
    """Return whether a limit ended a session that nobody has continued since."""
    is_limit = session.reason in EMERGENCIES or session.reason is EndReason.AGENT_LIMITED
    return _is_open(sessions, session) and is_limit


def is_near_limit(session: Session) -> bool:
    """Return whether people were notified that a running session has nearly reached a limit."""
    return not session.is_over and bool(session.warned) and not session.is_settled


def is_held(session: Session) -> bool:
    """Return whether a session is paused at its limit until a person decides."""
    return session.status is Status.PAUSED and session.held is not None


def limited_agents(session: Session) -> tuple[AgentId, ...]:
    """Return the agents whose usage limits a running session waits for."""
    turns = session.turns.values() if session.is_running else ()
    return tuple(turn.agent for turn in turns if turn.waits_for(WaitKind.RESET))


def _is_open(sessions: Sessions, session: Session) -> bool:
    is_newest = sessions.threads.get(session.thread) == session.id
    return session.is_over and is_newest and not session.is_settled


def choices_for(sessions: Sessions, session: Session) -> dict[str, str]:
    """Return the available choices and their labels; empty if the session waits for no decision."""
    if is_tied(sessions, session):
        leaders = tally_of(session).leaders
        return {one.label: f"{one.label} ({one.agent})" for one in leaders} | {NONE: "Leave it open"}
    if is_held(session):
        more = amount_of(session, session.held) if session.held is not None else ""
        return {CONTINUE: f"Continue with {more} more", END: "End it"}
    if agents := limited_agents(session):
        names = " and ".join(agents)
        return {CONTINUE: f"Ask {names} now", SKIP: f"Skip {names}", END: "End it"}
    if is_near_limit(session):
        return {NOTED: "Let it continue", END: "End it now"}
    return {NOTED: "OK"} if is_cut_short(sessions, session) else {}
