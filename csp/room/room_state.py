"""The state of a room, which is a pure function of its journal.

`apply` is the one way to change it. It updates the room in place and returns it: the gateway owns
one room, and a copy per event would cost more than the event. Nothing else may change a room.
It never fails: an event about somebody unknown, whose own event stood in a damaged line, is passed over.
"""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

import msgspec

from csp.protocol.enums import (
    AgentId,
    AgentState,
    Capabilities,
    ControlVerb,
    DeliverKind,
    DeliveryState,
    Ending,
    HeldReason,
    JoinRole,
    MessageId,
    ParticipantKind,
    SessionId,
)
from csp.protocol.events import (
    AgentResponse,
    AnyEvent,
    BoardChanged,
    CallRecorded,
    ControlSent,
    DeliveryMoved,
    Joined,
    KeptPrivate,
    LateReply,
    Left,
    LogRequested,
    MessageEvent,
    ModeChanged,
    NoteAdded,
    NoticePosted,
    Pruned,
    PrunedBase,
    Redacted,
    RunEvent,
    StateChanged,
    SystemReply,
    TurnMoved,
    TurnSignal,
    Unknown,
    UsageSeen,
    Voted,
)
from csp.protocol.requests import Dialog
from csp.protocol.session_parts import TurnState
from csp.room.board.board_state import Boards
from csp.room.messages.delivery import PENDING, is_untouched
from csp.room.messages.tool_dedupe import KEPT, Channel, SentMessage, fingerprints
from csp.room.orchestrator.wake_state import Wakeups
from csp.room.runs.run_state import ReviewRuns
from csp.room.sessions.session_registry import Sessions
from csp.room.sessions.spending import (
    MOST_UNDER_WAY,
    Ledger,
    RunningUsage,
    Unsettled,
    spend,
    spent_so_far,
    without,
)
from csp.room.visibility import seals_on

#: Why the room itself keeps a message back.
ROOM_HOLDS: Final = frozenset({HeldReason.LOOP, HeldReason.TURN})
#: How many messages are remembered for dedupe, and for their states without a look at the disk.
WINDOW: Final = 10_000
#: How many calls of each caller are remembered, to answer one that comes again.
KEPT_CALLS: Final = 200


class Delivery(msgspec.Struct, array_like=True):
    """How far a message has come for one recipient; there may be millions, so their names are not saved."""

    state: DeliveryState
    at: float
    reason: str = ""
    answered: bool = False

    @property
    def is_untouched(self) -> bool:
        return is_untouched(self.state, self.reason)


class Message(msgspec.Struct, omit_defaults=True):
    """A message with the state of each of its deliveries; its text goes when all have ended."""

    id: MessageId
    seq: int
    sender: AgentId
    target: AgentId
    thread: str
    text: str
    deliveries: dict[AgentId, Delivery]
    kind: DeliverKind = DeliverKind.MESSAGE
    hops: int = 0
    urgent: bool = False
    reply_to: MessageId | None = None
    expires: float | None = None
    control: ControlVerb | None = None
    choice: int | None = None
    ending: Ending = Ending.DONE
    turn: str | None = None
    session: SessionId | None = None
    #: The sealed phases it was said in, by their sessions: nobody else gets it before they end.
    seals: dict[SessionId, int] = msgspec.field(default_factory=dict)


class Query(msgspec.Struct, omit_defaults=True):
    """A question of an agent that has to be looked up in the journal before `seq`."""

    seq: int
    agent: AgentId
    thread: str
    count: int
    reply_to: MessageId | None = None
    hops: int = 0


class Participant(msgspec.Struct, omit_defaults=True):
    id: AgentId
    name: str
    kind: ParticipantKind
    role: JoinRole
    epoch: int
    seen: float
    capabilities: Capabilities | None = None
    launch: str = ""
    online: bool = True
    state: AgentState = AgentState.IDLE
    detail: str = ""
    until: float | None = None
    dialog: Dialog | None = None
    #: The sealed phases that it was in when it gave its detail.
    seals: dict[SessionId, int] = msgspec.field(default_factory=dict)
    paused: bool = False
    share: bool = False
    #: Messages, then controls, whose delivery has not ended, in the order of the journal.
    queue: dict[MessageId, int] = msgspec.field(default_factory=dict)
    controls: dict[MessageId, int] = msgspec.field(default_factory=dict)
    queued_chars: int = 0
    #: What it was last given to work on; what it has sent since, until its answer.
    heard: MessageId | None = None
    sent: tuple[SentMessage, ...] = ()

    @property
    def shown_state(self) -> AgentState:
        """Return the state a person should see: what stops the participant wins over what it does."""
        if not self.online:
            return AgentState.OFFLINE
        return AgentState.PAUSED if self.paused else self.state


class Room(msgspec.Struct, omit_defaults=True):
    seq: int = 0
    ts: float = 0.0
    participants: dict[AgentId, Participant] = msgspec.field(default_factory=dict)
    #: The last WINDOW messages, and those before them that somebody still waits for.
    messages: dict[MessageId, Message] = msgspec.field(default_factory=dict)
    waiting: dict[MessageId, Message] = msgspec.field(default_factory=dict)
    #: The last epoch of each removed id, so that its old tokens stay dead when the name comes back.
    epochs: dict[AgentId, int] = msgspec.field(default_factory=dict)
    #: Questions that the room has not answered yet.
    queries: dict[MessageId, Query] = msgspec.field(default_factory=dict)
    runs: ReviewRuns = msgspec.field(default_factory=ReviewRuns)
    sessions: Sessions = msgspec.field(default_factory=Sessions)
    wakeups: Wakeups = msgspec.field(default_factory=Wakeups)
    boards: Boards = msgspec.field(default_factory=Boards)
    #: What all replies took, in sessions or not; what turns have used whose reply has not said so yet.
    spent: Ledger = ()
    under_way: Unsettled = msgspec.field(default_factory=dict)
    #: What came of the last calls of each caller that had an id of its own, by that id.
    calls: dict[AgentId, dict[str, str]] = msgspec.field(default_factory=dict)

    @property
    def spent_so_far(self) -> Ledger:
        """What was spent, with what the turns under way have used so far."""
        return spent_so_far(self.spent, self.under_way)

    def message(self, message_id: str) -> Message | None:
        """Return a message that is still remembered."""
        key = MessageId(message_id)
        return self.messages.get(key) or self.waiting.get(key)

    def unfinished(self, ids: Iterable[MessageId]) -> Iterator[Message]:
        """Yield the messages of a queue."""
        return (self.messages.get(key) or self.waiting[key] for key in ids)


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Room)


def dump(room: Room) -> bytes:
    """Return the room as JSON, for a snapshot."""
    return _encoder.encode(room)


def load(data: bytes) -> Room:
    """Read a room back from `dump`."""
    return _decoder.decode(data)


def without_texts(room: Room) -> Room:
    """Take the text out of every message, so that the room can stand for a past that was removed."""
    for message in (*room.messages.values(), *room.waiting.values()):
        if message.kind is not DeliverKind.CONTROL:
            message.text = ""
    for participant in room.participants.values():
        participant.queued_chars = 0
    room.sessions.drop_texts()
    room.runs.drop_texts()
    return room


def replay(events: Iterable[AnyEvent], room: Room | None = None) -> Room:
    """Return the room after `events`."""
    current = Room() if room is None else room
    for event in events:
        current = apply(current, event)
    return current


def apply(room: Room, event: AnyEvent) -> Room:
    """Return the room after `event`; the given room is used up."""
    match event:
        case MessageEvent():
            _said(room, event)
        case DeliveryMoved():
            _delivered(room, event)
        case Joined():
            _joined(room, event)
        case Left():
            _left(room, event)
        case StateChanged():
            _state_changed(room, event)
        case ControlSent():
            _control_sent(room, event)
        case Redacted():
            _redacted(room, event)
        case LogRequested():
            _queried(room, event)
        case PrunedBase():
            room = load(bytes(event.state))
        case RunEvent():
            room.runs.take(event)
        case LateReply():
            _paid(room, event)
        case NoticePosted():
            _noticed(room, event)
        case UsageSeen():
            _seen(room, event)
        case TurnMoved():
            if event.state is TurnState.REPLIED:
                _prompt_is_over(room, event.agent)
        case CallRecorded():
            _called(room, event)
        case Pruned() | Unknown() | ModeChanged() | Voted() | NoteAdded() | BoardChanged():
            pass
        case _:
            assert_never(event)
    room.sessions.take(event)
    room.boards.take(event)
    room.wakeups.take(event)
    room.seq = event.seq
    room.ts = event.ts
    return room


def _said(room: Room, event: MessageEvent) -> None:
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
        kind=DeliverKind.TURN if isinstance(event, TurnSignal) else DeliverKind.MESSAGE,
        turn=event.turn if isinstance(event, TurnSignal) else None,
        session=event.session_id,
        seals=dict(seals_on(event)),
    )
    for agent in event.waits:
        message.deliveries[agent] = Delivery(DeliveryState.HELD, event.ts, event.held or HeldReason.TURN)
    if isinstance(event, SystemReply) and event.query is not None:
        room.queries.pop(event.query, None)
    _paid(room, event)
    _mark_answered(room, event)
    _note_sender(room, event)
    _remember(room, message)


def _note_sender(room: Room, event: MessageEvent) -> None:
    """Remember what an agent sends in the midst of its work; with its answer that is over."""
    sender = room.participants.get(event.sender)
    if sender is not None and event.via:
        one = SentMessage(event.id, event.target, Channel(event.via), fingerprints(event.text))
        sender.sent = (*sender.sent, one)[-KEPT:]
    elif isinstance(event, AgentResponse | KeptPrivate):
        _prompt_is_over(room, event.sender)


def _prompt_is_over(room: Room, agent: AgentId) -> None:
    participant = room.participants.get(agent)
    if participant is not None:
        participant.heard, participant.sent = None, ()


def _noticed(room: Room, event: NoticePosted) -> None:
    """Match a message with what was not sent again because of it, once."""
    participant = room.participants.get(event.target)
    if participant is not None and event.repeats is not None:
        participant.sent = tuple(one for one in participant.sent if one.id != event.repeats)


def _called(room: Room, event: CallRecorded) -> None:
    known = room.calls.setdefault(event.sender, {})
    known[event.key] = event.answer
    if len(known) > KEPT_CALLS:
        del known[next(iter(known))]


def _paid(room: Room, event: MessageEvent | LateReply) -> None:
    if event.usage is not None:
        room.spent = spend(room.spent, event.sender, event.usage)
        room.under_way = without(room.under_way, event.turn)


def _seen(room: Room, event: UsageSeen) -> None:
    room.under_way = room.under_way | {event.turn: RunningUsage(event.sender, event.usage)}
    if len(room.under_way) > MOST_UNDER_WAY:
        oldest, lost = next(iter(room.under_way.items()))
        room.spent = spend(room.spent, lost.agent, lost.usage)
        room.under_way = without(room.under_way, oldest)


def _mark_answered(room: Room, event: MessageEvent) -> None:
    asked = room.message(event.reply_to) if event.reply_to else None
    if asked is not None and event.sender in asked.deliveries and asked.sender in event.recipients:
        asked.deliveries[event.sender].answered = True


def _control_sent(room: Room, event: ControlSent) -> None:
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
        turn=event.turn,
    )
    _remember(room, message)


def _remember(room: Room, message: Message) -> None:
    _forget(room, message.id)
    room.messages[message.id] = message
    for agent in message.deliveries:
        participant = room.participants.get(agent)
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


def _forget(room: Room, message_id: MessageId) -> None:
    """Drop an older message of the same id, which only a damaged line can have left behind."""
    stale = room.messages.pop(message_id, None) or room.waiting.pop(message_id, None)
    if stale is not None:
        for agent in stale.deliveries:
            _take_off_queue(room, stale, agent)


def _delivered(room: Room, event: DeliveryMoved) -> None:
    message = room.message(event.message)
    delivery = message.deliveries.get(event.agent) if message else None
    if message is None or delivery is None:
        return
    if delivery.reason == HeldReason.LOOP and (
        event.state is DeliveryState.QUEUED or event.reason == HeldReason.TURN
    ):
        message.hops = 0
    delivery.state, delivery.reason, delivery.at = event.state, event.reason, event.ts
    _note_prompt(room, message, event)
    if event.state not in PENDING:
        _take_off_queue(room, message, event.agent)


def _note_prompt(room: Room, message: Message, event: DeliveryMoved) -> None:
    """Remember what was typed to an agent, which works on that; what it did before is over.

    Who merely says that it has a message, a script for example, may speak of anything next.
    """
    participant = room.participants.get(event.agent)
    if participant is None or event.state is not DeliveryState.TYPED or message.kind is DeliverKind.CONTROL:
        return
    participant.heard, participant.sent = message.id, ()


def _take_off_queue(room: Room, message: Message, agent: AgentId) -> None:
    participant = room.participants.get(agent)
    if participant is not None:
        participant.controls.pop(message.id, None)
        if participant.queue.pop(message.id, None) is not None:
            participant.queued_chars -= len(message.text)
    if not is_pending(message):
        message.text = ""
        room.waiting.pop(message.id, None)


def _joined(room: Room, event: Joined) -> None:
    known = room.participants.get(event.sender)
    if known is None:
        room.epochs.pop(event.sender, None)
        known = Participant(event.sender, event.name, event.kind, event.role, event.epoch, event.ts)
        room.participants[event.sender] = known
    if event.epoch != known.epoch:
        # A new owner has not been asked whether it wants to be overheard.
        known.share, known.launch = False, ""
    known.name, known.kind, known.role, known.epoch = event.name, event.kind, event.role, event.epoch
    known.capabilities, known.online, known.seen = event.capabilities, True, event.ts
    known.launch = event.launch or known.launch
    # What a launch shows until its sidecar says something itself.
    state, detail = (AgentState.STARTING, "joining") if event.launch else (AgentState.IDLE, "")
    known.state, known.detail, known.until, known.dialog = state, detail, None, None
    known.seals = {}


def _left(room: Room, event: Left) -> None:
    participant = room.participants.get(event.sender)
    if participant is None:
        return
    participant.online, participant.seen = False, event.ts
    if event.removed:
        room.epochs[event.sender] = participant.epoch
        del room.participants[event.sender]
        for query in [key for key, query in room.queries.items() if query.agent == event.sender]:
            del room.queries[query]


def _queried(room: Room, event: LogRequested) -> None:
    if event.sender in room.participants:
        room.queries[event.id] = Query(
            event.seq, event.sender, event.thread, event.count, event.reply_to, event.hops
        )


def _state_changed(room: Room, event: StateChanged) -> None:
    participant = room.participants.get(event.sender)
    if participant is None:
        return
    if event.state is not None:
        participant.state, participant.detail = event.state, event.detail
        participant.until, participant.dialog = event.until, event.dialog
        participant.seals = event.seals
    if event.paused is not None:
        participant.paused = event.paused
    if event.share is not None:
        participant.share = event.share


def _redacted(room: Room, event: Redacted) -> None:
    message = room.message(event.message)
    for participant in room.participants.values():
        participant.sent = tuple(one for one in participant.sent if one.id != event.message)
    if message is None:
        return
    for participant in room.participants.values():
        if message.id in participant.queue:
            participant.queued_chars -= len(message.text)
    message.text = ""


def is_pending(message: Message) -> bool:
    """Tell whether somebody has not finished with `message`."""
    return any(delivery.state in PENDING for delivery in message.deliveries.values())
