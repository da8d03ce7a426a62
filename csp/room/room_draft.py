"""The draft of a room: a command's events and the resulting room."""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec.structs import replace

from csp.protocol.enums import (
    ALL,
    DEFAULT_THREAD,
    SYSTEM,
    AgentId,
    ControlVerb,
    DeliveryState,
    MessageId,
    Mode,
    SessionId,
)
from csp.protocol.events import ControlSent, DeliveryMoved, KnownEvent, ModeChanged, NoticePosted, TurnMoved
from csp.protocol.notes import HitView
from csp.protocol.notices import NoticeWords
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import Change, Collaboration, EndReason, Limits, Setup, Stage, TurnState, Wait
from csp.room.board_state import Boards
from csp.room.commands import DEFAULT_RULES, RoomRules
from csp.room.room_reducer import apply
from csp.room.room_state import Message, Participant, Room
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.modes import PhaseRow, row_of
from csp.room.sessions.session_reducer import Sessions, changes_sessions
from csp.room.sessions.session_state import Session, Turn

#: The first fields of every event: seq, ts, id, sender, target, thread, text.
Header = tuple[int, float, MessageId, AgentId, AgentId, str, str]
#: The first fields of every event of a run: the same, followed by the session and the id of the run.
RunHeader = tuple[int, float, MessageId, AgentId, AgentId, str, str, SessionId, str]


class RoomCopy(Room):
    """A copy of a room to which events can be applied without changing the original.

    Large tables are layered, small ones copied; a participant or a message is copied when it first changes.
    """

    own_participants: set[AgentId] = msgspec.field(default_factory=set)
    own_messages: set[MessageId] = msgspec.field(default_factory=set)

    def __post_init__(self) -> None:
        """Keep the given asks, because nothing has to be derived."""

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
            boards=Boards(layered(room.boards.by_name), layered(room.boards.keys), dict(room.boards.asks)),
            spent=room.spent,
            under_way=room.under_way,
            calls=dict(room.calls),
            asks=layered(room.asks),
        )

    def settle_in(self, room: Room) -> None:
        """Update the original room to the state of this copy, which must not be used afterwards."""
        for participant in map(self.participants.get, self.own_participants):
            if participant is not None:
                participant.queue = merged(participant.queue)
        room.seq, room.ts = self.seq, self.ts
        room.participants = self.participants
        room.messages, room.waiting = merged(self.messages), merged(self.waiting)
        room.epochs, room.queries = self.epochs, self.queries
        room.runs, room.sessions, room.wakeups = self.runs, self.sessions, self.wakeups
        boards = self.boards
        room.boards = Boards(merged(boards.by_name), merged(boards.keys), boards.asks)
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
    """A collector of one command's events; `room` is always the room after them.

    An event is built by its own constructor: `draft.emit(Left(*draft.header(agent, ALL, text), reason=...))`.
    The given room is not changed unless its owner calls `take_over` at the end.
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
        #: The number of the next event.
        self.next_seq = room.seq + 1
        #: The reasons to wake the orchestrator, by session.
        self.wake_reasons: dict[SessionId, list[str]] = {}
        #: Whiteboard hits for the agents to which this command gives turns.
        self.hits: Mapping[str, tuple[HitView, ...]] = hits or {}
        #: The current time, for deadlines.
        self.clock = now
        #: The journal's time, which never decreases.
        self.now = max(now, room.ts)
        #: Whether there is any session, running or ended; most messages are sent in rooms without one.
        self.has_sessions = bool(room.sessions.by_id)
        self._room = room
        #: How many events have been applied to `_room`, and whether a later one changes a session.
        self._applied = 0
        self._has_new_sessions = False

    @property
    def room(self) -> Room:
        """The room after the events so far."""
        # Events are applied lazily, because the room after a command's last event is rarely needed.
        if self._applied < len(self.events):
            room = self._room if self._applied else RoomCopy.of(self.before)
            for event in self.events[self._applied :]:
                room = apply(room, event)
            self._room = room
            self._applied = len(self.events)
            self._has_new_sessions = False
        return self._room

    def take_over(self) -> Room:
        """Apply the events to the given room and return it; only the owner of that room may call this.

        Events that were applied while deciding are not applied again.
        """
        room = self.before
        if isinstance(self._room, RoomCopy):
            self._room.settle_in(room)
        for event in self.events[self._applied :]:
            room = apply(room, event)
        return room

    @property
    def sessions(self) -> Sessions:
        """The sessions after the events so far; most events do not change them."""
        return self.room.sessions if self._has_new_sessions else self._room.sessions

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
        """Return the first fields of the next event for a message or a control, which are delivered."""
        return self.header(sender, target, text, thread=thread, id=id or MessageId(f"m-{self.next_seq}"))

    def run_header(self, run: ReviewRun, text: str, *, by: AgentId = SYSTEM) -> RunHeader:
        """Return the first fields of the next event for a run's event."""
        return (*self.header(by, ALL, text, thread=run.thread), run.session, run.id)

    def emit(self, event: KnownEvent) -> None:
        """Add an event; from now on `room` is the room after it."""
        if event.seq != self.next_seq:
            raise ValueError(f"event {event.seq} was emitted as number {self.next_seq}")
        self.events.append(event)
        self.next_seq += 1
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
        """Emit a notice from the room."""
        header = self.header(SYSTEM, target, words.text, thread=thread)
        code, params = words
        self.emit(NoticePosted(*header, session, silent, repeats, code, params))

    def move_delivery(self, message: Message, agent: AgentId, state: DeliveryState, reason: str = "") -> None:
        """Emit a new state of the delivery of `message` to `agent`, addressed to its sender."""
        text = f"{state}: {reason}" if reason else str(state)
        header = self.header(agent, message.sender, text, thread=message.thread)
        self.emit(DeliveryMoved(*header, message=message.id, agent=agent, state=state, reason=reason))


# --- a dict layered on top of another one ---------------------------------------------------------
# It stores its own changes, because copying a table of ten thousand entries for each command is too slow.


K = TypeVar("K")
V = TypeVar("V")
#: Up to this many entries, a copy is faster than a layered dict.
SMALL: Final = 64


def layered(base: dict[K, V]) -> dict[K, V]:
    """Return a table with the entries of `base` that can be changed independently of it."""
    return dict(base) if len(base) <= SMALL else LayeredDict(base)


def merged(table: dict[K, V]) -> dict[K, V]:
    """Return a table from `layered` as a plain dict; the original base must not be used afterwards."""
    return table.merge() if isinstance(table, LayeredDict) else table


class LayeredDict(dict[K, V]):
    """The entries of `base` with changes on top; `base` itself is not changed.

    The dict's own storage contains the entries that were set here. The order is that of a plain dict.
    """

    __slots__ = ("_base", "_hidden")

    def __init__(self, base: dict[K, V]) -> None:
        super().__init__()
        self._base = base
        #: Keys of `base` that were removed here; a key that is set again is last.
        self._hidden: set[K] = set()

    def merge(self) -> dict[K, V]:
        """Apply the changes to `base` and return it."""
        for key in self._hidden:
            del self._base[key]
        for key in dict.__iter__(self):
            self._base[key] = dict.__getitem__(self, key)
        return self._base

    def __missing__(self, key: K) -> V:
        if key in self._hidden:
            raise KeyError(key)
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or (key not in self._hidden and key in self._base)

    def get(self, key: K, default: Any = None) -> Any:
        if dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        return default if key in self._hidden else self._base.get(key, default)

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        dict.pop(self, key, None)
        if key in self._base:
            self._hidden.add(key)

    def pop(self, key: K, *default: Any) -> Any:
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def __iter__(self) -> Iterator[K]:
        yield from (key for key in self._base if key not in self._hidden)
        yield from (key for key in dict.__iter__(self) if self._is_last(key))

    def __reversed__(self) -> Iterator[K]:
        yield from (key for key in dict.__reversed__(self) if self._is_last(key))
        yield from (key for key in reversed(self._base) if key not in self._hidden)

    def __len__(self) -> int:
        last = sum(map(self._is_last, dict.__iter__(self)))
        return len(self._base) - len(self._hidden) + last

    def _is_last(self, key: K) -> bool:
        """Return whether a key that was set here follows those of `base`."""
        return key in self._hidden or key not in self._base

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and dict(self.items()) == dict(other.items())

    __hash__ = None

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def _unsupported(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError("a layered dict does not support this method")

    # These would access only the dict's own storage.
    setdefault = popitem = clear = copy = __or__ = __ror__ = __ior__ = _unsupported


# --- one session of a room draft ------------------------------------------------------------------


INTERRUPT_TTL_S: Final = 30.0
#: The first fields of most events of a session: the header of every event, then the session.
SessionHeader = tuple[int, float, MessageId, AgentId, AgentId, str, str, SessionId]


class SessionDraft:
    """A session after the events so far, with methods to emit more of its events."""

    def __init__(self, room_draft: RoomDraft, session: SessionId) -> None:
        self.room_draft = room_draft
        self.rules, self.hits = room_draft.rules, room_draft.hits
        self.clock, self.now = room_draft.clock, room_draft.now
        self._id = session

    # --- reading ---------------------------------------------------------------------------------

    @property
    def room(self) -> Room:
        return self.room_draft.room

    @property
    def session(self) -> Session:
        return self.room_draft.sessions.by_id[self._id]

    @property
    def run(self) -> ReviewRun | None:
        """The run of the session, if it is a review."""
        return self.room.runs.of_session(self._id) if self.session.setup.mode is Mode.REVIEW else None

    @property
    def known_run(self) -> ReviewRun:
        """The run of a session that is known to have one."""
        return next(run for run in self.room.runs.by_id.values() if run.session == self._id)

    @property
    def terms(self) -> Collaboration:
        """The terms of the collaboration, or the default terms for any other session."""
        return self.session.setup.collaboration or Collaboration()

    @property
    def phase(self) -> PhaseRow:
        """The table row of the session's current phase."""
        session = self.session
        return row_of(session.setup).phases[session.stage.row]

    def participant(self, agent: AgentId) -> Participant | None:
        """Return a participant if it is still in the room."""
        return self.room.participants.get(agent)

    def synthesisers(self) -> tuple[AgentId, ...]:
        """Return the author of the synthesis: the agent named for it, else the orchestrator, else None.

        In a collaboration, the first agent whose last turn did not fail replaces the named one.
        """
        session = self.session
        if session.setup.collaboration is None:
            orchestrator = self.room.orchestrator
            named = session.setup.synth or (orchestrator.id if orchestrator else None)
            return (named,) if named is not None and self.participant(named) else ()
        wanted = [agent for agent in (session.setup.synth, *session.agents) if agent is not None]
        here = [one for one in map(self.participant, wanted) if one is not None and one.online]
        fit = [one.id for one in here if one.id not in session.failed and not session.is_benched(one.id)]
        return tuple((fit or [one.id for one in here])[:1])

    # --- emitting --------------------------------------------------------------------------------

    def header(self, sender: AgentId, text: str) -> SessionHeader:
        """Return the first fields of the next event for an event of the session."""
        return (*self.room_draft.header(sender, ALL, text, thread=self.session.thread), self._id)

    def run_header(self, text: str, *, by: AgentId | None = None) -> RunHeader:
        """Return the first fields of the next event for an event of the session's run."""
        return self.room_draft.run_header(self.known_run, text, by=by or SYSTEM)

    def change(
        self,
        change: Change,
        text: str,
        *,
        by: AgentId = SYSTEM,
        setup: Setup | None = None,
        stage: Stage | None = None,
        agent: AgentId | None = None,
        reason: EndReason | None = None,
        rounds: int | None = None,
        minutes: float | None = None,
        sealed: int = 0,
        limits: Limits | None = None,
    ) -> None:
        """Emit a change of the session as a whole."""
        self.room_draft.emit(
            ModeChanged(
                *self.header(by, text),
                change=change,
                setup=setup,
                stage=stage,
                agent=agent,
                reason=reason,
                rounds=rounds,
                minutes=minutes,
                sealed=sealed,
                limits=limits,
            )
        )

    def move(
        self,
        turn: Turn,
        state: TurnState,
        reason: str = "",
        *,
        warned: bool = False,
        handoff: Handoff | None = None,
        wait: Wait | None = None,
    ) -> None:
        """Emit a turn's new state, or a remark about the turn."""
        text = f"{turn.agent}: {state}" + (f" ({reason})" if reason else "")
        self.room_draft.emit(
            TurnMoved(
                *self.header(turn.agent, text),
                turn=turn.id,
                agent=turn.agent,
                state=state,
                round=turn.round,
                reason=reason,
                warned=warned,
                handoff=handoff,
                wait=wait,
            )
        )

    def notice(self, words: NoticeWords, target: AgentId = ALL) -> None:
        """Emit a notice about the session."""
        self.room_draft.notice(target, words, session=self._id, thread=self.session.thread)

    def withdraw(self, turn: Turn) -> bool:
        """Withdraw the request for a turn; return whether that was still possible."""
        message = self.room.message(turn.message)
        # A request that has arrived may be too old to be remembered.
        if message is None or turn.state is not TurnState.ASKED:
            return False
        if not message.deliveries[turn.agent].is_untouched:
            return False
        self.room_draft.move_delivery(message, turn.agent, DeliveryState.WITHDRAWN)
        return True

    def interrupt(self, turn: Turn) -> None:
        """Interrupt the agent that is working on a turn."""
        participant = self.participant(turn.agent)
        if participant is not None and participant.online:
            verb = ControlVerb.INTERRUPT
            header = self.room_draft.message_header(SYSTEM, turn.agent, verb)
            expires = self.clock + INTERRUPT_TTL_S
            self.room_draft.emit(ControlSent(*header, control=verb, expires=expires, turn=turn.id))

    def wake(self, reason: str) -> None:
        """Wake the orchestrator after all other events of this command."""
        self.room_draft.wake_reasons.setdefault(self._id, []).append(reason)
