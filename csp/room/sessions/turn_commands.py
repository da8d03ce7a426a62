"""What an agent does in its turn before it replies, by tool: it votes, it hands over."""

from csp.errors import BadInput, Refused
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import PhaseKind
from csp.room.commands import CastVote, HandOffTurn
from csp.room.identity import nearest
from csp.room.room_draft import RoomDraft
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_state import BallotVote, Turn
from csp.room.sessions.turns import cast, keep_open


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
        if row_of(found.session.setup).heeds_handoff and not is_led:
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
