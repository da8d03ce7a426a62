"""All changes to a session except replies.

People stop, pause, extend, skip and kick; agents vote and hand over by tool; agents join and leave; and time
passes.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import (
    HUMAN,
    AgentId,
    DeliveryState,
    Mode,
    ParticipantKind,
    SessionAction,
    TurnId,
)
from csp.protocol.events import UsageSeen
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import (
    Change,
    EndReason,
    OnLimit,
    PhaseKind,
    Status,
    TurnState,
    WaitKind,
)
from csp.room import messages, orchestrator
from csp.room.agent_names import nearest
from csp.room.commands import CastVote, ExtendTurn, HandOffTurn, NextTurn, RoomRules, Slept, Steer, Stop
from csp.room.messages import delivery_view
from csp.room.room_draft import RoomDraft, SessionDraft
from csp.room.room_state import Room
from csp.room.runs import run_protocol
from csp.room.sessions import turns, waits
from csp.room.sessions.decisions import CONTINUE, END, SKIP, choices_for
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_end import end, warn_of_limits
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_limits import amount_of, limit_hit, minutes_over_at, more_of
from csp.room.sessions.session_state import BallotVote, Session, Turn, is_more
from csp.room.sessions.votes import tally_of


def stop(draft: RoomDraft, command: Stop) -> None:
    """End the session of a thread, or all sessions, before anything else; do nothing if there are none."""
    for session in list(draft.sessions.live()):
        if command.thread is None or command.thread in threads_of(session):
            end(SessionDraft(draft, session.id), EndReason.STOPPED_BY_USER, by=command.sender)


def threads_of(session: Session) -> tuple[str, ...]:
    """Return the threads in which a session can be stopped: its own and its caller's."""
    terms = session.setup.collaboration
    return (session.thread,) if terms is None else (session.thread, terms.thread)


def next_turn(draft: RoomDraft, command: NextTurn) -> None:
    """Mark the current turn as done."""
    session = draft.sessions.live_in(command.thread)
    if session is None:
        raise BadInput("Not in structured mode", "set a mode first")
    session_draft = SessionDraft(draft, session.id)
    turns.cancel(session_draft, _current(session_draft, None), "passed on")
    advance(session_draft)


def keep_turn(draft: RoomDraft, command: ExtendTurn) -> None:
    """Restart the clock of an agent's turns, up to a turn's maximum time.

    The usage reported so far may exceed a limit, which ends the turn.
    """
    # It is unknown which of its turns the note refers to.
    note = "" if draft.sessions.seals_of(command.agent) else command.note
    for session in list(draft.sessions.live()):
        session_draft = SessionDraft(draft, session.id)
        if command.usage is not None and command.turn is not None:
            now, seen = session.turns.get(command.agent), session.under_way.get(TurnId(command.turn))
            is_open = now is not None and now.id == command.turn
            is_owed = seen is not None and seen.agent == command.agent
            # A reply may have reported it already.
            if (is_open or is_owed) and is_more(command.usage, seen):
                text = f"{command.agent}: {command.usage.new:,} new tokens so far"
                header = session_draft.header(command.agent, text)
                draft.emit(UsageSeen(*header, turn=TurnId(command.turn), usage=command.usage))
                warn_of_limits(session_draft)
                advance(session_draft)
        turn = session_draft.session.turns.get(command.agent)
        if turn is not None:
            turns.keep_open(session_draft, turn, note)


def steer(draft: RoomDraft, command: Steer) -> None:
    """Apply a steering action to one session."""
    session = draft.sessions.get(command.session)
    if session is None:
        known = [str(one.id) for one in draft.sessions.live()]
        hint = nearest(command.session, known) if known else "no session is running"
        raise NotFound(f"unknown session {command.session!r}", hint)
    if command.action is SessionAction.DECIDE:
        # Decisions are often about questions that a session leaves open when it ends.
        _decide(SessionDraft(draft, session.id), command)
        return
    if session.is_over:
        raise Refused(f"session {session.id} has ended: {session.reason}", "start a new one")
    _ACTIONS[command.action](SessionDraft(draft, session.id), command)


def _pause(draft: SessionDraft, command: Steer) -> None:
    if draft.session.status is Status.RUNNING:
        draft.change(Change.PAUSED, "paused", by=command.sender)
        draft.notice(NoticeCode.SESSION_PAUSED(mode=draft.session.setup.mode.upper()))


def _resume(draft: SessionDraft, command: Steer) -> None:
    session = draft.session
    if session.status is not Status.PAUSED:
        return
    if session.held is not None and limit_hit(session, draft.clock) is not None:
        hint = f"continue or end it with: csp decide {session.id} {'|'.join((CONTINUE, END))}"
        raise Refused(f"{session.id} is paused because it has reached its limit", hint)
    draft.change(Change.RESUMED, "resumed", by=command.sender)
    draft.notice(NoticeCode.SESSION_RESUMED(mode=session.setup.mode.upper()))
    _ask_stopped(draft)
    advance(draft)


def _ask_stopped(draft: SessionDraft) -> None:
    """Ask again the agents that a limit of the session has stopped."""
    for turn in list(draft.session.turns.values()):
        if turn.waits_for(WaitKind.RESUME) and draft.session.is_running:
            turns.ask_after_wait(draft, turn)


def _extend(draft: SessionDraft, command: Steer) -> None:
    """Extend the limits; limits that are not set, or cannot be set for the mode, are unchanged."""
    setup = draft.session.setup
    rounds = command.rounds if row_of(setup).unit else None
    minutes = command.minutes if setup.limits.minutes is not None else None
    draft.change(Change.EXTENDED, "extended", by=command.sender, rounds=rounds, minutes=minutes)
    amounts = {"rounds": rounds, "minutes": minutes}
    given = [f"{value:g} {unit}" for unit, value in amounts.items() if value is not None]
    extended = NoticeCode.SESSION_EXTENDED(amounts=" and ".join(given))
    draft.notice(extended if given else NoticeCode.TURNS_EXTENDED())


def _skip(draft: SessionDraft, command: Steer) -> None:
    turn = _current(draft, command.agent)
    turns.cancel(draft, turn, "skipped")
    draft.notice(NoticeCode.SKIPPED(agent=turn.agent))
    advance(draft)


def _kick(draft: SessionDraft, command: Steer) -> None:
    known = [str(agent) for agent in draft.session.agents]
    if command.agent not in known:
        wanted = command.agent or ""
        raise BadInput(f"agent {wanted!r} is not in session {draft.session.id}", nearest(wanted, known))
    kick(draft, AgentId(command.agent))


def kick(draft: SessionDraft, agent: AgentId) -> None:
    """Remove an agent from a session, which ends if too few remain."""
    turn = draft.session.turns.get(agent)
    draft.change(Change.KICKED, f"{agent} left the session", agent=agent)
    draft.notice(NoticeCode.KICKED(agent=agent))
    if turn is not None:
        turns.cancel(draft, turn, "left the session")
    is_led = draft.session.setup.lead in (None, *draft.session.agents)
    if len(draft.session.agents) < row_of(draft.session.setup).fewest or not is_led:
        end(draft, EndReason.TOO_FEW)
    else:
        advance(draft)


def _decide(draft: SessionDraft, command: Steer) -> None:
    """Apply a person's decision on the session's open question."""
    session = draft.session
    choices = choices_for(draft.room_draft.sessions, session)
    if not choices:
        raise Refused(f"session {session.id} is not waiting for a decision", "see: csp status")
    given = (command.choice or "").strip().lower()
    choice = next((one for one in choices if one.lower() == given), None)
    if choice is None:
        raise BadInput(f"unknown choice {command.choice or ''!r}", f"expected one of: {', '.join(choices)}")
    if choice == END:
        end(draft, EndReason.CANCELED, by=command.sender)
        return
    if choice == CONTINUE and session.held is not None:
        _raise_limit(draft, command, session.held)
        return
    if choice in (CONTINUE, SKIP):
        _decide_waits(draft, choice)
        return
    is_tie = session.reason is EndReason.TIE
    winner = next((one.agent for one in tally_of(session).leaders if one.label == choice), None)
    draft.change(Change.SETTLED, f"decided: {choice}", by=command.sender, agent=winner if is_tie else None)
    if is_tie and winner is not None:
        draft.notice(NoticeCode.TIE_DECIDED(label=choice, agent=winner))


def _raise_limit(draft: SessionDraft, command: Steer, reason: EndReason) -> None:
    """Grant the amount of a limit once more, and continue."""
    if not draft.room.is_person(command.sender):
        raise Refused(f"only a person can raise the limit of {draft.session.id}", "ask one")
    limits = more_of(draft.session, reason)
    draft.change(Change.EXTENDED, "extended", by=command.sender, limits=limits)
    draft.notice(NoticeCode.LIMIT_RAISED(amount=amount_of(draft.session, reason)))
    draft.change(Change.RESUMED, "resumed", by=command.sender)
    _ask_stopped(draft)
    advance(draft)


def _decide_waits(draft: SessionDraft, choice: str) -> None:
    """Ask the agents at a usage limit again now, or skip their turns."""
    for turn in list(draft.session.turns.values()):
        if not turn.waits_for(WaitKind.RESET) or not draft.session.is_running:
            continue
        if choice == SKIP:
            turns.cancel(draft, turn, "skipped")
            draft.notice(NoticeCode.SKIPPED(agent=turn.agent))
        else:
            turns.ask_after_wait(draft, turn, is_now=True)
    advance(draft)


_ACTIONS: Final[dict[SessionAction, Callable[[SessionDraft, Steer], None]]] = {
    SessionAction.PAUSE: _pause,
    SessionAction.RESUME: _resume,
    SessionAction.EXTEND: _extend,
    SessionAction.SKIP: _skip,
    SessionAction.KICK: _kick,
    SessionAction.STOP: lambda draft, command: end(draft, EndReason.CANCELED, by=command.sender),
}


def _current(draft: SessionDraft, agent: str | None) -> Turn:
    """Return the named agent's turn, or the current one."""
    wanted = AgentId(agent) if agent is not None else draft.session.current
    turn = None if wanted is None else draft.session.turns.get(wanted)
    if turn is not None:
        return turn
    if wanted is None:
        raise Refused(f"no turn is open in {draft.session.id} because it is paused", "resume it first")
    owing = ", ".join(draft.session.waiting_for) or "nobody"
    raise Refused(f"{wanted} has no open turn in {draft.session.id}", f"open turns: {owing}")


# --- tool calls of an agent in its turn --------------------------------------------------------------


def vote(draft: RoomDraft, command: CastVote) -> None:
    """Record a vote in the ballot waiting for it; the reply that ends the turn need not repeat it."""
    open_turns = turns_of(draft, command.agent, command.session)
    ballots = [one for one in open_turns if one[0].session.stage.kind is PhaseKind.BALLOT]
    if not ballots:
        raise Refused("no ballot is waiting for your vote", "vote in your turn, when asked to")
    found, turn = ballots[0]
    labels = [candidate.label for candidate in found.session.stage.candidates]
    label = command.label.upper()
    if label not in labels:
        raise BadInput(f"unknown label {command.label!r}", f"expected one of: {', '.join(labels)}")
    turns.cast(found, turn, BallotVote(label, command.reason))
    turns.keep_open(found, turn)


def hand_over(draft: RoomDraft, command: HandOffTurn) -> None:
    """Store a turn's handoff until its reply."""
    for found, turn in turns_of(draft, command.agent, command.session):
        is_led = found.phase.speaker is NextSpeaker.LEAD and turn.agent != found.session.setup.lead
        if row_of(found.session.setup).follows_handoff and not is_led:
            break
    else:
        raise Refused("you have no open turn that can be handed over", "send a message instead")
    known = [str(agent) for agent in found.session.agents]
    to = command.to.strip().lower()
    if to not in known:
        raise BadInput(f"{command.to!r} is not in {found.session.id}", nearest(to, known))
    found.move(turn, turn.state, handoff=Handoff(to=to, task=command.task))
    turns.keep_open(found, turn)


def turns_of(draft: RoomDraft, agent: AgentId, session: str | None = None) -> list[tuple[SessionDraft, Turn]]:
    """Return an agent's open turns, or only those in a named session."""
    return [
        (SessionDraft(draft, one.id), one.turns[agent])
        for one in draft.sessions.live_with(agent)
        if session in (None, one.id) and agent in one.turns
    ]


# --- deadlines ------------------------------------------------------------------------------------


def next_deadline(room: Room, rules: RoomRules) -> float | None:
    """Return when a tick will next have an effect."""
    others = (messages.next_deadline(room), orchestrator.next_deadline(room, rules))
    times = [time for session in room.sessions.live() for time in deadlines(room, session, rules)]
    return min([*times, *(time for time in others if time is not None)], default=None)


def deadlines(room: Room, session: Session, rules: RoomRules) -> Iterator[float]:
    """Yield the times at which a session changes without outside action."""
    if session.is_running:
        clocks = [clock_of(room, turn, rules, session.setup.on_limit).at for turn in session.turns.values()]
        yield from (at for at in clocks if at != NEVER)
        over_at = minutes_over_at(session)
        if over_at is not None:
            yield over_at
        run = room.runs.of_session(session.id) if session.setup.mode is Mode.REVIEW else None
        remind_at = run_protocol.remind_at(run) if run else None
        if remind_at is not None:
            yield remind_at


def ends(room: Room, session: Session, rules: RoomRules) -> Iterator[float]:
    """Yield the times at which something in a session ends without outside action, excluding warnings."""
    for turn in session.turns.values() if session.is_running else ():
        clock = clock_of(room, turn, rules, session.setup.on_limit)
        if clock.at != NEVER and turn.state is not TurnState.WAITING:
            yield turn.since + _timeout_s(room, turn, rules) if clock.is_warning else clock.at
    over_at = minutes_over_at(session) if session.is_running else None
    if over_at is not None:
        yield over_at


class TurnClock(NamedTuple):
    """The time of a turn's next warning, or of its end, without outside action."""

    at: float
    is_warning: bool = False


#: The time of a change that only an event or a person brings about.
NEVER: Final = math.inf


def clock_of(room: Room, turn: Turn, rules: RoomRules, on_limit: OnLimit = OnLimit.SKIP) -> TurnClock:
    """Return a turn's next change if nobody acts; a session that waits does so without an end."""
    timeout_s = _timeout_s(room, turn, rules)
    longest_s = NEVER if on_limit is OnLimit.WAIT else rules.longest_s
    match turn.state:
        case TurnState.WAITING:
            return TurnClock(NEVER if turn.wait is None or turn.wait.at is None else turn.wait.at)
        case TurnState.ASKED:
            return TurnClock(turn.asked_at + (longest_s if turn.warned else timeout_s))
        case TurnState.BLOCKED:
            return TurnClock(turn.since + longest_s)
        case _ if not turn.warned and rules.warn_s < timeout_s:
            return TurnClock(turn.since + rules.warn_s, is_warning=True)
        case _:
            return TurnClock(turn.since + timeout_s)


def _timeout_s(room: Room, turn: Turn, rules: RoomRules) -> float:
    if turn.timeout_s is not None:
        return turn.timeout_s
    participant = room.participants.get(turn.agent)
    return rules.timeout_of(participant.kind if participant else ParticipantKind.CLI)


def tick(draft: RoomDraft) -> None:
    """Apply all deadlines that have passed."""
    messages.tick(draft)
    for session in list(draft.sessions.live()):
        session_draft = SessionDraft(draft, session.id)
        advance(session_draft)
        while due := [
            turn
            for turn in session_draft.session.turns.values()
            if session_draft.session.is_running and _clock(session_draft, turn).at <= draft.clock
        ]:
            for turn in due:
                _ring(session_draft, turn)
            advance(session_draft)
        if session_draft.session.is_running:
            run_protocol.remind(session_draft)
    orchestrator.tick(draft)


def note_sleep(draft: RoomDraft, command: Slept) -> None:
    """Stop the clocks of the running sessions for the time in which the machine was suspended."""
    for session in list(draft.sessions.live()):
        if session.status is Status.RUNNING:
            session_draft = SessionDraft(draft, session.id)
            words = waits.duration(command.seconds)
            session_draft.change(Change.SLEPT, f"slept for {words}", minutes=command.seconds / 60)
            session_draft.notice(NoticeCode.SLEPT(duration=words))


def _clock(draft: SessionDraft, turn: Turn) -> TurnClock:
    return clock_of(draft.room, turn, draft.rules, draft.session.setup.on_limit)


def _ring(draft: SessionDraft, turn: Turn) -> None:
    match turn.state:
        case TurnState.WAITING:
            turns.ask_after_wait(draft, turn)
        case TurnState.ASKED:
            wait = waits.obstacle(draft, turn)
            if wait is not None and not turn.warned:
                reason, words = wait.detail or wait.kind, waits.obstacle_words(wait)
                waits.note_obstacle(draft, turn)
                draft.move(turn, TurnState.ASKED, reason, warned=True)
                draft.notice(NoticeCode.TURN_OBSTRUCTED(agent=turn.agent, reason=reason, why=words), HUMAN)
                draft.wake(f"{turn.agent} cannot be asked: {words}")
            else:
                message = draft.room.message(turn.message)
                view = delivery_view(draft.room, message, turn.agent) if message is not None else None
                reason = (view.reason or view.state) if view is not None else DeliveryState.QUEUED
                turns.fail(draft, turn, TurnState.FAILED, f"undelivered: {reason}")
                draft.wake(f"{turn.agent} could not be asked")
        case TurnState.BLOCKED:
            turns.fail(draft, turn, TurnState.FAILED, "it waited too long for a person")
        case _ if _clock(draft, turn).is_warning:
            draft.move(turn, turn.state, "running late", warned=True)
            draft.notice(NoticeCode.TURN_LATE(agent=turn.agent, seconds=draft.rules.warn_s))
        case _:
            timeout_s = _timeout_s(draft.room, turn, draft.rules)
            turns.fail(draft, turn, TurnState.TIMED_OUT, f"no reply in {timeout_s:g} s")
            draft.wake(f"{turn.agent} timed out")
