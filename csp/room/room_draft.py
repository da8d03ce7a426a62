"""The events of one command, numbered as they will stand in the journal."""

from collections.abc import Mapping
from typing import Any, Final

from csp.protocol.enums import ALL, DEFAULT_THREAD, SYSTEM, AgentId, DeliveryState, MessageId, SessionId
from csp.protocol.events import (
    ControlSent,
    DeliveryMoved,
    KnownEvent,
    Left,
    MessageEvent,
    NoticePosted,
    StateChanged,
)
from csp.protocol.notes import HitView
from csp.room.room_state import Message, Room
from csp.room.runs.run_state import ReviewRun, ReviewRuns
from csp.room.sessions.session_registry import Sessions

_MESSAGES: Final = (MessageEvent, ControlSent)


class RoomDraft:
    """Collect events; ids come from the journal's own counter."""

    def __init__(self, room: Room, now: float, hits: Mapping[str, tuple[HitView, ...]] | None = None) -> None:
        self.events: list[KnownEvent] = []
        self._room = room
        self._sessions: Sessions | None = None
        self._runs: ReviewRuns | None = None
        self._seq = room.seq
        #: Where deliveries moved to in this batch: the room does not know yet.
        self.stepped: dict[tuple[MessageId, AgentId], DeliveryState] = {}
        #: What became of participants in this batch.
        self.news: dict[AgentId, Left | StateChanged] = {}
        #: Why the orchestrator should hear of a session.
        self.reasons: dict[SessionId, list[str]] = {}
        #: What the whiteboard has for those who are asked in this batch.
        self.hits: Mapping[str, tuple[HitView, ...]] = hits or {}
        #: What the clock says, for deadlines; what the journal says, whose times never fall.
        self.clock = now
        self.now = max(now, room.ts)

    def add(
        self,
        kind: type[KnownEvent],
        sender: AgentId,
        target: AgentId,
        text: str,
        fields: dict[str, Any],
        *,
        thread: str = DEFAULT_THREAD,
        id: MessageId | None = None,
    ) -> None:
        """Append an event; `fields` are those of its own kind."""
        self._seq += 1
        own = f"m-{self._seq}" if issubclass(kind, _MESSAGES) else f"e-{self._seq}"
        event = kind(self._seq, self.now, id or MessageId(own), sender, target, thread, text, **fields)
        self.events.append(event)
        if isinstance(event, Left | StateChanged):
            self.news[sender] = event
        if self._sessions is not None:
            self._sessions.take(event)
        if self._runs is not None:
            self._runs.take(event)

    @property
    def next_seq(self) -> int:
        """The number of the event that comes next."""
        return self._seq + 1

    @property
    def has_sessions(self) -> bool:
        """Whether there is any session, over or not; most messages are sent where there is none."""
        return bool((self._sessions or self._room.sessions).by_id)

    @property
    def sessions(self) -> Sessions:
        """The sessions as they are after the events of the batch; the room's own stay as they were."""
        if self._sessions is None:
            self._sessions = self._room.sessions.copy()
            for event in self.events:
                self._sessions.take(event)
        return self._sessions

    @property
    def runs(self) -> ReviewRuns:
        """The runs as they are after the events of the batch; the room's own stay as they were."""
        if self._runs is None:
            self._runs = self._room.runs.copy()
            for event in self.events:
                self._runs.take(event)
        return self._runs

    def add_run(
        self,
        run: ReviewRun,
        kind: type[KnownEvent],
        text: str,
        fields: dict[str, Any],
        *,
        by: AgentId = SYSTEM,
    ) -> None:
        """Append an event of a run."""
        known = {"session_id": run.session, "run": run.id}
        self.add(kind, by, ALL, text, known | fields, thread=run.thread)

    def notice(
        self,
        target: AgentId,
        text: str,
        *,
        session: SessionId | None = None,
        thread: str = DEFAULT_THREAD,
        repeats: MessageId | None = None,
    ) -> None:
        """Append a notice of the room."""
        fields = {"session_id": session, "repeats": repeats}
        self.add(NoticePosted, SYSTEM, target, text, fields, thread=thread)

    def deliver(self, message: Message, agent: AgentId, state: DeliveryState, reason: str = "") -> None:
        """Append a step of `message` on its way to `agent`; whoever sent it is the one to be told."""
        self.step(message.id, message.sender, message.thread, agent, state, reason)

    def step(
        self,
        message: MessageId,
        sender: AgentId,
        thread: str,
        agent: AgentId,
        state: DeliveryState,
        reason: str = "",
    ) -> None:
        """Append a step of a message that may be part of the batch itself."""
        text = f"{state}: {reason}" if reason else str(state)
        fields = {"message": message, "agent": agent, "state": state, "reason": reason}
        self.add(DeliveryMoved, agent, sender, text, fields, thread=thread)
        self.stepped[message, agent] = state
