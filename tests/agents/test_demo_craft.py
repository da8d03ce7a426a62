"""The tests of what demo agents do in a run."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.agents.demo.responder import reply
from csp.agents.demo.review_script import FILE, MENDED, is_run, say, work_of
from csp.prompt_files import load_prompts
from csp.protocol.enums import AgentId, ParticipantKind, SessionId
from csp.protocol.review_messages import (
    ExecutionUpdate,
    Finding,
    Plan,
    RunContext,
    RunRole,
    Severity,
    TestResult,
    type_of_body,
)
from csp.room.runs.run_message_parser import read_message
from csp.room.runs.run_prompts import run_values
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.turn_prompt import prompt, prompt_values
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import Play

PROMPTS = load_prompts()
FOUND = Finding(severity=Severity.MAJOR, text="bad", id="f-1", cycle=1)


def asked(name: str, agent: AgentId, **fields: object) -> str:
    """Return the prompt of a phase as an agent gets it."""
    play = Play(CLAUDE, CODEX)
    play.start("review", topic="a goal", agents=("claude", "codex"))
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
        **(known | fields),
    )
    values = prompt_values(play.session, agent, ParticipantKind.CLI, 1) | run_values(run, agent)
    return f"[YOUR TURN #t-1]\n{prompt(PROMPTS, name, values)}\n[end #t-1]"


@pytest.mark.parametrize(
    ("name", "agent", "said"),
    [
        ("review_ack", CODEX, "session.ack"),
        ("build_plan", CLAUDE, "plan.proposed"),
        ("review_plan", CODEX, "plan.feedback"),
        ("build_step", CLAUDE, "execution.update"),
        ("review_work", CODEX, "review.decision"),
        ("build_end", CLAUDE, "session.end"),
    ],
)
def test_every_prompt_is_answered_with_its_message(name: str, agent: AgentId, said: str) -> None:
    role = RunRole.BUILDER if agent == CLAUDE else RunRole.REVIEWER
    body = read_message(reply("ada", asked(name, agent), 0, agent), role, "r")

    assert type_of_body(body) == said


def test_step_on_the_way_is_let_pass() -> None:
    assert reply("ada", asked("review_watch", CODEX), 0) == "NOOP"


@pytest.mark.parametrize(("findings", "text"), [((), ""), ((FOUND,), MENDED)])
def test_second_try_adds_what_was_missing(findings: tuple[Finding, ...], text: str) -> None:
    work = work_of(asked("build_step", CLAUDE, findings=findings))

    assert work is not None and work.path == Path("/w") / FILE
    assert (MENDED in work.text) == bool(text)


def test_nothing_is_written_for_other_prompts() -> None:
    assert work_of(asked("build_plan", CLAUDE)) is None
    assert work_of("[YOUR TURN #t-1]\nAnswer with `DONE:`") is None


@pytest.mark.parametrize(
    ("passed", "cycle", "decision"),
    [(False, 1, "revise"), (True, 1, "accept"), (None, 1, "revise"), (None, 2, "accept")],
)
def test_reviewer_goes_by_the_tests(passed: bool | None, cycle: int, decision: str) -> None:
    tests = None if passed is None else TestResult(command="make", passed=passed, code=int(not passed))
    update = ExecutionUpdate(step="s", final=True, tests=tests)
    said = say(asked("review_work", CODEX, update=update, cycle=cycle, findings=(FOUND,)))

    assert said.startswith(f"DECISION: {decision}\n")
    assert ("RESOLVED: f-1" in said) == (decision == "accept")


def test_minor_findings_are_not_waited_for() -> None:
    minor = msgspec.structs.replace(FOUND, severity=Severity.MINOR)
    work = work_of(asked("build_step", CLAUDE, findings=(minor,)))

    assert work is not None and MENDED not in work.text


def test_a_message_about_a_run_is_a_message() -> None:
    prompt_text = asked("review_watch", CODEX)

    assert is_run(prompt_text)
    assert not is_run(f"[from human #1]\n{prompt_text}")
    assert not is_run("[YOUR TURN #t-1]\nYou are the builder.")


def test_what_only_the_work_says_is_no_finding() -> None:
    """A diff may hold a line that looks like one."""
    text = "[YOUR TURN #t-1]\nWork in this directory alone: /w\nAnswer with `DONE:`\n"
    listed = "- f-1 (major): it is bad\n"
    before = work_of(f"{text}{listed}Your work so far:\n")
    within = work_of(f"{text}Your work so far:\n{listed}")

    assert before is not None and MENDED in before.text
    assert within is not None and MENDED not in within.text


def test_nothing_is_written_where_no_work_is_asked_for() -> None:
    assert work_of("[YOUR TURN #t-1]\nWork in this directory alone: /w\nPropose a plan as `PLAN:`\n") is None
