"""The draft of a room: the events that a command causes, and the room after them."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from csp.protocol.enums import ALL, DEFAULT_THREAD, SYSTEM, AgentId, DeliveryState, MessageId, SessionId
from csp.protocol.events import DeliveryMoved, KnownEvent, NoticePosted
from csp.protocol.notes import HitView
from csp.protocol.notices import NoticeWords
from csp.room.layered_dict import layered, merged
from csp.room.room_reducer import apply
from csp.room.room_rules import DEFAULT_RULES, RoomRules
from csp.room.room_state import Message, Participant, Room
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.session_registry import Sessions, changes_sessions

#: What every event begins with: seq, ts, id, sender, target, thread, text.
Header = tuple[int, float, MessageId, AgentId, AgentId, str, str]
#: What every event of a run begins with: the same, then the session and the id of the run.
RunHeader = tuple[int, float, MessageId, AgentId, AgentId, str, str, SessionId, str]


class RoomCopy(Room):
    """A room to which events can be applied while the room that it was copied from stays as it is.

    What may be large is layered, what is small is copied, and a participant or a message is copied when an
    event changes it for the first time.
    """

    own_participants: set[AgentId] = msgspec.field(default_factory=set)
    own_messages: set[MessageId] = msgspec.field(default_factory=set)

    def __post_init__(self) -> None:
        """Use the asks as they were given: nothing has to be derived."""

    @classmethod
    def of(cls, room: Room) -> "RoomCopy":
        """Return a copy of a room."""
        return cls(
            seq=room.seq,
            ts=room.ts,
            participants=dict(room.participants),
            messages=layered(room.messages),
            waiting=layered(room.waiting),
            epochs=dict(room.epochs),
            queries=dict(room.queries),
            runs=room.runs.copy(),
            sessions=room.sessions.copy(),
            wakeups=room.wakeups.copy(),
            boards=room.boards.copy(),
            spent=room.spent,
            under_way=room.under_way,
            calls=dict(room.calls),
            asks=layered(room.asks),
        )

    def settle_in(self, room: Room) -> None:
        """Bring the room that this is a copy of to the same state; the copy is used up."""
        for participant in map(self.participants.get, self.own_participants):
            if participant is not None:
                participant.queue = merged(participant.queue)
        room.seq, room.ts = self.seq, self.ts
        room.participants = self.participants
        room.messages, room.waiting = merged(self.messages), merged(self.waiting)
        room.epochs, room.queries = self.epochs, self.queries
        room.runs, room.sessions, room.wakeups = self.runs, self.sessions, self.wakeups
        room.boards = self.boards.settled()
        room.spent, room.under_way = self.spent, self.under_way
        room.calls, room.asks = self.calls, merged(self.asks)

    def participant_to_change(self, agent: AgentId) -> Participant | None:
        known = self.participants.get(agent)
        if known is not None and agent not in self.own_participants:
            known = replace(known, queue=layered(known.queue), controls=dict(known.controls))
            self.participants[agent] = known
            self.own_participants.add(agent)
        return known

    def message_to_change(self, message_id: MessageId) -> Message | None:
        known = self.message(message_id)
        if known is not None and message_id not in self.own_messages:
            known = replace(known, deliveries=dict(known.deliveries))
            table = self.messages if message_id in self.messages else self.waiting
            table[message_id] = known
            self.own_messages.add(message_id)
        return known


class RoomDraft:
    """Collect the events of one command; `room` is always the room after them.

    An event is built by its own constructor: `draft.emit(Left(*draft.header(agent, ALL, text), reason=...))`.
    The room that was given is never changed, unless its owner has it taken over at the end.
    """

    def __init__(
        self,
        room: Room,
        now: float,
        rules: RoomRules = DEFAULT_RULES,
        hits: Mapping[str, tuple[HitView, ...]] | None = None,
    ) -> None:
        #: The room before the command.
        self.before = room
        self.rules = rules
        self.events: list[KnownEvent] = []
        #: Why the orchestrator should be woken, by session.
        self.wake_reasons: dict[SessionId, list[str]] = {}
        #: What the whiteboard has for the agents that this command asks.
        self.hits: Mapping[str, tuple[HitView, ...]] = hits or {}
        #: The time of the clock, for deadlines.
        self.clock = now
        #: The time of the journal, which never goes back.
        self.now = max(now, room.ts)
        #: Whether there is any session, over or not; most messages are sent where there is none.
        self.has_sessions = bool(room.sessions.by_id)
        self._room = room
        #: How many events `_room` holds; whether a later one changes a session.
        self._applied = 0
        self._has_new_sessions = False

    @property
    def room(self) -> Room:
        """The room after the events so far."""
        # Events are applied when somebody looks: after the last event of most commands nobody does.
        if self._applied < len(self.events):
            room = self._room if self._applied else RoomCopy.of(self.before)
            for event in self.events[self._applied :]:
                room = apply(room, event)
            self._room = room
            self._applied = len(self.events)
            self._has_new_sessions = False
        return self._room

    def take_over(self) -> Room:
        """Return the room after the events, which is the given room brought up to date: for who owns that.

        What was applied while deciding is not applied again.
        """
        room = self.before
        if isinstance(self._room, RoomCopy):
            self._room.settle_in(room)
        for event in self.events[self._applied :]:
            room = apply(room, event)
        return room

    @property
    def sessions(self) -> Sessions:
        """The sessions after the events so far; most events leave them as they are."""
        return self.room.sessions if self._has_new_sessions else self._room.sessions

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        return self.before.seq + len(self.events) + 1

    def header(
        self,
        sender: AgentId,
        target: AgentId,
        text: str,
        *,
        thread: str = DEFAULT_THREAD,
        id: MessageId | None = None,
    ) -> Header:
        """Return the first fields of the next event."""
        seq = self.next_seq
        return seq, self.now, id or MessageId(f"e-{seq}"), sender, target, thread, text

    def message_header(
        self,
        sender: AgentId,
        target: AgentId,
        text: str,
        *,
        thread: str = DEFAULT_THREAD,
        id: MessageId | None = None,
    ) -> Header:
        """Return the first fields of the next event if it is a message or a control, which is delivered."""
        seq = self.next_seq
        return seq, self.now, id or MessageId(f"m-{seq}"), sender, target, thread, text

    def run_header(self, run: ReviewRun, text: str, *, by: AgentId = SYSTEM) -> RunHeader:
        """Return the first fields of the next event if it is one of a run."""
        return (*self.header(by, ALL, text, thread=run.thread), run.session, run.id)

    def emit(self, event: KnownEvent) -> None:
        """Add an event; from now on `room` is the room after it."""
        if event.seq != self.next_seq:
            raise ValueError(f"event {event.seq} is emitted as number {self.next_seq}")
        self.events.append(event)
        if changes_sessions(event):
            self.has_sessions = self._has_new_sessions = True

    def notice(
        self,
        target: AgentId,
        words: NoticeWords,
        *,
        session: SessionId | None = None,
        thread: str = DEFAULT_THREAD,
        silent: AgentId | None = None,
        repeats: MessageId | None = None,
    ) -> None:
        """Emit a notice of the room."""
        header = self.header(SYSTEM, target, words.text, thread=thread)
        code, params = words
        self.emit(NoticePosted(*header, session, silent, repeats, code, params))

    def move_delivery(self, message: Message, agent: AgentId, state: DeliveryState, reason: str = "") -> None:
        """Emit a step of `message` on its way to `agent`; its target is the sender of the message."""
        text = f"{state}: {reason}" if reason else str(state)
        header = self.header(agent, message.sender, text, thread=message.thread)
        self.emit(DeliveryMoved(*header, message=message.id, agent=agent, state=state, reason=reason))
