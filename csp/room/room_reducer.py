"""Apply events to a room's state.

`apply` is the only way to change a room. It updates the room in place and returns it: the gateway owns one
room, and a copy per event would cost more than the event. It never fails: an event about an unknown
participant, whose own event was on a damaged line, is skipped.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from msgspec.structs import replace

from csp.protocol import events
from csp.protocol.enums import (
    HUMAN,
    PENDING,
    UNDELIVERED,
    AgentId,
    AgentState,
    ControlVerb,
    DeliverKind,
    DeliveryState,
    HeldReason,
)
from csp.protocol.requests import Usage
from csp.protocol.session_parts import TurnState
from csp.room.dialogs import is_same_dialog
from csp.room.room_state import (
    KEPT_SENT,
    Channel,
    Delivery,
    Message,
    Participant,
    Query,
    Question,
    Room,
    SentMessage,
    fingerprints,
    is_pending,
    load,
)
from csp.room.sessions.session_state import (
    MOST_UNDER_WAY,
    RunningUsage,
    spend,
    without,
)
from csp.room.visibility import seals_on

#: Number of messages remembered, to detect duplicates and look up their states without reading the disk.
WINDOW: Final = 10_000
#: How much of an agent's question is remembered: its end, which contains the question mark.
MAX_QUESTION: Final = 300
#: Number of calls remembered per caller, to answer repeated ones.
KEPT_CALLS: Final = 200


def replay(journal: Iterable[events.AnyEvent], room: Room | None = None) -> Room:
    """Return the room after the events of `journal`."""
    current = Room() if room is None else room
    for event in journal:
        current = apply(current, event)
    return current


def apply(room: Room, event: events.AnyEvent) -> Room:  # noqa: C901  # one case for each event
    """Return the room after `event`; the given room must not be used afterwards."""
    match event:
        case events.MessageEvent():
            _said(room, event)
        case events.DeliveryMoved():
            _delivered(room, event)
        case events.Joined():
            _joined(room, event)
        case events.Left():
            _left(room, event)
        case events.StateChanged():
            _state_changed(room, event)
        case events.ControlSent():
            _control_sent(room, event)
        case events.Redacted():
            _redacted(room, event)
        case events.LogRequested():
            if event.sender in room.participants:
                room.queries[event.id] = Query(
                    event.seq, event.sender, event.thread, event.count, event.reply_to, event.hops
                )
        case events.PrunedBase():
            room = load(bytes(event.state))
        case events.RunEvent():
            room.runs.apply(event)
        case events.LateReply():
            _paid(room, event)
        case events.NoticePosted():
            # A sent message can match only one repetition, so it is removed after the match.
            participant = room.participant_to_change(event.target) if event.repeats is not None else None
            if participant is not None:
                participant.sent = tuple(one for one in participant.sent if one.id != event.repeats)
        case events.UsageSeen():
            room.under_way = room.under_way | {event.turn: RunningUsage(event.sender, event.usage)}
            _note_context(room, event.sender, event.usage)
            if len(room.under_way) > MOST_UNDER_WAY:
                oldest, lost = next(iter(room.under_way.items()))
                room.spent = spend(room.spent, lost.agent, lost.usage)
                room.under_way = without(room.under_way, oldest)
        case events.TurnMoved():
            if event.state is TurnState.REPLIED:
                _prompt_is_over(room, event.agent)
        case events.CallRecorded():
            known = {**room.calls.get(event.sender, {}), event.key: event.answer}
            if len(known) > KEPT_CALLS:
                del known[next(iter(known))]
            room.calls[event.sender] = known
        case (
            events.Pruned()
            | events.Unknown()
            | events.ModeChanged()
            | events.Voted()
            | events.NoteAdded()
            | events.BoardChanged()
        ):
            pass
        case _:
            assert_never(event)
    room.sessions.apply(event)
    room.boards.apply(event)
    room.wakeups.apply(event)
    room.seq = event.seq
    room.ts = event.ts
    return room


def _said(room: Room, event: events.MessageEvent) -> None:
    state = DeliveryState.HELD if event.held else DeliveryState.QUEUED
    message = Message(
        id=event.id,
        seq=event.seq,
        sender=event.sender,
        target=event.target,
        thread=event.thread,
        text=event.text,
        deliveries={agent: Delivery(state, event.ts, event.held) for agent in event.recipients},
        hops=event.hops,
        urgent=event.urgent,
        reply_to=event.reply_to,
        expires=event.expires,
        ending=event.ending,
        kind=DeliverKind.TURN if isinstance(event, events.TurnSignal) else DeliverKind.MESSAGE,
        turn=event.turn if isinstance(event, events.TurnSignal) else None,
        session=event.session_id,
        seals=dict(seals_on(event)),
    )
    for agent in event.waits:
        message.deliveries[agent] = Delivery(DeliveryState.HELD, event.ts, event.held or HeldReason.TURN)
    if isinstance(event, events.SystemReply) and event.query is not None:
        room.queries.pop(event.query, None)
    _paid(room, event)
    asked = room.message(event.reply_to) if event.reply_to else None
    if asked is not None and event.sender in asked.deliveries and asked.sender in event.recipients:
        asked = room.message_to_change(asked.id) or asked
        asked.deliveries[event.sender] = replace(asked.deliveries[event.sender], answered=True)
    # Messages that an agent sends while it works are remembered until its answer.
    sender = room.participant_to_change(event.sender) if event.via else None
    if sender is not None:
        one = SentMessage(event.id, event.target, Channel(event.via), fingerprints(event.text))
        sender.sent = (*sender.sent, one)[-KEPT_SENT:]
    elif isinstance(event, events.AgentResponse | events.KeptPrivate):
        _prompt_is_over(room, event.sender)
    _note_question(room, event)
    _remember(room, message)


def _note_question(room: Room, event: events.MessageEvent) -> None:
    """Record an agent's question to the people in the room; their next message to it is the answer."""
    if event.sender == HUMAN:
        for agent in event.recipients:
            known = room.participants.get(agent)
            # Checked before any change, because copying every recipient would cost more than the message.
            if known is not None and known.question is not None:
                _change(room, known).question = None
    elif (
        isinstance(event, events.AgentCall | events.AgentResponse)
        and event.target == HUMAN
        and event.turn is None
    ):
        participant = room.participant_to_change(event.sender)
        if participant is not None:
            text = event.text.strip()
            is_asking = text.endswith("?") and not event.final
            participant.question = Question(event.id, event.ts, text[-MAX_QUESTION:]) if is_asking else None


def _change(room: Room, known: Participant) -> Participant:
    return room.participant_to_change(known.id) or known


def _prompt_is_over(room: Room, agent: AgentId) -> None:
    participant = room.participant_to_change(agent)
    if participant is not None:
        participant.heard, participant.sent = None, ()


def _paid(room: Room, event: events.MessageEvent | events.LateReply) -> None:
    if event.usage is not None:
        room.spent = spend(room.spent, event.sender, event.usage)
        room.under_way = without(room.under_way, event.turn)
        _note_context(room, event.sender, event.usage)


def _note_context(room: Room, agent: AgentId, usage: Usage) -> None:
    participant = room.participant_to_change(agent) if usage.context else None
    if participant is not None:
        participant.context, participant.window = usage.context, usage.window


def _control_sent(room: Room, event: events.ControlSent) -> None:
    message = Message(
        id=event.id,
        seq=event.seq,
        sender=event.sender,
        target=event.target,
        thread=event.thread,
        text=event.text,
        deliveries={event.target: Delivery(DeliveryState.QUEUED, event.ts)},
        kind=DeliverKind.CONTROL,
        urgent=True,
        expires=event.expires,
        control=event.control,
        choice=event.choice,
        about=event.about,
        turn=event.turn,
    )
    _remember(room, message)
    participant = room.participant_to_change(event.target)
    if participant is not None and event.control in (ControlVerb.APPROVE, ControlVerb.DENY):
        participant.answering = event.id


def _remember(room: Room, message: Message) -> None:
    stale = room.message_to_change(message.id)
    if stale is not None:
        # Only because of a damaged line can an older message with the same id be left.
        room.messages.pop(message.id, None)
        room.waiting.pop(message.id, None)
        for agent in stale.deliveries:
            _take_off_queue(room, stale, agent)
    room.messages[message.id] = message
    if message.turn and message.kind is DeliverKind.TURN:
        room.asks[message.turn] = message.id
    for agent in message.deliveries:
        participant = room.participant_to_change(agent)
        if participant is None:
            continue
        if message.kind is DeliverKind.CONTROL:
            participant.controls[message.id] = message.seq
        else:
            participant.queue[message.id] = message.seq
            participant.queued_chars += len(message.text)
    if not message.deliveries:
        message.text = ""
    if len(room.messages) > WINDOW:
        oldest = next(iter(room.messages))
        old = room.messages.pop(oldest)
        if is_pending(old):
            room.waiting[oldest] = old
        else:
            _forget_ask(room, old)


def _forget_ask(room: Room, message: Message) -> None:
    if message.turn and room.asks.get(message.turn) == message.id:
        del room.asks[message.turn]


def _delivered(room: Room, event: events.DeliveryMoved) -> None:
    message = room.message_to_change(event.message)
    delivery = message.deliveries.get(event.agent) if message else None
    if message is None or delivery is None:
        return
    if delivery.reason == HeldReason.LOOP and (
        event.state is DeliveryState.QUEUED or event.reason == HeldReason.TURN
    ):
        message.hops = 0
    message.deliveries[event.agent] = Delivery(event.state, event.ts, event.reason, delivery.answered)
    asked = room.participants.get(event.agent)
    if event.state in UNDELIVERED and asked is not None and asked.answering == message.id:
        # The key had no effect, so the dialog is still waiting for an answer.
        _change(room, asked).answering = None
    # A typed message is the agent's new current prompt; the previous one is over. A recipient that
    # only reports receipt of a message, such as a script, may speak about anything next.
    if event.state is DeliveryState.TYPED and message.kind is not DeliverKind.CONTROL:
        participant = room.participant_to_change(event.agent)
        if participant is not None:
            participant.heard, participant.sent = message.id, ()
    if event.state not in PENDING:
        _take_off_queue(room, message, event.agent)


def _take_off_queue(room: Room, message: Message, agent: AgentId) -> None:
    participant = room.participant_to_change(agent)
    if participant is not None:
        participant.controls.pop(message.id, None)
        if participant.queue.pop(message.id, None) is not None:
            participant.queued_chars -= len(message.text)
    if not is_pending(message):
        message.text = ""
        if room.waiting.pop(message.id, None) is not None:
            _forget_ask(room, message)


def _joined(room: Room, event: events.Joined) -> None:
    known = room.participant_to_change(event.sender)
    if known is None:
        room.epochs.pop(event.sender, None)
        known = Participant(event.sender, event.name, event.kind, event.role, event.epoch, event.ts)
        room.participants[event.sender] = known
    if event.epoch != known.epoch:
        # A new owner has not agreed to share its pane.
        known.share, known.launch = False, ""
    known.name, known.kind, known.role, known.epoch = event.name, event.kind, event.role, event.epoch
    known.capabilities, known.online, known.seen = event.capabilities, True, event.ts
    if event.launch not in ("", known.launch):
        known.context = known.window = 0
    known.launch = event.launch or known.launch
    # The state shown for a launch until its sidecar reports one.
    state, detail = (AgentState.STARTING, "joining") if event.launch else (AgentState.IDLE, "")
    known.state, known.detail, known.until, known.dialog = state, detail, None, None
    known.seals, known.asks = {}, ""
    known.since, known.answering = event.ts, None


def _left(room: Room, event: events.Left) -> None:
    participant = room.participant_to_change(event.sender)
    if participant is None:
        return
    if participant.online:
        participant.since = event.ts
    participant.online, participant.seen, participant.answering = False, event.ts, None
    if event.removed:
        room.epochs[event.sender] = participant.epoch
        del room.participants[event.sender]
        for query in [key for key, query in room.queries.items() if query.agent == event.sender]:
            del room.queries[query]


def _state_changed(room: Room, event: events.StateChanged) -> None:
    participant = room.participant_to_change(event.sender)
    if participant is None:
        return
    if event.state is not None:
        is_same = event.state is participant.state and event.asks == participant.asks
        # If a key closed its dialog, this report is about another one.
        pressed = room.message(participant.answering) if participant.answering is not None else None
        if pressed is not None and pressed.deliveries[participant.id].state is DeliveryState.CONFIRMED:
            is_same = False
        if not (is_same and is_same_dialog(participant.dialog, event.dialog)):
            participant.since, participant.answering = event.ts, None
        participant.state, participant.detail = event.state, event.detail
        participant.until, participant.dialog = event.until, event.dialog
        participant.seals, participant.asks, participant.work = event.seals, event.asks, event.work
    if event.paused is not None:
        participant.paused = event.paused
    if event.share is not None:
        participant.share = event.share
    if event.allow:
        participant.rules = participant.rules | {event.seq: event.allow}
    if event.disallow:
        participant.rules = {key: one for key, one in participant.rules.items() if key != event.disallow}


def _redacted(room: Room, event: events.Redacted) -> None:
    message = room.message_to_change(event.message)
    for participant in filter(None, map(room.participant_to_change, list(room.participants))):
        participant.sent = tuple(one for one in participant.sent if one.id != event.message)
        if participant.question is not None and participant.question.message == event.message:
            participant.question = None
        if message is not None and message.id in participant.queue:
            participant.queued_chars -= len(message.text)
    if message is not None:
        message.text = ""
