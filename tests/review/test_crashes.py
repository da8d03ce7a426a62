"""The gateway dies in every phase of a run; what was said stands, nothing is done twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.errors import CspError
from csp.protocol.events import AgentResponse, RunChecked, RunSaid
from tests.review.playing import PLAN, Run
from tests.review.repository import RIGHT, applies_to_a_clone
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync


@pytest.fixture
def room(tmp_path: Path) -> Iterator[LiveRoom]:
    with LiveRoom(tmp_path) as live:
        yield live


#: Where a run can stand when the gateway dies.
PHASES = ("setup", "plan", "feedback", "approval", "execution", "checks", "decision", "summary", "ended")


@pytest.mark.parametrize(
    "deadly",
    [
        pytest.param(("setup", "checks", "ended"), id="some"),
        pytest.param(PHASES, id="each", marks=pytest.mark.full),
    ],
)
def test_run_survives_the_death_of_the_gateway(
    room: LiveRoom, tmp_path: Path, deadly: tuple[str, ...]
) -> None:
    run = Run(room, test="sleep 0.5; python3 check.py")

    def die(phase: str) -> None:
        assert phase in PHASES
        if phase in deadly:
            room.kill9()
            room.start()

    die("setup")  # in it, or right after it
    run.answer("codex", "ACK: ready")
    die("plan")
    run.answer("claude", PLAN)
    die("feedback")
    run.answer("codex", "RISK: high")
    die("approval")
    run.act("go")
    die("execution")
    run.write(RIGHT)
    run.answer("claude", "DONE: all of it")
    assert run.phase == "checks"
    die("checks")  # in the midst of the tests
    run.until("decision")
    die("decision")
    run.answer("codex", "DECISION: accept")
    die("summary")
    run.answer("claude", "END: done")
    die("ended")
    wait_until_sync(lambda: run.detail["run"].get("branch"), what="branch")
    run.check_files()

    journal = [event for event in room.journal() if getattr(event, "run", "") == run.id]
    said = [type(event.body).__name__ for event in journal if isinstance(event, RunSaid)]
    assert said == [
        *("SessionStart", "SessionAck", "PlanProposed", "PlanFeedback", "ExecutionUpdate"),
        *("ReviewDecision", "SessionEnd"),
    ]
    assert len([event for event in journal if isinstance(event, RunChecked)]) == 1
    applies_to_a_clone(run.dir, run.folder / "diffs" / "cycle-1.patch", tmp_path / "clone")


def test_folder_that_lags_is_made_again(room: LiveRoom) -> None:
    run = Run(room)
    run.play()
    whole = {name: (run.folder / name).read_bytes() for name in wait_for_all(run)}
    room.kill9()
    for name in ("run.json", "builder-log.jsonl", "diffs/cycle-1.patch", "summary.md"):
        (run.folder / name).unlink()
    (run.folder / "reviewer-log.jsonl").write_text("{half")
    room.start()
    wait_until_sync(run.is_folder_current, what="folder")

    assert {name: (run.folder / name).read_bytes() for name in run.files()} == whole


def wait_for_all(run: Run) -> list[str]:
    wait_until_sync(lambda: b'"branch"' in (run.folder / "run.json").read_bytes(), what="last event")
    return run.files()


def test_run_is_taken_out_whole_or_not_at_all(room: LiveRoom) -> None:
    run = Run(room)
    run.to_execution()
    live = Run(room, reviewer="mailbox", builder="mailbox")
    live.until("start")
    said = next(event for event in room.journal() if isinstance(event, AgentResponse))
    first = next(event for event in room.journal() if isinstance(event, RunSaid))
    for event in (said, first):
        with pytest.raises(CspError, match=f"{event.id} is part of run {run.id}"):
            room.gateway.post(f"/messages/{event.id}/redact")
    run.to_decision("secret = 1\n")
    run.drop("reviewer", "early.json", run.message("reviewer", "session.ack", note="secret"))
    wait_until_sync(lambda: list((room.folder / "mailbox/reviewer/refused").glob("*.txt")), what="refusal")
    run.act("abort", rationale="secret")
    wait_until_sync(run.is_folder_current, what="folder")
    last = room.gateway.get("/health")["seq"]
    room.gateway.post("/history/prune", {"before": last})
    gone = [path for path in (room.folder / "runs", room.folder / "mailbox") if _holds(path, b"secret")]

    assert (gone, run.folder.exists(), live.folder.exists()) == ([], False, True)
    assert run.detail["run"]["reason"] == "aborted"
    live.drop("reviewer", "ack.json", live.message("reviewer", "session.ack"))
    live.until("plan")
    room.kill9()
    room.start()
    live.act("abort", rationale="done")
    wait_until_sync(live.is_folder_current, what="the other run's folder")
    assert not run.folder.exists()


def _holds(folder: Path, words: bytes) -> bool:
    return any(words in path.read_bytes() for path in folder.rglob("*") if path.is_file())
