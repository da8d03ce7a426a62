"""The protocol of a review run: the order of its messages and phases, and its views."""

from collections.abc import Iterable
from typing import Final, assert_never

from msgspec.structs import replace

from csp.errors import BadInput, Refused
from csp.protocol import review_messages as review
from csp.protocol.enums import HUMAN, AgentId, Mode
from csp.protocol.events import RunChecked, RunMoved, RunReminded, RunSaid
from csp.protocol.notices import NoticeCode
from csp.protocol.session_parts import Change, EndReason, PhaseKind, Stage, TurnState
from csp.room.room_draft import SessionDraft
from csp.room.runs.run_state import PLAN_TO_APPROVE, ReviewRun
from csp.room.sessions.modes import MODES
from csp.room.sessions.session_end import end
from csp.room.sessions.turns import ask, cancel

P, M = review.RunPhase, review.MessageType
_BUILDER, _REVIEWER = review.RunRole.BUILDER, review.RunRole.REVIEWER
#: The messages permitted in each phase, with their senders; all others are refused.
LEGAL: Final[dict[review.RunPhase, dict[review.MessageType, review.RunRole]]] = {
    P.START: {M.SESSION_ACK: _REVIEWER},
    P.PLAN: {M.PLAN_PROPOSED: _BUILDER},
    P.FEEDBACK: {M.PLAN_FEEDBACK: _REVIEWER},
    P.EXECUTION: {M.EXECUTION_UPDATE: _BUILDER, M.EXECUTION_ALERT: _REVIEWER},
    P.CHECKS: {M.EXECUTION_ALERT: _REVIEWER},
    P.WATCH: {M.EXECUTION_ALERT: _REVIEWER},
    P.DECISION: {M.REVIEW_DECISION: _REVIEWER, M.EXECUTION_ALERT: _REVIEWER},
    P.CLOSING: {M.SESSION_END: _BUILDER},
}
#: The role that has the turn in each phase; in other phases, no agent is asked.
TURN_OF: Final[dict[review.RunPhase, review.RunRole]] = {
    P.START: _REVIEWER,
    P.PLAN: _BUILDER,
    P.FEEDBACK: _REVIEWER,
    P.EXECUTION: _BUILDER,
    P.WATCH: _REVIEWER,
    P.DECISION: _REVIEWER,
    P.CLOSING: _BUILDER,
}
#: The phases in which a person is asked, with the text of the request.
CALLS: Final[dict[review.RunPhase, str]] = {
    P.APPROVAL: "csp review go {run}, or: csp review decide {run} revise|abort",
    P.ESCALATED: "csp review decide {run} accept|revise|abort",
    P.HALTED: "csp review resume {run}, or: csp review abort {run} WHY",
}
#: Number of times an agent is asked for a message in a phase before a person is called.
ASKS: Final = 2
#: Number of steps without a submission in a cycle after which a person is called.
MAX_STEPS: Final = 30
_ROWS: Final = {row.name: at for at, row in enumerate(MODES[Mode.REVIEW].phases)}


def ask_next(draft: SessionDraft) -> None:
    """Ask the role that the run needs next; called when no turn is open."""
    run, session = draft.run, draft.session
    if run is None:
        # The event that started the run was on a damaged line.
        end(draft, EndReason.ALL_FAILED)
    elif session.stage.is_waiting:
        return
    elif run.phase is P.WATCH and session.done:
        enter_phase(draft, P.EXECUTION)
    elif session.asked_here < ASKS:
        ask(draft, run.agent_of(TURN_OF[run.phase]))
    else:
        give_up(draft, f"in {ASKS} turns")


def give_up(draft: SessionDraft, when: str) -> None:
    """Stop asking for this phase's message; a person decides how the run continues."""
    run = draft.known_run
    if run.phase is P.CLOSING:
        # The work is already accepted, so the room writes the summary itself.
        end(draft, EndReason.ACCEPTED)
        return
    if run.phase is P.WATCH:
        # A comment on an intermediate step is optional.
        enter_phase(draft, P.EXECUTION)
        return
    wanted = next(iter(LEGAL[run.phase]))
    halt(draft, f"{run.agent_of(TURN_OF[run.phase])} sent no valid {wanted} {when}")


def enter_phase(
    draft: SessionDraft,
    phase: review.RunPhase,
    why: str = "",
    *,
    cycle: int | None = None,
    revisions: int | None = None,
    back: review.RunPhase | None = None,
    by: AgentId | None = None,
) -> None:
    """Move the run to a phase; if the phase waits for a person, tell people what to do."""
    run, session = draft.known_run, draft.session
    role = TURN_OF.get(phase)
    draft.room_draft.emit(
        RunMoved(
            *draft.run_header(phase, by=by),
            phase=phase,
            why=why,
            cycle=run.cycle if cycle is None else cycle,
            revisions=run.revisions if revisions is None else revisions,
            back=back,
        )
    )
    stage = Stage(
        number=session.stage.number + 1,
        kind=PhaseKind.REVIEW,
        name=phase,
        row=_ROWS[phase],
        round=draft.known_run.cycle,
        is_waiting=role is None or run.agent_of(role) == review.MAILBOX,
    )
    draft.change(Change.PHASE, phase, stage=stage)
    if phase in CALLS:
        answer = CALLS[phase].format(run=run.id)
        draft.notice(NoticeCode.RUN_NEEDS_PERSON(run=run.id, why=why, answer=answer))
        draft.wake(f"run {run.id} needs a person: {why}")


def halt(draft: SessionDraft, why: str, *, by: AgentId | None = None) -> None:
    """Stop all work on the run until a person decides how it continues."""
    back = draft.known_run.phase
    for turn in list(draft.session.turns.values()):
        if not cancel(draft, turn, "halted"):
            draft.interrupt(turn)
    enter_phase(draft, P.HALTED, why, back=back, by=by)


# --- messages --------------------------------------------------------------------------------------


def handle_message(
    draft: SessionDraft, role: review.RunRole, body: review.AnyMessage, origin: str, key: str = ""
) -> None:
    """Process a role's message; refuse an unexpected one with an error that names it."""
    run = draft.known_run
    wanted, body = body, check_message(run, role, body)
    if _decision_of(wanted) is not _decision_of(body):
        draft.notice(NoticeCode.RUN_MINOR_ONLY(run=run.id))
    header = draft.run_header(_line_of(body), by=run.agent_of(role))
    draft.room_draft.emit(RunSaid(*header, role=role, body=body, origin=origin, key=key))
    turn = draft.session.turns.get(run.agent_of(role))
    if turn is not None and not isinstance(body, review.ExecutionAlert):
        # It did not arrive as the reply to the turn request.
        draft.withdraw(turn)
        draft.move(turn, TurnState.REPLIED, f"by {origin}")
    continue_after(draft, body)


def _decision_of(body: review.AnyMessage) -> review.Decision | None:
    return body.decision if isinstance(body, review.ReviewDecision) else None


def check_message(run: ReviewRun, role: review.RunRole, body: review.AnyMessage) -> review.AnyMessage:
    """Return a message as it is recorded; raise an error if it is not permitted now or contradicts itself."""
    legal, message_type = LEGAL.get(run.phase, {}), review.type_of_body(body)
    if legal.get(message_type) is not role:
        expected = ", ".join(f"{name} by the {who}" for name, who in legal.items()) or "none, it waits"
        what = f"{message_type} by the {role} is not allowed in phase {run.phase} of run {run.id}"
        raise Refused(what, f"expected: {expected}")
    match body:
        case review.ExecutionUpdate():
            # Metrics that CSP measures itself must not come from any other source.
            own = [name for name in body.metrics if name.startswith(review.OWN_METRICS)]
            if own:
                hint = f"use a name that does not begin with {review.OWN_METRICS}"
                raise Refused(f"metric {own[0]!r} is CSP's own", hint)
            if len(body.metrics) > review.MAX_ITEMS:
                raise Refused(
                    f"{len(body.metrics)} metrics exceed the limit", f"give {review.MAX_ITEMS} at most"
                )
            tests = None if body.tests is None else replace(body.tests, claimed=True)
            return replace(body, tests=tests, figures=None)
        case review.PlanProposed():
            # The path of the recorded plan, regardless of its source.
            return replace(body, plan_path=f"runs/{run.id}/plan.json")
        case review.ReviewDecision():
            return _settled(run, body)
        case _:
            return body


def _line_of(body: review.AnyMessage) -> str:
    """Return a one-line description of a message for observers."""
    match body:
        case review.SessionStart():
            said = body.goal
        case review.PlanProposed():
            said = body.summary or f"{len(body.steps)} steps"
        case review.PlanFeedback():
            said = f"risk {body.risk}" + (", another plan" if body.alternative else "")
        case review.ExecutionUpdate():
            said = f"{'submitted' if body.final else 'step'}: {body.step}"
        case review.ExecutionAlert():
            said = f"{body.level}: {body.text}"
        case review.ReviewDecision():
            said = f"{body.decision}, {len(body.findings)} findings"
        case review.SessionEnd():
            said = body.summary or body.status
        case _:
            said = body.note or "ready"
    return f"{review.type_of_body(body)}: {said}"


def _settled(run: ReviewRun, decision: review.ReviewDecision) -> review.ReviewDecision:
    """Return a decision as recorded, with its new findings numbered; refuse one that contradicts itself."""
    known = {one.id: one for one in run.findings}
    named = (*decision.resolved, *(one.id for one in decision.findings if one.id in known))
    closed = [one for one in named if one not in known or not known[one].is_open]
    if closed:
        opened = ", ".join(str(one.id) for one in run.open_findings) or "none"
        raise Refused(f"finding {closed[0]} is not open, so it is not checked again", f"open: {opened}")
    if decision.decision is review.Decision.ABORT and not decision.rationale.strip():
        raise Refused("an abort needs a rationale", "give a reason, as RATIONALE: text")
    new = [one for one in decision.findings if one.id not in known]
    fresh = tuple(
        review.Finding(severity=one.severity, text=one.text, id=f"f-{number}")
        for number, one in enumerate(new, len(known) + 1)
    )
    decision = replace(decision, findings=fresh)
    left = [one for one in run.open_findings if one.id not in decision.resolved]
    if decision.decision is review.Decision.ACCEPT:
        weighty = [one for one in decision.findings if one.is_weighty]
        if weighty:
            grade = weighty[0].severity
            raise Refused(f"cannot accept with a {grade} finding", "decide revise, or grade it minor")
        # The findings that caused revisions are resolved; minor findings remain as notes.
        done = [str(one.id) for one in run.open_findings if one.is_weighty]
        return replace(decision, resolved=tuple(dict.fromkeys((*decision.resolved, *done))))
    is_weighty = any(one.is_weighty for one in (*left, *decision.findings))
    if is_weighty or decision.decision is review.Decision.ABORT:
        return decision
    if not left and not decision.findings:
        raise Refused("a revise needs a finding", "describe the problem, as FINDING: major - text")
    # A revision for minor findings alone counts as an accept with notes.
    note = f"revise for minor findings only, treated as accept. {decision.rationale}".strip()
    return replace(decision, decision=review.Decision.ACCEPT, rationale=note[:2000])


# --- after a message -------------------------------------------------------------------------------


def continue_after(draft: SessionDraft, body: review.AnyMessage) -> None:
    """Move the run to the phase that follows the message."""
    match body:
        case review.SessionStart():
            enter_phase(draft, P.START)
        case review.SessionAck():
            enter_phase(draft, P.PLAN)
        case review.PlanProposed():
            enter_phase(draft, P.FEEDBACK)
        case review.PlanFeedback():
            _on_feedback(draft, body)
        case review.ExecutionUpdate():
            enter_phase(draft, P.CHECKS)
        case review.ExecutionAlert():
            run = draft.known_run
            if body.level is review.AlertLevel.CRITICAL:
                halt(draft, f"critical alert from {run.reviewer}: {body.text}")
            else:
                draft.notice(NoticeCode.RUN_ALERT(run=run.id, agent=run.reviewer, text=body.text))
        case review.ReviewDecision():
            _on_decision(draft, body)
        case review.SessionEnd():
            end(draft, EndReason.ACCEPTED)
        case _:
            assert_never(body)


def _on_feedback(draft: SessionDraft, body: review.PlanFeedback) -> None:
    run = draft.known_run
    if body.alternative is not None and run.alternatives == 1:
        enter_phase(draft, P.PLAN, "the reviewer proposes another plan")
    elif body.alternative is not None:
        enter_phase(draft, P.APPROVAL, "builder and reviewer do not agree on a plan")
    elif body.risk is review.Risk.HIGH:
        enter_phase(draft, P.APPROVAL, "the reviewer rates the risk as high")
    elif run.terms.approve:
        enter_phase(draft, P.APPROVAL, PLAN_TO_APPROVE)
    else:
        enter_phase(draft, P.EXECUTION)


def _on_decision(draft: SessionDraft, body: review.ReviewDecision) -> None:
    run = draft.known_run
    if body.decision is review.Decision.ACCEPT:
        enter_phase(draft, P.CLOSING)
    elif body.decision is review.Decision.ABORT:
        draft.notice(NoticeCode.RUN_ABORTED(run=run.id, agent=run.reviewer, reason=body.rationale))
        end(draft, EndReason.ABORTED, note=body.rationale)
    elif run.revisions + 1 >= (draft.session.setup.rounds or 1):
        enter_phase(draft, P.ESCALATED, f"not accepted after {run.revisions} revisions")
    else:
        revise(draft)


def revise(draft: SessionDraft, why: str = "", *, by: AgentId | None = None) -> None:
    """Ask the builder to revise its work."""
    run = draft.known_run
    enter_phase(draft, P.EXECUTION, why, cycle=run.cycle + 1, revisions=run.revisions + 1, by=by)


def announce(draft: SessionDraft) -> None:
    """Announce the run's start on behalf of the builder, because its worktree is ready."""
    run = draft.known_run
    body = review.SessionStart(
        goal=run.goal or "(no goal was given)",
        context=run.context or review.SessionStart.context,
        test=run.terms.test,
        max_revisions=run.max_revisions,
    )
    header = draft.run_header(_line_of(body), by=run.builder)
    draft.room_draft.emit(RunSaid(*header, role=_BUILDER, body=body, origin="room"))
    continue_after(draft, body)


def record_check(draft: SessionDraft, update: review.ExecutionUpdate, note: str) -> None:
    """Record the diff and tests of the last step; the run continues unless it was halted meanwhile."""
    run = draft.known_run
    header = draft.run_header(_line_of(update))
    draft.room_draft.emit(RunChecked(*header, cycle=run.cycle, update=update, note=note))
    if note:
        draft.notice(NoticeCode.RUN_NOTE(run=run.id, note=note))
    if run.phase is P.CHECKS:
        after_checks(draft)


def after_checks(draft: SessionDraft) -> None:
    """Continue after a step whose diff and tests are known."""
    run = draft.known_run
    if run.update is not None and run.update.final:
        enter_phase(draft, P.DECISION)
    elif run.steps >= MAX_STEPS:
        enter_phase(draft, P.HALTED, f"{run.steps} steps without a submission", back=P.EXECUTION)
    elif run.telemetry and run.reviewer != review.MAILBOX:
        enter_phase(draft, P.WATCH)
    else:
        enter_phase(draft, P.EXECUTION)


def unknown_role(run: ReviewRun, agent: AgentId) -> BadInput:
    """Return the error for an agent that has no role in a run."""
    who = f"builder is {run.builder}, reviewer is {run.reviewer}"
    return BadInput(f"{agent} has no role in run {run.id}", who)


# --- views -----------------------------------------------------------------------------------------


def run_view(run: ReviewRun) -> review.RunSummary:
    """Return a summary of a run."""
    return review.RunSummary(
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


def run_detail(run: ReviewRun, folder: str = "") -> review.RunDetail:
    """Return all details of a run."""
    return review.RunDetail(
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


def stats(runs: Iterable[ReviewRun]) -> tuple[review.ReviewerStats, ...]:
    """Return each reviewer's results over the runs that have ended."""
    by_reviewer: dict[str, list[ReviewRun]] = {}
    for run in runs:
        if run.phase is review.RunPhase.ENDED:
            by_reviewer.setdefault(run.reviewer, []).append(run)
    found: list[review.ReviewerStats] = []
    for reviewer, own in by_reviewer.items():
        accepted = [run for run in own if run.reason is EndReason.ACCEPTED]
        findings = [finding for run in own for finding in run.findings]
        confirmed = sum(one.verdict is review.Verdict.CONFIRMED for one in findings)
        rejected = sum(one.verdict is review.Verdict.REJECTED for one in findings)
        judged = confirmed + rejected
        missed = sum(len(run.defects) for run in own)
        known = confirmed + missed
        found.append(
            review.ReviewerStats(
                reviewer=reviewer,
                runs=len(own),
                accepted=len(accepted),
                accepted_at_once=sum(not run.revisions for run in accepted),
                accepted_after_revision=sum(bool(run.revisions) for run in accepted),
                aborted=sum(run.reason is EndReason.ABORTED for run in own),
                escalated=sum(bool(run.escalations) for run in own),
                alerts=sum(run.alerts for run in own),
                findings={
                    grade.value: sum(one.severity is grade for one in findings) for grade in review.Severity
                },
                confirmed=confirmed,
                rejected=rejected,
                precision=round(confirmed / judged, 3) if judged else None,
                missed=missed,
                accepted_with_defects=sum(bool(run.defects) for run in own),
                miss_rate=round(missed / known, 3) if known else None,
            )
        )
    return tuple(found)


# --- reminders ---------------------------------------------------------------------------------------


#: The first reminder is sent after this time, later ones after twice the previous time, so a run can wait
#: for days without nagging.
REMIND_S: Final = 600.0
CSP: Final = AgentId("csp")


def waits_for(run: ReviewRun) -> AgentId | None:
    """Return the participant that a run is waiting for; None if the run is over."""
    if run.is_over:
        return None
    if run.phase in TURN_OF:
        return run.agent_of(TURN_OF[run.phase])
    return HUMAN if run.phase in CALLS else CSP


def remind_at(run: ReviewRun) -> float | None:
    """Return when the next reminder is due; only people and message files have no turn deadline."""
    if waits_for(run) not in (HUMAN, review.MAILBOX):
        return None
    return (run.since or run.started_at) + REMIND_S * float(2 ** (run.reminded + 1) - 1)


def remind(draft: SessionDraft) -> None:
    """Post a reminder that a run is still waiting; only one, even if several were missed."""
    run, now = draft.run, draft.clock
    at = None if run is None else remind_at(run)
    if run is None or at is None or at > now:
        return
    waited_s = now - (run.since or run.started_at)
    number = int(waited_s / REMIND_S + 1).bit_length() - 1
    minutes, is_call = waited_s / 60, run.phase in CALLS
    whom = "a person" if is_call else f"a file from the {TURN_OF[run.phase]}"
    what = f"Run {run.id} has waited for {whom} for {minutes:.0f} minutes"
    draft.room_draft.emit(RunReminded(*draft.run_header(what), number=number))
    if is_call:
        answer = CALLS[run.phase].format(run=run.id)
        draft.notice(NoticeCode.RUN_WAITS_FOR_PERSON(run=run.id, minutes=minutes, answer=answer))
    else:
        draft.notice(NoticeCode.RUN_WAITS_FOR_FILE(run=run.id, minutes=minutes, role=TURN_OF[run.phase]))
