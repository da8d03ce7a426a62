"""What the sessions make of what happens to their agents."""

from collections.abc import Iterator
from typing import Final

from csp.protocol.enums import AgentId, AgentState, DeliveryState
from csp.protocol.events import DeliveryMoved, Left, StateChanged
from csp.protocol.session_parts import TurnState
from csp.room.room_draft import RoomDraft
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_state import Turn
from csp.room.sessions.steering import kick
from csp.room.sessions.turns import WAITS_FOR_PERSON, blocked, cancel, delivered, fail, is_api, working

_ARRIVED: Final = frozenset({DeliveryState.SUBMITTED, DeliveryState.CONFIRMED})


def react(draft: RoomDraft) -> None:
    """Let the sessions act on the events of the batch so far."""
    events = list(draft.events)
    # Who was removed is out of the session before anything that comes of it: it must not be asked again.
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
            case _:
                pass


def _turns_of(draft: RoomDraft, agent: AgentId) -> Iterator[tuple[SessionDraft, Turn]]:
    for session in draft.sessions.live_with(agent):
        if agent in session.turns:
            yield SessionDraft(draft, session.id), session.turns[agent]


def _on_delivery(draft: RoomDraft, event: DeliveryMoved) -> None:
    for session_draft, turn in _turns_of(draft, event.agent):
        if turn.message != event.message:
            continue
        if event.state in _ARRIVED:
            delivered(session_draft, turn)
        elif event.state is DeliveryState.FAILED:
            fail(session_draft, turn, TurnState.FAILED, f"undelivered: {event.reason}")
            advance(session_draft)
        elif event.state is DeliveryState.WITHDRAWN:
            cancel(session_draft, turn, "withdrawn")
            advance(session_draft)


def _on_state(draft: RoomDraft, event: StateChanged) -> None:
    for session_draft, turn in _turns_of(draft, event.sender):
        if event.state in WAITS_FOR_PERSON:
            blocked(session_draft, turn, event.detail)
        elif event.state is AgentState.LIMITED:
            fail(session_draft, turn, TurnState.FAILED, "it has reached its limit")
            advance(session_draft)
        elif event.state is not None and turn.state is TurnState.BLOCKED:
            working(session_draft, turn)


def _on_leaving(draft: RoomDraft, agent: AgentId) -> None:
    """End the turn of a model that has gone: its call is gone too. A CLI may still answer its prompt."""
    for session_draft, turn in _turns_of(draft, agent):
        if is_api(session_draft, agent) and turn.state is not TurnState.ASKED:
            fail(session_draft, turn, TurnState.FAILED, "it has left the room")
            advance(session_draft)


def _on_removal(draft: RoomDraft, agent: AgentId) -> None:
    for session in draft.sessions.live_with(agent):
        session_draft = SessionDraft(draft, session.id)
        if agent in session.agents:
            kick(session_draft, agent)
        else:
            cancel(session_draft, session.turns[agent], "removed")
            advance(session_draft)
