"""The clocks of a room: what has to happen when nothing else does."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from csp.protocol.enums import HUMAN, DeliveryState, HeldReason, Mode, ParticipantKind
from csp.protocol.notices import NoticeCode
from csp.protocol.session_parts import TurnState
from csp.room import orchestrator
from csp.room.messages import inbox, send
from csp.room.messages.inbox import delivery_view
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.runs import run_protocol
from csp.room.sessions.limits import minutes_over_at
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_state import Session, Turn
from csp.room.sessions.turns import fail

#: What keeps a prompt out of the composer until a person does something about it.
_IN_THE_WAY: Final = frozenset({HeldReason.DRAFT, HeldReason.DIALOG})


def next_deadline(room: Room, rules: RoomRules) -> float | None:
    """Return when a tick will next have something to do."""
    others = (inbox.next_deadline(room), orchestrator.next_deadline(room, rules))
    times = [time for session in room.sessions.live() for time in deadlines(room, session, rules)]
    return min([*times, *(time for time in others if time is not None)], default=None)


def deadlines(room: Room, session: Session, rules: RoomRules) -> Iterator[float]:
    """Yield when something will happen to a session by itself."""
    if session.is_running:
        yield from (clock_of(room, turn, rules).at for turn in session.turns.values())
        over_at = minutes_over_at(session)
        if over_at is not None:
            yield over_at
        run = room.runs.of_session(session.id) if session.setup.mode is Mode.REVIEW else None
        remind_at = run_protocol.remind_at(run) if run else None
        if remind_at is not None:
            yield remind_at


def ends(room: Room, session: Session, rules: RoomRules) -> Iterator[float]:
    """Yield when something of a session will be over by itself; warnings before that are not meant."""
    for turn in session.turns.values() if session.is_running else ():
        clock = clock_of(room, turn, rules)
        yield turn.since + _timeout_s(room, turn, rules) if clock.is_warning else clock.at
    over_at = minutes_over_at(session) if session.is_running else None
    if over_at is not None:
        yield over_at


class TurnClock(NamedTuple):
    """When something happens to a turn by itself: it is warned of, or it is over."""

    at: float
    is_warning: bool = False


def clock_of(room: Room, turn: Turn, rules: RoomRules) -> TurnClock:
    """Return what happens next to a turn if nobody does anything."""
    timeout_s = _timeout_s(room, turn, rules)
    match turn.state:
        case TurnState.ASKED:
            return TurnClock(turn.asked_at + (rules.longest_s if turn.warned else timeout_s))
        case TurnState.BLOCKED:
            return TurnClock(turn.since + rules.longest_s)
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
    """Let everything happen whose time has come."""
    send.tick(draft)
    for session in list(draft.sessions.live()):
        session_draft = SessionDraft(draft, session.id)
        advance(session_draft)
        while due := [
            turn
            for turn in session_draft.session.turns.values()
            if session_draft.session.is_running and clock_of(draft.room, turn, draft.rules).at <= draft.clock
        ]:
            for turn in due:
                _ring(session_draft, turn)
            advance(session_draft)
        if session_draft.session.is_running:
            run_protocol.remind(session_draft)
    orchestrator.tick(draft)


def _ring(draft: SessionDraft, turn: Turn) -> None:
    match turn.state:
        case TurnState.ASKED:
            _ring_undelivered(draft, turn)
        case TurnState.BLOCKED:
            fail(draft, turn, TurnState.FAILED, "it waited too long for a person")
        case _ if clock_of(draft.room, turn, draft.rules).is_warning:
            draft.move(turn, turn.state, "running late", warned=True)
            draft.notice(NoticeCode.TURN_LATE(agent=turn.agent, seconds=draft.rules.warn_s))
        case _:
            timeout_s = _timeout_s(draft.room, turn, draft.rules)
            fail(draft, turn, TurnState.TIMED_OUT, f"no reply in {timeout_s:g} s")
            draft.wake(f"{turn.agent} timed out")


def _ring_undelivered(draft: SessionDraft, turn: Turn) -> None:
    message = draft.room.message(turn.message)
    view = delivery_view(draft.room, message, turn.agent) if message is not None else None
    reason = (view.reason or view.state) if view is not None else DeliveryState.QUEUED
    if reason in _IN_THE_WAY and not turn.warned:
        draft.move(turn, TurnState.ASKED, reason, warned=True)
        draft.notice(NoticeCode.TURN_OBSTRUCTED(agent=turn.agent, reason=reason), HUMAN)
        draft.wake(f"{turn.agent} is blocked: a {reason} is in the way of its turn")
        return
    fail(draft, turn, TurnState.FAILED, f"undelivered: {reason}")
    draft.wake(f"{turn.agent} could not be asked")
