"""The tests of csp review against a real gateway."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review.playing import Run
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync


class Shell:
    """One user in the directory of a room."""

    def __init__(self, room: LiveRoom) -> None:
        self.room = room

    def __call__(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "csp.cli", "review", *words],
            cwd=self.room.dir,
            env=os.environ | self.room.env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    with LiveRoom(tmp_path_factory.mktemp("cli")) as live:
        yield live


@pytest.fixture
def csp(room: LiveRoom) -> Shell:
    return Shell(room)


def test_run_is_begun_shown_decided_and_measured(csp: Shell, room: LiveRoom, tmp_path: Path) -> None:
    assert csp() == (0, "", "no runs yet; begin one with: csp review start\n")
    assert csp("stats") == (0, "", "no run has ended yet\n")
    first = Run(room, run_id="first")
    first.act("abort", rationale="only to register both")
    words = ("--builder", "claude", "--reviewer", "codex", "--run-id", "mine", "--max-revisions", "0")
    code, _, said = csp("start", "make", "the check pass", *words, "--test", "python3 check.py")
    assert (code, said) == (0, "began mine: claude builds, codex reviews\n")
    run = Run.of(room, "mine")
    run.answer("codex", "ACK: hi")
    run.answer("claude", "PLAN: it\n- one")
    run.answer("codex", "RISK: high")
    code, out, _ = csp("show")
    assert code == 0
    for line in ("goal: make the check pass", "phase: approval  cycle: 1", "waits for: human", "step 1: one"):
        assert line in out.splitlines()
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"steps": ["two"]}))
    assert csp("go", "mine", "--plan", str(plan))[0] == 0
    assert run.detail["plan"]["steps"] == ["two"]
    run.to_decision()
    run.answer("codex", "DECISION: revise\nFINDING: major - bad")
    assert re.search(r"escalated, waits for human for \d+ s  cycle 1", csp("list")[1])
    assert csp("decide", "mine", "revise", "once", "more")[0] == 0
    assert csp("halt", "mine", "wait")[2].startswith("mine  halted, waits for human")
    assert csp("resume", "mine")[2].startswith("mine  execution, waits for claude")
    assert csp("abort", "mine")[:2] == (2, "")
    assert csp("abort", "mine", "enough")[2].startswith("mine  ended (aborted)")
    assert csp("finding", "mine", "f-1", "confirmed")[0] == 0
    assert "f-1 (major, open, confirmed): bad" in csp("show", "mine")[1]
    code, out, _ = csp("stats")
    assert out.startswith("codex: 2 runs, 0 accepted") and "100% of the judged were right" in out
    assert json.loads(csp("stats", "--json")[1])[0]["confirmed"] == 1
    assert len(json.loads(csp("list", "--json")[1])["items"]) == 2
    wait_until_sync(run.is_folder_current, what="folder")


def test_a_defect_that_the_reviewer_missed_is_counted(csp: Shell, room: LiveRoom) -> None:
    run = Run(room, run_id="flawed")
    run.to_execution()
    run.to_decision()
    run.answer("codex", "DECISION: accept")
    run.answer("claude", "END: ok")
    run.until("ended")
    code, out, said = csp("defect", "flawed", "tabs", "are lost", "--severity", "critical")
    assert (code, out) == (0, "") and said.startswith("flawed  ended (accepted)")
    assert csp("defect", "flawed", "so are blanks")[0] == 0

    shown = csp("show", "flawed")[1].splitlines()
    assert [line for line in shown if "missed" in line] == [
        "d-1 (critical, missed): tabs are lost",
        "d-2 (major, missed): so are blanks",
    ]
    (line,) = [line for line in csp("stats")[1].splitlines() if line.startswith("codex: ")]
    assert "; 2 defects missed in 1 of 1 accepted runs, " in line
    assert json.loads(csp("stats", "--json")[1])[0]["missed"] == 2
    wait_until_sync(run.is_folder_current, what="folder")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("strat",), "unknown form 'strat' of review"),
        (("start", "goal"), "expected a goal, --builder and --reviewer"),
        (("list", "x"), "csp review list takes no 'x'"),
        (("show", "--approve"), "csp review show takes no --approve"),
        (("show",), "which run is meant?"),
        (("show", "nobody"), "unknown run 'nobody'"),
        (("decide", "x"), "expected a run and a decision"),
        (("finding", "x"), "expected a run, a finding, a verdict"),
        (("defect", "x"), "expected a run and what was wrong"),
        (("defect", "nobody", "bad"), "unknown run 'nobody'"),
        (("show", "--severity", "major"), "csp review show takes no --severity"),
        (("go", "x", "--plan", "missing.json"), "the plan 'missing.json' cannot be read"),
        (("start", "g", "--builder", "a", "--reviewer", "b", "--run-id", "../x"), "run_id"),
    ],
)
def test_mistake_is_one_line_without_a_traceback(csp: Shell, words: tuple[str, ...], problem: str) -> None:
    code, out, said = csp(*words)

    assert code in (1, 2) and out == ""
    assert problem in said and "Traceback" not in said and len(said.splitlines()) == 1
