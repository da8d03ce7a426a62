"""One session of a room draft."""

from collections.abc import Mapping
from typing import Final

from csp.protocol.enums import (
    ALL,
    SYSTEM,
    AgentId,
    ControlVerb,
    DeliveryState,
    JoinRole,
    MessageId,
    Mode,
    SessionId,
)
from csp.protocol.events import ControlSent, ModeChanged, TurnMoved
from csp.protocol.notes import HitView
from csp.protocol.notices import NoticeWords
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import Change, Collaboration, EndReason, Setup, Stage, TurnState
from csp.room.room_draft import RoomDraft, RunHeader
from csp.room.room_rules import RoomRules
from csp.room.room_state import Participant, Room
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.modes import PhaseRow, row_of
from csp.room.sessions.session_registry import Sessions
from csp.room.sessions.session_state import Session, Turn

INTERRUPT_TTL_S: Final = 30.0
#: What most events of a session begin with: the header of every event, then the session.
SessionHeader = tuple[int, float, MessageId, AgentId, AgentId, str, str, SessionId]


class SessionDraft:
    """A session as it is after the events so far, with ways to emit more events of it."""

    def __init__(self, room_draft: RoomDraft, session: SessionId) -> None:
        self.room_draft = room_draft
        self._id = session

    # --- what it reads ---------------------------------------------------------------------------

    @property
    def room(self) -> Room:
        return self.room_draft.room

    @property
    def rules(self) -> RoomRules:
        return self.room_draft.rules

    @property
    def clock(self) -> float:
        return self.room_draft.clock

    @property
    def now(self) -> float:
        return self.room_draft.now

    @property
    def hits(self) -> Mapping[str, tuple[HitView, ...]]:
        return self.room_draft.hits

    @property
    def sessions(self) -> Sessions:
        return self.room_draft.sessions

    @property
    def session(self) -> Session:
        return self.room_draft.sessions.by_id[self._id]

    @property
    def run(self) -> ReviewRun | None:
        """The run that the session is about, if it is about one."""
        return self.room.runs.of_session(self._id) if self.session.setup.mode is Mode.REVIEW else None

    @property
    def known_run(self) -> ReviewRun:
        """The run of a session that has one."""
        return next(run for run in self.room.runs.by_id.values() if run.session == self._id)

    @property
    def terms(self) -> Collaboration:
        """The terms of a session that is a collaboration; of any other, what they would be."""
        return self.session.setup.collaboration or Collaboration()

    @property
    def phase(self) -> PhaseRow:
        """The row of the phase that the session is in."""
        session = self.session
        return row_of(session.setup).phases[session.stage.row]

    def participant(self, agent: AgentId) -> Participant | None:
        """Return a participant that is still in the room."""
        return self.room.participants.get(agent)

    def orchestrator(self) -> Participant | None:
        """Return the participant that leads the room, if it is online."""
        here = self.room.participants.values()
        return next((one for one in here if one.role is JoinRole.ORCHESTRATOR and one.online), None)

    def synthesisers(self) -> tuple[AgentId, ...]:
        """Return who writes the synthesis: who was named for it, else the orchestrator, else nobody.

        In a collaboration, the first agent whose last turn did not fail takes the place of the named one.
        """
        session = self.session
        if session.setup.collaboration is None:
            orchestrator = self.orchestrator()
            named = session.setup.synth or (orchestrator.id if orchestrator else None)
            return (named,) if named is not None and self.participant(named) else ()
        wanted = [agent for agent in (session.setup.synth, *session.agents) if agent is not None]
        here = [one for one in map(self.participant, wanted) if one is not None and one.online]
        fit = [one.id for one in here if one.id not in session.failed and not session.is_benched(one.id)]
        return tuple((fit or [one.id for one in here])[:1])

    # --- what it emits ---------------------------------------------------------------------------

    def header(self, sender: AgentId, text: str) -> SessionHeader:
        """Return the first fields of the next event if it is one of the session."""
        return (*self.room_draft.header(sender, ALL, text, thread=self.session.thread), self._id)

    def run_header(self, text: str, *, by: AgentId | None = None) -> RunHeader:
        """Return the first fields of the next event if it is one of the session's run."""
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
    ) -> None:
        """Emit what happened to the session as a whole."""
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
    ) -> None:
        """Bring a turn to another state, or note something about it."""
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
            )
        )

    def notice(self, words: NoticeWords, target: AgentId = ALL) -> None:
        """Emit a notice about the session."""
        self.room_draft.notice(target, words, session=self._id, thread=self.session.thread)

    def withdraw(self, turn: Turn) -> bool:
        """Withdraw the ask of a turn; tell whether that was still possible."""
        message = self.room.message(turn.message)
        # An ask that has arrived may be too old to be remembered.
        if message is None or turn.state is not TurnState.ASKED:
            return False
        if not message.deliveries[turn.agent].is_untouched:
            return False
        self.room_draft.move_delivery(message, turn.agent, DeliveryState.WITHDRAWN)
        return True

    def interrupt(self, turn: Turn) -> None:
        """Interrupt the agent of a turn while it works on it."""
        participant = self.participant(turn.agent)
        if participant is not None and participant.online:
            verb = ControlVerb.INTERRUPT
            header = self.room_draft.message_header(SYSTEM, turn.agent, verb)
            expires = self.clock + INTERRUPT_TTL_S
            self.room_draft.emit(ControlSent(*header, control=verb, expires=expires, turn=turn.id))

    def wake(self, reason: str) -> None:
        """Have the orchestrator woken once everything that follows has happened."""
        self.room_draft.wake_reasons.setdefault(self._id, []).append(reason)
