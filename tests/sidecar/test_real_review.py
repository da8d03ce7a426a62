"""Claude Code builds, Codex reviews, both real, on a real repository: from plan to branch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clis.bringup import SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Part, Shell, Text
from tests.models.server import ModelServer
from tests.review.repository import TEST, applies_to_a_clone, git, make_repository
from tests.sidecar.real_modes import when
from tests.sidecar.stage import Stage
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.xdist_group("real modes")]

GOAL = "make the check pass by doubling"
PATIENCE_S = 180.0


class Duo(Stage):
    """One room with Claude Code and Codex, whose models do as they are told."""

    def __init__(self, folder: Path, server: ModelServer, loopback: Loopback) -> None:
        super().__init__(folder)
        self.server = server
        # The tests work below /tmp, where Codex would let anybody write.
        narrow = SetUp(arguments=("-c", "sandbox_workspace_write.exclude_slash_tmp=true"))
        self.clis = {
            "claude": bring_up("claude", server, loopback, folder),
            "codex": bring_up("codex", server, loopback, folder, narrow),
        }

    def sit_down(self) -> None:
        """Start both; wait until each can be spoken to."""
        for name, cli in self.clis.items():
            self.seat(name, cli.argv, env=cli.env, cwd=cli.cwd)
        for seat in self.seats.values():
            seat.wait_ready()

    def run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.room.gateway.get(f"/runs/{run_id}")
        return found

    def wait_phase(self, run_id: str, phase: str, cycle: int = 1) -> None:
        def is_there() -> bool:
            run = self.run(run_id)["run"]
            return (run["phase"], run["cycle"]) == (phase, cycle)

        try:
            wait_until_sync(is_there, PATIENCE_S, f"{phase} of cycle {cycle}")
        except AssertionError as error:
            screens = "\n".join(seat.screen() for seat in self.seats.values())
            raise AssertionError(f"{error}: {self.run(run_id)}\n{screens}") from None

    def approve(self, agent: str) -> None:
        """Say yes to the dialog of an agent, once it has one."""
        wait_until_sync(lambda: self.agent(agent)["state"] == "needs_approval", PATIENCE_S, "a dialog")
        self.room.gateway.post(f"/agents/{agent}/approve")


@pytest.fixture(scope="module")
def duo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Duo]:
    loopback = Loopback()
    with (
        loopback,
        ModelServer(listener=loopback.listener) as server,
        Duo(tmp_path_factory.mktemp("duo") / "stage", server, loopback) as stage,
    ):
        stage.sit_down()
        yield stage


def test_real_clis_carry_a_goal_from_plan_to_branch(duo: Duo, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    add = duo.server.add
    add(when(GOAL, "Confirm with `ACK:`", client="codex", reply="I am here.\n\nACK: ready\nSUBSCRIBE: none"))
    add(when(GOAL, "Propose a plan as `PLAN:`", client="claude", reply="I would write it."))
    plan = '```json\n{"message_type": "plan.proposed", "body": {"steps": ["write maths.py"]}}\n```'
    add(when("Your answer was rejected", "phase plan", client="claude", reply=plan))
    add(when(GOAL, "State with `RISK:`", client="codex", reply="RISK: low\nNOTE: small"))
    verdict = "DECISION: revise\nFINDING: major - the check fails"
    add(when(GOAL, "Decide with `DECISION:`", "cycle 1 of", client="codex", reply=verdict))
    mended = "DECISION: accept\nRESOLVED: f-1\nRATIONALE: the check passes"
    add(when(GOAL, "Decide with `DECISION:`", "cycle 2 of", client="codex", reply=mended))
    add(when(GOAL, "Close the run with `END:`", client="claude", reply="END: double doubles"))
    body = {"goal": GOAL, "builder": "claude", "reviewer": "codex", "test": TEST, "dir": str(repository)}
    run_id = str(duo.room.gateway.post("/runs", body)["run"]["id"])
    wait_until_sync(lambda: duo.run(run_id).get("context"), PATIENCE_S, "worktree")
    tree = duo.run(run_id)["context"]["worktree"]
    for cycle, more in ((1, " + 1"), (2, "")):
        write = f"printf 'def double(x):\\n    return x + x{more}\\n' > '{tree}/maths.py'"
        said = f"DONE: wrote maths.py, try {cycle}\nMETRIC: tries = {cycle}"
        done: list[Part] = [Shell(command=write), Text(text=said)]
        add(when(GOAL, "Answer with `DONE:`", f"Round {cycle} of", client="claude", reply=done))
    duo.wait_phase(run_id, "execution")
    duo.approve("claude")
    duo.wait_phase(run_id, "execution", 2)
    duo.approve("claude")
    duo.wait_phase(run_id, "ended", 2)
    run = wait_until_sync(lambda: duo.run(run_id)["run"].get("branch") and duo.run(run_id), 30, "branch")

    assert (run["run"]["reason"], run["run"]["revisions"]) == ("accepted", 1)
    assert run["findings"][0]["resolved"] == 2
    folder = Path(run["folder"])
    applies_to_a_clone(repository, folder / "diffs" / "cycle-2.patch", tmp_path / "clone")
    assert "return x + x" in git(repository, "show", f"{run['run']['branch']}:maths.py")
    (repaired,) = [prompt for prompt in duo.server.prompts("claude") if "Your answer was rejected" in prompt]
    assert "it contains no message" in repaired
    (judged, _) = [prompt for prompt in duo.server.prompts("codex") if "Decide with" in prompt]
    assert "FAILED (exit 1)" in judged and "+    return x + x + 1" in judged


def test_codex_builds_in_its_sandbox(duo: Duo, tmp_path: Path) -> None:
    """It writes in the worktree, outside of its own directory, without asking anybody."""
    repository, goal = make_repository(tmp_path / "repository"), "make the check pass in the sandbox"
    add = duo.server.add
    add(when(goal, "Confirm with `ACK:`", client="claude", reply="ACK: ready"))
    add(when(goal, "Propose a plan as `PLAN:`", client="codex", reply="PLAN: it\n1. write maths.py"))
    add(when(goal, "State with `RISK:`", client="claude", reply="RISK: high"))
    add(when(goal, "Decide with `DECISION:`", client="claude", reply="DECISION: accept"))
    add(when(goal, "Close the run with `END:`", client="codex", reply="END: double doubles"))
    body = {"goal": goal, "builder": "codex", "reviewer": "claude", "test": TEST, "dir": str(repository)}
    run_id = str(duo.room.gateway.post("/runs", body)["run"]["id"])
    duo.wait_phase(run_id, "approval")
    tree = duo.run(run_id)["context"]["worktree"]
    write = f"printf 'def double(x):\\n    return x + x\\n' > '{tree}/maths.py'"
    done: list[Part] = [Shell(command=write, escalate=False), Text(text="DONE: wrote maths.py")]
    add(when(goal, "Answer with `DONE:`", client="codex", reply=done))
    duo.room.gateway.post(f"/runs/{run_id}/go")
    duo.wait_phase(run_id, "ended")

    assert (duo.run(run_id)["run"]["reason"], duo.run(run_id)["update"]["tests"]["passed"]) == (
        "accepted",
        True,
    )
