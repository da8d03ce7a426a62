"""How sessions react to their agents: to deliveries, states, usage limits, and their coming and going."""

from typing import Final

from csp.protocol.enums import AgentId, AgentState, DeliveryState
from csp.protocol.events import DeliveryMoved, Joined, Left, StateChanged
from csp.protocol.session_parts import OnLimit, TurnState, WaitKind
from csp.room.room_draft import RoomDraft, SessionDraft
from csp.room.sessions import turns, waits
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_state import Turn
from csp.room.sessions.steering import kick, turns_of

_ARRIVED: Final = frozenset({DeliveryState.SUBMITTED, DeliveryState.CONFIRMED})
#: An agent that reports itself free this long before the reset has recovered in another way.
EARLY_S: Final = 60.0


def react(draft: RoomDraft) -> None:
    """Let the sessions react to the batch's events so far."""
    events = list(draft.events)
    # Remove participants from the session before processing the consequences, so that they are not asked.
    for event in events:
        if isinstance(event, Left) and event.removed:
            _on_removal(draft, event.sender)
    for event in events:
        match event:
            case DeliveryMoved():
                _on_delivery(draft, event)
            case StateChanged():
                _on_state(draft, event)
            case Left(removed=False):
                _on_leaving(draft, event.sender)
            case Joined():
                _on_joining(draft, event)
            case _:
                pass


def _on_delivery(draft: RoomDraft, event: DeliveryMoved) -> None:
    for session_draft, turn in turns_of(draft, event.agent):
        if turn.message != event.message or turn.state is TurnState.WAITING:
            continue
        if event.state in _ARRIVED:
            turns.delivered(session_draft, turn)
        elif event.state is DeliveryState.FAILED:
            turns.fail(session_draft, turn, TurnState.FAILED, f"undelivered: {event.reason}")
            advance(session_draft)
        elif event.state is DeliveryState.WITHDRAWN:
            turns.cancel(session_draft, turn, "withdrawn")
            advance(session_draft)
        else:
            waits.note_obstacle(session_draft, turn)


def _on_state(draft: RoomDraft, event: StateChanged) -> None:
    for session_draft, turn in turns_of(draft, event.sender):
        if event.state is AgentState.LIMITED:
            _on_limit(session_draft, turn)
        elif turn.waits_for(WaitKind.RESET):
            if event.state is AgentState.IDLE and _is_early(turn, event.ts):
                turns.ask_after_wait(session_draft, turn)
                advance(session_draft)
        elif turn.state is TurnState.ASKED:
            waits.note_obstacle(session_draft, turn)
        elif event.state in waits.WAITS_FOR_PERSON:
            turns.blocked(session_draft, turn, event.detail)
        elif event.state is not None and turn.state is TurnState.BLOCKED:
            turns.working(session_draft, turn)


def _on_limit(draft: SessionDraft, turn: Turn) -> None:
    """Handle a usage limit; a prompt that is just being typed arrives first, and its reply reports it."""
    is_waiting = turn.waits_for(WaitKind.RESET)
    if is_waiting and turn.wait is not None:
        participant = draft.participant(turn.agent)
        until = participant.until if participant is not None else None
        is_provisional = turn.wait.at is not None and turn.wait.until is None
        if until == turn.wait.until and not is_provisional:
            return
    elif turn.state is TurnState.WAITING or not waits.can_wait(draft, turn):
        return
    turns.at_usage_limit(draft, turn)
    advance(draft)


def _is_early(turn: Turn, now: float) -> bool:
    """Return whether an agent is free before the reset of its limit, or at an unknown one."""
    until = turn.wait.until if turn.wait is not None else None
    return until is None or now < until - EARLY_S


def _on_leaving(draft: RoomDraft, agent: AgentId) -> None:
    """Let a turn wait for its agent, or end the turn of a model, whose call has ended with it.

    A CLI may still answer its prompt.
    """
    for session_draft, turn in turns_of(draft, agent):
        is_waiting = session_draft.session.setup.on_limit is OnLimit.WAIT
        if turn.state is TurnState.ASKED:
            waits.note_obstacle(session_draft, turn)
        elif is_waiting and turn.state is not TurnState.WAITING:
            waits.wait_for_agent(session_draft, turn)
        elif waits.is_api(session_draft, agent) and not is_waiting:
            turns.fail(session_draft, turn, TurnState.FAILED, "it has left the room")
            advance(session_draft)


def _on_joining(draft: RoomDraft, event: Joined) -> None:
    """Continue the turns of an agent that is back: a new process is asked again, the old one works on."""
    before = draft.before.participants.get(event.sender)
    is_new = before is None or before.epoch != event.epoch
    for session_draft, turn in turns_of(draft, event.sender):
        if turn.state is TurnState.ASKED:
            waits.note_obstacle(session_draft, turn)
        elif turn.waits_for(WaitKind.OFFLINE) and turn.message and not is_new:
            turns.working(session_draft, turn)
        elif turn.waits_for(WaitKind.OFFLINE) or (is_new and waits.is_lost_with_process(session_draft, turn)):
            turns.ask_after_wait(session_draft, turn)
            advance(session_draft)


def _on_removal(draft: RoomDraft, agent: AgentId) -> None:
    for session in draft.sessions.live_with(agent):
        session_draft = SessionDraft(draft, session.id)
        if agent in session.agents:
            kick(session_draft, agent)
        else:
            turns.cancel(session_draft, session.turns[agent], "removed")
            advance(session_draft)
