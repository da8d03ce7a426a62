"""Each of the real CLIs alone in a room: start-up screens, dialogs by command, restarts, long commands.

test_real_scenes has what is tested every day.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import RealCli, SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Rule, Shell, Text
from tests.models.server import ModelServer
from tests.sidecar.stage import Seat, Stage
from tests.sidecar.texts import bodies
from tests.waiting import comes_true_sync, wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

CLIS: Final = ("claude", "codex", "gemini")
MADE: Final = "made.txt"
PATIENCE_S: Final = 180.0
STILL_S: Final = 7.0
LONG_CALL: Final = " ".join(f"word{number}" for number in range(90))
RULES: Final = (
    Rule(
        match="use the tool",
        reply=[Text(text="I look first."), Shell(command=f"echo hi > {MADE}"), Text(text="Done.")],
    ),
    Rule(match="call codex", reply=[Text(text=f"@all {LONG_CALL}")]),
)


class Scene:
    """One real CLI behind a sidecar."""

    def __init__(self, name: str, folder: Path, set_up: SetUp) -> None:
        self.name = name
        self.loopback = Loopback()
        self.folder, self.set_up = folder, set_up

    def __enter__(self) -> "Scene":
        self.loopback.__enter__()
        self.server = ModelServer(list(RULES), listener=self.loopback.listener).__enter__()
        self.stage = Stage(self.folder / "stage").__enter__()
        self.cli: RealCli = bring_up(self.name, self.server, self.loopback, self.folder, self.set_up)
        # The CLI is the child of a shell, so that nobody but a test knows that it was stopped.
        script = Path(self.cli.argv[0])
        script.write_text(script.read_text().replace("exec ", "", 1) + "exit\n")
        self.seat: Seat = self.stage.seat(self.name, self.cli.argv, env=self.cli.env, cwd=self.cli.cwd)
        return self

    def __exit__(self, *error: object) -> None:
        self.stage.__exit__(None, None, None)
        self.server.__exit__(None, None, None)
        self.loopback.__exit__(None, None, None)

    def send(self, text: str, **fields: object) -> str:
        return self.stage.send(self.name, text, **fields)

    def reply(self, message: str, timeout_s: float = PATIENCE_S) -> tuple[str, str]:
        reply = self.stage.reply_to(message, self.name, timeout_s)
        return reply["text"], reply.get("ending", "done")

    def wait_state(self, state: str, timeout_s: float = PATIENCE_S) -> None:
        wait_until_sync(
            lambda: self.stage.agent(self.name).get("state") == state,
            timeout_s,
            f"{self.name} {state}, is {self.stage.agent(self.name)}\n{self.seat.screen()}",
        )

    def stand_still(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in self._family():
            # A CLI runs short commands, such as git, that may end between the listing and the signal.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _family(self) -> list[int]:
        """Return the processes of the CLI, without the shell that started it."""
        found, parents = [], [self.seat.cli]
        while parents:
            command = ["ps", "-o", "pid=", "--ppid", ",".join(map(str, parents))]
            listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            parents = [int(pid) for pid in listed.split()]
            found += parents
        assert found
        return found

    def csp(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "csp.cli", *words]
        return subprocess.run(
            command,
            env=self.stage.room.env,
            cwd=self.stage.room.dir,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(params=CLIS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with Scene(request.param, tmp_path, SetUp()) as scene:
        yield scene


def test_a_dialog_is_answered_from_outside_with_proof(scene: Scene) -> None:
    made = scene.cli.cwd / MADE
    asking = scene.send("please use the tool")
    scene.wait_state("needs_approval")
    waiting = scene.send("while the dialog is open")
    wait_until_sync(lambda: scene.stage.state(waiting, scene.name) == ("held", "dialog"), PATIENCE_S)

    assert not made.exists()
    dialog = wait_until_sync(lambda: scene.stage.agent(scene.name)["dialog"].get("choices"), PATIENCE_S)
    assert dialog and len(dialog) >= 2
    assert f"echo hi > {MADE}" in str(scene.stage.agent(scene.name)["dialog"])
    assert "dialog" in scene.csp("status").stdout
    approved = scene.csp("approve", scene.name)
    assert approved.returncode == 0, approved.stderr
    assert scene.reply(asking) == ("Done.", "done")
    assert made.read_text() == "hi\n"
    assert scene.reply(waiting) == ("ok", "done")
    activity = scene.stage.room.gateway.get("/history", types="activity")["items"]
    assert [item["text"] for item in activity] == ["I look first."]

    made.unlink()
    asking = scene.send("use the tool again")
    scene.wait_state("needs_approval")
    denied = scene.csp("deny", scene.name)
    assert denied.returncode == 0, denied.stderr
    assert scene.reply(asking)[1] == "interrupted"
    assert not made.exists()
    assert scene.csp("approve", scene.name).returncode == 1


def test_clearing_or_starting_again_does_not_lose_the_thread(scene: Scene) -> None:
    assert scene.reply(scene.send("before")) == ("ok", "done")
    scene.seat.type("/clear")
    wait_until_sync(lambda: "/clear" in scene.seat.screen(), PATIENCE_S)
    wait_until_sync(lambda: _press_enter(scene) and "before" not in scene.seat.screen(), PATIENCE_S)
    assert scene.reply(scene.send("after clear")) == ("ok", "done")

    assert scene.csp("restart", scene.name).returncode == 0
    assert scene.reply(scene.send("after restart")) == ("ok", "done")
    prompts = [prompt.split("\n")[1] for prompt in scene.server.prompts(scene.name)]
    assert list(dict.fromkeys(prompts)) == ["before", "after clear", "after restart"]


def _press_enter(scene: Scene) -> bool:
    """Press Enter as a person does who sees that nothing happens."""
    scene.seat.keys("Enter")
    comes_true_sync(lambda: "before" not in scene.seat.screen(), 2)
    return True


def test_a_command_over_many_rows_runs_once(scene: Scene) -> None:
    scene.reply(scene.send("call codex"))
    scene.seat.resize(30, 70)
    scene.reply(scene.send("next"))

    calls = scene.stage.room.gateway.get("/history", types="agent_call")["items"]
    assert [call["text"] for call in calls] == [LONG_CALL]


@pytest.mark.parametrize("is_read_first", [True, False], ids=["before Enter", "before the paste"])
def test_a_cli_that_stands_still_for_seconds_gets_a_message_once(scene: Scene, is_read_first: bool) -> None:
    """As on a machine on which others have all the processors."""
    assert scene.reply(scene.send("warm up")) == ("ok", "done")
    scene.wait_state("idle")
    if not is_read_first:
        scene.stand_still()
    message = scene.send("only once")
    if is_read_first:
        wait_until_sync(lambda: "only once" in scene.seat.screen(), PATIENCE_S, "the paste")
        scene.stand_still()
    # Longer than the patience with an Enter, or with a paste that does not show.
    time.sleep(STILL_S)
    scene.go_on()

    assert scene.reply(message) == ("ok", "done")
    assert scene.reply(scene.send("and then")) == ("ok", "done")
    assert bodies(scene.server.prompts(scene.name)) == ["warm up", "only once", "and then"]


# Codex works in a folder that it does not trust, with less rights.
@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("claude", "is_trusted"),
        ("gemini", "is_trusted"),
        ("claude", "is_logged_in"),
        ("codex", "is_logged_in"),
        ("gemini", "is_logged_in"),
    ],
)
def test_start_up_screens_need_a_person(name: str, lacks: str, tmp_path: Path) -> None:
    set_up = SetUp(is_trusted=False) if lacks == "is_trusted" else SetUp(is_logged_in=False)
    with Scene(name, tmp_path, set_up) as scene:
        message = scene.send("too early")

        scene.wait_state("needs_human")
        assert scene.stage.state(message, name) == ("held", "starting")
