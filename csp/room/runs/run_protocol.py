"""The course of a run: which message may follow which, whom it waits for, how it is shown."""

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
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.modes import MODES
from csp.room.sessions.session_end import end
from csp.room.sessions.turns import ask, cancel

P, M = review.RunPhase, review.MessageType
_BUILDER, _REVIEWER = review.RunRole.BUILDER, review.RunRole.REVIEWER
#: Which messages may come in a phase, from whom; whatever is not here is refused.
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
#: Whose turn it is in a phase; in the others nobody is asked.
TURN_OF: Final[dict[review.RunPhase, review.RunRole]] = {
    P.START: _REVIEWER,
    P.PLAN: _BUILDER,
    P.FEEDBACK: _REVIEWER,
    P.EXECUTION: _BUILDER,
    P.WATCH: _REVIEWER,
    P.DECISION: _REVIEWER,
    P.CLOSING: _BUILDER,
}
#: In these a person is asked, with these words.
CALLS: Final[dict[review.RunPhase, str]] = {
    P.APPROVAL: "csp review go {run}, or: csp review decide {run} revise|abort",
    P.ESCALATED: "csp review decide {run} accept|revise|abort",
    P.HALTED: "csp review resume {run}, or: csp review abort {run} WHY",
}
#: How often one is asked for a message in a phase before a person is called.
ASKS: Final = 2
#: Steps of a cycle without a submission after which a person is called.
MAX_STEPS: Final = 30
_ROWS: Final = {row.name: at for at, row in enumerate(MODES[Mode.REVIEW].phases)}


def ask_next(draft: SessionDraft) -> None:
    """Ask the role that the run needs next; called when nobody owes a reply."""
    run, session = draft.run, draft.session
    if run is None:
        # Its beginning stood in a damaged line.
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
    """Ask nobody any more for the message of this phase; a person says how it goes on."""
    run = draft.known_run
    if run.phase is P.CLOSING:
        # The work is accepted already; the room writes the summary itself.
        end(draft, EndReason.ACCEPTED)
        return
    if run.phase is P.WATCH:
        # Nobody has to say something about a step on the way.
        enter_phase(draft, P.EXECUTION)
        return
    wanted = next(iter(LEGAL[run.phase]))
    halt(draft, f"{run.agent_of(TURN_OF[run.phase])} gave no valid {wanted} {when}")


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
    """Bring the run to a phase; a person that it waits for is told what to do."""
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
        draft.wake(f"run {run.id} waits for a person: {why}")


def halt(draft: SessionDraft, why: str, *, by: AgentId | None = None) -> None:
    """Stop all work on the run until a person says how it goes on."""
    back = draft.known_run.phase
    for turn in list(draft.session.turns.values()):
        if not cancel(draft, turn, "halted"):
            draft.interrupt(turn)
    enter_phase(draft, P.HALTED, why, back=back, by=by)


# --- messages --------------------------------------------------------------------------------------


def handle_message(
    draft: SessionDraft, role: review.RunRole, body: review.AnyMessage, origin: str, key: str = ""
) -> None:
    """Take a message of a role; one that is not expected is refused by its name."""
    run = draft.known_run
    wanted, body = body, check_message(run, role, body)
    if _decision_of(wanted) is not _decision_of(body):
        draft.notice(NoticeCode.RUN_MINOR_ONLY(run=run.id))
    header = draft.run_header(_line_of(body), by=run.agent_of(role))
    draft.room_draft.emit(RunSaid(*header, role=role, body=body, origin=origin, key=key))
    turn = draft.session.turns.get(run.agent_of(role))
    if turn is not None and not isinstance(body, review.ExecutionAlert):
        # It came another way than the one it was asked by.
        draft.withdraw(turn)
        draft.move(turn, TurnState.REPLIED, f"by {origin}")
    continue_after(draft, body)


def _decision_of(body: review.AnyMessage) -> review.Decision | None:
    return body.decision if isinstance(body, review.ReviewDecision) else None


def check_message(run: ReviewRun, role: review.RunRole, body: review.AnyMessage) -> review.AnyMessage:
    """Return a message as it will be taken; refuse one that may not come now, or contradicts itself."""
    legal, message_type = LEGAL.get(run.phase, {}), review.type_of_body(body)
    if legal.get(message_type) is not role:
        expected = ", ".join(f"{name} by the {who}" for name, who in legal.items()) or "none, it waits"
        what = f"{message_type} by the {role} may not come in phase {run.phase} of run {run.id}"
        raise Refused(what, f"expected: {expected}")
    match body:
        case review.ExecutionUpdate():
            # What CSP finds out itself cannot come from anybody else.
            own = [name for name in body.metrics if name.startswith(review.OWN_METRICS)]
            if own:
                hint = f"use a name that does not begin with {review.OWN_METRICS}"
                raise Refused(f"metric {own[0]!r} is CSP's own", hint)
            if len(body.metrics) > review.MAX_ITEMS:
                raise Refused(f"{len(body.metrics)} metrics are too many", f"give {review.MAX_ITEMS} at most")
            tests = None if body.tests is None else replace(body.tests, claimed=True)
            return replace(body, tests=tests, figures=None)
        case review.PlanProposed():
            # Where it lies from now on, whatever it was read from.
            return replace(body, plan_path=f"runs/{run.id}/plan.json")
        case review.ReviewDecision():
            return _settled(run, body)
        case _:
            return body


def _line_of(body: review.AnyMessage) -> str:
    """Return a message in one line, for those who only look on."""
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
    """Return a decision as it is taken, its new findings numbered; refuse one that contradicts itself."""
    known = {one.id: one for one in run.findings}
    named = (*decision.resolved, *(one.id for one in decision.findings if one.id in known))
    closed = [one for one in named if one not in known or not known[one].is_open]
    if closed:
        opened = ", ".join(str(one.id) for one in run.open_findings) or "none"
        raise Refused(f"finding {closed[0]} is not open, so it is not checked again", f"open: {opened}")
    if decision.decision is review.Decision.ABORT and not decision.rationale.strip():
        raise Refused("an abort needs a rationale", "say why, as RATIONALE: text")
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
            raise Refused(f"accept does not go with a {grade} finding", "decide revise, or grade it minor")
        # What was reason for a revision is resolved; minor findings stay as notes.
        done = [str(one.id) for one in run.open_findings if one.is_weighty]
        return replace(decision, resolved=tuple(dict.fromkeys((*decision.resolved, *done))))
    is_weighty = any(one.is_weighty for one in (*left, *decision.findings))
    if is_weighty or decision.decision is review.Decision.ABORT:
        return decision
    if not left and not decision.findings:
        raise Refused("a revise needs a finding", "name what is wrong, as FINDING: major - text")
    # A revision for minor findings alone is taken as what it is: an accept with notes.
    note = f"revise for minor findings alone, taken as accept. {decision.rationale}".strip()
    return replace(decision, decision=review.Decision.ACCEPT, rationale=note[:2000])


# --- what comes of each ----------------------------------------------------------------------------


def continue_after(draft: SessionDraft, body: review.AnyMessage) -> None:
    """Bring a run to the phase that follows a message."""
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
                halt(draft, f"critical alert of {run.reviewer}: {body.text}")
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
        enter_phase(draft, P.APPROVAL, "the plan is to be approved")
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
    """Let the builder go over its work once more."""
    run = draft.known_run
    enter_phase(draft, P.EXECUTION, why, cycle=run.cycle + 1, revisions=run.revisions + 1, by=by)


def announce(draft: SessionDraft) -> None:
    """Say in the builder's name that the run begins; the place to work in is ready."""
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
    """Note what CSP has found out about the last step; the run goes on unless it was halted meanwhile."""
    run = draft.known_run
    header = draft.run_header(_line_of(update))
    draft.room_draft.emit(RunChecked(*header, cycle=run.cycle, update=update, note=note))
    if note:
        draft.notice(NoticeCode.RUN_NOTE(run=run.id, note=note))
    if run.phase is P.CHECKS:
        after_checks(draft)


def after_checks(draft: SessionDraft) -> None:
    """Go on from a step whose diff and tests are known."""
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
    """Return why somebody has no say in a run."""
    who = f"builder is {run.builder}, reviewer is {run.reviewer}"
    return BadInput(f"{agent} has no role in run {run.id}", who)


# --- how runs are shown ----------------------------------------------------------------------------


def run_view(run: ReviewRun) -> review.RunSummary:
    """Return a run in one line."""
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
    """Return all that is known of a run."""
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
    """Return for each reviewer what came of its reviews, over the runs that have ended."""
    by_reviewer: dict[str, list[ReviewRun]] = {}
    for run in runs:
        if run.phase is review.RunPhase.ENDED:
            by_reviewer.setdefault(run.reviewer, []).append(run)
    return tuple(_stats(reviewer, own) for reviewer, own in by_reviewer.items())


def _stats(reviewer: str, runs: list[ReviewRun]) -> review.ReviewerStats:
    accepted = [run for run in runs if run.reason is EndReason.ACCEPTED]
    findings = [finding for run in runs for finding in run.findings]
    confirmed = sum(one.verdict is review.Verdict.CONFIRMED for one in findings)
    rejected = sum(one.verdict is review.Verdict.REJECTED for one in findings)
    judged = confirmed + rejected
    missed = sum(len(run.defects) for run in runs)
    known = confirmed + missed
    return review.ReviewerStats(
        reviewer=reviewer,
        runs=len(runs),
        accepted=len(accepted),
        accepted_at_once=sum(not run.revisions for run in accepted),
        accepted_after_revision=sum(bool(run.revisions) for run in accepted),
        aborted=sum(run.reason is EndReason.ABORTED for run in runs),
        escalated=sum(bool(run.escalations) for run in runs),
        alerts=sum(run.alerts for run in runs),
        findings={grade.value: sum(one.severity is grade for one in findings) for grade in review.Severity},
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
    if waits_for(run) not in (HUMAN, review.MAILBOX):
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
    minutes, is_call = waited_s / 60, run.phase in CALLS
    whom = "a person" if is_call else f"a file of the {TURN_OF[run.phase]}"
    what = f"Run {run.id} has waited for {whom} for {minutes:.0f} minutes"
    draft.room_draft.emit(RunReminded(*draft.run_header(what), number=number))
    if is_call:
        answer = CALLS[run.phase].format(run=run.id)
        draft.notice(NoticeCode.RUN_WAITS_FOR_PERSON(run=run.id, minutes=minutes, answer=answer))
    else:
        draft.notice(NoticeCode.RUN_WAITS_FOR_FILE(run=run.id, minutes=minutes, role=TURN_OF[run.phase]))
