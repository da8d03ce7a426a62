"""The state of a room, computed from its journal; only `room_reducer.apply` changes it."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from csp.protocol import events
from csp.protocol.enums import (
    HUMAN,
    PENDING,
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
from csp.protocol.enums import DeliveryState as S
from csp.protocol.requests import Dialog
from csp.room.board_state import Boards
from csp.room.runs.run_state import ReviewRuns
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import (
    Ledger,
    Unsettled,
    spent_so_far,
)

#: Reasons for which the room itself holds a message.
ROOM_HOLDS: Final = frozenset({HeldReason.LOOP, HeldReason.TURN})


# --- the states of a delivery ---------------------------------------------------------------------


#: The allowed next states of a delivery. `submitted` needs no further work, but may still be confirmed.
MOVES: Final[dict[S, frozenset[S]]] = {
    S.QUEUED: frozenset(S) - {S.QUEUED},
    S.HELD: frozenset(S),
    S.TYPED: frozenset({S.HELD, S.SUBMITTED, S.CONFIRMED, S.FAILED}),
    S.SUBMITTED: frozenset({S.CONFIRMED}),
    **dict.fromkeys((S.CONFIRMED, S.FAILED, S.WITHDRAWN, S.EXPIRED), frozenset()),
}


def may_move(old: S, new: S) -> bool:
    """Return whether a delivery may change from `old` to `new`."""
    return new in MOVES[old]


# --- messages that an agent sent while it works on a prompt ----------------------------------------
#
# They are remembered so that the same text is not sent twice. A model that calls a tool often repeats in
# words what it did: it prints the command with the same text, or repeats the text in its answer. Both orders
# occur, because the text before a tool call is read from a file that may be written after the call. So each
# message is remembered until the prompt is over, and can match one repetition: an agent that sends twice by
# tool, or prints twice, does so intentionally.

#: Number of messages remembered per prompt; older ones are forgotten.
KEPT_SENT: Final = 50
_BLANK_LINE: Final = "\n\n"


class Channel(StrEnum):
    """The way an agent sent a message while it was working."""

    TOOL = "tool"
    WORDS = "words"


class SentMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message sent for an agent's current prompt, with the data needed to recognise it again."""

    id: MessageId
    target: AgentId
    way: Channel
    marks: tuple[str, ...]


def fingerprints(text: str) -> tuple[str, ...]:
    """Return the hashes that identify a text: that of the whole text and that of its first paragraph.

    A printed command ends at a blank line, so it repeats only the first paragraph of a long text.
    """
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    first = lines.partition(_BLANK_LINE)[0]
    return tuple(dict.fromkeys((_mark(lines), _mark(first))))


def _mark(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


# --- a room's state ---------------------------------------------------------------------------------


class Delivery(msgspec.Struct, array_like=True):
    """The state of a message for one recipient, saved as an array because there may be millions."""

    state: DeliveryState
    at: float
    reason: str = ""
    answered: bool = False

    @property
    def is_untouched(self) -> bool:
        """Whether nothing has reached the recipient's composer, so that there is nothing to undo there."""
        is_early = self.state in (DeliveryState.QUEUED, DeliveryState.HELD)
        return is_early and self.reason not in (HeldReason.STUCK, HeldReason.COVERED)

    @property
    def outcome(self) -> str:
        """The outcome of the delivery, worded to follow the name of the recipient."""
        has_arrived = self.state in (DeliveryState.TYPED, DeliveryState.SUBMITTED, DeliveryState.CONFIRMED)
        return "has already received it" if has_arrived else self.state

    @property
    def is_held_for_turn(self) -> bool:
        """Whether the message waits for its recipient's turn or for the end of a sealed phase."""
        return self.state is DeliveryState.HELD and self.reason == HeldReason.TURN


class Message(msgspec.Struct, omit_defaults=True):
    """A message with the state of each delivery; its text is dropped when all deliveries have ended."""

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
    about: str = ""
    ending: Ending = Ending.DONE
    turn: str | None = None
    session: SessionId | None = None
    #: The sealed phases in which it was sent, by session; nobody else receives it before they end.
    seals: dict[SessionId, int] = msgspec.field(default_factory=dict)


class Query(msgspec.Struct, omit_defaults=True):
    """An agent's query, to be answered from the journal before `seq`."""

    seq: int
    agent: AgentId
    thread: str
    count: int
    reply_to: MessageId | None = None
    hops: int = 0


class Question(msgspec.Struct, frozen=True, array_like=True):
    """A short form of an agent's question to the people in the room."""

    message: MessageId
    at: float
    text: str


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
    #: The sealed phases in which it reported its detail.
    seals: dict[SessionId, int] = msgspec.field(default_factory=dict)
    #: The kind of its dialog or blocking screen, if reported by its sidecar.
    asks: str = ""
    #: The branch and the changed files of its git worktree, if it has one.
    work: str = ""
    #: When its state began or its dialog opened; 0 in snapshots from older versions.
    since: float = 0.0
    #: The control that answers its dialog, unless that has failed.
    answering: MessageId | None = None
    #: The approval rules that people added for it in this room, by number.
    rules: dict[int, str] = msgspec.field(default_factory=dict)
    #: Its question to the people in the room, until they send it a message.
    question: Question | None = None
    #: The tokens in its context after its last model call, and the number that fits; 0 if unknown.
    context: int = 0
    window: int = 0
    paused: bool = False
    share: bool = False
    #: Unfinished messages and controls, in journal order.
    queue: dict[MessageId, int] = msgspec.field(default_factory=dict)
    controls: dict[MessageId, int] = msgspec.field(default_factory=dict)
    queued_chars: int = 0
    #: The prompt it is working on, and the messages it has sent since, until its answer.
    heard: MessageId | None = None
    sent: tuple[SentMessage, ...] = ()

    @property
    def shown_state(self) -> AgentState:
        """Return the state to show to people: offline and paused take precedence over activity."""
        if not self.online:
            return AgentState.OFFLINE
        return AgentState.PAUSED if self.paused else self.state


#: Number of unanswered wake-ups after which people are notified.
ENOUGH: Final = 2


class UnansweredWakeups(msgspec.Struct, frozen=True, array_like=True):
    """The times of an orchestrator's first unanswered wake-ups, and whether people were notified."""

    since: tuple[float, ...] = ()
    is_told: bool = False


class Wakeups(msgspec.Struct, omit_defaults=True):
    by_agent: dict[AgentId, UnansweredWakeups] = msgspec.field(default_factory=dict)

    def copy(self) -> "Wakeups":
        """Return a copy that can be changed independently."""
        return Wakeups(dict(self.by_agent))

    def apply(self, event: events.AnyEvent) -> None:
        """Record a wake-up; any message or session change from an orchestrator shows that it is awake."""
        match event:
            case events.SystemReply() if event.session_id is not None:
                silence = self.by_agent.get(event.target, UnansweredWakeups())
                since = (*silence.since, event.ts)[:ENOUGH]
                self.by_agent[event.target] = UnansweredWakeups(since, silence.is_told)
            case events.MessageEvent() | events.ModeChanged() | events.LateReply() | events.Left() if (
                self.by_agent
            ):
                self.by_agent.pop(event.sender, None)
            case events.NoticePosted() if event.silent in self.by_agent:
                self.by_agent[event.silent] = UnansweredWakeups(
                    self.by_agent[event.silent].since, is_told=True
                )
            case _:
                pass

    def is_owed_by(self, agent: AgentId) -> bool:
        """Return whether an agent has been woken and has not responded since."""
        return agent in self.by_agent


class Room(msgspec.Struct, omit_defaults=True):
    seq: int = 0
    ts: float = 0.0
    participants: dict[AgentId, Participant] = msgspec.field(default_factory=dict)
    #: The last WINDOW messages, and older ones with unfinished deliveries.
    messages: dict[MessageId, Message] = msgspec.field(default_factory=dict)
    waiting: dict[MessageId, Message] = msgspec.field(default_factory=dict)
    #: The last epoch of each removed id, so that its old tokens stay invalid when the name is used again.
    epochs: dict[AgentId, int] = msgspec.field(default_factory=dict)
    #: Queries that have not been answered yet.
    queries: dict[MessageId, Query] = msgspec.field(default_factory=dict)
    runs: ReviewRuns = msgspec.field(default_factory=ReviewRuns)
    sessions: Sessions = msgspec.field(default_factory=Sessions)
    wakeups: Wakeups = msgspec.field(default_factory=Wakeups)
    boards: Boards = msgspec.field(default_factory=Boards)
    #: The usage of all replies, in sessions or not, and of turns whose reply has not reported it yet.
    spent: Ledger = ()
    under_way: Unsettled = msgspec.field(default_factory=dict)
    #: The results of each caller's last calls that have an id chosen by the caller, by that id.
    calls: dict[AgentId, dict[str, str]] = msgspec.field(default_factory=dict)
    #: Remembered turn requests by turn; they are derived from the messages and not part of a snapshot.
    asks: dict[str, MessageId] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.asks:
            known = (*self.waiting.values(), *self.messages.values())
            self.asks = {one.turn: one.id for one in known if one.turn and one.kind is DeliverKind.TURN}

    @property
    def spent_so_far(self) -> Ledger:
        """The total usage, including turns in progress."""
        return spent_so_far(self.spent, self.under_way)

    def message(self, message_id: str) -> Message | None:
        """Return the message if it is still remembered."""
        key = MessageId(message_id)
        return self.messages.get(key) or self.waiting.get(key)

    def ask_of(self, turn: str) -> Message | None:
        """Return a turn's request message if it is still remembered."""
        message_id = self.asks.get(turn)
        return None if message_id is None else self.message(message_id)

    def is_person(self, sender: AgentId) -> bool:
        """Return whether `sender` is a person."""
        participant = self.participants.get(sender)
        return sender == HUMAN or (participant is not None and participant.kind is ParticipantKind.HUMAN)

    def is_orchestrator(self, agent: AgentId) -> bool:
        """Return whether an agent may steer sessions."""
        participant = self.participants.get(agent)
        return participant is not None and participant.role is JoinRole.ORCHESTRATOR

    @property
    def orchestrator(self) -> Participant | None:
        """The room's orchestrator, if it is online."""
        here = self.participants.values()
        return next((one for one in here if one.role is JoinRole.ORCHESTRATOR and one.online), None)

    def unfinished(self, ids: Iterable[MessageId]) -> Iterator[Message]:
        """Yield the messages in a queue."""
        return (self.messages.get(key) or self.waiting[key] for key in ids)

    # `apply` changes participants and messages only through these two methods.

    def participant_to_change(self, agent: AgentId) -> Participant | None:
        """Return a participant that an event may change."""
        return self.participants.get(agent)

    def message_to_change(self, message_id: MessageId) -> Message | None:
        """Return a remembered message that an event may change."""
        return self.message(message_id)


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Room)


def dump(room: Room) -> bytes:
    """Return the room as JSON, for a snapshot."""
    return _encoder.encode(replace(room, asks={}))


def load(data: bytes) -> Room:
    """Read a room from the output of `dump`."""
    return _decoder.decode(data)


def without_texts(room: Room) -> Room:
    """Remove the text from every message, so that the room can represent a removed past."""
    for message in (*room.messages.values(), *room.waiting.values()):
        if message.kind is not DeliverKind.CONTROL:
            message.text = ""
    for participant in room.participants.values():
        participant.queued_chars = 0
        participant.question = None
    room.sessions.drop_texts()
    room.runs.drop_texts()
    return room


def is_pending(message: Message) -> bool:
    """Return whether a delivery of `message` is unfinished."""
    return any(delivery.state in PENDING for delivery in message.deliveries.values())
