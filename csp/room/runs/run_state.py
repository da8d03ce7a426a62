"""The state of a room's review runs: their messages, their progress and their texts for prompts.

`ReviewRuns.apply` is the only way to change it. It decides nothing: the events themselves contain the next
phase.
"""

from typing import Final, assert_never

import msgspec
from msgspec.structs import replace

from csp.protocol import events
from csp.protocol import review_messages as review
from csp.protocol.enums import AgentId, SessionId
from csp.protocol.session_parts import EndReason
from csp.room.sessions.session_state import cut

#: Number of ended runs remembered; number of message keys remembered per run, to detect repeated messages.
KEPT_ENDED: Final = 200
#: Why a run waits if only the approval that was asked for at its start is missing.
PLAN_TO_APPROVE: Final = "the plan needs approval"
KEPT_KEYS: Final = 500


class ReviewRun(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    session: SessionId
    thread: str
    goal: str
    builder: AgentId
    reviewer: AgentId
    started_at: float
    #: The first and the last of its events.
    first_seq: int
    seq: int
    terms: review.RunTerms = review.RunTerms()
    max_revisions: int = review.MAX_REVISIONS
    phase: review.RunPhase = review.RunPhase.SETUP
    #: When it entered this phase, and how many reminders have been posted since.
    since: float = 0.0
    reminded: int = 0
    why: str = ""
    #: The phase to which it returns after a halt.
    back: review.RunPhase | None = None
    context: review.RunContext | None = None
    plan: review.Plan | None = None
    feedback: review.PlanFeedback | None = None
    #: How many times the reviewer has asked for another plan.
    alternatives: int = 0
    telemetry: tuple[review.Telemetry, ...] = ()
    #: Cycles count from 1, and a revision starts a new one; the steps are those of this cycle.
    cycle: int = 1
    revisions: int = 0
    steps: int = 0
    update: review.ExecutionUpdate | None = None
    is_checked: bool = False
    findings: tuple[review.Finding, ...] = ()
    decision: review.ReviewDecision | None = None
    alert: review.ExecutionAlert | None = None
    alerts: int = 0
    escalations: int = 0
    end: review.SessionEnd | None = None
    keys: tuple[str, ...] = ()
    summary: str = ""
    reason: EndReason | None = None
    ended_at: float | None = None
    branch: str = ""
    is_delivered: bool = False
    #: Defects found later in the accepted work.
    defects: tuple[review.Defect, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.reason is not None

    @property
    def open_findings(self) -> tuple[review.Finding, ...]:
        return tuple(one for one in self.findings if one.is_open)

    @property
    def risk(self) -> review.Risk | None:
        return self.feedback.risk if self.feedback else None

    @property
    def owes_branch(self) -> bool:
        """Whether the accepted work has yet to be put on a branch."""
        is_wanted = self.reason is EndReason.ACCEPTED and self.terms.on_accept is review.OnAccept.BRANCH
        return is_wanted and not self.is_delivered

    def agent_of(self, role: review.RunRole) -> AgentId:
        """Return the agent with a role."""
        return self.builder if role is review.RunRole.BUILDER else self.reviewer

    def role_of(self, agent: AgentId) -> review.RunRole | None:
        """Return an agent's role, or None."""
        return next((role for role in review.RunRole if self.agent_of(role) == agent), None)


class ReviewRuns(msgspec.Struct, omit_defaults=True):
    by_id: dict[str, ReviewRun] = msgspec.field(default_factory=dict)

    def copy(self) -> "ReviewRuns":
        """Return a copy that can be changed independently."""
        return ReviewRuns(dict(self.by_id))

    def of_session(self, session: SessionId) -> ReviewRun | None:
        """Return a session's run."""
        return next((run for run in self.by_id.values() if run.session == session), None)

    def apply(self, event: events.AnyEvent) -> None:
        """Update the run that an event is about."""
        if isinstance(event, events.RunStarted):
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
        elif isinstance(event, events.RunEvent) and event.run in self.by_id:
            self.by_id[event.run] = replace(_step(self.by_id[event.run], event), seq=event.seq)
            if isinstance(event, events.RunEnded):
                # Sorted by end, so that a run that outlived many others is not forgotten first.
                self.by_id[event.run] = self.by_id.pop(event.run)
                ended = [run.id for run in self.by_id.values() if run.is_over]
                for old in ended[:-KEPT_ENDED]:
                    del self.by_id[old]

    def drop_texts(self) -> None:
        """Remove the texts of the runs that are over."""
        for key, run in self.by_id.items():
            if run.is_over:
                findings = tuple(replace(one, text="-") for one in run.findings)
                defects = tuple(replace(one, text="-") for one in run.defects)
                bare = replace(run, goal="", plan=None, feedback=None, update=None, decision=None, alert=None)
                self.by_id[key] = replace(bare, findings=findings, defects=defects, end=None, summary="")


_LaterEvent = (
    events.RunPrepared
    | events.RunSaid
    | events.RunMoved
    | events.RunReminded
    | events.RunChecked
    | events.RunEdited
    | events.RunJudged
    | events.RunDefect
    | events.RunEnded
    | events.RunDelivered
)


def _step(run: ReviewRun, event: _LaterEvent) -> ReviewRun:  # noqa: C901  # one case for each event
    match event:
        case events.RunPrepared():
            return replace(run, context=event.context)
        case events.RunSaid():
            return _said(run, event)
        case events.RunMoved():
            is_new = event.cycle != run.cycle
            is_step = event.phase is review.RunPhase.EXECUTION
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
                escalations=run.escalations + (event.phase is review.RunPhase.ESCALATED),
            )
        case events.RunReminded():
            return replace(run, reminded=event.number)
        case events.RunChecked():
            return replace(run, update=event.update, is_checked=True)
        case events.RunEdited():
            return replace(run, plan=event.plan)
        case events.RunJudged():
            findings = tuple(
                replace(one, verdict=event.verdict) if one.id == event.finding else one
                for one in run.findings
            )
            return replace(run, findings=findings)
        case events.RunDefect():
            defect = review.Defect(id=event.defect, severity=event.severity, text=event.text)
            return replace(run, defects=(*run.defects, defect))
        case events.RunEnded():
            run = replace(run, phase=review.RunPhase.ENDED, why="", back=None)
            return replace(run, reason=event.reason, ended_at=event.ts, summary=event.text)
        case events.RunDelivered():
            return replace(run, branch=event.branch, is_delivered=True)
        case _:
            assert_never(event)


def _said(run: ReviewRun, event: events.RunSaid) -> ReviewRun:
    if event.key:
        run = replace(run, keys=(*run.keys, event.key)[-KEPT_KEYS:])
    match event.body:
        case review.SessionAck():
            return replace(run, telemetry=event.body.telemetry)
        case review.PlanProposed():
            return replace(run, plan=event.body.plan)
        case review.PlanFeedback():
            more = event.body.alternative is not None
            return replace(run, feedback=event.body, alternatives=run.alternatives + more)
        case review.ExecutionUpdate():
            return replace(run, update=event.body, is_checked=False, steps=run.steps + 1)
        case review.ExecutionAlert():
            is_critical = event.body.level is review.AlertLevel.CRITICAL
            return replace(run, alerts=run.alerts + 1, alert=event.body if is_critical else run.alert)
        case review.ReviewDecision():
            # Resolved findings are closed and new ones are added; their ids were assigned with the decision.
            resolved = event.body.resolved
            old = tuple(
                replace(one, resolved=run.cycle) if one.id in resolved and one.is_open else one
                for one in run.findings
            )
            new = tuple(replace(one, cycle=run.cycle) for one in event.body.findings)
            return replace(run, decision=event.body, findings=old + new)
        case review.SessionEnd():
            return replace(run, end=event.body)
        case review.SessionStart():
            return run
        case _:
            assert_never(event.body)


# --- texts about a run -----------------------------------------------------------------------------

#: Maximum size of a diff and of test output in a prompt; the files contain everything.
MAX_DIFF: Final = 24_000
MAX_OUTPUT: Final = 4_000


def run_values(run: ReviewRun, agent: AgentId) -> dict[str, str]:
    """Return the values of the placeholders that occur only in a run's prompts."""
    role = run.role_of(agent) or review.RunRole.BUILDER
    other = review.RunRole.REVIEWER if role is review.RunRole.BUILDER else review.RunRole.BUILDER
    return {
        "run": run.id,
        "role": role,
        "other": run.agent_of(other),
        "place": (run.context and (run.context.worktree or run.context.dir)) or "(your own directory)",
        "test": run.terms.test or "(none)",
        "plan": plan_text(run.plan),
        "feedback": _feedback(run),
        "findings": "\n".join(f"- {one.id} ({one.severity}): {one.text}" for one in run.open_findings)
        or "(none)",
        "work": _work(run, is_whole=True),
        "seen": _work(run, is_whole=False),
        "cycle": str(run.cycle),
        "cycles": str(run.max_revisions + 1),
        "why": f"Note from a person: {run.why}" if run.why else "",
    }


def plan_text(plan: review.Plan | None) -> str:
    """Format a plan as a list."""
    if plan is None:
        return "(no plan yet)"
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(plan.steps, start=1))
    return f"{plan.summary}\n{steps}".strip()


def _feedback(run: ReviewRun) -> str:
    said = run.feedback
    if said is None:
        return "(none)"
    lines = [f"Risk: {said.risk}", *(f"- {note}" for note in said.notes)]
    lines += [f"- check: {one}" for one in said.checks]
    if said.alternative is not None:
        lines.append(f"The reviewer proposes another plan:\n{plan_text(said.alternative)}")
    return "\n".join(lines)


def _work(run: ReviewRun, *, is_whole: bool) -> str:
    """Format the last step with its diff and tests; for an intermediate step, only the subscribed parts."""
    update = run.update
    if update is None:
        return "(nothing yet)"
    parts = [f"{'Submitted' if update.final else 'Step'}: {update.step}"]
    tests, figures, diff = update.tests, update.figures, update.diff
    if is_whole or review.Telemetry.TESTS in run.telemetry:
        said = "Tests: none were run."
        if tests is not None:
            failed = "timed out" if tests.timed_out else f"FAILED (exit {tests.code})"
            by = "as reported by the builder" if tests.claimed else "run by CSP"
            said = f"Tests, {by}: `{tests.command}` {'passed' if tests.passed else failed}."
        output = tests.output[-MAX_OUTPUT:].strip() if tests is not None else ""
        parts.append(f"{said}\n\n{_fenced(output)}" if output else said)
    if is_whole or review.Telemetry.DIFFS in run.telemetry:
        said = "Diff, as reported by the builder" if diff else "Diff: none available"
        if figures is not None:
            counts = f"{figures.files} files, +{figures.insertions} -{figures.deletions}"
            said = f"Diff, computed by CSP from git ({counts})"
        parts.append(f"{said}:\n\n{_fenced(cut(diff, MAX_DIFF), 'diff')}" if diff else f"{said}.")
    return "\n\n".join(parts)


def _fenced(text: str, kind: str = "") -> str:
    """Put a text into a fence that is longer than any fence in it."""
    longest = max((len(run) for run in text.split() if set(run) == {"`"}), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{kind}\n{text}\n{mark}"


def summary_of(run: ReviewRun, reason: EndReason) -> str:
    """Return a summary of a run: its result and the work of each role."""
    done = run.update.step if run.update is not None else "nothing was done"
    counts = [f"{sum(one.severity is grade for one in run.findings)} {grade}" for grade in review.Severity]
    judged = f"risk {run.risk}; " if run.risk else ""
    still_open = sum(one.is_open for one in run.findings)
    judged += f"findings: {', '.join(counts)}, {still_open} open; {run.alerts} alerts"
    if run.decision is not None:
        why = f": {run.decision.rationale}" if run.decision.rationale else ""
        judged += f"; decided {run.decision.decision}{why}"
    lines = [
        f"Run {run.id}: {reason} after {run.cycle} cycles, {run.revisions} revisions.",
        f"Goal: {run.goal or '-'}",
        f"Builder {run.builder}: {run.end.summary if run.end and run.end.summary else done}",
        f"Reviewer {run.reviewer}: {judged}",
    ]
    if run.update is not None and run.update.tests is not None:
        tests = run.update.tests
        by = ", as reported by the builder" if tests.claimed else ""
        lines.append(f"Tests{by}: {'passed' if tests.passed else 'failed'}")
    if run.context is not None and run.context.worktree:
        lines.append(f"Worktree: {run.context.worktree}")
    return "\n".join(lines)
