"""A run in words: what a role is told with its turn, what the run came to."""

from typing import Final

from csp.protocol.enums import AgentId
from csp.protocol.review_messages import (
    ExecutionUpdate,
    Plan,
    RunRole,
    Severity,
    Telemetry,
    TestResult,
)
from csp.protocol.session_parts import EndReason
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.cost_estimate import cut

#: How much of a diff, of the output of tests a prompt holds; the files hold all of it.
MAX_DIFF: Final = 24_000
MAX_OUTPUT: Final = 4_000


def run_values(run: ReviewRun, agent: AgentId) -> dict[str, str]:
    """Return what the placeholders of a prompt stand for besides those of every session."""
    role = run.role_of(agent) or RunRole.BUILDER
    other = RunRole.REVIEWER if role is RunRole.BUILDER else RunRole.BUILDER
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
        "why": f"Note of a person: {run.why}" if run.why else "",
    }


def plan_text(plan: Plan | None) -> str:
    """Return a plan as a list."""
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
    """Return the last step with its diff and its tests; of a step on the way, what was subscribed to."""
    update = run.update
    if update is None:
        return "(nothing yet)"
    parts = [f"{'Submitted' if update.final else 'Step'}: {update.step}"]
    if is_whole or Telemetry.TESTS in run.telemetry:
        parts.append(_tests(update.tests))
    if is_whole or Telemetry.DIFFS in run.telemetry:
        parts.append(_diff(update))
    return "\n\n".join(parts)


def _tests(tests: TestResult | None) -> str:
    if tests is None:
        return "Tests: none were run."
    state = "passed" if tests.passed else "timed out" if tests.timed_out else f"FAILED (exit {tests.code})"
    output = tests.output[-MAX_OUTPUT:].strip()
    by = "as the builder says" if tests.claimed else "run by CSP"
    return f"Tests, {by}: `{tests.command}` {state}." + (f"\n\n{_fenced(output)}" if output else "")


def _diff(update: ExecutionUpdate) -> str:
    known = update.figures
    if known is None:
        claimed = "Diff, as the builder has it" if update.diff else "Diff: none is known"
    else:
        figures = f"{known.files} files, +{known.insertions} -{known.deletions}"
        claimed = f"Diff, taken by CSP from git ({figures})"
    return f"{claimed}:\n\n{_fenced(cut(update.diff, MAX_DIFF), 'diff')}" if update.diff else f"{claimed}."


def _fenced(text: str, kind: str = "") -> str:
    """Put a text between fences that are longer than any in it."""
    longest = max((len(run) for run in text.split() if set(run) == {"`"}), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{kind}\n{text}\n{mark}"


def summary_of(run: ReviewRun, reason: EndReason) -> str:
    """Say what became of a run, what each role had to do with it."""
    lines = [
        f"Run {run.id}: {reason} after {run.cycle} cycles, {run.revisions} revisions.",
        f"Goal: {run.goal or '-'}",
        f"Builder {run.builder}: {run.end.summary if run.end and run.end.summary else _last(run)}",
        f"Reviewer {run.reviewer}: {_review(run)}",
    ]
    if run.update is not None and run.update.tests is not None:
        tests = run.update.tests
        by = ", as the builder says" if tests.claimed else ""
        lines.append(f"Tests{by}: {'passed' if tests.passed else 'failed'}")
    if run.context is not None and run.context.worktree:
        lines.append(f"Worktree: {run.context.worktree}")
    return "\n".join(lines)


def _last(run: ReviewRun) -> str:
    return run.update.step if run.update is not None else "nothing was done"


def _review(run: ReviewRun) -> str:
    counts = [f"{sum(one.severity is grade for one in run.findings)} {grade}" for grade in Severity]
    still_open = sum(one.is_open for one in run.findings)
    said = f"risk {run.risk}; " if run.risk else ""
    said += f"findings: {', '.join(counts)}, {still_open} open; {run.alerts} alerts"
    if run.decision is None:
        return said
    why = f": {run.decision.rationale}" if run.decision.rationale else ""
    return f"{said}; decided {run.decision.decision}{why}"
