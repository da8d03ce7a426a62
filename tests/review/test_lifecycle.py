"""A run over a real gateway on a real repository, from plan to branch."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.errors import CspError
from csp.http_client import GatewayClient
from tests.review.playing import PLAN, Run
from tests.review.repository import RIGHT, WRONG, applies_to_a_clone, git
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    with LiveRoom(tmp_path_factory.mktemp("review")) as live:
        yield live


def test_two_cycles_with_a_failing_then_a_passing_check(room: LiveRoom, tmp_path: Path) -> None:
    run = Run(room)
    (run.dir / "README").write_text("maths, dirty\n")
    before = (git(run.dir, "rev-parse", "HEAD"), git(run.dir, "status", "--porcelain"))
    run.play()
    messages = run.check_files()

    assert [message["message_type"] for message in messages if message["sender"] == "builder"] == [
        "session.start",
        "plan.proposed",
        "execution.update",
        "execution.update",
        "session.end",
    ]
    updates = [message["body"] for message in messages if message["message_type"] == "execution.update"]
    assert [update["tests"]["passed"] for update in updates] == [False, True]
    assert ["AssertionError: 5" in update["tests"].get("output", "") for update in updates] == [True, False]
    assert all("+def double(x):" in update["diff"] and update["final"] for update in updates)
    assert updates[1]["metrics"] == {
        "lines": 2.0,
        "csp.files": 1.0,
        "csp.insertions": 2.0,
        "csp.deletions": 0.0,
        "csp.tests_passed": 1.0,
        "csp.tests_seconds": updates[1]["tests"]["seconds"],
    }
    names = [name for name in run.files() if not name.startswith("decisions/decision-")]
    assert names == [
        "builder-log.jsonl",
        "decisions/final.json",
        "diffs/cycle-1.patch",
        "diffs/cycle-2.patch",
        "plan.json",
        "reviewer-log.jsonl",
        "run.json",
        "summary.md",
    ]
    applies_to_a_clone(run.dir, run.folder / "diffs" / "cycle-2.patch", tmp_path / "clone")
    branch = run.detail["run"]["branch"]
    assert branch == f"csp/{run.id}"
    assert git(run.dir, "show", f"{branch}:maths.py") == RIGHT.strip()
    assert (git(run.dir, "rev-parse", "HEAD"), git(run.dir, "status", "--porcelain")) == before
    assert "Reviewer codex" in (run.folder / "summary.md").read_text()
    stats = room.gateway.get("/runs")["stats"]
    assert [(one["reviewer"], one["accepted_after_revision"]) for one in stats] == [("codex", 1)]


def test_a_step_on_the_way_has_its_diff_and_tests_too(room: LiveRoom) -> None:
    run = Run(room)
    run.to_execution()
    run.write(WRONG)
    run.answer("claude", "STEP: a first try")
    run.until("execution")
    run.write(RIGHT)
    run.to_decision(RIGHT)
    steps = [one["body"] for one in run.check_files() if one["message_type"] == "execution.update"]
    told = [
        json.loads(path.read_bytes())["body"]
        for path in sorted(
            (room.folder / "mailbox" / "reviewer" / "inbox").glob(f"*-{run.id}-execution.update.json")
        )
    ]

    assert [one.get("final", False) for one in steps] == [False, True]
    assert ["+    return x + x + 1" in one["diff"] for one in steps] == [True, False]
    assert [one["figures"]["insertions"] for one in steps] == [2, 2]
    assert [one["tests"]["passed"] for one in steps] == [False, True]
    assert [one["diff"] for one in told] == [one["diff"] for one in steps]
    refs = git(run.dir, "for-each-ref", "--format=%(refname)", f"refs/csp/runs/{run.id}").split()
    assert [ref.rpartition("/")[2] for ref in refs] == ["1-1", "1-2"]
    run.act("abort", rationale="seen enough")


def test_high_risk_waits_and_the_plan_can_be_edited_on_disk(room: LiveRoom) -> None:
    run = Run(room)
    run.answer("codex", "ACK: ready")
    run.answer("claude", PLAN)
    run.answer("codex", "RISK: high - it is maths")
    run.until("approval")
    path = run.folder / "plan.json"
    wait_until_sync(run.is_folder_current, what="folder")
    path.write_text("{half")
    with pytest.raises(CspError, match="plan"):
        run.act("go")
    plan = {"steps": ["only write maths.py"]}
    path.write_text(json.dumps(plan))
    run.act("go")

    assert run.detail["plan"]["steps"] == plan["steps"]
    run.act("abort", rationale="seen enough")
    wait_until_sync(run.is_folder_current, what="folder")
    assert json.loads(path.read_bytes())["steps"] == plan["steps"]


def test_plan_edited_in_a_halt_before_execution_counts(room: LiveRoom) -> None:
    run = Run(room, approve=True)
    run.answer("codex", "ACK: ready")
    run.answer("claude", PLAN)
    run.answer("codex", "RISK: low")
    wait_until_sync(run.is_folder_current, what="folder")
    path = run.folder / "plan.json"
    path.write_text(json.dumps({"steps": ["mine"]}))
    run.act("halt", rationale="let me think")
    wait_until_sync(run.is_folder_current, what="folder")
    assert json.loads(path.read_bytes()) == {"steps": ["mine"]}
    path.write_text("{half")
    with pytest.raises(CspError, match=r"plan\.json"):
        run.act("resume")
    path.write_text(json.dumps({"steps": ["mine"]}))
    run.act("resume")

    assert (run.phase, run.detail["plan"]["steps"]) == ("approval", ["mine"])
    run.act("abort", rationale="seen enough")


def test_plan_edited_too_late_is_kept_and_told(room: LiveRoom) -> None:
    run = Run(room)
    run.to_execution()
    wait_until_sync(run.is_folder_current, what="folder")
    path = run.folder / "plan.json"
    own = path.read_bytes()
    path.write_text("{mine")
    run.to_decision()
    wait_until_sync(run.is_folder_current, what="folder")
    wait_until_sync(lambda: any("plan.json was changed" in one for one in run.notices()), what="a notice")

    assert path.read_bytes() == own
    assert [one.read_text() for one in run.folder.glob("plan.edited-*.json")] == ["{mine"]
    run.act("abort", rationale="seen enough")


def test_critical_alert_in_the_midst_of_work_halts_it(room: LiveRoom) -> None:
    run = Run(room)
    run.to_execution()
    alert = run.message("reviewer", "execution.alert", level="critical", text="no")
    run.by("codex").post(f"/runs/{run.id}/message", alert)

    assert run.phase == "halted"
    assert room.gateway.get("/mode")["waitingFor"] == []
    run.act("resume")
    assert run.phase == "execution"
    run.to_decision()
    run.answer("codex", "DECISION: abort\nRATIONALE: beyond repair")
    assert run.detail["run"]["reason"] == "aborted"
    assert (run.worktree / "maths.py").read_text() == WRONG
    assert any(f"Its worktree stays at {run.worktree}" in notice for notice in run.notices())


def test_revise_beyond_the_cap_escalates_to_a_person(room: LiveRoom) -> None:
    run = Run(room, max_revisions=0, on_accept="nothing")
    run.to_execution()
    run.to_decision()
    run.answer("codex", "DECISION: revise\nFINDING: critical - wrong")
    assert run.phase == "escalated"
    run.act("decide", decision="accept", rationale="good enough")
    run.answer("claude", "END: ok")
    run.until("ended")
    run.act("finding", finding="f-1", verdict="rejected")

    assert run.detail["findings"][0]["verdict"] == "rejected"
    assert git(run.dir, "branch", "--list", f"csp/{run.id}") == ""


def test_token_decides_who_speaks(room: LiveRoom) -> None:
    run = Run(room)
    message = run.message("reviewer", "session.ack")
    path = f"/runs/{run.id}/message"
    run.until("start")
    for caller, problem in (
        (room.gateway, "has no role"),
        (run.by("claude"), "claude is the builder"),
        (
            GatewayClient(room.url, room.gateway.post("/register", {"agentId": "gemini"})["token"]),
            "no role in run",
        ),
    ):
        with pytest.raises(CspError, match=problem):
            caller.post(path, message)
    assert run.by("codex").post(path, message)["run"]["phase"] == "plan"
    assert run.by("codex").post(path, message)["repeated"] is True
    run.act("abort", rationale="done")
    with contextlib.suppress(CspError):
        room.gateway.delete("/agents/gemini")


@pytest.mark.parametrize("name", ["../x", "a..b", "X", "a.", "a.lock", "seen-before"])
def test_name_that_is_no_folder_is_refused(room: LiveRoom, name: str) -> None:
    body = {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "run_id": name}
    (room.folder / "runs" / "seen-before").mkdir(parents=True, exist_ok=True)
    with pytest.raises(CspError, match=r"run_id|is not a valid run id|already"):
        room.gateway.post("/runs", body)
    assert not [run for run in room.gateway.get("/runs")["items"] if run["id"] == name]


def test_agent_cannot_have_commands_run(room: LiveRoom) -> None:
    token = room.gateway.post("/register", {"agentId": "boss", "role": "orchestrator"})["token"]
    body = {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "test": "touch /tmp/x"}
    with pytest.raises(CspError, match="only the room's token"):
        GatewayClient(room.url, token).post("/runs", body)


def test_two_runs_go_on_at_once(room: LiveRoom) -> None:
    first = Run(room)
    first.until("start")
    second = Run(room, builder="mailbox", reviewer="mailbox")
    second.until("start")
    assert (first.phase, second.detail["run"]["thread"] != "default") == ("start", True)
    for problem, terms in (
        ("claude is in session", {}),
        ("is running in thread default", {"builder": "mailbox", "reviewer": "mailbox", "thread": "default"}),
    ):
        with pytest.raises(CspError, match=problem):
            Run(room, **terms)
    second.drop("reviewer", "ack.json", second.message("reviewer", "session.ack"))
    second.until("plan")

    assert first.phase == "start"
    for run in (first, second):
        run.act("abort", rationale="done")


def test_folder_that_could_not_be_written_is_written_later(room: LiveRoom) -> None:
    run = Run(room)
    run.until("start")
    wait_until_sync(run.is_folder_current, what="folder")
    away = run.folder.with_name("away")
    run.folder.rename(away)
    run.folder.write_text("in the way")
    run.answer("codex", "ACK: ready")
    wait_until_sync(lambda: "cannot write the folder of a run" in room.said(), what="a failed try")
    run.folder.unlink()
    away.rename(run.folder)

    wait_until_sync(run.is_folder_current, what="folder")
    run.act("abort", rationale="done")
