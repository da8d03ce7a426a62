"""What acts on a session beside its replies: stop, pause, extend, skip and kick by people, votes and handoffs
by tool.
"""

from collections.abc import Callable
from typing import Final

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import AgentId, SessionAction, TurnId
from csp.protocol.events import UsageSeen
from csp.protocol.requests import Handoff, Usage
from csp.protocol.session_parts import Change, EndReason, PhaseKind, Status
from csp.room.commands import CastVote, ExtendTurn, HandOffTurn, NextTurn, Steer, Stop
from csp.room.identity import nearest
from csp.room.room_draft import RoomDraft
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_end import end, warn_of_limits
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_state import BallotVote, Session, Turn
from csp.room.sessions.spending import is_more
from csp.room.sessions.turns import cancel, cast, keep_open


def stop(draft: RoomDraft, command: Stop) -> None:
    """End the session of a thread, or all, before anything else; without one there is nothing to do."""
    for session in list(draft.sessions.live()):
        if command.thread is None or command.thread in threads_of(session):
            end(SessionDraft(draft, session.id), EndReason.STOPPED_BY_USER, by=command.sender)


def threads_of(session: Session) -> tuple[str, ...]:
    """Return the threads in which a session can be stopped: its own, that of who waits for its result."""
    terms = session.setup.collaboration
    return (session.thread,) if terms is None else (session.thread, terms.thread)


def next_turn(draft: RoomDraft, command: NextTurn) -> None:
    """Take the current turn for done."""
    session = draft.sessions.live_in(command.thread)
    if session is None:
        raise BadInput("Not in structured mode", "set a mode first")
    session_draft = SessionDraft(draft, session.id)
    cancel(session_draft, _current(session_draft, None), "passed on")
    advance(session_draft)


def keep_turn(draft: RoomDraft, command: ExtendTurn) -> None:
    """Start the clock of an agent's turns again, for as long as a turn may be kept open.

    What a turn has used so far may pass a limit, which ends it.
    """
    # Nobody can tell which of its turns the note is about.
    note = "" if draft.sessions.seals_of(command.agent) else command.note
    for session in list(draft.sessions.live()):
        session_draft = SessionDraft(draft, session.id)
        if command.usage is not None and command.turn is not None:
            _note_usage(session_draft, command.agent, TurnId(command.turn), command.usage)
        turn = session_draft.session.turns.get(command.agent)
        if turn is not None:
            keep_open(session_draft, turn, note)


def _note_usage(draft: SessionDraft, agent: AgentId, turn: TurnId, usage: Usage) -> None:
    """Count what a turn has used so far, if its reply has not said yet what it used."""
    session = draft.session
    now, seen = session.turns.get(agent), session.under_way.get(turn)
    is_open = now is not None and now.id == turn
    is_owed = seen is not None and seen.agent == agent
    if (is_open or is_owed) and is_more(usage, seen):
        header = draft.header(agent, f"{agent}: {usage.new:,} new tokens so far")
        draft.room_draft.emit(UsageSeen(*header, turn=turn, usage=usage))
        warn_of_limits(draft)
        advance(draft)


def steer(draft: RoomDraft, command: Steer) -> None:
    """Act on one session."""
    session = draft.sessions.get(command.session)
    if session is None:
        known = [str(one.id) for one in draft.sessions.live()]
        hint = nearest(command.session, known) if known else "no session is running"
        raise NotFound(f"unknown session {command.session!r}", hint)
    if session.is_over:
        raise Refused(f"session {session.id} has ended: {session.reason}", "start a new one")
    _ACTIONS[command.action](SessionDraft(draft, session.id), command)


def _pause(draft: SessionDraft, command: Steer) -> None:
    if draft.session.status is Status.RUNNING:
        draft.change(Change.PAUSED, "paused", by=command.sender)
        draft.notice(f"{draft.session.setup.mode.upper()} paused.")


def _resume(draft: SessionDraft, command: Steer) -> None:
    if draft.session.status is Status.PAUSED:
        draft.change(Change.RESUMED, "resumed", by=command.sender)
        draft.notice(f"{draft.session.setup.mode.upper()} goes on.")
        advance(draft)


def _extend(draft: SessionDraft, command: Steer) -> None:
    """Give more of what is limited; what is not, or cannot be set for the mode, stays as it is."""
    setup = draft.session.setup
    rounds = command.rounds if row_of(setup).unit else None
    minutes = command.minutes if setup.limits.minutes is not None else None
    draft.change(Change.EXTENDED, "extended", by=command.sender, rounds=rounds, minutes=minutes)
    amounts = {"rounds": rounds, "minutes": minutes}
    given = [f"{value:g} {unit}" for unit, value in amounts.items() if value is not None]
    draft.notice(f"Extended by {' and '.join(given)}." if given else "The open turns got more time.")


def _skip(draft: SessionDraft, command: Steer) -> None:
    turn = _current(draft, command.agent)
    cancel(draft, turn, "skipped")
    draft.notice(f"{turn.agent} was skipped.")
    advance(draft)


def _kick(draft: SessionDraft, command: Steer) -> None:
    known = [str(agent) for agent in draft.session.agents]
    if command.agent not in known:
        wanted = command.agent or ""
        raise BadInput(f"agent {wanted!r} is not in session {draft.session.id}", nearest(wanted, known))
    kick(draft, AgentId(command.agent))


def kick(draft: SessionDraft, agent: AgentId) -> None:
    """Take an agent out of a session; too few end it."""
    turn = draft.session.turns.get(agent)
    draft.change(Change.KICKED, f"{agent} left the session", agent=agent)
    draft.notice(f"{agent} no longer takes part.")
    if turn is not None:
        cancel(draft, turn, "left the session")
    is_led = draft.session.setup.lead in (None, *draft.session.agents)
    if len(draft.session.agents) < row_of(draft.session.setup).fewest or not is_led:
        end(draft, EndReason.TOO_FEW)
    else:
        advance(draft)


def _end(draft: SessionDraft, command: Steer) -> None:
    end(draft, EndReason.CANCELED, by=command.sender)


_ACTIONS: Final[dict[SessionAction, Callable[[SessionDraft, Steer], None]]] = {
    SessionAction.PAUSE: _pause,
    SessionAction.RESUME: _resume,
    SessionAction.EXTEND: _extend,
    SessionAction.SKIP: _skip,
    SessionAction.KICK: _kick,
    SessionAction.STOP: _end,
}


def _current(draft: SessionDraft, agent: str | None) -> Turn:
    """Return the turn that is meant: the one that is named, else the current one."""
    wanted = AgentId(agent) if agent is not None else draft.session.current
    turn = None if wanted is None else draft.session.turns.get(wanted)
    if turn is not None:
        return turn
    if wanted is None:
        raise Refused(f"no turn is open in {draft.session.id}, it is paused", "resume it first")
    owing = ", ".join(draft.session.waiting_for) or "nobody"
    raise Refused(f"{wanted} has no open turn in {draft.session.id}", f"who has: {owing}")


# --- what an agent does in its turn by tool ----------------------------------------------------------


def vote(draft: RoomDraft, command: CastVote) -> None:
    """Count a vote in the ballot that waits for it; the reply that ends the turn need not repeat it."""
    ballots = [one for one in _turns(draft, command) if one[0].session.stage.kind is PhaseKind.BALLOT]
    if not ballots:
        raise Refused("no ballot waits for your vote", "vote when you are asked to, in your turn")
    found, turn = ballots[0]
    labels = [candidate.label for candidate in found.session.stage.candidates]
    label = command.label.upper()
    if label not in labels:
        raise BadInput(f"unknown label {command.label!r}", f"expected one of: {', '.join(labels)}")
    cast(found, turn, BallotVote(label, command.reason))
    keep_open(found, turn)


def hand_over(draft: RoomDraft, command: HandOffTurn) -> None:
    """Remember to whom a turn hands over, until its reply."""
    for found, turn in _turns(draft, command):
        is_led = found.phase.speaker is NextSpeaker.LEAD and turn.agent != found.session.setup.lead
        if row_of(found.session.setup).follows_handoff and not is_led:
            break
    else:
        raise Refused("no turn of yours is open that can be handed over", "say it with a message instead")
    known = [str(agent) for agent in found.session.agents]
    to = command.to.strip().lower()
    if to not in known:
        raise BadInput(f"{command.to!r} takes no part in {found.session.id}", nearest(to, known))
    found.move(turn, turn.state, handoff=Handoff(to=to, task=command.task))
    keep_open(found, turn)


def _turns(draft: RoomDraft, command: CastVote | HandOffTurn) -> list[tuple[SessionDraft, Turn]]:
    """Return the open turns of an agent, of one session alone if that is named."""
    return [
        (SessionDraft(draft, session.id), session.turns[command.agent])
        for session in draft.sessions.live_with(command.agent)
        if command.session in (None, session.id) and command.agent in session.turns
    ]
