"""How runs are shown, whom they wait for, and what their reviewers have achieved."""

from collections.abc import Iterable
from typing import Final

from csp.protocol.enums import HUMAN, AgentId
from csp.protocol.events import RunReminded
from csp.protocol.review_messages import (
    MAILBOX,
    ReviewerStats,
    RunDetail,
    RunPhase,
    RunSummary,
    Severity,
    Verdict,
)
from csp.protocol.session_parts import EndReason
from csp.room.runs.run_protocol import CALLS, LEGAL, TURN_OF
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.session_draft import SessionDraft


def run_view(run: ReviewRun) -> RunSummary:
    """Return a run in one line."""
    return RunSummary(
        id=run.id,
        session_id=run.session,
        thread=run.thread,
        goal=run.goal,
        builder=run.builder,
        reviewer=run.reviewer,
        phase=run.phase,
        waits_for=waits_for(run) or "",
        since=run.since,
        cycle=run.cycle,
        revisions=run.revisions,
        max_revisions=run.max_revisions,
        started_at=run.started_at,
        why=run.why,
        ended_at=run.ended_at,
        reason=run.reason,
        branch=run.branch,
    )


def run_detail(run: ReviewRun, folder: str = "") -> RunDetail:
    """Return all that is known of a run."""
    return RunDetail(
        run=run_view(run),
        expects=tuple(LEGAL.get(run.phase, {})),
        plan=run.plan,
        risk=run.risk,
        notes=run.feedback.notes if run.feedback else (),
        telemetry=run.telemetry,
        findings=run.findings,
        update=run.update,
        decision=run.decision,
        context=run.context,
        summary=run.summary,
        folder=folder,
        defects=run.defects,
    )


def stats(runs: Iterable[ReviewRun]) -> tuple[ReviewerStats, ...]:
    """Return for each reviewer what came of its reviews, over the runs that have ended."""
    by_reviewer: dict[str, list[ReviewRun]] = {}
    for run in runs:
        if run.phase is RunPhase.ENDED:
            by_reviewer.setdefault(run.reviewer, []).append(run)
    return tuple(_stats(reviewer, own) for reviewer, own in by_reviewer.items())


def _stats(reviewer: str, runs: list[ReviewRun]) -> ReviewerStats:
    accepted = [run for run in runs if run.reason is EndReason.ACCEPTED]
    findings = [finding for run in runs for finding in run.findings]
    confirmed = sum(one.verdict is Verdict.CONFIRMED for one in findings)
    rejected = sum(one.verdict is Verdict.REJECTED for one in findings)
    judged = confirmed + rejected
    missed = sum(len(run.defects) for run in runs)
    known = confirmed + missed
    return ReviewerStats(
        reviewer=reviewer,
        runs=len(runs),
        accepted=len(accepted),
        accepted_at_once=sum(not run.revisions for run in accepted),
        accepted_after_revision=sum(bool(run.revisions) for run in accepted),
        aborted=sum(run.reason is EndReason.ABORTED for run in runs),
        escalated=sum(bool(run.escalations) for run in runs),
        alerts=sum(run.alerts for run in runs),
        findings={grade.value: sum(one.severity is grade for one in findings) for grade in Severity},
        confirmed=confirmed,
        rejected=rejected,
        precision=round(confirmed / judged, 3) if judged else None,
        missed=missed,
        accepted_with_defects=sum(bool(run.defects) for run in runs),
        miss_rate=round(missed / known, 3) if known else None,
    )


# --- waiting -----------------------------------------------------------------------------------------


#: After so long the first reminder comes, then each after twice the time: it waits for days without nagging.
REMIND_S: Final = 600.0
CSP: Final = AgentId("csp")


def waits_for(run: ReviewRun) -> AgentId | None:
    """Return whom a run waits for, None if it is over."""
    if run.is_over:
        return None
    if run.phase in TURN_OF:
        return run.agent_of(TURN_OF[run.phase])
    return HUMAN if run.phase in CALLS else CSP


def remind_at(run: ReviewRun) -> float | None:
    """Return when the next reminder is due: only people and files have no clock of their own."""
    if waits_for(run) not in (HUMAN, MAILBOX):
        return None
    return (run.since or run.started_at) + REMIND_S * float(2 ** (run.reminded + 1) - 1)


def remind(draft: SessionDraft) -> None:
    """Say of a run that has waited for long that it still does, once even if many reminders were missed."""
    run, now = draft.run, draft.clock
    at = None if run is None else remind_at(run)
    if run is None or at is None or at > now:
        return
    waited_s = now - (run.since or run.started_at)
    number = int(waited_s / REMIND_S + 1).bit_length() - 1
    what = f"Run {run.id} has waited for {_whom(run)} for {waited_s / 60:.0f} minutes"
    draft.room_draft.emit(RunReminded(*draft.run_header(what), number=number))
    draft.notice(f"{what}. {_call(run)}")


def _whom(run: ReviewRun) -> str:
    return "a person" if run.phase in CALLS else f"a file of the {TURN_OF[run.phase]}"


def _call(run: ReviewRun) -> str:
    if run.phase in CALLS:
        return f"Answer with: {CALLS[run.phase].format(run=run.id)}"
    return f"It goes into mailbox/{TURN_OF[run.phase]}/. To give up: csp review abort {run.id} WHY"
