"""The rules for coming, going, being controlled."""

from typing import Any, Final

from csp.errors import NotFound, Refused, TooMany
from csp.protocol.enums import ALL, HUMAN, AgentId, AgentState, ControlVerb, DeliveryState, NoticeKind
from csp.protocol.events import ControlSent, Joined, Left, StateChanged
from csp.protocol.requests import AgentNotice
from csp.room.commands import ControlAgent, Join, Leave, Rejoin, Remove, SetState
from csp.room.identity import nearest, numbered, to_id
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Participant, Room

MAX_PARTICIPANTS: Final = 1000
#: A button pressed long ago must not approve what is on the screen now.
CONTROL_TTL_S: Final = 30.0

#: Buttons that change what the room remembers of a participant; the others need it online.
LASTING: Final[dict[ControlVerb, tuple[str, bool]]] = {
    ControlVerb.PAUSE: ("paused", True),
    ControlVerb.RESUME: ("paused", False),
    ControlVerb.SHARE: ("share", True),
    ControlVerb.NOSHARE: ("share", False),
}

#: How a notice of an agent reads.
_NOTICES: Final = {
    NoticeKind.UNTESTED_VERSION: (
        "{agent} runs {detail}; messages are still checked, some states may not be recognised"
    ),
    NoticeKind.DISK_FULL: (
        "{agent}: no space is left in {detail}; the agent keeps running, but events from "
        "its hooks are lost until there is"
    ),
    NoticeKind.FILE_ATTACHED: (
        "ATTENTION: {agent} was given a file that no message asked for: {detail}. It is paused, so nothing "
        "more is typed into its pane. Look at the pane, then release it with: csp resume {agent}"
    ),
    NoticeKind.PAST_THE_ROOM: (
        "{agent} tried to write to {detail} past the room; only what goes through the room is delivered"
    ),
}


def known_participant(room: Room, agent: str) -> Participant:
    """Return a participant, or say who is known."""
    participant = room.participants.get(AgentId(agent))
    if participant is None:
        raise NotFound(f"unknown agent {agent!r}", nearest(agent, list(room.participants)))
    return participant


def join(room: Room, command: Join, batch: RoomDraft) -> None:
    agent = _launched(room, command.launch) or _free_id(room, to_id(command.name, command.role))
    before = room.participants.get(agent)
    if before is None and len(room.participants) >= MAX_PARTICIPANTS:
        raise TooMany(f"the room has {MAX_PARTICIPANTS} participants", "remove some with: csp remove AGENT")
    fields = {
        "name": command.name,
        "kind": command.kind,
        "role": command.role,
        "epoch": (before.epoch if before else room.epochs.get(agent, 0)) + 1,
        "capabilities": command.capabilities,
        "launch": command.launch,
    }
    batch.add(Joined, agent, ALL, f"{agent} joined", fields)


def _launched(room: Room, launch: str) -> AgentId | None:
    """Return who joined by this launch: a sidecar that was killed right after it joined gets its id back."""
    if not launch:
        return None
    return next((known.id for known in room.participants.values() if known.launch == launch), None)


def _free_id(room: Room, wanted: AgentId) -> AgentId:
    number = 1
    while True:
        agent = numbered(wanted, number)
        owner = room.participants.get(agent)
        if owner is None or not owner.online:
            return agent
        number += 1


def come_back(room: Room, command: Rejoin, batch: RoomDraft) -> None:
    known = known_participant(room, command.agent)
    # In a sealed phase an agent tells the others nothing, not even what it can do now.
    is_kept = command.capabilities is None or room.sessions.seals_of(known.id)
    capabilities = known.capabilities if is_kept else command.capabilities
    is_new = command.launch not in ("", known.launch)
    if known.online and capabilities == known.capabilities and not is_new:
        return
    fields = {
        "name": known.name,
        "kind": known.kind,
        "role": known.role,
        # What a sidecar that was killed has left running must not speak for the one after it.
        "epoch": known.epoch + is_new,
        "capabilities": capabilities,
        "launch": command.launch,
    }
    batch.add(Joined, known.id, ALL, f"{known.id} is back", fields)
    if is_new and known.share:
        batch.add(StateChanged, known.id, ALL, f"{known.id}: {ControlVerb.SHARE}", {"share": True})


def leave(room: Room, command: Leave, batch: RoomDraft) -> None:
    participant = known_participant(room, command.agent)
    if participant.online:
        text = f"{participant.id} left: {command.reason}"
        batch.add(Left, participant.id, ALL, text, {"reason": command.reason})


def remove(room: Room, command: Remove, batch: RoomDraft) -> None:
    participant = known_participant(room, command.agent)
    for ids in (participant.controls, participant.queue):
        for message in room.unfinished(ids):
            if message.deliveries[participant.id].is_untouched:
                batch.deliver(message, participant.id, DeliveryState.WITHDRAWN)
            else:
                batch.deliver(message, participant.id, DeliveryState.FAILED, "removed")
    fields = {"reason": "removed", "removed": True}
    batch.add(Left, participant.id, ALL, f"{participant.id} was removed", fields)


def set_state(room: Room, command: SetState, batch: RoomDraft) -> None:
    participant = known_participant(room, command.agent)
    if command.notice is not None:
        _tell(participant, command.notice, batch)
    seals = room.sessions.seals_of(command.agent) if command.detail else {}
    if command.state is AgentState.OFFLINE:
        reason = "closed" if seals or not command.detail else command.detail
        if seals and participant.online:
            batch.notice(HUMAN, f"{participant.id} left: {command.detail}")
        leave(room, Leave(agent=command.agent, reason=reason), batch)
        return
    new = (command.state, command.detail, command.until, command.dialog)
    if (participant.state, participant.detail, participant.until, participant.dialog) == new:
        return
    text = f"{participant.id} is {command.state}" + (f": {command.detail}" if command.detail else "")
    fields = dict(zip(("state", "detail", "until", "dialog"), new, strict=True))
    batch.add(StateChanged, participant.id, ALL, text, fields | {"seals": seals})


def _tell(participant: Participant, notice: AgentNotice, batch: RoomDraft) -> None:
    """Tell people alone: what a detail says may be sealed for other agents."""
    text = _NOTICES[notice.kind].format(agent=participant.id, detail=notice.detail)
    batch.notice(HUMAN, text)
    if notice.kind is NoticeKind.FILE_ATTACHED and not participant.paused:
        batch.add(StateChanged, participant.id, ALL, f"{participant.id}: pause", {"paused": True})


def control(room: Room, command: ControlAgent, batch: RoomDraft) -> None:
    participant = known_participant(room, command.agent)
    lasting = LASTING.get(command.verb)
    if lasting is None and not participant.online:
        raise Refused(f"{participant.id} is offline, so nobody could {command.verb}", "see: csp agents")
    if lasting is not None:
        name, value = lasting
        if getattr(participant, name) == value:
            return
        batch.add(StateChanged, participant.id, ALL, f"{participant.id}: {command.verb}", {name: value})
    if participant.online:
        fields: dict[str, Any] = {"control": command.verb, "expires": batch.clock + CONTROL_TTL_S}
        batch.add(ControlSent, HUMAN, participant.id, command.verb, fields | {"choice": command.choice})
