"""Rules for participants: joining, leaving, removal, state reports and controls."""

from itertools import count
from typing import Final

from csp.errors import NotFound, Refused, TooMany
from csp.protocol.enums import ALL, HUMAN, AgentId, AgentState, ControlVerb, DeliveryState, NoticeKind
from csp.protocol.events import ControlSent, Joined, Left, StateChanged
from csp.protocol.notices import NoticeCode
from csp.room import approvals
from csp.room.agent_names import nearest, numbered, to_id
from csp.room.commands import ControlAgent, Join, Leave, Rejoin, Remove, SetState
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Participant, Room

MAX_PARTICIPANTS: Final = 1000
#: A control that was sent long ago must not approve the dialog that is on the screen now.
CONTROL_TTL_S: Final = 30.0

#: Controls that change a participant's stored state; all others require it to be online.
_PAUSED: Final = {ControlVerb.PAUSE: True, ControlVerb.RESUME: False}
_SHARED: Final = {ControlVerb.SHARE: True, ControlVerb.NOSHARE: False}


def known_participant(room: Room, agent: str) -> Participant:
    """Return a participant; raise NotFound with a hint if it is unknown."""
    participant = room.participants.get(AgentId(agent))
    if participant is None:
        raise NotFound(f"unknown agent {agent!r}", nearest(agent, list(room.participants)))
    return participant


def join(draft: RoomDraft, command: Join) -> None:
    """Add a participant under the id for its name, numbered if the id is in use."""
    room = draft.room
    # A sidecar that was killed right after joining gets its id back.
    launched = (known.id for known in room.participants.values() if command.launch == known.launch != "")
    agent = next(launched, None)
    if agent is None:
        wanted = to_id(command.name, command.role)
        taken = {known.id for known in room.participants.values() if known.online}
        agent = next(one for one in (numbered(wanted, number) for number in count(1)) if one not in taken)
    before = room.participants.get(agent)
    if before is None and len(room.participants) >= MAX_PARTICIPANTS:
        raise TooMany(f"the room has {MAX_PARTICIPANTS} participants", "remove some with: csp remove AGENT")
    draft.emit(
        Joined(
            *draft.header(agent, ALL, f"{agent} joined"),
            name=command.name,
            kind=command.kind,
            role=command.role,
            epoch=(before.epoch if before else room.epochs.get(agent, 0)) + 1,
            capabilities=command.capabilities,
            launch=command.launch,
        )
    )


def come_back(draft: RoomDraft, command: Rejoin) -> None:
    """Bring a participant back online."""
    known = known_participant(draft.room, command.agent)
    # In a sealed phase, an agent must not disclose anything to the others, including new capabilities.
    is_kept = command.capabilities is None or draft.sessions.seals_of(known.id)
    capabilities = known.capabilities if is_kept else command.capabilities
    is_new = command.launch not in ("", known.launch)
    if known.online and capabilities == known.capabilities and not is_new:
        return
    draft.emit(
        Joined(
            *draft.header(known.id, ALL, f"{known.id} is back"),
            name=known.name,
            kind=known.kind,
            role=known.role,
            # Processes left over from a killed sidecar must not act for its successor.
            epoch=known.epoch + is_new,
            capabilities=capabilities,
            launch=command.launch,
        )
    )
    if is_new and known.share:
        header = draft.header(known.id, ALL, f"{known.id}: {ControlVerb.SHARE}")
        draft.emit(StateChanged(*header, share=True))


def leave(draft: RoomDraft, command: Leave) -> None:
    participant = known_participant(draft.room, command.agent)
    if participant.online:
        text = f"{participant.id} left: {command.reason}"
        draft.emit(Left(*draft.header(participant.id, ALL, text), reason=command.reason))


def remove(draft: RoomDraft, command: Remove) -> None:
    participant = known_participant(draft.room, command.agent)
    for ids in (participant.controls, participant.queue):
        for message in draft.room.unfinished(ids):
            if message.deliveries[participant.id].is_untouched:
                draft.move_delivery(message, participant.id, DeliveryState.WITHDRAWN)
            else:
                draft.move_delivery(message, participant.id, DeliveryState.FAILED, "removed")
    header = draft.header(participant.id, ALL, f"{participant.id} was removed")
    draft.emit(Left(*header, reason="removed", removed=True))


def set_state(draft: RoomDraft, command: SetState) -> None:
    participant = known_participant(draft.room, command.agent)
    notice = command.notice
    if notice is not None:
        # Posted to people only, because the detail may be sealed for other agents.
        draft.notice(HUMAN, NoticeCode[notice.kind.name](agent=participant.id, detail=notice.detail))
        if notice.kind is NoticeKind.FILE_ATTACHED and not participant.paused:
            header = draft.header(participant.id, ALL, f"{participant.id}: pause")
            draft.emit(StateChanged(*header, paused=True))
    is_telling = bool(command.detail or command.work)
    seals = draft.sessions.seals_of(command.agent) if is_telling else {}
    if command.state is AgentState.OFFLINE:
        reason = "closed" if seals or not command.detail else command.detail
        if seals and participant.online:
            draft.notice(HUMAN, NoticeCode.AGENT_LEFT(agent=participant.id, detail=command.detail))
        leave(draft, Leave(agent=command.agent, reason=reason))
        return
    new = (command.state, command.detail, command.until, command.dialog, command.asks, command.work)
    known = participant
    if (known.state, known.detail, known.until, known.dialog, known.asks, known.work) == new:
        return
    text = f"{participant.id} is {command.state}" + (f": {command.detail}" if command.detail else "")
    draft.emit(
        StateChanged(
            *draft.header(participant.id, ALL, text),
            state=command.state,
            detail=command.detail,
            until=command.until,
            dialog=command.dialog,
            seals=seals,
            asks=command.asks,
            work=command.work,
        )
    )
    approvals.approve_by_rule(draft, participant.id)


def control(draft: RoomDraft, command: ControlAgent) -> None:
    """Send a control to an agent."""
    participant = known_participant(draft.room, command.agent)
    paused, share = _PAUSED.get(command.verb), _SHARED.get(command.verb)
    if paused is None and share is None:
        if not participant.online:
            raise Refused(f"{participant.id} is offline, so nobody could {command.verb}", "see: csp agents")
    elif paused in (None, participant.paused) and share in (None, participant.share):
        return
    else:
        header = draft.header(participant.id, ALL, f"{participant.id}: {command.verb}")
        draft.emit(StateChanged(*header, paused=paused, share=share))
    if participant.online:
        header = draft.message_header(HUMAN, participant.id, command.verb)
        expires = draft.clock + CONTROL_TTL_S
        draft.emit(ControlSent(*header, control=command.verb, expires=expires, choice=command.choice))
