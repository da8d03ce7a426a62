"""A run of demo agents in real panes, on a real repository, by the command line alone."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from csp.agents.demo.review_script import FILE, FIXED
from tests.panes.place import Place
from tests.review.repository import git

pytestmark = pytest.mark.xdist_group("review in panes")


def repository(dir: Path) -> None:
    git(dir, "init", "-q", "-b", "main")
    (dir / "README").write_text("start\n")
    git(dir, "add", "README")
    git(dir, "commit", "-q", "-m", "start")


def shown(place: Place, run: str) -> dict[str, Any]:
    found: dict[str, Any] = place.gateway.get(f"/runs/{run}")
    return found


@pytest.fixture(scope="module")
def room(shared_place: Place) -> Place:
    """A room on a repository, with two agents that answer at once."""
    repository(shared_place.dir)
    shared_place.set(CSP_DEMO_SPEED="0")
    shared_place.up("--demo", "--agents", "ada,bob")
    return shared_place


def test_demo_agents_carry_a_goal_from_plan_to_branch(room: Place, tmp_path: Path) -> None:
    place = room
    begun = place.csp(
        "review",
        "start",
        "write the demo file",
        *("--builder", "ada", "--reviewer", "bob", "--test", f"grep -q {FIXED} {FILE}"),
        *("--run-id", "demo-run", "--json"),
    )
    assert begun.code == 0, begun.err
    place.wait(lambda: shown(place, "demo-run")["run"].get("branch"), "branch", 90)
    run = place.csp("review", "show", "demo-run", "--json").json

    assert (run["run"]["reason"], run["run"]["cycle"], run["run"]["branch"]) == (
        "accepted",
        2,
        "csp/demo-run",
    )
    folder = Path(run["folder"])
    logged = [json.loads(line) for line in (folder / "builder-log.jsonl").read_text().splitlines()]
    tests = [one["body"]["tests"]["passed"] for one in logged if one["message_type"] == "execution.update"]
    assert tests == [False, True]
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(place.dir), str(clone))
    git(clone, "apply", str(folder / "diffs" / "cycle-2.patch"))
    assert FIXED in (clone / FILE).read_text()
    assert not (place.dir / FILE).exists()
    stats = place.csp("review", "stats")
    assert stats.out.startswith("bob: 1 runs, 1 accepted (1 after a revision)")


def test_reviewer_that_is_killed_is_asked_again_when_it_is_back(room: Place) -> None:
    place = room
    pid = place.tmux("display-message", "-p", "-t", str(place.pane("bob")["id"]), "#{pane_pid}")
    os.kill(int(pid), signal.SIGKILL)
    place.wait(lambda: place.online().get("bob") in (None, "offline"), "bob is gone")
    begun = place.csp("review", "start", "it", "--builder", "ada", "--reviewer", "bob", "--run-id", "r")
    assert begun.code == 0, begun.err
    assert shown(place, "r")["run"]["phase"] in ("setup", "start")
    place.tmux("respawn-pane", "-t", str(place.pane("bob")["id"]))
    place.wait(lambda: shown(place, "r")["run"].get("reason"), "end", 90)

    assert shown(place, "r")["run"]["reason"] == "accepted"


@pytest.mark.full
def test_reviewer_that_is_killed_in_its_decision_is_asked_again(place: Place) -> None:
    repository(place.dir)
    # Slow enough to be met at its work.
    place.set(CSP_DEMO_SPEED="1")
    place.up("--demo", "--agents", "ada,bob")
    place.csp("review", "start", "it", "--builder", "ada", "--reviewer", "bob", "--run-id", "r")
    place.wait(
        lambda: shown(place, "r")["run"]["phase"] == "decision" and place.online()["bob"] == "busy",
        "a decision under way",
        60,
    )
    pid = place.tmux("display-message", "-p", "-t", str(place.pane("bob")["id"]), "#{pane_pid}")
    os.kill(int(pid), signal.SIGKILL)
    place.wait(lambda: place.online().get("bob") in (None, "offline"), "bob is gone")
    place.tmux("respawn-pane", "-t", str(place.pane("bob")["id"]))
    place.wait(lambda: shown(place, "r")["run"].get("reason"), "end", 120)
    run = shown(place, "r")

    assert run["run"]["reason"] == "accepted"
    decisions = list((Path(run["folder"]) / "decisions").glob("decision-*"))
    assert len(decisions) == run["run"]["cycle"]
