"""What the sessions make of what happens to their agents."""

from collections.abc import Iterator
from typing import Final

from csp.protocol.enums import AgentId, AgentState, DeliveryState
from csp.protocol.events import DeliveryMoved, Left, StateChanged
from csp.protocol.session_parts import TurnState
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_state import Turn
from csp.room.sessions.steering import kick
from csp.room.sessions.turns import WAITS_FOR_PERSON, blocked, cancel, delivered, fail, is_api, working

_ARRIVED: Final = frozenset({DeliveryState.SUBMITTED, DeliveryState.CONFIRMED})


def react(room: Room, batch: RoomDraft, rules: RoomRules) -> None:
    """Let the sessions act on the events of the batch so far."""
    events = list(batch.events)
    # Who was removed is out of the session before anything that comes of it: it must not be asked again.
    for event in events:
        if isinstance(event, Left) and event.removed:
            _on_removal(room, batch, rules, event.sender)
    for event in events:
        match event:
            case DeliveryMoved():
                _on_delivery(room, batch, rules, event)
            case StateChanged():
                _on_state(room, batch, rules, event)
            case Left(removed=False):
                _on_leaving(room, batch, rules, event.sender)
            case _:
                pass


def _turns_of(
    room: Room, batch: RoomDraft, rules: RoomRules, agent: AgentId
) -> Iterator[tuple[SessionDraft, Turn]]:
    for session in batch.sessions.live_with(agent):
        if agent in session.turns:
            yield SessionDraft(room, batch, rules, session.id), session.turns[agent]


def _on_delivery(room: Room, batch: RoomDraft, rules: RoomRules, event: DeliveryMoved) -> None:
    for desk, turn in _turns_of(room, batch, rules, event.agent):
        if turn.message != event.message:
            continue
        if event.state in _ARRIVED:
            delivered(desk, turn)
        elif event.state is DeliveryState.FAILED:
            fail(desk, turn, TurnState.FAILED, f"undelivered: {event.reason}")
            advance(desk)
        elif event.state is DeliveryState.WITHDRAWN:
            cancel(desk, turn, "withdrawn")
            advance(desk)


def _on_state(room: Room, batch: RoomDraft, rules: RoomRules, event: StateChanged) -> None:
    for desk, turn in _turns_of(room, batch, rules, event.sender):
        if event.state in WAITS_FOR_PERSON:
            blocked(desk, turn, event.detail)
        elif event.state is AgentState.LIMITED:
            fail(desk, turn, TurnState.FAILED, "it has reached its limit")
            advance(desk)
        elif event.state is not None and turn.state is TurnState.BLOCKED:
            working(desk, turn)


def _on_leaving(room: Room, batch: RoomDraft, rules: RoomRules, agent: AgentId) -> None:
    """End the turn of a model that has gone: its call is gone too. A CLI may still answer its prompt."""
    for desk, turn in _turns_of(room, batch, rules, agent):
        if is_api(desk, agent) and turn.state is not TurnState.ASKED:
            fail(desk, turn, TurnState.FAILED, "it has left the room")
            advance(desk)


def _on_removal(room: Room, batch: RoomDraft, rules: RoomRules, agent: AgentId) -> None:
    for session in batch.sessions.live_with(agent):
        desk = SessionDraft(room, batch, rules, session.id)
        if agent in session.agents:
            kick(desk, agent)
        else:
            cancel(desk, session.turns[agent], "removed")
            advance(desk)
