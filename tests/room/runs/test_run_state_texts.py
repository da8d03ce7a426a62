"""The tests of what a run is told with."""

from msgspec.structs import replace

from csp.protocol.review_messages import (
    DiffFigures,
    ExecutionUpdate,
    PlanFeedback,
    Risk,
    RunContext,
    RunPhase,
    Telemetry,
    TestResult,
)
from csp.protocol.session_parts import EndReason
from csp.room.runs.run_state import plan_text, run_values, summary_of
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.reviewing import Reviewing

P = RunPhase
FIGURES = DiffFigures(base="a", commit="b", files=2, insertions=3, deletions=1)
FAILED = TestResult(command="make", passed=False, code=2, output="boom\n")


def test_run_without_anything_says_so() -> None:
    values = run_values(Reviewing().run, CLAUDE)

    assert (values["place"], values["test"], values["plan"]) == (
        "(your own directory)",
        "(none)",
        "(no plan yet)",
    )
    assert (values["feedback"], values["findings"], values["work"]) == ("(none)", "(none)", "(nothing yet)")
    assert (values["role"], values["other"], values["why"]) == ("builder", "codex", "")


def test_roles_hear_of_each_other() -> None:
    run = Reviewing().run

    assert run_values(run, CODEX)["other"] == "claude"
    assert run_values(run, GEMINI)["role"] == "builder"


def test_place_is_the_worktree_else_the_directory() -> None:
    run = Reviewing().run

    assert run_values(replace(run, context=RunContext(dir="/d", worktree="/w")), CLAUDE)["place"] == "/w"
    assert run_values(replace(run, context=RunContext(dir="/d")), CLAUDE)["place"] == "/d"
    assert run_values(replace(run, context=RunContext()), CLAUDE)["place"] == "(your own directory)"


def test_work_has_tests_and_the_diff_of_git() -> None:
    update = ExecutionUpdate(step="all", final=True, diff="+```\n", tests=FAILED, figures=FIGURES)
    text = run_values(replace(Reviewing().run, update=update), CODEX)["work"]

    assert text == (
        "Submitted: all\n\nTests, run by CSP: `make` FAILED (exit 2).\n\n```\nboom\n```\n\n"
        "Diff, computed by CSP from git (2 files, +3 -1):\n\n```diff\n+```\n\n```"
    )


def test_fence_is_longer_than_any_in_the_text() -> None:
    update = ExecutionUpdate(step="all", diff=" ```` ")
    text = run_values(replace(Reviewing().run, update=update), CODEX)["work"]

    assert "Diff, as reported by the builder:\n\n`````diff\n" in text


def test_step_shows_what_was_subscribed_to() -> None:
    tests = TestResult(command="make", passed=True)
    run = replace(Reviewing().run, update=ExecutionUpdate(step="one", tests=tests, figures=FIGURES))

    assert run_values(run, CODEX)["seen"] == "Step: one"
    seen = run_values(replace(run, telemetry=(Telemetry.TESTS,)), CODEX)["seen"]
    assert seen == "Step: one\n\nTests, run by CSP: `make` passed."
    seen = run_values(replace(run, telemetry=(Telemetry.DIFFS,)), CODEX)["seen"]
    assert seen == "Step: one\n\nDiff, computed by CSP from git (2 files, +3 -1)."


def test_tests_that_took_too_long_or_were_not_run() -> None:
    slow = TestResult(command="make", passed=False, timed_out=True)
    run = replace(Reviewing().run, update=ExecutionUpdate(step="one", tests=slow))

    assert "`make` timed out." in run_values(run, CODEX)["work"]
    bare = replace(run, update=ExecutionUpdate(step="one"))
    assert "Tests: none were run.\n\nDiff: none available." in run_values(bare, CODEX)["work"]


def test_tests_that_csp_did_not_run_are_the_words_of_the_builder() -> None:
    claimed = TestResult(command="make", passed=True, claimed=True)
    run = replace(Reviewing().run, update=ExecutionUpdate(step="one", tests=claimed))

    assert "Tests, as reported by the builder: `make` passed." in run_values(run, CODEX)["work"]
    assert "Tests, as reported by the builder: passed" in summary_of(run, EndReason.ACCEPTED)


def test_feedback_has_notes_and_checks() -> None:
    said = PlanFeedback(risk=Risk.MEDIUM, notes=("a",), checks=("b",))

    assert (
        run_values(replace(Reviewing().run, feedback=said), CLAUDE)["feedback"]
        == "Risk: medium\n- a\n- check: b"
    )


def test_summary_has_both_roles() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise()
    run.reply(CLAUDE, "DONE: mended")
    run.check(update=ExecutionUpdate(step="mended", final=True, tests=FAILED))
    run.reply(CODEX, "DECISION: accept\nRATIONALE: good")
    run.reply(CLAUDE, "END: it works")

    assert run.run.summary.splitlines() == [
        f"Run {run.run.id}: accepted after 2 cycles, 1 revisions.",
        "Goal: mend it",
        "Builder claude: it works",
        "Reviewer codex: risk low; findings: 0 minor, 1 major, 0 critical, 0 open; 0 alerts; "
        "decided accept: good",
        "Tests: failed",
        "Worktree: /w",
    ]


def test_summary_of_a_run_that_came_to_nothing() -> None:
    run = replace(Reviewing().run, goal="")

    assert summary_of(run, EndReason.CANCELED).splitlines() == [
        f"Run {run.id}: canceled after 1 cycles, 0 revisions.",
        "Goal: -",
        "Builder claude: nothing was done",
        "Reviewer codex: findings: 0 minor, 0 major, 0 critical, 0 open; 0 alerts",
    ]


def test_summary_without_last_words_has_the_last_step() -> None:
    run = Reviewing().to(P.DECISION).run
    passed = TestResult(command="make", passed=True)
    done = replace(run, update=ExecutionUpdate(step="all", tests=passed))

    assert "Builder claude: all" in summary_of(done, EndReason.ABORTED)
    assert "Tests: passed" in summary_of(done, EndReason.ABORTED)


def test_plan_without_a_summary_is_its_steps() -> None:
    run = Reviewing().to(P.FEEDBACK).run
    assert run.plan is not None

    assert plan_text(replace(run.plan, summary="")) == "1. write it\n2. test it"
