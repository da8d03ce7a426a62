"""The tests of csp review against a real gateway."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csp.cli.review import detail_lines, run_line
from csp.errors import NotFound
from tests.cli.recording import Recorded
from tests.cli.recording import run as run_recorded
from tests.forks import run as run_csp
from tests.review.playing import Run
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync


class Shell:
    """One user in the directory of a room."""

    def __init__(self, room: LiveRoom) -> None:
        self.room = room

    def __call__(self, *words: str) -> tuple[int, str, str]:
        done = run_csp(["review", *words], self.room.dir, os.environ | self.room.env)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    with LiveRoom(tmp_path_factory.mktemp("cli")) as live:
        yield live


@pytest.fixture
def csp(room: LiveRoom) -> Shell:
    return Shell(room)


def test_run_is_begun_shown_decided_and_measured(csp: Shell, room: LiveRoom, tmp_path: Path) -> None:
    assert csp() == (0, "", "no runs yet; start one with: csp review start\n")
    assert csp("stats") == (0, "", "no run has ended yet\n")
    first = Run(room, run_id="first")
    first.act("abort", rationale="only to register both")
    words = ("--builder", "claude", "--reviewer", "codex", "--run-id", "mine", "--max-revisions", "0")
    code, _, said = csp("start", "make", "the check pass", *words, "--test", "python3 check.py")
    assert (code, said) == (0, "started mine: claude builds, codex reviews\n")
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
    assert out.startswith("codex: 2 runs, 0 accepted") and "100% of the judged ones were right" in out
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
        (("list", "x"), "csp review list does not accept 'x'"),
        (("show", "--approve"), "csp review show does not accept --approve"),
        (("show",), "no review is running"),
        (("show", "nobody"), "unknown run 'nobody'"),
        (("decide", "x"), "expected a run and a decision"),
        (("finding", "x"), "expected a run, a finding and a verdict"),
        (("defect", "x"), "expected a run and what was wrong"),
        (("defect", "nobody", "bad"), "unknown run 'nobody'"),
        (("show", "--severity", "major"), "csp review show does not accept --severity"),
        (("go", "x", "--plan", "missing.json"), "the plan 'missing.json' cannot be read"),
        (("start", "g", "--builder", "a", "--reviewer", "b", "--run-id", "../x"), "run_id"),
    ],
)
def test_mistake_is_one_line_without_a_traceback(csp: Shell, words: tuple[str, ...], problem: str) -> None:
    code, out, said = csp(*words)

    assert code in (1, 2) and out == ""
    assert problem in said and "Traceback" not in said and len(said.splitlines()) == 1


# --- without a room ------------------------------------------------------------------------------

RUN: dict[str, Any] = {"id": "r-1", "phase": "plan", "waits_for": "ann", "cycle": 2, "goal": "mend  it"}


def test_every_option_of_a_start_reaches_the_room(tmp_path: Path) -> None:
    gateway = Recorded({"/runs": {"run": RUN}})
    who = ("--builder", "ann", "--reviewer", "bob", "--run-id", "r-1", "--thread", "side", "--dir", "sub")
    how = (
        "--test",
        "make",
        "--test-timeout",
        "9",
        "--max-revisions",
        "0",
        "--on-accept",
        "nothing",
        "--approve",
    )

    assert run_recorded(gateway, "review", "start", "mend", "it", *who, *how, cwd=tmp_path) == 0
    assert gateway.asked == [
        (
            "POST",
            "/runs",
            {
                "goal": "mend it",
                "builder": "ann",
                "reviewer": "bob",
                "run_id": "r-1",
                "thread": "side",
                "dir": str(tmp_path / "sub"),
                "test": "make",
                "test_timeout_s": 9.0,
                "max_revisions": 0,
                "on_accept": "nothing",
                "approve": True,
            },
        )
    ]
    run_recorded(gateway, "review", "start", "x", "--builder", "a", "--reviewer", "b", cwd=tmp_path)
    assert gateway.bodies[-1] == {"goal": "x", "builder": "a", "reviewer": "b", "dir": str(tmp_path)}


@pytest.mark.parametrize(
    ("words", "path", "body"),
    [
        (
            ("decide", "r-1", "revise", "mind", "tests"),
            "decide",
            {"decision": "revise", "rationale": "mind tests"},
        ),
        (("halt", "r-1", "wait", "now"), "halt", {"rationale": "wait now"}),
        (("resume", "r-1"), "resume", {"rationale": ""}),
        (("abort", "r-1", "wrong"), "abort", {"rationale": "wrong"}),
        (("finding", "r-1", "f-1", "rejected"), "finding", {"finding": "f-1", "verdict": "rejected"}),
        (("go", "r-1"), "go", {}),
        (("go", "r-1", "--plan", "plan.json"), "go", {"plan": {"steps": ["one"]}}),
    ],
)
def test_each_decision_reaches_its_run(
    words: tuple[str, ...],
    path: str,
    body: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "plan.json").write_text('{"steps": ["one"]}')
    gateway = Recorded({f"/runs/r-1/{path}": {"run": RUN}})

    assert run_recorded(gateway, "review", *words, cwd=tmp_path) == 0
    assert gateway.asked == [("POST", f"/runs/r-1/{path}", body)]
    assert capsys.readouterr().err == "r-1  plan, waits for ann  cycle 2  mend it\n"


def test_the_only_run_that_goes_on_is_the_one_that_is_meant() -> None:
    items = [RUN, RUN | {"id": "r-0", "reason": "accepted"}]
    gateway = Recorded({"/runs": {"items": items}, "/runs/r-1": {"run": RUN}, "/runs/r-1/go": {"run": RUN}})
    run_recorded(gateway, "review", "show")
    run_recorded(gateway, "review", "go")

    assert [path for _, path, _ in gateway.asked] == ["/runs", "/runs/r-1", "/runs", "/runs/r-1/go"]
    for live, hint in (
        ([RUN, RUN | {"id": "r-2"}], "name one: r-1, r-2"),
        ([], "name one: csp review show run-12"),
    ):
        with pytest.raises(NotFound) as caught:
            run_recorded(Recorded({"/runs": {"items": live}}), "review", "show")
        assert caught.value.hint == hint


def test_a_run_is_shown_with_all_that_is_known_of_it() -> None:
    findings = [
        {"id": "f-1", "severity": "major", "text": "bad", "resolved": 2, "verdict": "confirmed"},
        {"id": "f-2", "severity": "minor", "text": "odd"},
    ]
    run = RUN | {"why": "no", "branch": "b", "since": time.time() - 70, "revisions": 1, "max_revisions": 3}
    detail = {"run": run, "plan": {"steps": ["one", "two"]}, "risk": "high", "findings": findings}
    shown = list(detail_lines(detail | {"context": {"worktree": "/w"}, "folder": "/f"}))

    assert shown[3:] == [
        "phase: plan  cycle: 2",
        "revisions: 1 of 3",
        "waits for: ann",
        "waits for 1 min",
        "why: no",
        "branch: b",
        "step 1: one",
        "step 2: two",
        "risk: high",
        "f-1 (major, resolved in cycle 2, confirmed): bad",
        "f-2 (minor, open): odd",
        "worktree: /w",
        "folder: /f",
    ]
    ended = list(detail_lines({"run": run | {"reason": "accepted"}}))
    assert "ended: accepted" in ended and not any("min" in line for line in ended)
    assert run_line(run | {"reason": "accepted"}) == "r-1  ended (accepted)  cycle 2  mend it"
