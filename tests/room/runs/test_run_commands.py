"""The tests of what is done about a run from outside."""

from typing import Any

import pytest
from msgspec.structs import replace

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import HUMAN, AgentId, SessionAction
from csp.protocol.events import RunChecked, RunEdited
from csp.protocol.review_messages import (
    Decision,
    ExecutionUpdate,
    Plan,
    RunAction,
    RunContext,
    RunPhase,
    RunRole,
    Verdict,
)
from csp.protocol.session_parts import EndReason
from csp.room.commands import ActOnRun, CheckRun, DeliverRun, PrepareRun
from csp.room.runs.run_commands import is_plan_open, known_run
from tests.room.live import CLAUDE, CODEX, LiveRoom
from tests.room.reviewing import PLAN, Reviewing
from tests.room.runs.test_run_protocol import at_phase

A, D, P = RunAction, Decision, RunPhase


# --- who may say something -------------------------------------------------------------------------


def test_message_of_an_agent_is_that_of_its_role() -> None:
    run = Reviewing().to(P.PLAN)
    run.do(replace(run.message(RunRole.BUILDER, PLAN, sender=CLAUDE), role=None))

    assert run.run.phase is P.FEEDBACK


def test_agent_cannot_speak_for_the_other_role() -> None:
    run = Reviewing().to(P.PLAN)
    command = run.message(RunRole.BUILDER, PLAN, sender=CODEX)

    assert run.refused(command) == f"sender is builder, but codex is the reviewer of run {run.run.id}"


def test_stranger_has_no_say() -> None:
    run = Reviewing().to(P.PLAN)
    error = run.refuse(run.message(RunRole.BUILDER, PLAN, sender=AgentId("gemini")), BadInput)

    assert error.message == f"gemini has no role in run {run.run.id}"
    assert error.hint == "builder is claude, reviewer is codex"


def test_run_that_has_ended_takes_no_message() -> None:
    run = Reviewing().to(P.ENDED)

    assert run.refused(run.message(RunRole.BUILDER, PLAN)) == f"run {run.run.id} has ended: accepted"


def test_unknown_run_is_not_found_with_a_hint() -> None:
    run = Reviewing(run_id="mend-it")
    command = ActOnRun(sender=HUMAN, run="mend-is", action=A.HALT)

    assert run.refuse(command, NotFound).hint == "did you mean 'mend-it'?"
    with pytest.raises(NotFound, match="unknown run"):
        known_run({}, "x")


# --- CSP's own hands -------------------------------------------------------------------------------


def test_note_about_the_place_is_told() -> None:
    run = Reviewing()
    run.prepare("", note="'/d' is in no repository")

    assert f"Run {run.run.id}: '/d' is in no repository." in run.notices
    assert run.prepare() == []


def test_work_on_an_unknown_run_is_passed_over() -> None:
    room = LiveRoom()

    assert room.do(PrepareRun(run="x", context=RunContext())) == []
    assert room.do(CheckRun(run="x", cycle=1, step=1, update=ExecutionUpdate(step="s"))) == []
    assert room.do(DeliverRun(run="x")) == []


@pytest.mark.parametrize("fields", [{"cycle": 2}, {"step": 2}])
def test_check_of_another_step_is_passed_over(fields: dict[str, int]) -> None:
    run = Reviewing().to(P.CHECKS)

    assert run.check(**fields) == []


def test_step_is_checked_once() -> None:
    run = Reviewing().to(P.DECISION)

    assert run.check() == []


def test_check_is_shown_with_its_note() -> None:
    run = Reviewing().to(P.CHECKS)
    run.check(update=ExecutionUpdate(step="all", final=True, diff="+x"), note="the diff is long")

    assert f"Run {run.run.id}: the diff is long." in run.notices
    assert run.run.update is not None and run.run.update.diff == "+x"


def test_check_that_comes_in_a_halt_is_kept_for_later() -> None:
    run = Reviewing().to(P.CHECKS)
    run.act(A.HALT)
    run.check()
    assert (run.run.phase, len(run.all(RunChecked))) == (P.HALTED, 1)
    run.act(A.RESUME)

    assert (run.run.phase, run.waiting) == (P.DECISION, (CODEX,))


def test_check_that_was_not_there_before_a_halt_is_waited_for_after_it() -> None:
    run = Reviewing().to(P.CHECKS)
    run.act(A.HALT)
    run.act(A.RESUME)
    assert run.phases[-1] == P.CHECKS
    run.check()

    assert run.run.phase is P.DECISION


def test_branch_of_accepted_work_is_told_once() -> None:
    run = Reviewing().to(P.ENDED)
    assert run.run.owes_branch
    run.deliver_branch(branch="csp/x")

    assert (run.run.branch, run.run.owes_branch) == ("csp/x", False)
    assert f"Run {run.run.id}: the accepted work is on branch csp/x." in run.notices
    assert run.deliver_branch(branch="csp/y") == []


def test_why_there_is_no_branch_is_told() -> None:
    run = Reviewing().to(P.ENDED)
    run.deliver_branch(note="there is no repository")

    assert f"Run {run.run.id}: there is no repository." in run.notices


def test_nothing_is_owed_where_nothing_was_wanted_or_accepted() -> None:
    assert not Reviewing(on_accept="nothing").to(P.ENDED).run.owes_branch
    assert not Reviewing().to(P.CLOSING).run.owes_branch


# --- a person --------------------------------------------------------------------------------------


def test_go_lets_the_work_begin() -> None:
    run = at_phase(P.APPROVAL)
    run.act(A.GO, plan=run.run.plan)

    assert (run.run.phase, run.waiting, run.all(RunEdited)) == (P.EXECUTION, (CLAUDE,), [])


@pytest.mark.parametrize("phase", [P.PLAN, P.FEEDBACK, P.APPROVAL, P.EXECUTION])
def test_plan_can_be_changed_in_a_halt_until_somebody_works_by_it(phase: RunPhase) -> None:
    run = at_phase(phase)
    run.act(RunAction.HALT)
    before = run.run.plan
    is_open = is_plan_open(run.run)
    run.act(RunAction.RESUME, plan=Plan(steps=("mine",)))

    assert is_open == (phase in (P.FEEDBACK, P.APPROVAL))
    assert run.run.phase is phase
    assert run.run.plan == (Plan(steps=("mine",)) if is_open else before)


def test_go_with_another_plan_changes_it() -> None:
    run = at_phase(P.APPROVAL)
    run.act(A.GO, plan=Plan(steps=("only this",)))

    assert run.run.plan == Plan(steps=("only this",))
    assert "plan=1. only this" in run.prompt(CLAUDE)
    assert f"Run {run.run.id}: human changed the plan." in run.notices


@pytest.mark.parametrize(
    ("phase", "decision", "following"),
    [
        (P.APPROVAL, D.ACCEPT, P.EXECUTION),
        (P.APPROVAL, D.REVISE, P.PLAN),
        (P.ESCALATED, D.ACCEPT, P.CLOSING),
        (P.ESCALATED, D.REVISE, P.EXECUTION),
        (P.HALTED, D.ACCEPT, P.DECISION),
        (P.HALTED, D.REVISE, P.EXECUTION),
    ],
)
def test_decision_of_a_person(phase: RunPhase, decision: Decision, following: RunPhase) -> None:
    run = at_phase(phase)
    run.act(A.DECIDE, decision=decision, rationale="mind the tests")

    assert run.run.phase is following
    assert following is P.DECISION or "mind the tests" in run.run.why or phase is P.APPROVAL


def test_person_may_grant_a_revision_beyond_the_cap() -> None:
    run = at_phase(P.ESCALATED)
    run.act(A.DECIDE, decision=D.REVISE, rationale="once more")

    assert (run.run.cycle, run.run.revisions, run.run.phase) == (2, 1, P.EXECUTION)
    assert "why=Note from a person: once more" in run.prompt(CLAUDE)


def test_halt_before_there_is_a_plan_goes_back_to_it() -> None:
    run = Reviewing().to(P.PLAN)
    run.act(A.HALT)
    run.act(A.DECIDE, decision=D.REVISE)

    assert run.run.phase is P.PLAN


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        (P.APPROVAL, EndReason.ABORTED),
        (P.EXECUTION, EndReason.ABORTED),
        (P.ESCALATED, EndReason.CAP_REACHED),
        (P.HALTED, EndReason.HALTED),
    ],
)
@pytest.mark.parametrize("action", [{"action": A.ABORT}, {"action": A.DECIDE, "decision": D.ABORT}])
def test_abort_of_a_person(phase: RunPhase, reason: EndReason, action: dict[str, Any]) -> None:
    run = at_phase(phase)
    assert run.refused_act(**action) == "an abort needs a rationale"
    run.act(**action, rationale="no use")

    assert (run.run.reason, run.ended) == (reason, reason)
    assert run.run.end is not None and run.run.end.summary == "no use"


@pytest.mark.parametrize("phase", [P.START, P.PLAN, P.EXECUTION, P.CHECKS, P.DECISION, P.CLOSING, P.APPROVAL])
def test_halt_and_resume_in_every_phase(phase: RunPhase) -> None:
    run = at_phase(phase)
    waiting = run.waiting
    run.act(A.HALT, rationale="wait")
    assert (run.run.phase, run.run.why, run.waiting) == (P.HALTED, "wait", ())
    run.act(A.RESUME)

    assert (run.run.phase, run.waiting) == (phase, waiting)


def test_halt_says_who_did_it() -> None:
    run = Reviewing().to(P.PLAN)
    run.act(A.HALT)

    assert run.run.why == "halted by human"


def test_resume_wakes_a_session_that_was_paused() -> None:
    run = Reviewing().to(P.PLAN)
    run.steer(SessionAction.PAUSE)
    run.act(A.RESUME)

    assert run.session.is_running


@pytest.mark.parametrize(
    ("phase", "fields", "problem"),
    [
        (P.PLAN, {"action": A.GO}, "run r is in phase plan, go is for approval"),
        (P.PLAN, {"action": A.RESUME}, "run r is not halted, it is in phase plan"),
        (P.HALTED, {"action": A.HALT}, "run r is in phase halted"),
        (P.SETUP, {"action": A.HALT}, "run r is in phase setup"),
        (P.PLAN, {"action": A.DECIDE}, "a decision is missing"),
        (
            P.PLAN,
            {"action": A.DECIDE, "decision": D.ACCEPT},
            "run r is in phase plan, decide is for approval or escalated or halted",
        ),
        (P.ENDED, {"action": A.HALT}, "run r has ended: accepted"),
        (P.PLAN, {"action": A.FINDING, "finding": "f-1"}, "unknown finding 'f-1' of run r"),
        (P.PLAN, {"action": A.FINDING}, "unknown finding None of run r"),
    ],
)
def test_act_that_does_not_fit_is_refused(
    phase: RunPhase, fields: dict[str, RunAction], problem: str
) -> None:
    run = at_phase(phase)

    assert run.refused_act(**fields).replace(run.run.id, "r") == problem


def test_finding_is_judged_even_after_the_end() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise("FINDING: major - a\nFINDING: minor - b")
    error = run.refuse(ActOnRun(sender=HUMAN, run=run.run.id, action=A.FINDING, finding="f-1"), BadInput)
    assert error.message == "a verdict is missing"
    run.act(A.ABORT, rationale="enough")
    run.act(A.FINDING, finding="f-1", verdict=Verdict.CONFIRMED)

    assert [one.verdict for one in run.run.findings] == [Verdict.CONFIRMED, None]
    command = ActOnRun(
        sender=HUMAN, run=run.run.id, action=A.FINDING, finding="f-3", verdict=Verdict.REJECTED
    )
    assert run.refuse(command, Refused).message == f"unknown finding 'f-3' of run {run.run.id}"
