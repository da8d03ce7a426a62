"""The state of a room, a pure function of its journal; only `room_reducer.apply` changes it."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

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
    AnyEvent,
    LateReply,
    Left,
    MessageEvent,
    ModeChanged,
    NoticePosted,
    SystemReply,
)
from csp.protocol.requests import Dialog
from csp.room.board.board_state import Boards
from csp.room.messages.delivery import PENDING, SentMessage, is_untouched
from csp.room.runs.run_state import ReviewRuns
from csp.room.sessions.session_registry import Sessions
from csp.room.sessions.spending import (
    Ledger,
    Unsettled,
    spent_so_far,
)

#: Why the room itself keeps a message back.
ROOM_HOLDS: Final = frozenset({HeldReason.LOOP, HeldReason.TURN})


class Delivery(msgspec.Struct, array_like=True):
    """How far a message has come for one recipient; there may be millions, so their names are not saved."""

    state: DeliveryState
    at: float
    reason: str = ""
    answered: bool = False

    @property
    def is_untouched(self) -> bool:
        return is_untouched(self.state, self.reason)

    @property
    def is_held_for_turn(self) -> bool:
        """Whether the message waits for a turn of its recipient, or for the end of a sealed phase."""
        return self.state is DeliveryState.HELD and self.reason == HeldReason.TURN


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


#: Wake-ups without an answer after which the people of the room are told.
ENOUGH: Final = 2


class UnansweredWakeups(msgspec.Struct, frozen=True, array_like=True):
    """When the first wake-ups were sent that an orchestrator has not answered; whether that was told."""

    since: tuple[float, ...] = ()
    is_told: bool = False


class Wakeups(msgspec.Struct, omit_defaults=True):
    by_agent: dict[AgentId, UnansweredWakeups] = msgspec.field(default_factory=dict)

    def copy(self) -> "Wakeups":
        """Return wake-ups that can be changed by themselves."""
        return Wakeups(dict(self.by_agent))

    def apply(self, event: AnyEvent) -> None:
        """Note a wake-up; whatever an orchestrator says or sets shows that it is awake."""
        match event:
            case SystemReply() if event.session_id is not None:
                silence = self.by_agent.get(event.target, UnansweredWakeups())
                since = (*silence.since, event.ts)[:ENOUGH]
                self.by_agent[event.target] = UnansweredWakeups(since, silence.is_told)
            case MessageEvent() | ModeChanged() | LateReply() | Left() if self.by_agent:
                self.by_agent.pop(event.sender, None)
            case NoticePosted() if event.silent in self.by_agent:
                self.by_agent[event.silent] = UnansweredWakeups(
                    self.by_agent[event.silent].since, is_told=True
                )
            case _:
                pass

    def is_owed_by(self, agent: AgentId) -> bool:
        """Tell whether an agent has been woken and has said nothing since."""
        return agent in self.by_agent


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
    #: The remembered asks by their turns; they follow from the messages, so a snapshot does not hold them.
    asks: dict[str, MessageId] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.asks:
            known = (*self.waiting.values(), *self.messages.values())
            self.asks = {one.turn: one.id for one in known if one.turn and one.kind is DeliverKind.TURN}

    @property
    def spent_so_far(self) -> Ledger:
        """What was spent, with what the turns under way have used so far."""
        return spent_so_far(self.spent, self.under_way)

    def message(self, message_id: str) -> Message | None:
        """Return a message that is still remembered."""
        key = MessageId(message_id)
        return self.messages.get(key) or self.waiting.get(key)

    def ask_of(self, turn: str) -> Message | None:
        """Return the message that asks for a turn, if it is still remembered."""
        message_id = self.asks.get(turn)
        return None if message_id is None else self.message(message_id)

    def unfinished(self, ids: Iterable[MessageId]) -> Iterator[Message]:
        """Yield the messages of a queue."""
        return (self.messages.get(key) or self.waiting[key] for key in ids)

    # `apply` changes participants and messages through these two methods alone.

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


def is_pending(message: Message) -> bool:
    """Tell whether somebody has not finished with `message`."""
    return any(delivery.state in PENDING for delivery in message.deliveries.values())
