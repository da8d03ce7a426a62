"""The folder of a run, made of a few events, without a gateway."""

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import pytest

from csp.errors import BadInput, Broken
from csp.protocol.enums import ALL, AgentId, MessageId, SessionId
from csp.protocol.events import KnownEvent, RunChecked, RunEnded, RunSaid
from csp.protocol.review_messages import (
    AnyMessage,
    Decision,
    DiffFigures,
    ExecutionUpdate,
    Plan,
    ReviewDecision,
    RunContext,
    RunPhase,
    RunRole,
    SessionAck,
    TestResult,
)
from csp.protocol.session_parts import EndReason
from csp.review.run_folders import RunFolders, checked_body
from csp.review.run_git import Git
from csp.room.runs.run_state import ReviewRun

PATCH = b"the patch\n"
SHA = hashlib.sha256(PATCH).hexdigest()


class Patches:
    """Stands for git: it notes which patches it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.is_broken = False

    def patch(self, dir: Path, base: str, commit: str) -> bytes:
        self.asked.append((str(dir), base, commit))
        if self.is_broken:
            raise Broken("git was not found")
        return PATCH


@pytest.fixture
def patches() -> Patches:
    return Patches()


@pytest.fixture
def folders(tmp_path: Path, patches: Patches) -> RunFolders:
    return RunFolders(tmp_path / "runs", cast(Git, patches))


def run_with(**fields: Any) -> ReviewRun:
    given: dict[str, Any] = {
        "context": RunContext(dir="/d", worktree="/w", repository="/repo", base="b"),
        "phase": RunPhase.EXECUTION,
        "seq": 9,
        **fields,
    }
    given |= {"builder": AgentId("ada"), "reviewer": AgentId("bob"), "session": SessionId("s-1")}
    return ReviewRun(id="r", thread="default", goal="g", started_at=1.0, first_seq=1, **given)


def of_run(seq: int) -> dict[str, Any]:
    """Return what every event of the run has."""
    given = {"seq": seq, "ts": float(seq), "id": MessageId(f"e-{seq}"), "text": f"text of {seq}"}
    run = {"session_id": SessionId("s-1"), "run": "r"}
    return {"sender": AgentId("system"), "target": ALL, "thread": "default", **given, **run}


def said(seq: int, body: AnyMessage, role: RunRole = RunRole.BUILDER) -> RunSaid:
    return RunSaid(**of_run(seq), role=role, body=body)


def step(name: str = "one", *, final: bool = False, **fields: Any) -> ExecutionUpdate:
    return ExecutionUpdate(step=name, final=final, **fields)


def checked(seq: int, update: ExecutionUpdate, cycle: int = 1) -> RunChecked:
    return RunChecked(**of_run(seq), cycle=cycle, update=update)


def figures(sha: str = SHA, commit: str = "c1") -> DiffFigures:
    return DiffFigures(base="b", commit=commit, sha256=sha)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- what was said -------------------------------------------------------------------------------


def test_every_step_in_the_log_has_the_diff_and_the_tests_that_csp_has_added(folders: RunFolders) -> None:
    tests = TestResult(command="make", passed=True)
    events: list[KnownEvent] = [
        said(1, step("one")),
        checked(2, step("one", diff="+one")),
        said(3, step("two", final=True)),
        said(4, SessionAck(), RunRole.REVIEWER),
        checked(5, step("two", final=True, diff="+two", tests=tests, figures=figures())),
        said(6, step("three")),
    ]
    folders.write(run_with(), events)
    log = lines(folders.path("r") / "builder-log.jsonl")

    assert [one["body"].get("diff", "") for one in log] == ["+one", "+two", ""]
    assert log[1]["body"]["tests"]["passed"] is True
    assert [one["message_type"] for one in lines(folders.path("r") / "reviewer-log.jsonl")] == ["session.ack"]


def test_a_check_belongs_to_the_step_before_it_alone() -> None:
    first, second = step("one"), step("two")
    later: list[KnownEvent] = [said(2, second), checked(3, step("two", diff="+two"))]

    assert checked_body(later, first) is first
    assert checked_body(later[1:], second).diff == "+two"
    assert checked_body([said(2, SessionAck(), RunRole.REVIEWER), later[1]], second).diff == "+two"


# --- patches -------------------------------------------------------------------------------------


def test_the_submission_of_each_cycle_has_its_patch(folders: RunFolders, patches: Patches) -> None:
    events: list[KnownEvent] = [
        checked(2, step(figures=figures(commit="c0"))),
        checked(3, step(final=True, figures=figures(commit="c1"))),
        checked(5, step(final=True, figures=figures(commit="c2")), cycle=2),
        checked(6, step(final=True), cycle=3),
    ]
    folders.write(run_with(), events)
    folder = folders.path("r") / "diffs"

    assert patches.asked == [("/repo", "b", "c1"), ("/repo", "b", "c2")]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "cycle-1.patch": PATCH,
        "cycle-2.patch": PATCH,
    }


def test_a_patch_that_is_there_is_not_taken_again(folders: RunFolders, patches: Patches) -> None:
    events = [checked(3, step(final=True, figures=figures()))]
    folders.write(run_with(), events)
    folders.write(run_with(), events)
    assert len(patches.asked) == 1
    (folders.path("r") / "diffs" / "cycle-1.patch").write_bytes(b"spoilt")
    folders.write(run_with(), events)

    assert len(patches.asked) == 2
    assert (folders.path("r") / "diffs" / "cycle-1.patch").read_bytes() == PATCH


def test_git_that_fails_costs_the_patch_alone(folders: RunFolders, patches: Patches) -> None:
    patches.is_broken = True
    folders.write(run_with(), [checked(3, step(final=True, figures=figures()))])

    assert list((folders.path("r") / "diffs").iterdir()) == []
    assert folders.seen("r") == 9


# --- decisions and the end -----------------------------------------------------------------------


def test_each_decision_and_the_last_word_have_their_files(folders: RunFolders) -> None:
    revise = ReviewDecision(decision=Decision.REVISE, rationale="not yet")
    accept = ReviewDecision(decision=Decision.ACCEPT, rationale="good")
    ended = RunEnded(**of_run(8), reason=EndReason.ACCEPTED)
    events: list[KnownEvent] = [
        said(3, revise, RunRole.REVIEWER),
        said(6, accept, RunRole.REVIEWER),
        ended,
    ]
    folders.write(run_with(decision=accept, cycle=2, revisions=1), events)
    folder = folders.path("r")
    final = json.loads((folder / "decisions" / "final.json").read_text())

    assert sorted(path.name for path in (folder / "decisions").iterdir()) == [
        "decision-3.json",
        "decision-6.json",
        "final.json",
    ]
    assert (
        json.loads((folder / "decisions" / "decision-3.json").read_text())["body"]["rationale"] == "not yet"
    )
    assert (final["decision"], final["rationale"], final["ended_at"]) == ("accept", "good", 8.0)
    assert (final["cycle"], final["revisions"], final["reason"]) == (2, 1, "accepted")
    assert (folder / "summary.md").read_text() == "text of 8\n"


def test_a_run_without_a_decision_ends_without_one(folders: RunFolders) -> None:
    ended = RunEnded(**of_run(8), reason=EndReason.ABORTED)
    folders.write(run_with(), [ended])
    final = json.loads((folders.path("r") / "decisions" / "final.json").read_text())

    assert final["reason"] == "aborted" and not {"decision", "rationale"} & final.keys()


# --- the state -----------------------------------------------------------------------------------


def test_the_state_says_how_far_the_folder_is(folders: RunFolders) -> None:
    assert folders.seen("r") == 0
    folders.write(run_with(), [])
    assert folders.seen("r") == 9
    state = json.loads((folders.path("r") / "run.json").read_text())
    assert (state["seq"], state["run"]["id"]) == (9, "r")


@pytest.mark.parametrize(
    "damage", [b"{half", b"", b"{}", b"[]", b'{"seq": "\xff"}', b'{"seq": null}', b"[" * 200_000]
)
def test_state_that_cannot_be_read_says_nothing(folders: RunFolders, damage: bytes) -> None:
    folders.write(run_with(), [])
    (folders.path("r") / "run.json").write_bytes(damage)

    assert folders.seen("r") == 0
    assert folders.write(run_with(), []) == ""
    assert folders.seen("r") == 9


def test_only_names_of_runs_are_runs(folders: RunFolders, tmp_path: Path) -> None:
    assert folders.names() == []
    for name in ("b", "a", ".x", "A B"):
        (tmp_path / "runs" / name).mkdir(parents=True)

    assert folders.names() == ["a", "b"]


def test_folders_are_for_their_owner_alone(folders: RunFolders) -> None:
    folders.write(run_with(), [])

    assert (folders.path("r") / "diffs").stat().st_mode & 0o777 == 0o700
    assert (folders.path("r") / "run.json").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_as_it_should_be_is_not_written_again(folders: RunFolders) -> None:
    events = [said(1, SessionAck(), RunRole.REVIEWER)]
    folders.write(run_with(), events)
    before = {path: path.stat().st_ino for path in folders.path("r").iterdir()}
    folders.write(run_with(seq=10), events)
    changed = {path.name for path, inode in before.items() if path.stat().st_ino != inode}

    assert changed == {"run.json"}


# --- the plan ------------------------------------------------------------------------------------

OLD, NEW = Plan(steps=("old",)), Plan(steps=("new",))


def plan_in(folders: RunFolders) -> Any:
    return json.loads((folders.path("r") / "plan.json").read_text())["steps"]


def edit(folders: RunFolders, text: str) -> Path:
    path = folders.path("r") / "plan.json"
    path.write_text(text)
    return path


def test_a_run_without_a_plan_has_no_file_of_it(folders: RunFolders) -> None:
    assert folders.write(run_with(), []) == ""
    assert not (folders.path("r") / "plan.json").exists()
    assert folders.edited_plan("r") is None


def test_a_new_plan_of_the_builder_takes_the_place_of_the_old_one(folders: RunFolders) -> None:
    folders.write(run_with(plan=OLD), [])
    assert plan_in(folders) == ["old"]
    assert folders.write(run_with(plan=NEW, seq=10), []) == ""

    assert plan_in(folders) == ["new"]
    assert list(folders.path("r").glob("plan.edited*")) == []


@pytest.mark.parametrize("phase", [RunPhase.FEEDBACK, RunPhase.APPROVAL])
def test_what_a_person_makes_of_an_open_plan_is_left(folders: RunFolders, phase: RunPhase) -> None:
    folders.write(run_with(plan=OLD, phase=phase), [])
    edit(folders, '{"steps": ["mine"]}')

    assert folders.write(run_with(plan=OLD, phase=phase, seq=10), []) == ""
    assert plan_in(folders) == ["mine"]
    assert folders.edited_plan("r") == Plan(steps=("mine",))


def test_what_a_person_changes_too_late_is_put_aside_and_told(folders: RunFolders) -> None:
    folders.write(run_with(plan=OLD), [])
    edit(folders, '{"steps": ["mine"]}')
    note = folders.write(run_with(plan=OLD, seq=10), [])

    assert plan_in(folders) == ["old"]
    assert "plan.edited-10.json" in note and "halt the run before execution" in note
    assert (folders.path("r") / "plan.edited-10.json").read_text() == '{"steps": ["mine"]}'


def test_the_same_plan_in_other_words_is_no_change(folders: RunFolders) -> None:
    folders.write(run_with(plan=OLD), [])
    edit(folders, '{"steps":["old"]}')

    assert folders.write(run_with(plan=OLD, seq=10), []) == ""


def test_a_plan_that_cannot_be_read_is_named(folders: RunFolders) -> None:
    folders.write(run_with(plan=OLD), [])
    edit(folders, "{half")
    with pytest.raises(BadInput, match=r"plan\.json") as caught:
        folders.edited_plan("r")

    assert "--plan" in caught.value.hint


def test_a_folder_with_an_unreadable_plan_still_says_how_far_it_is(folders: RunFolders) -> None:
    folder = folders.path("r")
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"seq": 9, "plan": "not a plan"}')

    assert folders.seen("r") == 9
