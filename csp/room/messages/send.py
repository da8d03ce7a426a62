"""The rules for messages, their routes, their deliveries."""

import re
from typing import Any, Final

from csp.errors import BadInput, NotFound, Refused, TooMany
from csp.protocol.enums import (
    ALL,
    DEFAULT_THREAD,
    HUMAN,
    NO_TEXT,
    AgentId,
    DeliverKind,
    DeliveryState,
    HeldReason,
    MessageId,
    ParticipantKind,
)
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    HumanMessage,
    MessageEvent,
    Pruned,
    Redacted,
)
from csp.room.commands import (
    CancelMessage,
    PostReply,
    Prune,
    RedactMessage,
    ReleaseMessage,
    ReportDelivery,
    Send,
)
from csp.room.identity import nearest
from csp.room.messages.delivery import may_move
from csp.room.messages.inbox import expired
from csp.room.messages.session_fields import agent_session_fields, person_session_fields
from csp.room.messages.tool_dedupe import Channel, find_duplicate
from csp.room.room_draft import RoomDraft
from csp.room.room_state import ROOM_HOLDS, Message, Room

MAX_HOPS: Final = 8
MAX_QUEUED: Final = 20_000
MAX_QUEUED_CHARS: Final = 16 * 1024 * 1024
#: What may wait in all queues together before agents can add nothing; people still can.
MAX_QUEUED_BY_AGENTS: Final = 200_000
#: Stands for the words of an agent that nobody but people may read yet.
SEALED: Final = "sealed"
OWN_ID: Final = re.compile(r"^[mestn]-\d+\Z")
AgentSpeech = AgentCall | AgentResponse | Activity
#: Why a sidecar may hold a message; the other reasons are the room's own.
SIDECAR_REASONS: Final = frozenset(HeldReason) - {HeldReason.OFFLINE, HeldReason.TURN, HeldReason.LOOP}


def send(room: Room, command: Send, batch: RoomDraft) -> None:
    if command.id is not None and is_repeated(room, command.sender, command.id):
        return
    asked = answered_message(room, command)
    target, recipients = route(room, command)
    kind = AgentResponse if command.reply_to else AgentCall
    sender = room.participants.get(command.sender)
    fields: dict[str, Any] = {"urgent": command.urgent, "reply_to": command.reply_to}
    if sender is not None and not is_person(room, command.sender):
        if known := find_duplicate(sender.sent, Channel.WORDS, (target,), command.text):
            notice_duplicate(batch, command.sender, f"the message to {target}", known)
            return
        # It speaks because of what it works on, as its words would.
        asked = asked or (room.message(sender.heard) if sender.heard else None)
        fields["via"] = Channel.TOOL
        check_share(room, recipients)
    check_queues(room, recipients, command.text, batch)
    confirm_delivery(asked, command, batch)
    post_message(room, command, batch, kind, asked, target, recipients, fields)


def notice_duplicate(batch: RoomDraft, agent: AgentId, what: str, known: MessageId) -> None:
    """Leave a mark where something is not sent, because the same was sent for the same prompt."""
    batch.notice(agent, f"{agent}: {what} was not sent again: {known} has said the same", repeats=known)


def answered_message(room: Room, command: Send | PostReply) -> Message | None:
    """Return the message that is answered, if its sender may know of it at all."""
    message = room.message(command.reply_to) if command.reply_to else None
    if message is None or command.sender in (HUMAN, message.sender) or message.target == ALL:
        return message
    return message if command.sender in message.deliveries else None


def post_message(
    room: Room,
    command: Send | PostReply,
    batch: RoomDraft,
    kind: type[AgentSpeech],
    asked: Message | None,
    target: AgentId,
    recipients: tuple[AgentId, ...],
    fields: dict[str, Any],
) -> None:
    """Append what is said, because of `asked`; the caller has checked the queues of its recipients."""
    is_human = is_person(room, command.sender)
    fields["recipients"] = recipients
    fields["hops"] = 0 if is_human else hops_after(asked)
    fields |= hold_and_expiry(batch, recipients, fields["hops"], command.ttl_s)
    thread = command.thread or (asked.thread if asked else DEFAULT_THREAD)
    speech = HumanMessage if is_human else kind
    if is_human:
        fields |= person_session_fields(batch, thread)
    elif marks := agent_session_fields(batch, command.sender, thread, recipients):
        fields |= marks | {"out_of_turn": speech is AgentResponse}
    batch.add(speech, command.sender, target, command.text, fields, thread=thread, id=command.id)
    ask_about_loop(batch)


def hops_after(asked: Message | None) -> int:
    """Return how many agents have spoken in a row with what an agent says because of `asked`."""
    return asked.hops + 1 if asked else 1


def hold_and_expiry(
    batch: RoomDraft, recipients: tuple[AgentId, ...], hops: int, ttl_s: float | None
) -> dict[str, Any]:
    """Return whether a message is held, when it expires; both only matter to somebody who gets it."""
    held = {"held": HeldReason.LOOP} if recipients and hops > MAX_HOPS else {}
    expires = {"expires": batch.clock + ttl_s} if recipients and ttl_s is not None else {}
    return {**held, **expires}


def is_repeated(room: Room, sender: AgentId, message_id: str) -> bool:
    """Tell whether `sender` has sent this id before; refuse an id that is somebody else's."""
    if OWN_ID.match(message_id):
        raise BadInput(f"id {message_id!r} has the form of the room's own ids", "use a uuid, for example")
    known = room.message(message_id)
    if known is None:
        return False
    if known.sender != sender:
        raise Refused(f"id {message_id!r} is taken by somebody else's message", "use a new id")
    return True


def route(room: Room, command: Send) -> tuple[AgentId, tuple[AgentId, ...]]:
    """Return whom a message is for, who gets it; refuse one that would reach nobody."""
    target = AgentId(command.to.strip().lower())
    if target == ALL:
        return ALL, _everybody_else(room, command)
    if target == command.sender:
        raise BadInput("a message to yourself goes nowhere", "name another participant, or 'all'")
    if target == HUMAN:
        return HUMAN, ()
    if target not in room.participants:
        known = [*room.participants, "human", "all"]
        raise NotFound(f"unknown recipient {command.to!r}", nearest(command.to, known))
    return target, (target,)


def _everybody_else(room: Room, command: Send) -> tuple[AgentId, ...]:
    """Return who is here; a participant that left long ago must not collect what all were told.

    A resend names those it is for, so it waits for them wherever they are.
    """
    return tuple(
        participant.id
        for participant in room.participants.values()
        if participant.id != command.sender
        and (participant.online if command.only is None else participant.id in command.only)
    )


def reply_recipients(room: Room, asked: Message | None, sender: AgentId) -> tuple[AgentId, ...]:
    """Return who gets an answer typed in: the participant that asked, for the first answer alone."""
    # An answer asks for nothing: two agents would thank each other for ever.
    if asked is None or asked.reply_to is not None or asked.sender not in room.participants:
        return ()
    delivery = asked.deliveries.get(sender)
    return (asked.sender,) if delivery is not None and not delivery.answered else ()


def check_queues(room: Room, recipients: tuple[AgentId, ...], text: str, batch: RoomDraft) -> None:
    """Refuse a message that one of its recipients has no room for, after what the batch has for it."""
    for agent in recipients:
        participant = room.participants[agent]
        coming = [
            event.text
            for event in batch.events
            if isinstance(event, MessageEvent) and agent in event.recipients
        ]
        waiting = len(participant.queue) + len(coming)
        chars = participant.queued_chars + sum(map(len, coming)) + len(text)
        if waiting >= MAX_QUEUED or chars > MAX_QUEUED_CHARS:
            hint = f"see what it waits for with: csp status; drop it with: csp remove {agent}"
            raise TooMany(f"{agent} has {waiting} messages waiting, it takes no more", hint)


def check_share(room: Room, recipients: tuple[AgentId, ...]) -> None:
    """Refuse an agent's message when the room holds as many as it keeps for agents."""
    waiting = sum([len(participant.queue) for participant in room.participants.values()])
    if recipients and waiting + len(recipients) > MAX_QUEUED_BY_AGENTS:
        hint = "wait until some have been read; see what they wait for with: csp status"
        raise TooMany(f"{waiting} messages wait in this room, it takes no more from agents", hint)


def confirm_delivery(asked: Message | None, answer: Send | PostReply, batch: RoomDraft) -> None:
    """Note that what is answered has arrived: the answer proves it, unless it has no text."""
    delivery = asked.deliveries.get(answer.sender) if asked else None
    if asked is None or delivery is None or delivery.reason in ROOM_HOLDS:
        return
    if answer.text != NO_TEXT and may_move(delivery.state, DeliveryState.CONFIRMED):
        batch.deliver(asked, answer.sender, DeliveryState.CONFIRMED)


def is_person(room: Room, sender: AgentId) -> bool:
    """Tell whether somebody speaks for a person."""
    participant = room.participants.get(sender)
    return sender == HUMAN or (participant is not None and participant.kind is ParticipantKind.HUMAN)


def ask_about_loop(batch: RoomDraft) -> None:
    """Ask the human about the last message of the batch, if the loop guard holds it."""
    said = batch.events[-1]
    if not isinstance(said, MessageEvent) or said.held != HeldReason.LOOP:
        return
    batch.notice(
        HUMAN,
        f"{said.id} from {said.sender} to {said.target} is one more answer in a long row between agents, "
        f"so it is held. Release it with: csp continue {said.id}",
    )


# --- deliveries ----------------------------------------------------------------------------------


def report(room: Room, command: ReportDelivery, batch: RoomDraft) -> None:
    message = room.message(command.message)
    delivery = message.deliveries.get(command.agent) if message else None
    if message is None or delivery is None:
        # The same words for both, so that nobody can find out which ids there are.
        raise NotFound(
            f"no message {command.message!r} for {command.agent}", "report on what your inbox holds"
        )
    reason = told = _checked_reason(command)
    if command.state is DeliveryState.FAILED and room.sessions.seals_of(command.agent):
        # In a sealed phase the words of an agent are for people alone, whatever it says them of.
        reason = SEALED
    if (delivery.state, delivery.reason) == (command.state, reason):
        return
    if delivery.state is DeliveryState.HELD and delivery.reason == HeldReason.LOOP:
        hint = f"release it with: csp continue {message.id}"
        raise Refused(f"{message.id} is held by the loop guard", hint)
    if delivery.state is DeliveryState.HELD and delivery.reason == HeldReason.TURN:
        raise Refused(f"{message.id} is held for the turn of {command.agent}", "it comes with that turn")
    if not may_move(delivery.state, command.state):
        raise Refused(
            f"{message.id} to {command.agent} cannot go from {delivery.state} to {command.state}",
            "an end is an end; send it as a new message with: csp resend",
        )
    batch.deliver(message, command.agent, command.state, reason)
    if command.state is DeliveryState.FAILED:
        batch.notice(message.sender, f"{message.id} to {command.agent} failed: {reason}")
        if reason != told:
            batch.notice(HUMAN, f"{message.id} to {command.agent} failed: {told}")


def _checked_reason(command: ReportDelivery) -> str:
    if command.state is DeliveryState.HELD:
        if command.reason not in SIDECAR_REASONS:
            expected = ", ".join(sorted(SIDECAR_REASONS))
            raise BadInput(f"unknown reason {command.reason!r} for held", f"expected one of: {expected}")
        return command.reason
    return command.reason or "unknown" if command.state is DeliveryState.FAILED else ""


def cancel(room: Room, command: CancelMessage, batch: RoomDraft) -> None:
    message = _known_message(room, command.message)
    _withdraw(message, batch)
    if not batch.events:
        states = [f"{agent} has it {delivery.state}" for agent, delivery in message.deliveries.items()]
        why = ", ".join(states) or "nobody waits for it"
        raise Refused(f"{message.id} can no longer be withdrawn: {why}", "see what waits with: csp status")


def _withdraw(message: Message, batch: RoomDraft) -> None:
    for agent, delivery in message.deliveries.items():
        if delivery.is_untouched:
            batch.deliver(message, agent, DeliveryState.WITHDRAWN)


def release(room: Room, command: ReleaseMessage, batch: RoomDraft) -> None:
    message = _known_message(room, command.message)
    for agent, delivery in message.deliveries.items():
        if delivery.state is DeliveryState.HELD and delivery.reason == HeldReason.LOOP:
            # The loop guard lets it go; a seal does not.
            is_sealed = room.sessions.is_sealed(message.seals)
            held = (DeliveryState.HELD, HeldReason.TURN) if is_sealed else (DeliveryState.QUEUED, "")
            batch.deliver(message, agent, *held)
    if not batch.events:
        raise Refused(f"{message.id} is not held by the loop guard", "see what waits with: csp status")


def tick(room: Room, batch: RoomDraft) -> None:
    for message, agent in expired(room, batch.clock):
        batch.deliver(message, agent, DeliveryState.EXPIRED)
        what = message.control if message.kind is DeliverKind.CONTROL else message.id
        batch.notice(message.sender, f"{what} to {agent} expired: it was not taken in time")


def redact(room: Room, command: RedactMessage, batch: RoomDraft) -> None:
    message = room.message(command.message)
    if message is not None:
        _withdraw(message, batch)
    message_id = MessageId(command.message)
    text = f"the text of {message_id} was removed"
    batch.add(Redacted, HUMAN, ALL, text, {"message": message_id})


def prune(room: Room, command: Prune, batch: RoomDraft) -> None:
    if command.before > room.seq:
        raise BadInput(f"the journal ends at {room.seq}", "give a smaller sequence number")
    for participant in room.participants.values():
        for message in room.unfinished(participant.queue):
            if message.seq < command.before:
                hint = f"withdraw it with: csp cancel {message.id}"
                raise Refused(f"{message.id} still waits for {participant.id}", hint)
    text = f"everything before {command.before} was removed from the history"
    batch.add(Pruned, HUMAN, ALL, text, {"before": command.before})


def _known_message(room: Room, message_id: str) -> Message:
    message = room.message(message_id)
    if message is None:
        raise NotFound(f"unknown message {message_id!r}", "see: csp history")
    return message
