"""One session on the desk of whoever decides what becomes of it."""

from typing import Any, Final

from msgspec.structs import replace

from csp.protocol.enums import (
    ALL,
    SYSTEM,
    AgentId,
    ControlVerb,
    DeliveryState,
    JoinRole,
    Mode,
    SessionId,
    TurnId,
)
from csp.protocol.events import ControlSent, KnownEvent, Left, ModeChanged, StateChanged, TurnMoved, UsageSeen
from csp.protocol.requests import Handoff, Usage
from csp.protocol.session_parts import Change, Collaboration, TurnState
from csp.room.messages.inbox import delivery_view
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Participant, Room
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.modes import PhaseRow, row_of
from csp.room.sessions.session_state import Session, Turn

INTERRUPT_TTL_S: Final = 30.0


class SessionDraft:
    """Append events of a session; it is at once what they make it."""

    def __init__(self, room: Room, batch: RoomDraft, rules: RoomRules, session: SessionId) -> None:
        self.room = room
        self.batch = batch
        self.rules = rules
        self._id = session

    @property
    def session(self) -> Session:
        return self.batch.sessions.by_id[self._id]

    @property
    def run(self) -> ReviewRun | None:
        """The run that the session is about, if it is about one."""
        return self.batch.runs.of_session(self._id) if self.session.setup.mode is Mode.REVIEW else None

    @property
    def known_run(self) -> ReviewRun:
        """The run of a session that has one."""
        return next(run for run in self.batch.runs.by_id.values() if run.session == self._id)

    def add_run(
        self, kind: type[KnownEvent], text: str, fields: dict[str, Any], *, by: AgentId | None = None
    ) -> None:
        """Note something of the run."""
        self.batch.add_run(self.known_run, kind, text, fields, by=by or SYSTEM)

    @property
    def terms(self) -> Collaboration:
        """The terms of a session that is a collaboration; of any other, what they would be."""
        return self.session.setup.collaboration or Collaboration()

    @property
    def phase(self) -> PhaseRow:
        """The row of the phase that the session is in."""
        return row_of(self.session.setup).phases[self.session.stage.row]

    def change(
        self, change: Change, text: str, fields: dict[str, Any] | None = None, *, by: AgentId = SYSTEM
    ) -> None:
        """Note what happened to the session as a whole."""
        thread = self.session.thread
        known = {"session_id": self._id, "change": change}
        self.batch.add(ModeChanged, by, ALL, text, known | (fields or {}), thread=thread)

    def move(
        self,
        turn: Turn,
        state: TurnState,
        reason: str = "",
        *,
        warned: bool = False,
        handoff: Handoff | None = None,
    ) -> None:
        """Bring an open turn to another state, or note something of it."""
        fields: dict[str, Any] = {"turn": turn.id, "agent": turn.agent, "state": state, "round": turn.round}
        text = f"{turn.agent}: {state}" + (f" ({reason})" if reason else "")
        fields |= {"session_id": self._id, "reason": reason, "warned": warned, "handoff": handoff}
        self.batch.add(TurnMoved, turn.agent, ALL, text, fields, thread=self.session.thread)

    def see_usage(self, agent: AgentId, turn: TurnId, usage: Usage) -> None:
        """Note what a turn has used so far."""
        text = f"{agent}: {usage.new:,} new tokens so far"
        fields: dict[str, Any] = {"session_id": self._id, "turn": turn, "usage": usage}
        self.batch.add(UsageSeen, agent, ALL, text, fields, thread=self.session.thread)

    def notice(self, text: str, target: AgentId = ALL) -> None:
        """Tell the people something about the session."""
        self.batch.notice(target, text, session=self._id, thread=self.session.thread)

    def participant(self, agent: AgentId) -> Participant | None:
        """Return a participant as it is after the events of the batch, if it is still in the room."""
        known, news = self.room.participants.get(agent), self.batch.news.get(agent)
        if known is None or (isinstance(news, Left) and news.removed):
            return None
        if isinstance(news, StateChanged) and news.state is not None:
            return replace(known, state=news.state, until=news.until)
        return known

    # --- the asks of its turns -------------------------------------------------------------------

    def delivery_of(self, turn: Turn) -> str:
        """Return in one word why the ask of a turn has not arrived."""
        message = self.room.message(turn.message)
        if message is None:
            return DeliveryState.QUEUED
        view = delivery_view(self.room, message, turn.agent)
        return view.reason or view.state

    def withdraw(self, turn: Turn) -> bool:
        """Take the ask of a turn back; tell whether that was still possible."""
        message = self.room.message(turn.message)
        # One that has arrived may be too old to be remembered.
        has_arrived = turn.state is not TurnState.ASKED
        is_gone = has_arrived or (message is not None and not message.deliveries[turn.agent].is_untouched)
        if is_gone or (turn.message, turn.agent) in self.batch.stepped:
            return False
        thread = self.session.thread
        self.batch.step(turn.message, SYSTEM, thread, turn.agent, DeliveryState.WITHDRAWN)
        return True

    def interrupt(self, turn: Turn) -> None:
        """Stop the work on a turn, wherever it is under way."""
        participant = self.participant(turn.agent)
        if participant is not None and participant.online:
            fields: dict[str, Any] = {"control": ControlVerb.INTERRUPT, "turn": turn.id}
            fields["expires"] = self.batch.clock + INTERRUPT_TTL_S
            self.batch.add(ControlSent, SYSTEM, turn.agent, ControlVerb.INTERRUPT, fields)

    # --- the orchestrator ------------------------------------------------------------------------

    def orchestrator(self) -> Participant | None:
        """Return the participant that leads the room, if one is here."""
        here = filter(None, map(self.participant, self.room.participants))
        return next((one for one in here if one.role is JoinRole.ORCHESTRATOR and one.online), None)

    def synthesisers(self) -> tuple[AgentId, ...]:
        """Return who writes the synthesis: who was named for it, else the orchestrator, else nobody."""
        if self.session.setup.collaboration is not None:
            return self._healthy()
        orchestrator = self.orchestrator()
        named = self.session.setup.synth or (orchestrator.id if orchestrator else None)
        return (named,) if named is not None and self.participant(named) else ()

    def _healthy(self) -> tuple[AgentId, ...]:
        """Return who can sum up a collaboration: who should, else the first whose last turn did not fail."""
        session = self.session
        wanted = [agent for agent in (session.setup.synth, *session.agents) if agent is not None]
        here = [one for one in map(self.participant, wanted) if one is not None and one.online]
        fit = [one.id for one in here if one.id not in session.failed and not session.is_benched(one.id)]
        return tuple((fit or [one.id for one in here])[:1])

    def wake(self, reason: str) -> None:
        """Have the orchestrator hear of it, once everything has happened that comes of it."""
        self.batch.reasons.setdefault(self._id, []).append(reason)
