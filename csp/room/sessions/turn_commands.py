"""What an agent does in its turn before it replies, by tool: it votes, it hands over."""

from csp.errors import BadInput, Refused
from csp.protocol.enums import AgentId
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import PhaseKind
from csp.room.commands import CastVote, HandOffTurn
from csp.room.identity import nearest
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_state import BallotVote, Turn
from csp.room.sessions.turns import cast, keep_open


def vote(room: Room, command: CastVote, batch: RoomDraft, rules: RoomRules) -> None:
    """Count a vote in the ballot that waits for it; the reply that ends the turn need not repeat it."""
    turns = _turns(room, command, batch, rules)
    found = [(desk, turn) for desk, turn in turns if desk.session.stage.kind is PhaseKind.BALLOT]
    if not found:
        raise Refused("no ballot waits for your vote", "vote when you are asked to, in your turn")
    desk, turn = found[0]
    labels = [candidate.label for candidate in desk.session.stage.candidates]
    label = command.label.upper()
    if label not in labels:
        raise BadInput(f"unknown label {command.label!r}", f"expected one of: {', '.join(labels)}")
    cast(desk, turn, BallotVote(label, command.reason))
    keep_open(desk, turn)


def hand_over(room: Room, command: HandOffTurn, batch: RoomDraft, rules: RoomRules) -> None:
    """Remember to whom a turn hands over, until its reply."""
    found = [(desk, turn) for desk, turn in _turns(room, command, batch, rules) if _may_hand_over(desk, turn)]
    if not found:
        raise Refused("no turn of yours is open that can be handed over", "say it with a message instead")
    desk, turn = found[0]
    known = [str(agent) for agent in desk.session.agents]
    to = command.to.strip().lower()
    if to not in known:
        raise BadInput(f"{command.to!r} takes no part in {desk.session.id}", nearest(to, known))
    desk.move(turn, turn.state, handoff=Handoff(to=to, task=command.task))
    keep_open(desk, turn)


def _turns(
    room: Room, command: CastVote | HandOffTurn, batch: RoomDraft, rules: RoomRules
) -> list[tuple[SessionDraft, Turn]]:
    """Return the open turns of an agent, of one session alone if that is named."""
    sessions = batch.sessions.live_with(AgentId(command.agent))
    meant = [session for session in sessions if command.session in (None, session.id)]
    return [
        (SessionDraft(room, batch, rules, session.id), session.turns[command.agent])
        for session in meant
        if command.agent in session.turns
    ]


def _may_hand_over(desk: SessionDraft, turn: Turn) -> bool:
    """Tell whether the reply to a turn may name somebody."""
    is_led = desk.phase.speaker is NextSpeaker.LEAD and turn.agent != desk.session.setup.lead
    return row_of(desk.session.setup).heeds_handoff and not is_led
