"""What is done about a run from outside: by a script, by a person, by CSP's own hands."""

from collections.abc import Callable
from typing import Any, Final

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL
from csp.protocol.events import RunDefect, RunDelivered, RunEdited, RunJudged, RunPrepared
from csp.protocol.review_messages import MAILBOX, MAX_ITEMS, Decision, RunAction, RunPhase
from csp.protocol.session_parts import Change, EndReason, Status
from csp.room.commands import ActOnRun, CheckRun, DeliverRun, PrepareRun, SayInRun
from csp.room.identity import nearest
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.runs import run_protocol
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_end import end
from csp.room.sessions.session_engine import advance

P = RunPhase


def known_run(runs: dict[str, ReviewRun], run_id: str) -> ReviewRun:
    """Return a run that is remembered, or say which there are."""
    found = runs.get(run_id)
    if found is None:
        hint = nearest(run_id, list(runs)) if runs else "begin one with: csp review start"
        raise NotFound(f"unknown run {run_id[:80]!r}", hint)
    return found


def say(room: Room, command: SayInRun, batch: RoomDraft, rules: RoomRules) -> None:
    """Take a message that came as a file or a request; the same one again changes nothing."""
    run = known_run(batch.runs.by_id, command.run)
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
    desk = SessionDraft(room, batch, rules, run.session)
    run_protocol.handle_message(desk, role, command.body, command.origin, command.key)
    advance(desk)


def _check_live(run: ReviewRun) -> None:
    if run.is_over:
        raise Refused(f"run {run.id} has ended: {run.reason}", "begin a new one with: csp review start")


# --- CSP's own hands -------------------------------------------------------------------------------


def prepare(room: Room, command: PrepareRun, batch: RoomDraft, rules: RoomRules) -> None:
    """Note where the run works; then it begins."""
    run = batch.runs.by_id.get(command.run)
    if run is None or run.phase is not P.SETUP or run.is_over:
        return
    desk = SessionDraft(room, batch, rules, run.session)
    desk.add_run(RunPrepared, command.context.worktree or command.context.dir, {"context": command.context})
    if command.context.note:
        desk.notice(f"Run {run.id}: {command.context.note}.")
    run_protocol.announce(desk)
    advance(desk)


def check(room: Room, command: CheckRun, batch: RoomDraft, rules: RoomRules) -> None:
    """Note the diff and the tests of the last step, unless it is the last no more."""
    run = batch.runs.by_id.get(command.run)
    if run is None or run.is_over or run.is_checked or run.update is None:
        return
    if (run.cycle, run.steps) != (command.cycle, command.step):
        return
    desk = SessionDraft(room, batch, rules, run.session)
    run_protocol.record_check(desk, command.update, command.note)
    advance(desk)


def deliver(room: Room, command: DeliverRun, batch: RoomDraft, rules: RoomRules) -> None:
    """Note where the accepted work can be found."""
    run = batch.runs.by_id.get(command.run)
    if run is None or not run.owes_branch:
        return
    fields: dict[str, Any] = {"branch": command.branch, "note": command.note}
    where = f"the accepted work is on branch {command.branch}" if command.branch else command.note
    batch.add_run(run, RunDelivered, where, fields)
    batch.notice(ALL, f"Run {run.id}: {where}.", thread=run.thread)


# --- a person --------------------------------------------------------------------------------------


def act(room: Room, command: ActOnRun, batch: RoomDraft, rules: RoomRules) -> None:
    """Do what a person says."""
    run = known_run(batch.runs.by_id, command.run)
    afterwards = _AFTERWARDS.get(command.action)
    if afterwards:
        afterwards(run, command, batch)
        return
    _check_live(run)
    desk = SessionDraft(room, batch, rules, run.session)
    _ACTIONS[command.action](desk, run, command)
    advance(desk)


def _judge(run: ReviewRun, command: ActOnRun, batch: RoomDraft) -> None:
    known = [str(one.id) for one in run.findings]
    if command.finding not in known:
        hint = nearest(command.finding or "", known) if known else "it has none"
        raise NotFound(f"unknown finding {command.finding!r} of run {run.id}", hint)
    if command.verdict is None:
        raise BadInput("a verdict is missing", "give: confirmed or rejected")
    fields = {"finding": command.finding, "verdict": command.verdict}
    batch.add_run(run, RunJudged, f"{command.finding} {command.verdict}", fields, by=command.sender)


def _record_defect(run: ReviewRun, command: ActOnRun, batch: RoomDraft) -> None:
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
    fields = {"defect": f"d-{len(run.defects) + 1}", "severity": command.severity}
    batch.add_run(run, RunDefect, text, fields, by=command.sender)


def _go(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    _check_phase(run, command.action, P.APPROVAL)
    _edit(desk, run, command)
    run_protocol.enter_phase(desk, P.EXECUTION, by=command.sender)


def _edit(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    """Take the plan that a person has changed."""
    if command.plan is not None and command.plan != run.plan:
        fields = {"plan": command.plan}
        desk.add_run(RunEdited, f"plan of {len(command.plan.steps)} steps", fields, by=command.sender)
        desk.notice(f"Run {run.id}: {command.sender} has changed the plan.")


def is_plan_open(run: ReviewRun) -> bool:
    """Tell whether a person may still change the plan: there is one, nobody works by it yet."""
    at = run.back if run.phase is P.HALTED else run.phase
    return run.plan is not None and at in (P.FEEDBACK, P.APPROVAL)


def _halt(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    if run.phase in (P.HALTED, P.SETUP):
        raise Refused(f"run {run.id} is in phase {run.phase}", "see: csp review show")
    run_protocol.halt(desk, command.rationale or f"halted by {command.sender}", by=command.sender)


def _resume(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    is_paused = desk.session.status is Status.PAUSED
    if is_paused:
        desk.change(Change.RESUMED, "resumed", by=command.sender)
    if run.phase is P.HALTED:
        if is_plan_open(run):
            _edit(desk, run, command)
        if run.back is P.CHECKS and run.is_checked:
            run_protocol.after_checks(desk)
        else:
            run_protocol.enter_phase(desk, run.back or P.EXECUTION, command.rationale, by=command.sender)
    elif not is_paused:
        raise Refused(f"run {run.id} is not halted, it is in phase {run.phase}", "see: csp review show")


def _abort(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    if not command.rationale.strip():
        raise BadInput("an abort needs a rationale", "say why: csp review abort RUN WHY")
    end(desk, _AT_ABORT.get(run.phase, EndReason.ABORTED), by=command.sender, note=command.rationale)


def _decide(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    if command.decision is None:
        raise BadInput("a decision is missing", "give: accept, revise or abort")
    if command.decision is Decision.ABORT:
        _abort(desk, run, command)
        return
    _check_phase(run, command.action, *_DECISIONS)
    _DECISIONS[run.phase][command.decision](desk, run, command)


def _check_phase(run: ReviewRun, action: RunAction, *phases: RunPhase) -> None:
    if run.phase not in phases:
        wanted = " or ".join(phases)
        what = f"run {run.id} is in phase {run.phase}, {action} is for {wanted}"
        raise Refused(what, "see: csp review show")


def _plan_again(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    run_protocol.enter_phase(
        desk, P.PLAN, command.rationale or "a person wants another plan", by=command.sender
    )


def _close(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    run_protocol.enter_phase(desk, P.CLOSING, command.rationale, by=command.sender)


def _revise(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    run_protocol.revise(desk, command.rationale, by=command.sender)


def _back_to_work(desk: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    run_protocol.enter_phase(desk, P.EXECUTION if run.plan else P.PLAN, command.rationale, by=command.sender)


#: How a run ends that a person aborts in one of these phases.
_AT_ABORT: Final = {P.ESCALATED: EndReason.CAP_REACHED, P.HALTED: EndReason.HALTED}
#: What is said of a run when it is over.
_AFTERWARDS: Final[dict[RunAction, Callable[[ReviewRun, ActOnRun, RoomDraft], None]]] = {
    RunAction.FINDING: _judge,
    RunAction.DEFECT: _record_defect,
}
_Act = Callable[[SessionDraft, ReviewRun, ActOnRun], None]
_DECISIONS: Final[dict[RunPhase, dict[Decision, _Act]]] = {
    P.APPROVAL: {Decision.ACCEPT: _go, Decision.REVISE: _plan_again},
    P.ESCALATED: {Decision.ACCEPT: _close, Decision.REVISE: _revise},
    P.HALTED: {Decision.ACCEPT: _resume, Decision.REVISE: _back_to_work},
}
_ACTIONS: Final[dict[RunAction, _Act]] = {
    RunAction.GO: _go,
    RunAction.DECIDE: _decide,
    RunAction.HALT: _halt,
    RunAction.RESUME: _resume,
    RunAction.ABORT: _abort,
}
