"""What is done about a run from outside: by a script, by a person, by CSP's own hands."""

from typing import Final

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL
from csp.protocol.events import RunDefect, RunDelivered, RunEdited, RunJudged, RunPrepared
from csp.protocol.notices import NoticeCode
from csp.protocol.review_messages import MAILBOX, MAX_ITEMS, Decision, RunAction, RunPhase
from csp.protocol.session_parts import Change, EndReason, Status
from csp.room.commands import ActOnRun, CheckRun, DeliverRun, PrepareRun, SayInRun
from csp.room.identity import nearest
from csp.room.room_draft import RoomDraft
from csp.room.runs import run_protocol
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_end import end
from csp.room.sessions.session_engine import advance

P = RunPhase
#: How a run ends that a person aborts in one of these phases.
_AT_ABORT: Final = {P.ESCALATED: EndReason.CAP_REACHED, P.HALTED: EndReason.HALTED}


def known_run(runs: dict[str, ReviewRun], run_id: str) -> ReviewRun:
    """Return a run that is remembered, or say which there are."""
    found = runs.get(run_id)
    if found is None:
        hint = nearest(run_id, list(runs)) if runs else "begin one with: csp review start"
        raise NotFound(f"unknown run {run_id[:80]!r}", hint)
    return found


def say(draft: RoomDraft, command: SayInRun) -> None:
    """Take a message that came as a file or a request; the same one again changes nothing."""
    run = known_run(draft.room.runs.by_id, command.run)
    if command.key and command.key in run.keys:
        return
    _check_live(run)
    role = command.role
    if command.sender != MAILBOX:
        role = run.role_of(command.sender)
    if role is None:
        raise run_protocol.unknown_role(run, command.sender)
    if command.role is not None and command.role is not role:
        raise Refused(f"sender is {command.role}, but {command.sender} is the {role} of run {run.id}", "")
    session_draft = SessionDraft(draft, run.session)
    run_protocol.handle_message(session_draft, role, command.body, command.origin, command.key)
    advance(session_draft)


def _check_live(run: ReviewRun) -> None:
    if run.is_over:
        raise Refused(f"run {run.id} has ended: {run.reason}", "begin a new one with: csp review start")


# --- CSP's own hands -------------------------------------------------------------------------------


def prepare(draft: RoomDraft, command: PrepareRun) -> None:
    """Note where the run works; then it begins."""
    run = draft.room.runs.by_id.get(command.run)
    if run is None or run.phase is not P.SETUP or run.is_over:
        return
    session_draft = SessionDraft(draft, run.session)
    header = draft.run_header(run, command.context.worktree or command.context.dir)
    draft.emit(RunPrepared(*header, context=command.context))
    if command.context.note:
        session_draft.notice(NoticeCode.RUN_NOTE(run=run.id, note=command.context.note))
    run_protocol.announce(session_draft)
    advance(session_draft)


def check(draft: RoomDraft, command: CheckRun) -> None:
    """Note the diff and the tests of the last step, unless it is the last no more."""
    run = draft.room.runs.by_id.get(command.run)
    if run is None or run.is_over or run.is_checked or run.update is None:
        return
    if (run.cycle, run.steps) != (command.cycle, command.step):
        return
    session_draft = SessionDraft(draft, run.session)
    run_protocol.record_check(session_draft, command.update, command.note)
    advance(session_draft)


def deliver(draft: RoomDraft, command: DeliverRun) -> None:
    """Note where the accepted work can be found."""
    run = draft.room.runs.by_id.get(command.run)
    if run is None or not run.owes_branch:
        return
    where = f"the accepted work is on branch {command.branch}" if command.branch else command.note
    draft.emit(RunDelivered(*draft.run_header(run, where), branch=command.branch, note=command.note))
    if command.branch:
        draft.notice(ALL, NoticeCode.RUN_BRANCH(run=run.id, branch=command.branch), thread=run.thread)
    else:
        draft.notice(ALL, NoticeCode.RUN_NOTE(run=run.id, note=command.note), thread=run.thread)


# --- a person --------------------------------------------------------------------------------------


def act(draft: RoomDraft, command: ActOnRun) -> None:
    """Do what a person says."""
    run = known_run(draft.room.runs.by_id, command.run)
    # A finding is judged, a missed defect noted, also when the run is over.
    if command.action is RunAction.FINDING:
        _judge(draft, run, command)
        return
    if command.action is RunAction.DEFECT:
        _record_defect(draft, run, command)
        return
    _check_live(run)
    session_draft = SessionDraft(draft, run.session)
    match command.action:
        case RunAction.GO:
            _go(session_draft, run, command)
        case RunAction.DECIDE:
            _decide(session_draft, run, command)
        case RunAction.HALT:
            if run.phase in (P.HALTED, P.SETUP):
                raise Refused(f"run {run.id} is in phase {run.phase}", "see: csp review show")
            why = command.rationale or f"halted by {command.sender}"
            run_protocol.halt(session_draft, why, by=command.sender)
        case RunAction.RESUME:
            _resume(session_draft, run, command)
        case _:
            # Only RunAction.ABORT is left.
            _abort(session_draft, run, command)
    advance(session_draft)


def _judge(draft: RoomDraft, run: ReviewRun, command: ActOnRun) -> None:
    known = [str(one.id) for one in run.findings]
    if command.finding not in known:
        hint = nearest(command.finding or "", known) if known else "it has none"
        raise NotFound(f"unknown finding {command.finding!r} of run {run.id}", hint)
    if command.verdict is None:
        raise BadInput("a verdict is missing", "give: confirmed or rejected")
    header = draft.run_header(run, f"{command.finding} {command.verdict}", by=command.sender)
    draft.emit(RunJudged(*header, finding=command.finding, verdict=command.verdict))


def _record_defect(draft: RoomDraft, run: ReviewRun, command: ActOnRun) -> None:
    """Note a defect that the reviewer missed; the same text again changes nothing."""
    text = (command.defect or "").strip()
    if not text:
        raise BadInput("a defect is missing", "say what was wrong: csp review defect RUN TEXT")
    if run.reason is not EndReason.ACCEPTED:
        hint = "its findings are judged with: csp review finding"
        raise Refused(f"run {run.id} was not accepted, so its reviewer has missed nothing", hint)
    if any(one.text == text for one in run.defects):
        return
    if len(run.defects) == MAX_ITEMS:
        raise Refused(f"run {run.id} has {MAX_ITEMS} defects already", "see: csp review show")
    header = draft.run_header(run, text, by=command.sender)
    draft.emit(RunDefect(*header, defect=f"d-{len(run.defects) + 1}", severity=command.severity))


def _go(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    _check_phase(run, command.action, P.APPROVAL)
    _edit(draft, run, command)
    run_protocol.enter_phase(draft, P.EXECUTION, by=command.sender)


def _edit(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    """Take the plan that a person has changed."""
    if command.plan is not None and command.plan != run.plan:
        header = draft.run_header(f"plan of {len(command.plan.steps)} steps", by=command.sender)
        draft.room_draft.emit(RunEdited(*header, plan=command.plan))
        draft.notice(NoticeCode.RUN_PLAN_CHANGED(run=run.id, agent=command.sender))


def is_plan_open(run: ReviewRun) -> bool:
    """Tell whether a person may still change the plan: there is one, nobody works by it yet."""
    at = run.back if run.phase is P.HALTED else run.phase
    return run.plan is not None and at in (P.FEEDBACK, P.APPROVAL)


def _resume(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    is_paused = draft.session.status is Status.PAUSED
    if is_paused:
        draft.change(Change.RESUMED, "resumed", by=command.sender)
    if run.phase is P.HALTED:
        if is_plan_open(run):
            _edit(draft, run, command)
        if run.back is P.CHECKS and run.is_checked:
            run_protocol.after_checks(draft)
        else:
            run_protocol.enter_phase(draft, run.back or P.EXECUTION, command.rationale, by=command.sender)
    elif not is_paused:
        raise Refused(f"run {run.id} is not halted, it is in phase {run.phase}", "see: csp review show")


def _abort(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    if not command.rationale.strip():
        raise BadInput("an abort needs a rationale", "say why: csp review abort RUN WHY")
    end(draft, _AT_ABORT.get(run.phase, EndReason.ABORTED), by=command.sender, note=command.rationale)


def _decide(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    if command.decision is None:
        raise BadInput("a decision is missing", "give: accept, revise or abort")
    if command.decision is Decision.ABORT:
        _abort(draft, run, command)
        return
    _check_phase(run, command.action, P.APPROVAL, P.ESCALATED, P.HALTED)
    by, why = command.sender, command.rationale
    match run.phase, command.decision:
        case P.APPROVAL, Decision.ACCEPT:
            _go(draft, run, command)
        case P.APPROVAL, _:
            run_protocol.enter_phase(draft, P.PLAN, why or "a person wants another plan", by=by)
        case P.ESCALATED, Decision.ACCEPT:
            run_protocol.enter_phase(draft, P.CLOSING, why, by=by)
        case P.ESCALATED, _:
            run_protocol.revise(draft, why, by=by)
        case _, Decision.ACCEPT:
            _resume(draft, run, command)
        case _:
            run_protocol.enter_phase(draft, P.EXECUTION if run.plan else P.PLAN, why, by=by)


def _check_phase(run: ReviewRun, action: RunAction, *phases: RunPhase) -> None:
    if run.phase not in phases:
        wanted = " or ".join(phases)
        what = f"run {run.id} is in phase {run.phase}, {action} is for {wanted}"
        raise Refused(what, "see: csp review show")
