"""The rules for messages, their routes, their deliveries."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from csp.errors import BadInput, NotFound, Refused, TooMany
from csp.protocol.enums import (
    ALL,
    DEFAULT_THREAD,
    HUMAN,
    NO_TEXT,
    AgentId,
    DeliverKind,
    DeliveryState,
    Ending,
    HeldReason,
    MessageId,
    ParticipantKind,
    SessionId,
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
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import Handoff, Usage
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
from csp.room.messages.delivery import Channel, find_duplicate, may_move
from csp.room.messages.inbox import expired
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
_RECEIVED: Final = "has already received it"
_HAS_IT: Final = {
    DeliveryState.TYPED: _RECEIVED,
    DeliveryState.SUBMITTED: _RECEIVED,
    DeliveryState.CONFIRMED: _RECEIVED,
}
#: Why a sidecar may hold a message; the other reasons are the room's own.
SIDECAR_REASONS: Final = frozenset(HeldReason) - {HeldReason.OFFLINE, HeldReason.TURN, HeldReason.LOOP}


def send(draft: RoomDraft, command: Send) -> None:
    """Post a message, unless it was posted before."""
    room = draft.room
    if command.id is not None and is_repeated(room, command.sender, command.id):
        return
    asked = answered_message(room, command)
    target, recipients = route(room, command)
    sender = room.participants.get(command.sender)
    via = ""
    if sender is not None and not is_person(room, command.sender):
        if known := find_duplicate(sender.sent, Channel.WORDS, (target,), command.text):
            notice_duplicate(draft, command.sender, f"the message to {target}", known)
            return
        # It speaks because of what it works on, as its words would.
        asked = asked or (room.message(sender.heard) if sender.heard else None)
        via = Channel.TOOL
        check_share(room, recipients)
    check_queues(room, recipients, command.text)
    confirm_delivery(draft, asked, command)
    kind = AgentResponse if command.reply_to else AgentCall
    words = AgentWords(reply_to=command.reply_to, urgent=command.urgent, via=via)
    post_message(draft, command, kind, asked, target, recipients, words)


def notice_duplicate(draft: RoomDraft, agent: AgentId, what: str, known: MessageId) -> None:
    """Post a notice where something is not sent, because the same was sent for the same prompt."""
    draft.notice(agent, NoticeCode.NOT_SENT_AGAIN(agent=agent, what=what, message=known), repeats=known)


def answered_message(room: Room, command: Send | PostReply) -> Message | None:
    """Return the message that is answered, if its sender may know of it at all."""
    message = room.message(command.reply_to) if command.reply_to else None
    if message is None or command.sender in (HUMAN, message.sender) or message.target == ALL:
        return message
    return message if command.sender in message.deliveries else None


class AgentWords(NamedTuple):
    """What comes with the text of a message; see the fields of `MessageEvent`."""

    reply_to: MessageId | None = None
    urgent: bool = False
    via: str = ""
    handoff: Handoff | None = None
    final: bool = False
    usage: Usage | None = None
    ending: Ending = Ending.DONE
    repeats: MessageId | None = None


def post_message(
    draft: RoomDraft,
    command: Send | PostReply,
    kind: type[AgentSpeech],
    asked: Message | None,
    target: AgentId,
    recipients: tuple[AgentId, ...],
    words: AgentWords,
) -> None:
    """Emit a message, because of `asked`; the caller has checked the queues of its recipients."""
    is_human = is_person(draft.before, command.sender)
    hops = 0 if is_human else hops_after(asked)
    thread = command.thread or (asked.thread if asked else DEFAULT_THREAD)
    if not is_human:
        marks = _marks_of_agent(draft, command.sender, thread, recipients)
    else:
        # The message of a person is part of the session of its thread.
        session = draft.sessions.live_in(thread) if draft.has_sessions else None
        marks = SessionMarks(session.id if session else None)
    speech = HumanMessage if is_human else kind
    draft.emit(
        speech(
            *draft.message_header(command.sender, target, command.text, thread=thread, id=command.id),
            recipients=recipients,
            reply_to=words.reply_to,
            hops=hops,
            urgent=words.urgent,
            held=hold_reason(recipients, hops),
            expires=expiry(draft, recipients, command.ttl_s),
            handoff=words.handoff,
            final=words.final,
            usage=words.usage,
            ending=words.ending,
            session_id=marks.session,
            sealed=marks.sealed,
            waits=marks.waits,
            out_of_turn=speech is AgentResponse and marks.session is not None,
            via=words.via,
            repeats=words.repeats,
            seals=dict(marks.seals),
        )
    )
    ask_about_loop(draft)


class SessionMarks(NamedTuple):
    """What makes a message beside all turns part of a session; see the fields of `MessageEvent`."""

    session: SessionId | None = None
    sealed: int = 0
    seals: Mapping[SessionId, int] = {}
    waits: tuple[AgentId, ...] = ()


def _marks_of_agent(
    draft: RoomDraft, sender: AgentId, thread: str, recipients: tuple[AgentId, ...]
) -> SessionMarks:
    """Return what makes the message of an agent part of a session that concerns it.

    That is the sealed session that the sender is in, else that of the thread, else any session with the
    sender or a recipient. What a member says in a sealed phase is sealed with it, so nobody gets it before
    the phase ends; who is in two of them waits for both; outsiders know nothing that is sealed. Members of
    the session get what agents say with their next turn: nobody is woken to be thanked.
    """
    if not draft.has_sessions:
        return SessionMarks()
    sessions = draft.sessions
    them = {sender, *recipients}
    found = [one for one in sessions.live() if one.binds(sender) or them & {*one.agents}]
    if not found:
        return SessionMarks()
    session = min(found, key=lambda one: (not one.binds(sender), one.thread != thread))
    members = () if session.setup.soft_turns else session.agents
    seals = sessions.seals_of(sender)
    waits = recipients if seals else tuple(one for one in recipients if one in members)
    return SessionMarks(session.id, seals.pop(session.id, 0), seals, waits)


def hops_after(asked: Message | None) -> int:
    """Return how many agents have spoken in a row with what an agent says because of `asked`."""
    return asked.hops + 1 if asked else 1


def hold_reason(recipients: tuple[AgentId, ...], hops: int) -> str:
    """Return why a message is held at first; only one that somebody gets is."""
    return HeldReason.LOOP if recipients and hops > MAX_HOPS else ""


def expiry(draft: RoomDraft, recipients: tuple[AgentId, ...], ttl_s: float | None) -> float | None:
    """Return when a message expires; only one that somebody gets does."""
    return draft.clock + ttl_s if recipients and ttl_s is not None else None


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
    """Return whom a message is for, who gets it; refuse one that would reach nobody.

    Several names with commas between them are the target of one message that each of them gets.
    """
    target = AgentId(command.to.strip().lower())
    if "," in target:
        return _route_to_several(room, command, target)
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


def _route_to_several(room: Room, command: Send, target: str) -> tuple[AgentId, tuple[AgentId, ...]]:
    routes = [
        route(room, replace(command, to=name))
        for name in dict.fromkeys(word.strip() for word in target.split(",") if word.strip())
    ]
    if not routes:
        raise BadInput(f"expected a recipient, got {command.to!r}", "name a participant, or 'all'")
    if any(to == ALL for to, _ in routes):
        return route(room, replace(command, to=ALL))
    named = AgentId(",".join(to for to, _ in routes))
    everybody = dict.fromkeys(agent for _, recipients in routes for agent in recipients)
    return named, tuple(agent for agent in everybody if command.only is None or agent in command.only)


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


def check_queues(room: Room, recipients: tuple[AgentId, ...], text: str) -> None:
    """Refuse a message that one of its recipients has no space for."""
    for agent in recipients:
        participant = room.participants[agent]
        waiting = len(participant.queue)
        if waiting >= MAX_QUEUED or participant.queued_chars + len(text) > MAX_QUEUED_CHARS:
            hint = f"see what it waits for with: csp status; drop it with: csp remove {agent}"
            raise TooMany(f"{agent} has {waiting} messages waiting, it takes no more", hint)


def check_share(room: Room, recipients: tuple[AgentId, ...]) -> None:
    """Refuse an agent's message when the room holds as many as it keeps for agents."""
    waiting = sum([len(participant.queue) for participant in room.participants.values()])
    if recipients and waiting + len(recipients) > MAX_QUEUED_BY_AGENTS:
        hint = "wait until some have been read; see what they wait for with: csp status"
        raise TooMany(f"{waiting} messages wait in this room, it takes no more from agents", hint)


def confirm_delivery(draft: RoomDraft, asked: Message | None, answer: Send | PostReply) -> None:
    """Note that what is answered has arrived: the answer proves it, unless it has no text."""
    delivery = asked.deliveries.get(answer.sender) if asked else None
    if asked is None or delivery is None or delivery.reason in ROOM_HOLDS:
        return
    if answer.text != NO_TEXT and may_move(delivery.state, DeliveryState.CONFIRMED):
        draft.move_delivery(asked, answer.sender, DeliveryState.CONFIRMED)


def is_person(room: Room, sender: AgentId) -> bool:
    """Tell whether somebody speaks for a person."""
    participant = room.participants.get(sender)
    return sender == HUMAN or (participant is not None and participant.kind is ParticipantKind.HUMAN)


def ask_about_loop(draft: RoomDraft) -> None:
    """Ask the human about the last message of the draft, if the loop guard holds it."""
    said = draft.events[-1]
    if not isinstance(said, MessageEvent) or said.held != HeldReason.LOOP:
        return
    draft.notice(HUMAN, NoticeCode.LOOP_HELD(message=said.id, sender=said.sender, target=said.target))


# --- deliveries ----------------------------------------------------------------------------------


def report(draft: RoomDraft, command: ReportDelivery) -> None:
    message = draft.room.message(command.message)
    delivery = message.deliveries.get(command.agent) if message else None
    if message is None or delivery is None:
        # The same words for both, so that nobody can find out which ids there are.
        raise NotFound(
            f"no message {command.message!r} for {command.agent}", "report on what your inbox holds"
        )
    reason = told = _checked_reason(command)
    if command.state is DeliveryState.FAILED and draft.sessions.seals_of(command.agent):
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
            "a finished delivery cannot be changed; use csp resend",
        )
    draft.move_delivery(message, command.agent, command.state, reason)
    if command.state is DeliveryState.FAILED:
        _tell_failed(draft, message.sender, command, reason)
        if reason != told:
            _tell_failed(draft, HUMAN, command, told)


def _tell_failed(draft: RoomDraft, target: AgentId, report: ReportDelivery, reason: str) -> None:
    message, agent = report.message, report.agent
    draft.notice(target, NoticeCode.DELIVERY_FAILED(message=message, agent=agent, reason=reason))


def _checked_reason(command: ReportDelivery) -> str:
    if command.state is DeliveryState.HELD:
        if command.reason not in SIDECAR_REASONS:
            expected = ", ".join(sorted(SIDECAR_REASONS))
            raise BadInput(f"unknown reason {command.reason!r} for held", f"expected one of: {expected}")
        return command.reason
    return command.reason or "unknown" if command.state is DeliveryState.FAILED else ""


def cancel(draft: RoomDraft, command: CancelMessage) -> None:
    message = _known_message(draft.room, command.message)
    _withdraw(draft, message)
    if not draft.events:
        states = {agent: delivery.state for agent, delivery in message.deliveries.items()}
        if states and set(states.values()) == {DeliveryState.WITHDRAWN}:
            raise Refused(f"{message.id} is already cancelled")
        why = ", ".join(f"{agent} {_HAS_IT.get(state, state)}" for agent, state in states.items())
        hint = "see what waits with: csp status"
        raise Refused(f"too late to cancel {message.id}: {why or 'nobody waits for it'}", hint)


def _withdraw(draft: RoomDraft, message: Message) -> None:
    for agent, delivery in message.deliveries.items():
        if delivery.is_untouched:
            draft.move_delivery(message, agent, DeliveryState.WITHDRAWN)


def release(draft: RoomDraft, command: ReleaseMessage) -> None:
    message = _known_message(draft.room, command.message)
    for agent, delivery in message.deliveries.items():
        if delivery.state is DeliveryState.HELD and delivery.reason == HeldReason.LOOP:
            # The loop guard lets it go; a seal does not.
            is_sealed = draft.sessions.is_sealed(message.seals)
            held = (DeliveryState.HELD, HeldReason.TURN) if is_sealed else (DeliveryState.QUEUED, "")
            draft.move_delivery(message, agent, *held)
    if not draft.events:
        raise Refused(f"{message.id} is not held by the loop guard", "see what waits with: csp status")


def tick(draft: RoomDraft) -> None:
    for message, agent in expired(draft.room, draft.clock):
        draft.move_delivery(message, agent, DeliveryState.EXPIRED)
        words = NoticeCode.DELIVERY_EXPIRED(message=message.id, agent=agent)
        if message.kind is DeliverKind.CONTROL:
            words = NoticeCode.CONTROL_EXPIRED(message=message.id, control=str(message.control), agent=agent)
        draft.notice(message.sender, words)


def redact(draft: RoomDraft, command: RedactMessage) -> None:
    message = draft.room.message(command.message)
    if message is not None:
        _withdraw(draft, message)
    message_id = MessageId(command.message)
    text = f"the text of {message_id} was removed"
    draft.emit(Redacted(*draft.header(HUMAN, ALL, text), message=message_id))


def prune(draft: RoomDraft, command: Prune) -> None:
    if command.before > draft.room.seq:
        raise BadInput(f"the journal ends at {draft.room.seq}", "give a smaller sequence number")
    for participant in draft.room.participants.values():
        for message in draft.room.unfinished(participant.queue):
            if message.seq < command.before:
                hint = f"withdraw it with: csp cancel {message.id}"
                raise Refused(f"{message.id} still waits for {participant.id}", hint)
    text = f"everything before {command.before} was removed from the history"
    draft.emit(Pruned(*draft.header(HUMAN, ALL, text), before=command.before))


def _known_message(room: Room, message_id: str) -> Message:
    message = room.message(message_id)
    if message is None:
        raise NotFound(f"unknown message {message_id!r}", "see: csp history")
    return message
