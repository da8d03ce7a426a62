"""Rules for messages: their routes, their deliveries, and the deadlines for acting on them."""

import math
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice, repeat, takewhile
from typing import Final, TypedDict

from csp.errors import BadInput, NotFound, Refused, TooMany
from csp.protocol import events
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
    SessionId,
)
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import Handoff, Usage
from csp.protocol.responses import Deliver, DeliveryView
from csp.room import commands
from csp.room.duplicate_messages import find_duplicate, is_repeated, notice_duplicate
from csp.room.recipients import route
from csp.room.room_draft import RoomDraft
from csp.room.room_state import ROOM_HOLDS, Channel, Message, Participant, Room, may_move
from csp.room.sessions.turn_prompt import handoffs

MAX_HOPS: Final = 8
MAX_QUEUED: Final = 20_000
MAX_QUEUED_CHARS: Final = 16 * 1024 * 1024
#: Maximum number of deliveries waiting in all queues; beyond it, only people can add more.
MAX_QUEUED_BY_AGENTS: Final = 200_000
#: Replaces an agent's text that so far only people may read.
SEALED: Final = "sealed"
AgentSpeech = events.AgentCall | events.AgentResponse | events.Activity
#: Reasons for which a sidecar may hold a message; the others are used only by the room.
SIDECAR_REASONS: Final = frozenset(HeldReason) - {HeldReason.OFFLINE, HeldReason.TURN, HeldReason.LOOP}


def send(draft: RoomDraft, command: commands.Send) -> None:
    """Post a message unless it was posted before."""
    room = draft.room
    if command.id is not None and is_repeated(room, command.sender, command.id):
        return
    asked = answered_message(room, command)
    target, recipients = route(room, command)
    sender = room.participants.get(command.sender)
    via = ""
    if sender is not None and not room.is_person(command.sender):
        if known := find_duplicate(sender.sent, Channel.WORDS, (target,), command.text):
            notice_duplicate(draft, command.sender, f"the message to {target}", known)
            return
        # It sends because of its current prompt, just as when it prints text.
        asked = asked or (room.message(sender.heard) if sender.heard else None)
        via = Channel.TOOL
        check_share(room, recipients)
    check_queues(room, recipients, command.text)
    confirm_delivery(draft, asked, command)
    kind = events.AgentResponse if command.reply_to else events.AgentCall
    words = AgentWords(reply_to=command.reply_to, urgent=command.urgent, via=via)
    post_message(draft, command, kind, asked, target, recipients, words)


def answered_message(room: Room, command: commands.Words) -> Message | None:
    """Return the message that is being answered, if the sender may know about it."""
    message = room.message(command.reply_to) if command.reply_to else None
    if message is None or command.sender in (HUMAN, message.sender) or message.target == ALL:
        return message
    return message if command.sender in message.deliveries else None


class AgentWords(TypedDict, total=False):
    """The fields of a message other than its text; see `MessageEvent`."""

    reply_to: MessageId | None
    urgent: bool
    via: str
    handoff: Handoff | None
    final: bool
    usage: Usage | None
    ending: Ending
    repeats: MessageId | None


def post_message(
    draft: RoomDraft,
    command: commands.Words,
    kind: type[AgentSpeech],
    asked: Message | None,
    target: AgentId,
    recipients: tuple[AgentId, ...],
    words: AgentWords,
) -> None:
    """Emit a message caused by `asked`; the caller has checked the recipients' queues."""
    is_human = draft.before.is_person(command.sender)
    hops = 0 if is_human else hops_after(asked)
    thread = command.thread or (asked.thread if asked else DEFAULT_THREAD)
    if not is_human:
        marks = _marks_of_agent(draft, command.sender, thread, recipients)
    else:
        # A person's message is part of the session of its thread.
        session = draft.sessions.live_in(thread) if draft.has_sessions else None
        marks = SessionMarks(session_id=session.id if session else None)
    speech = events.HumanMessage if is_human else kind
    draft.emit(
        speech(
            *draft.message_header(command.sender, target, command.text, thread=thread, id=command.id),
            recipients=recipients,
            hops=hops,
            held=hold_reason(recipients, hops),
            expires=expiry(draft, recipients, command.ttl_s),
            out_of_turn=speech is events.AgentResponse and marks.get("session_id") is not None,
            **words,
            **marks,
        )
    )
    ask_about_loop(draft)


class SessionMarks(TypedDict, total=False):
    """The fields that assign a message outside a turn to a session; see `MessageEvent`."""

    session_id: SessionId | None
    sealed: int
    seals: dict[SessionId, int]
    waits: tuple[AgentId, ...]


def _marks_of_agent(
    draft: RoomDraft, sender: AgentId, thread: str, recipients: tuple[AgentId, ...]
) -> SessionMarks:
    """Return the fields that assign an agent's message to the session that it concerns.

    That is the sender's sealed session, else the thread's session, else any session with the sender
    or a recipient. A message that a member sends in a sealed phase is sealed: nobody gets it before the phase
    ends. A member of two sealed phases waits for both. Outsiders see nothing that is sealed. Members of the
    session get agents' messages with their next turn, so that a thank-you wakes nobody.
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
    sealed = seals.pop(session.id, 0)
    return SessionMarks(session_id=session.id, sealed=sealed, seals=seals, waits=waits)


def hops_after(asked: Message | None) -> int:
    """Return how many agents in a row have spoken, including the one now speaking because of `asked`."""
    return asked.hops + 1 if asked else 1


def hold_reason(recipients: tuple[AgentId, ...], hops: int) -> str:
    """Return the reason why a new message is held; only a message with recipients can be held."""
    return HeldReason.LOOP if recipients and hops > MAX_HOPS else ""


def expiry(draft: RoomDraft, recipients: tuple[AgentId, ...], ttl_s: float | None) -> float | None:
    """Return when a message expires; only a message with recipients expires."""
    return draft.clock + ttl_s if recipients and ttl_s is not None else None


def reply_recipients(room: Room, asked: Message | None, sender: AgentId) -> tuple[AgentId, ...]:
    """Return the recipient of a typed answer: the participant that asked, for the first answer only."""
    # An answer does not request another one: otherwise two agents would thank each other forever.
    if asked is None or asked.reply_to is not None or asked.sender not in room.participants:
        return ()
    delivery = asked.deliveries.get(sender)
    return (asked.sender,) if delivery is not None and not delivery.answered else ()


def check_queues(room: Room, recipients: tuple[AgentId, ...], text: str) -> None:
    """Raise TooMany if a recipient's queue is full."""
    for agent in recipients:
        participant = room.participants[agent]
        waiting = len(participant.queue)
        if waiting >= MAX_QUEUED or participant.queued_chars + len(text) > MAX_QUEUED_CHARS:
            hint = f"see why they wait with: csp status; drop them with: csp remove {agent}"
            raise TooMany(f"{agent} has {waiting} messages waiting and accepts no more", hint)


def check_share(room: Room, recipients: tuple[AgentId, ...]) -> None:
    """Raise TooMany if the room already contains the maximum number of messages from agents."""
    waiting = sum([len(participant.queue) for participant in room.participants.values()])
    if recipients and waiting + len(recipients) > MAX_QUEUED_BY_AGENTS:
        hint = "wait until some have been read; see why they wait with: csp status"
        raise TooMany(f"{waiting} messages are waiting in this room, which accepts no more from agents", hint)


def confirm_delivery(draft: RoomDraft, asked: Message | None, answer: commands.Words) -> None:
    """Record that the answered message has arrived, which an answer proves unless it has no text."""
    delivery = asked.deliveries.get(answer.sender) if asked else None
    if asked is None or delivery is None or delivery.reason in ROOM_HOLDS:
        return
    if answer.text != NO_TEXT and may_move(delivery.state, DeliveryState.CONFIRMED):
        draft.move_delivery(asked, answer.sender, DeliveryState.CONFIRMED)


def ask_about_loop(draft: RoomDraft) -> None:
    """Ask the human about the draft's last message if the loop guard holds it."""
    said = draft.events[-1]
    if not isinstance(said, events.MessageEvent) or said.held != HeldReason.LOOP:
        return
    draft.notice(HUMAN, NoticeCode.LOOP_HELD(message=said.id, sender=said.sender, target=said.target))


# --- deliveries ----------------------------------------------------------------------------------


def report(draft: RoomDraft, command: commands.ReportDelivery) -> None:
    message = draft.room.message(command.message)
    delivery = message.deliveries.get(command.agent) if message else None
    if message is None or delivery is None:
        # Both cases have the same text, so that it does not reveal which ids exist.
        raise NotFound(f"no message {command.message!r} for {command.agent}", "report on your own inbox")
    reason = told = _checked_reason(command)
    if command.state is DeliveryState.FAILED and draft.sessions.seals_of(command.agent):
        # In a sealed phase, an agent's own text is for people only, so the sender gets a neutral reason.
        reason = SEALED
    if (delivery.state, delivery.reason) == (command.state, reason):
        return
    if delivery.state is DeliveryState.HELD and delivery.reason == HeldReason.LOOP:
        hint = f"release it with: csp continue {message.id}"
        raise Refused(f"{message.id} is held by the loop guard", hint)
    if delivery.state is DeliveryState.HELD and delivery.reason == HeldReason.TURN:
        raise Refused(f"{message.id} is held for {command.agent}'s turn", "it is delivered with that turn")
    if not may_move(delivery.state, command.state):
        problem = f"{message.id} to {command.agent} cannot go from {delivery.state} to {command.state}"
        raise Refused(problem, "a finished delivery cannot be changed; use csp resend")
    draft.move_delivery(message, command.agent, command.state, reason)
    if command.state is DeliveryState.FAILED:
        _tell_failed(draft, message.sender, command, reason)
        if reason != told:
            _tell_failed(draft, HUMAN, command, told)


def _tell_failed(draft: RoomDraft, target: AgentId, report: commands.ReportDelivery, reason: str) -> None:
    message, agent = report.message, report.agent
    draft.notice(target, NoticeCode.DELIVERY_FAILED(message=message, agent=agent, reason=reason))


def _checked_reason(command: commands.ReportDelivery) -> str:
    if command.state is DeliveryState.HELD:
        if command.reason not in SIDECAR_REASONS:
            expected = ", ".join(sorted(SIDECAR_REASONS))
            raise BadInput(f"unknown reason {command.reason!r} for held", f"expected one of: {expected}")
        return command.reason
    return command.reason or "unknown" if command.state is DeliveryState.FAILED else ""


def cancel(draft: RoomDraft, command: commands.CancelMessage) -> None:
    message = _known_message(draft.room, command.message)
    _withdraw(draft, message)
    if not draft.events:
        if {delivery.state for delivery in message.deliveries.values()} == {DeliveryState.WITHDRAWN}:
            raise Refused(f"#{message.seq} is already cancelled")
        states = [f"{agent} {delivery.outcome}" for agent, delivery in message.deliveries.items()]
        why = ", ".join(states) or "no recipient is waiting for it"
        raise Refused(f"too late to cancel #{message.seq}: {why}", "see the queue with: csp status")


def _withdraw(draft: RoomDraft, message: Message) -> None:
    for agent, delivery in message.deliveries.items():
        if delivery.is_untouched:
            draft.move_delivery(message, agent, DeliveryState.WITHDRAWN)


def release(draft: RoomDraft, command: commands.ReleaseMessage) -> None:
    message = _known_message(draft.room, command.message)
    for agent, delivery in message.deliveries.items():
        if delivery.state is DeliveryState.HELD and delivery.reason == HeldReason.LOOP:
            # This releases a message from the loop guard, but not from a seal.
            is_sealed = draft.sessions.is_sealed(message.seals)
            held = (DeliveryState.HELD, HeldReason.TURN) if is_sealed else (DeliveryState.QUEUED, "")
            draft.move_delivery(message, agent, *held)
    if not draft.events:
        raise Refused(f"#{message.seq} is not held by the loop guard", "see the queue with: csp status")


def tick(draft: RoomDraft) -> None:
    for message, agent in expired(draft.room, draft.clock):
        draft.move_delivery(message, agent, DeliveryState.EXPIRED)
        words = NoticeCode.DELIVERY_EXPIRED(message=message.id, agent=agent)
        if message.kind is DeliverKind.CONTROL:
            words = NoticeCode.CONTROL_EXPIRED(message=message.id, control=str(message.control), agent=agent)
        draft.notice(message.sender, words)


def redact(draft: RoomDraft, command: commands.RedactMessage) -> None:
    message = draft.room.message(command.message)
    if message is not None:
        _withdraw(draft, message)
    message_id = MessageId(command.message)
    text = f"the text of {message_id} was removed"
    draft.emit(events.Redacted(*draft.header(HUMAN, ALL, text), message=message_id))


def prune(draft: RoomDraft, command: commands.Prune) -> None:
    if command.before > draft.room.seq:
        raise BadInput(f"the journal ends at {draft.room.seq}", "give a smaller sequence number")
    for participant in draft.room.participants.values():
        for message in draft.room.unfinished(participant.queue):
            if message.seq < command.before:
                hint = f"withdraw it with: csp cancel {message.id}"
                raise Refused(f"{message.id} still waits for {participant.id}", hint)
    text = f"the history before {command.before} was removed"
    draft.emit(events.Pruned(*draft.header(HUMAN, ALL, text), before=command.before))


def _known_message(room: Room, message_id: str) -> Message:
    message = room.message(message_id)
    if message is None:
        raise NotFound(f"unknown message {message_id!r}", "see: csp history")
    return message


# --- pending deliveries --------------------------------------------------------------------------


def is_due(participant: Participant, message: Message) -> bool:
    """Return whether `participant` should act on a message in its queue now."""
    if message.kind is DeliverKind.CONTROL:
        return True
    return not participant.paused and message.deliveries[participant.id].reason not in ROOM_HOLDS


def pending(room: Room, agent: AgentId, *, after: int = 0, upto: int | None = None) -> Iterator[Deliver]:
    """Yield the messages that `agent` should act on, controls first, otherwise in journal order.

    `upto` is the last event that is safely on disk: nobody may act on an event that could still be lost.
    """
    participant = room.participants[agent]
    last = room.seq if upto is None else upto
    for ids in (participant.controls, participant.queue):
        for message in room.unfinished(newer(ids, after)):
            if message.seq <= last and is_due(participant, message):
                yield to_deliver(room, message, agent)


def newer(queue: dict[MessageId, int], after: int) -> Iterable[MessageId]:
    """Return the messages that were queued after a seq, oldest first."""
    # A queue may be long even if the reader has seen nearly all of it, so search from its end.
    newest_first = takewhile(lambda message_id: queue[message_id] > after, reversed(queue))
    return list(newest_first)[::-1]


def first_held(room: Room, agent: AgentId, after: int = 0) -> int | None:
    """Return the seq of the oldest message after `after` that `agent` cannot act on now."""
    participant = room.participants[agent]
    waiting = room.unfinished(newer(participant.queue, after))
    return next((message.seq for message in waiting if not is_due(participant, message)), None)


def oldest_waiting(room: Room, limit: int) -> list[tuple[Message, AgentId]]:
    """Return the oldest waiting deliveries of all queues, in journal order."""
    # Queues may be long, but each is in order, so read only as much of them as is returned.
    agents = list(room.participants)
    queues = (
        zip(queue.values(), repeat(number), queue)
        for number, participant in enumerate(room.participants.values())
        for queue in (participant.controls, participant.queue)
    )
    oldest = islice(merge(*queues), limit)
    return [(next(room.unfinished((message_id,))), agents[number]) for _, number, message_id in oldest]


def to_deliver(room: Room, message: Message, agent: AgentId) -> Deliver:
    """Return a message as delivered to its recipient, including the turn signal of the wire protocol."""
    is_turn = message.kind is DeliverKind.TURN
    signal = current = None
    live = next(iter(room.sessions.live_with(agent)), None)
    if live is not None and message.kind is not DeliverKind.CONTROL:
        is_asked = is_turn or agent in live.turns
        signal, current = ("your_turn", agent) if is_asked else ("turn_wait", live.current)
    # The fields that describe the expected reply, while the turn is open.
    session = room.sessions.get(message.session) if is_turn else None
    turn = session.turns.get(agent) if session else None
    is_open = turn is not None and turn.id == message.turn
    return Deliver(
        id=message.id,
        seq=message.seq,
        kind=message.kind,
        sender=message.sender,
        text=message.text,
        urgent=message.urgent,
        state=message.deliveries[agent].state,
        thread=message.thread,
        reply_to=message.reply_to,
        control=message.control,
        choice=message.choice,
        about=message.about,
        turn=message.turn,
        turn_signal=signal,
        current_turn=current,
        ending=message.ending,
        handoff_to=handoffs(session, agent) if session and is_open else (),
        is_repair=turn.is_repair if turn and is_open else False,
        max_output=turn.max_output if turn and is_open else None,
    )


def next_deadline(room: Room) -> float | None:
    """Return when the next delivery expires."""
    times = (message.expires for message, _ in _expiring(room) if message.expires is not None)
    return min(times, default=None)


def expired(room: Room, now: float) -> list[tuple[Message, AgentId]]:
    """Return the deliveries that have expired."""
    return [(m, agent) for m, agent in _expiring(room, now) if m.expires is not None and m.expires <= now]


def _expiring(room: Room, now: float = -math.inf) -> Iterator[tuple[Message, AgentId]]:
    # Messages have equal lifetimes, so the first one in a queue that is valid at `now` ends the search. Turn
    # requests have their own deadlines, and typed ones no longer expire. Controls are few: check all.
    for agent, participant in room.participants.items():
        for message in room.unfinished(participant.controls):
            if message.deliveries[agent].is_untouched:
                yield message, agent
        for message in room.unfinished(participant.queue):
            if message.expires is not None and message.deliveries[agent].is_untouched:
                yield message, agent
                if message.expires > now:
                    break


def delivery_view(room: Room, message: Message, agent: AgentId) -> DeliveryView:
    """Return the state of one delivery, with the room's own reason if it is waiting."""
    delivery = message.deliveries[agent]
    state, reason = delivery.state, delivery.reason
    participant = room.participants.get(agent)
    if state is DeliveryState.HELD and reason not in ROOM_HOLDS and participant and not participant.online:
        # The reason reported by the sidecar is outdated, because the CLI has gone.
        reason = HeldReason.OFFLINE
    elif state is DeliveryState.QUEUED and participant is not None:
        if not participant.online:
            state, reason = DeliveryState.HELD, HeldReason.OFFLINE
        elif participant.paused and message.kind is not DeliverKind.CONTROL:
            state, reason = DeliveryState.HELD, HeldReason.PAUSED
        elif message.id in participant.queue:
            # A message that is not next in the queue waits for the same reason as the next one.
            due = (waiting for waiting in room.unfinished(participant.queue) if is_due(participant, waiting))
            first = next(due, message)
            ahead = first.deliveries[agent]
            if first is not message and ahead.state is not DeliveryState.QUEUED:
                state, reason = DeliveryState.HELD, ahead.reason or HeldReason.BUSY
    return DeliveryView(state=state, at=delivery.at, reason=reason or None)
