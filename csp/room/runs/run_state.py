"""The state of the runs of a room: what was said in each of them, how far it has come.

`ReviewRuns.apply` is the one way from one state to the next. It decides nothing: which phase follows which
stands in the events themselves.
"""

from typing import Final, assert_never

import msgspec
from msgspec.structs import replace

from csp.protocol.enums import AgentId, SessionId
from csp.protocol.events import (
    AnyEvent,
    RunChecked,
    RunDefect,
    RunDelivered,
    RunEdited,
    RunEnded,
    RunEvent,
    RunJudged,
    RunMoved,
    RunPrepared,
    RunReminded,
    RunSaid,
    RunStarted,
)
from csp.protocol.review_messages import (
    MAX_REVISIONS,
    AlertLevel,
    Defect,
    ExecutionAlert,
    ExecutionUpdate,
    Finding,
    OnAccept,
    Plan,
    PlanFeedback,
    PlanProposed,
    ReviewDecision,
    Risk,
    RunContext,
    RunPhase,
    RunRole,
    RunTerms,
    SessionAck,
    SessionEnd,
    SessionStart,
    Telemetry,
)
from csp.protocol.session_parts import EndReason

#: How many runs that have ended are remembered; how many messages of a run, to tell one that comes again.
KEPT_ENDED: Final = 200
KEPT_KEYS: Final = 500


class ReviewRun(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    session: SessionId
    thread: str
    goal: str
    builder: AgentId
    reviewer: AgentId
    started_at: float
    #: The first, the last of its events.
    first_seq: int
    seq: int
    terms: RunTerms = RunTerms()
    max_revisions: int = MAX_REVISIONS
    phase: RunPhase = RunPhase.SETUP
    #: When it came to this phase, how often somebody was reminded of that.
    since: float = 0.0
    reminded: int = 0
    why: str = ""
    #: Where it goes on after a halt.
    back: RunPhase | None = None
    context: RunContext | None = None
    plan: Plan | None = None
    feedback: PlanFeedback | None = None
    #: How often the reviewer wanted another plan.
    alternatives: int = 0
    telemetry: tuple[Telemetry, ...] = ()
    #: Cycles count from 1, a revision begins a new one; the steps are those of this cycle.
    cycle: int = 1
    revisions: int = 0
    steps: int = 0
    update: ExecutionUpdate | None = None
    is_checked: bool = False
    findings: tuple[Finding, ...] = ()
    decision: ReviewDecision | None = None
    alert: ExecutionAlert | None = None
    alerts: int = 0
    escalations: int = 0
    end: SessionEnd | None = None
    keys: tuple[str, ...] = ()
    summary: str = ""
    reason: EndReason | None = None
    ended_at: float | None = None
    branch: str = ""
    is_delivered: bool = False
    #: What was found in the accepted work afterwards.
    defects: tuple[Defect, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.reason is not None

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.is_open)

    @property
    def risk(self) -> Risk | None:
        return self.feedback.risk if self.feedback else None

    @property
    def owes_branch(self) -> bool:
        """Whether what was accepted is still to be put on a branch."""
        is_wanted = self.reason is EndReason.ACCEPTED and self.terms.on_accept is OnAccept.BRANCH
        return is_wanted and not self.is_delivered

    def agent_of(self, role: RunRole) -> AgentId:
        """Return who plays a role."""
        return self.builder if role is RunRole.BUILDER else self.reviewer

    def role_of(self, agent: AgentId) -> RunRole | None:
        """Return which role somebody plays, if any."""
        return next((role for role in RunRole if self.agent_of(role) == agent), None)


class ReviewRuns(msgspec.Struct, omit_defaults=True):
    by_id: dict[str, ReviewRun] = msgspec.field(default_factory=dict)

    def copy(self) -> "ReviewRuns":
        """Return runs that can go on by themselves."""
        return ReviewRuns(dict(self.by_id))

    def of_session(self, session: SessionId) -> ReviewRun | None:
        """Return the run of a session."""
        return next((run for run in self.by_id.values() if run.session == session), None)

    def apply(self, event: AnyEvent) -> None:
        """Bring the run that an event is about up to date."""
        if isinstance(event, RunStarted):
            self.by_id[event.run] = ReviewRun(
                id=event.run,
                session=event.session_id,
                thread=event.thread,
                goal=event.text,
                builder=event.builder,
                reviewer=event.reviewer,
                started_at=event.ts,
                since=event.ts,
                first_seq=event.seq,
                seq=event.seq,
                terms=event.terms,
                max_revisions=event.max_revisions,
            )
        elif isinstance(event, RunEvent) and event.run in self.by_id:
            self.by_id[event.run] = replace(_step(self.by_id[event.run], event), seq=event.seq)
            if isinstance(event, RunEnded):
                # In the order of their ends: one that outlives many others is not the first to go.
                self.by_id[event.run] = self.by_id.pop(event.run)
                ended = [run.id for run in self.by_id.values() if run.is_over]
                for old in ended[:-KEPT_ENDED]:
                    del self.by_id[old]

    def drop_texts(self) -> None:
        """Take out what was said in the runs that are over."""
        for key, run in self.by_id.items():
            if run.is_over:
                findings = tuple(replace(one, text="-") for one in run.findings)
                defects = tuple(replace(one, text="-") for one in run.defects)
                bare = replace(run, goal="", plan=None, feedback=None, update=None, decision=None, alert=None)
                self.by_id[key] = replace(bare, findings=findings, defects=defects, end=None, summary="")


_LaterEvent = (
    RunPrepared
    | RunSaid
    | RunMoved
    | RunReminded
    | RunChecked
    | RunEdited
    | RunJudged
    | RunDefect
    | RunEnded
    | RunDelivered
)


def _step(run: ReviewRun, event: _LaterEvent) -> ReviewRun:  # noqa: C901  # one case for each event
    match event:
        case RunPrepared():
            return replace(run, context=event.context)
        case RunSaid():
            return _said(run, event)
        case RunMoved():
            is_new = event.cycle != run.cycle
            is_step = event.phase is RunPhase.EXECUTION
            return replace(
                run,
                phase=event.phase,
                since=event.ts,
                reminded=0,
                why=event.why,
                back=event.back,
                cycle=event.cycle,
                revisions=event.revisions,
                steps=0 if is_new else run.steps,
                is_checked=run.is_checked and not is_step,
                escalations=run.escalations + (event.phase is RunPhase.ESCALATED),
            )
        case RunReminded():
            return replace(run, reminded=event.number)
        case RunChecked():
            return replace(run, update=event.update, is_checked=True)
        case RunEdited():
            return replace(run, plan=event.plan)
        case RunJudged():
            findings = tuple(
                replace(one, verdict=event.verdict) if one.id == event.finding else one
                for one in run.findings
            )
            return replace(run, findings=findings)
        case RunDefect():
            defect = Defect(id=event.defect, severity=event.severity, text=event.text)
            return replace(run, defects=(*run.defects, defect))
        case RunEnded():
            run = replace(run, phase=RunPhase.ENDED, why="", back=None)
            return replace(run, reason=event.reason, ended_at=event.ts, summary=event.text)
        case RunDelivered():
            return replace(run, branch=event.branch, is_delivered=True)
        case _:
            assert_never(event)


def _said(run: ReviewRun, event: RunSaid) -> ReviewRun:
    if event.key:
        run = replace(run, keys=(*run.keys, event.key)[-KEPT_KEYS:])
    match event.body:
        case SessionAck():
            return replace(run, telemetry=event.body.telemetry)
        case PlanProposed():
            return replace(run, plan=event.body.plan)
        case PlanFeedback():
            more = event.body.alternative is not None
            return replace(run, feedback=event.body, alternatives=run.alternatives + more)
        case ExecutionUpdate():
            return replace(run, update=event.body, is_checked=False, steps=run.steps + 1)
        case ExecutionAlert():
            is_critical = event.body.level is AlertLevel.CRITICAL
            return replace(run, alerts=run.alerts + 1, alert=event.body if is_critical else run.alert)
        case ReviewDecision():
            # What was resolved is closed, what is new is added; its ids were given when it was decided on.
            resolved = event.body.resolved
            old = tuple(
                replace(one, resolved=run.cycle) if one.id in resolved and one.is_open else one
                for one in run.findings
            )
            new = tuple(replace(one, cycle=run.cycle) for one in event.body.findings)
            return replace(run, decision=event.body, findings=old + new)
        case SessionEnd():
            return replace(run, end=event.body)
        case SessionStart():
            return run
        case _:
            assert_never(event.body)
