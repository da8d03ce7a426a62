"""The tests of what demo agents do in a run."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.agents.demo.demo_prompt import DemoPrompt, Kind
from csp.agents.demo.responder import reply
from csp.agents.demo.review_script import FILE, FIXED, answer, work_of
from csp.protocol.enums import SessionId
from csp.protocol.review_messages import (
    ExecutionUpdate,
    Finding,
    Plan,
    RunContext,
    RunDetail,
    RunPhase,
    RunRole,
    Severity,
    TestResult,
    type_of_body,
)
from csp.room.runs.run_commands import read_message
from csp.room.runs.run_protocol import run_detail
from csp.room.runs.run_state import ReviewRun
from tests.room.live import CLAUDE, CODEX

FOUND = Finding(severity=Severity.MAJOR, text="bad", id="f-1", cycle=1)
BUILDER, REVIEWER = RunRole.BUILDER, RunRole.REVIEWER


def at(phase: RunPhase, **fields: object) -> RunDetail:
    """Return a run in a phase, as the room shows it."""
    known: dict[str, Any] = {"plan": Plan(steps=("one",)), "context": RunContext(dir="/d", worktree="/w")}
    run = ReviewRun(
        id="r",
        session=SessionId("s-1"),
        thread="default",
        goal="a goal",
        builder=CLAUDE,
        reviewer=CODEX,
        started_at=0.0,
        first_seq=1,
        seq=1,
        phase=phase,
        **(known | fields),
    )
    return run_detail(run)


@pytest.mark.parametrize(
    ("phase", "role", "said"),
    [
        (RunPhase.START, REVIEWER, "session.ack"),
        (RunPhase.PLAN, BUILDER, "plan.proposed"),
        (RunPhase.FEEDBACK, REVIEWER, "plan.feedback"),
        (RunPhase.EXECUTION, BUILDER, "execution.update"),
        (RunPhase.DECISION, REVIEWER, "review.decision"),
        (RunPhase.CLOSING, BUILDER, "session.end"),
    ],
)
def test_every_phase_is_answered_with_its_message(phase: RunPhase, role: RunRole, said: str) -> None:
    prompt = DemoPrompt(kind=Kind.REVIEW, text="do it", me="ada", topic="a goal", run=at(phase))
    body = read_message(reply("ada", prompt, 0), role, "r")

    assert type_of_body(body) == said


def test_step_on_the_way_is_let_pass() -> None:
    assert answer(at(RunPhase.WATCH)) == "NOOP"


@pytest.mark.parametrize(("findings", "text"), [((), ""), ((FOUND,), FIXED)])
def test_second_try_adds_what_was_missing(findings: tuple[Finding, ...], text: str) -> None:
    work = work_of(at(RunPhase.EXECUTION, findings=findings))

    assert work is not None and work.path == Path("/w") / FILE
    assert (FIXED in work.text) == bool(text)


def test_nothing_is_written_in_other_phases_or_without_a_place() -> None:
    assert work_of(at(RunPhase.PLAN)) is None
    assert work_of(at(RunPhase.EXECUTION, context=None)) is None


@pytest.mark.parametrize(
    ("passed", "cycle", "decision"),
    [(False, 1, "revise"), (True, 1, "accept"), (None, 1, "revise"), (None, 2, "accept")],
)
def test_reviewer_goes_by_the_tests(passed: bool | None, cycle: int, decision: str) -> None:
    tests = None if passed is None else TestResult(command="make", passed=passed, code=int(not passed))
    update = ExecutionUpdate(step="s", final=True, tests=tests)
    said = answer(at(RunPhase.DECISION, update=update, cycle=cycle, findings=(FOUND,)))

    assert said.startswith(f"DECISION: {decision}\n")
    assert ("RESOLVED: f-1" in said) == (decision == "accept")


@pytest.mark.parametrize("change", [{"severity": Severity.MINOR}, {"resolved": 1}])
def test_findings_that_need_no_revision_are_not_waited_for(change: dict[str, Any]) -> None:
    work = work_of(at(RunPhase.EXECUTION, findings=(msgspec.structs.replace(FOUND, **change),)))

    assert work is not None and FIXED not in work.text
