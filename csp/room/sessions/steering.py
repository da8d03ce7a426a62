"""What people do to a session from outside: stop, pause, extend, skip, kick."""

from collections.abc import Callable
from typing import Final

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import AgentId, SessionAction, TurnId
from csp.protocol.requests import Usage
from csp.protocol.session_parts import Change, EndReason, Status
from csp.room.commands import ExtendTurn, NextTurn, Steer, Stop
from csp.room.identity import nearest
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.sessions.modes import row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_end import end
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_notices import warn_of_limits
from csp.room.sessions.session_state import Session, Turn
from csp.room.sessions.spending import is_more
from csp.room.sessions.turns import cancel, keep_open


def stop(room: Room, command: Stop, batch: RoomDraft, rules: RoomRules) -> None:
    """End the session of a thread, or all, before anything else; without one there is nothing to do."""
    for session in list(batch.sessions.live()):
        if command.thread is None or command.thread in threads_of(session):
            end(SessionDraft(room, batch, rules, session.id), EndReason.STOPPED_BY_USER, by=command.sender)


def threads_of(session: Session) -> tuple[str, ...]:
    """Return the threads in which a session can be stopped: its own, that of who waits for its result."""
    terms = session.setup.collaboration
    return (session.thread,) if terms is None else (session.thread, terms.thread)


def next_turn(room: Room, command: NextTurn, batch: RoomDraft, rules: RoomRules) -> None:
    """Take the current turn for done."""
    session = batch.sessions.live_in(command.thread)
    if session is None:
        raise BadInput("Not in structured mode", "set a mode first")
    desk = SessionDraft(room, batch, rules, session.id)
    cancel(desk, _current(desk, None), "passed on")
    advance(desk)


def keep_turn(room: Room, command: ExtendTurn, batch: RoomDraft, rules: RoomRules) -> None:
    """Start the clock of an agent's turns again, for as long as a turn may be kept open.

    What a turn has used so far may pass a limit, which ends it.
    """
    # Nobody can tell which of its turns the note is about.
    note = "" if batch.sessions.seals_of(command.agent) else command.note
    for session in list(batch.sessions.live()):
        desk = SessionDraft(room, batch, rules, session.id)
        if command.usage is not None and command.turn is not None:
            _note_usage(desk, command.agent, TurnId(command.turn), command.usage)
        turn = desk.session.turns.get(command.agent)
        if turn is not None:
            keep_open(desk, turn, note)


def _note_usage(desk: SessionDraft, agent: AgentId, turn: TurnId, usage: Usage) -> None:
    """Count what a turn has used so far, if its reply has not said yet what it used."""
    session = desk.session
    now, seen = session.turns.get(agent), session.under_way.get(turn)
    is_open = now is not None and now.id == turn
    is_owed = seen is not None and seen.agent == agent
    if (is_open or is_owed) and is_more(usage, seen):
        desk.see_usage(agent, turn, usage)
        warn_of_limits(desk)
        advance(desk)


def steer(room: Room, command: Steer, batch: RoomDraft, rules: RoomRules) -> None:
    """Act on one session."""
    session = batch.sessions.get(command.session)
    if session is None:
        known = [str(one.id) for one in batch.sessions.live()]
        hint = nearest(command.session, known) if known else "no session is running"
        raise NotFound(f"unknown session {command.session!r}", hint)
    if session.is_over:
        raise Refused(f"session {session.id} has ended: {session.reason}", "start a new one")
    _ACTIONS[command.action](SessionDraft(room, batch, rules, session.id), command)


def _pause(desk: SessionDraft, command: Steer) -> None:
    if desk.session.status is Status.RUNNING:
        desk.change(Change.PAUSED, "paused", by=command.sender)
        desk.notice(f"{desk.session.setup.mode.upper()} paused.")


def _resume(desk: SessionDraft, command: Steer) -> None:
    if desk.session.status is Status.PAUSED:
        desk.change(Change.RESUMED, "resumed", by=command.sender)
        desk.notice(f"{desk.session.setup.mode.upper()} goes on.")
        advance(desk)


def _extend(desk: SessionDraft, command: Steer) -> None:
    """Give more of what is limited; what is not, or cannot be set for the mode, stays as it is."""
    setup = desk.session.setup
    fields = {
        "rounds": command.rounds if row_of(setup).unit else None,
        "minutes": command.minutes if setup.limits.minutes is not None else None,
    }
    desk.change(Change.EXTENDED, "extended", fields, by=command.sender)
    given = [f"{value:g} {unit}" for unit, value in fields.items() if value is not None]
    desk.notice(f"Extended by {' and '.join(given)}." if given else "The open turns got more time.")


def _skip(desk: SessionDraft, command: Steer) -> None:
    turn = _current(desk, command.agent)
    cancel(desk, turn, "skipped")
    desk.notice(f"{turn.agent} was skipped.")
    advance(desk)


def _kick(desk: SessionDraft, command: Steer) -> None:
    known = [str(agent) for agent in desk.session.agents]
    if command.agent not in known:
        wanted = command.agent or ""
        raise BadInput(f"agent {wanted!r} is not in session {desk.session.id}", nearest(wanted, known))
    kick(desk, AgentId(command.agent))


def kick(desk: SessionDraft, agent: AgentId) -> None:
    """Take an agent out of a session; too few end it."""
    turn = desk.session.turns.get(agent)
    desk.change(Change.KICKED, f"{agent} left the session", {"agent": agent})
    desk.notice(f"{agent} no longer takes part.")
    if turn is not None:
        cancel(desk, turn, "left the session")
    is_led = desk.session.setup.lead in (None, *desk.session.agents)
    if len(desk.session.agents) < row_of(desk.session.setup).fewest or not is_led:
        end(desk, EndReason.TOO_FEW)
    else:
        advance(desk)


def _end(desk: SessionDraft, command: Steer) -> None:
    end(desk, EndReason.CANCELED, by=command.sender)


_ACTIONS: Final[dict[SessionAction, Callable[[SessionDraft, Steer], None]]] = {
    SessionAction.PAUSE: _pause,
    SessionAction.RESUME: _resume,
    SessionAction.EXTEND: _extend,
    SessionAction.SKIP: _skip,
    SessionAction.KICK: _kick,
    SessionAction.STOP: _end,
}


def _current(desk: SessionDraft, agent: str | None) -> Turn:
    """Return the turn that is meant: the one that is named, else the current one."""
    wanted = AgentId(agent) if agent is not None else desk.session.current
    turn = None if wanted is None else desk.session.turns.get(wanted)
    if turn is not None:
        return turn
    if wanted is None:
        raise Refused(f"no turn is open in {desk.session.id}, it is paused", "resume it first")
    owing = ", ".join(desk.session.waiting_for) or "nobody"
    raise Refused(f"{wanted} has no open turn in {desk.session.id}", f"who has: {owing}")
