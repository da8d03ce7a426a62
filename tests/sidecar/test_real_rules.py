"""An approval rule and real CLIs: it approves the command that it is for, and nothing that begins like it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from csp.protocol.events import ControlSent, NoticePosted
from csp.protocol.notices import NoticeCode
from tests.clis.bringup import RealCli, bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Shell, Text
from tests.models.server import ModelServer
from tests.sidecar.real_modes import PATIENCE_S, when
from tests.sidecar.stage import Seat, Stage
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("real rules")]

RULE: Final = "pytest"
COVERED: Final = ("pytest -q", "pytest  tests/a.py -k 'one or two'")
OTHERS: Final = (
    "pytest -q && rm -rf build",
    "pytest -q; rm -rf build",
    "pytest -q || rm -rf build",
    "pytest $(rm -rf build)",
    "pytest `rm -rf build`",
    "pytest -q\nrm -rf build",
    "pytest -q | tee build/kept",
    "pytest -q > build/kept",
    "pytest -q & rm -rf build",
    "rm -rf build",
)


class Scene:
    """One real CLI behind a sidecar; its `pytest` only notes how it was called."""

    def __init__(self, name: str, stage: Stage, server: ModelServer, cli: RealCli) -> None:
        self.name = name
        self.stage, self._server, self._cli = stage, server, cli
        self.ran = cli.home / "ran"
        program = cli.home / "bin" / "pytest"
        program.write_text(f'#!/bin/sh\necho "$@" >> {self.ran}\n', "utf-8")
        program.chmod(0o755)
        # Codex runs commands in a login shell, which sets its own PATH.
        (Path(cli.env["HOME"]) / ".profile").write_text(f'PATH="{program.parent}:$PATH"\n', "utf-8")
        self.kept = cli.cwd / "build" / "kept"
        self.kept.parent.mkdir()
        self.kept.write_text("as it was")
        self._seat: Seat = stage.seat(name, cli.argv, env=cli.env, cwd=cli.cwd)
        self._seat.wait_ready(timeout_s=PATIENCE_S)
        self._asked = 0

    def have_it_run(self, command: str) -> str:
        """Have the model call for a command; return the message that asked for it."""
        self._asked += 1
        mark = f"job <{self._asked}>"
        self._server.add(when(mark, reply=[Text(text="So."), Shell(command=command), Text(text="Done.")]))
        return self.stage.send(self.name, mark)

    def ending(self, message: str) -> tuple[str, str]:
        reply = self.stage.reply_to(message, self.name, PATIENCE_S)
        return reply["text"], reply.get("ending", "done")

    def wait_asking(self, command: str) -> None:
        """Wait until the room knows that the CLI asks for exactly this command."""
        wait_until_sync(
            lambda: (self.stage.agent(self.name).get("dialog") or {}).get("runs") == command,
            PATIENCE_S,
            f"the question for {command!r}, is {self.stage.agent(self.name)}\n{self._seat.screen()}",
        )

    def answers(self) -> list[str]:
        """Return the commands that the room has answered for by a rule."""
        events = self.stage.room.journal()
        told = [
            event
            for event in events
            if isinstance(event, NoticePosted) and event.code == NoticeCode.APPROVED_BY_RULE
        ]
        about = [event.about for event in events if isinstance(event, ControlSent) and event.about]
        assert len(told) == len(about)
        return about


@pytest.fixture(
    params=["claude", *(pytest.param(name, marks=pytest.mark.full) for name in ("codex", "gemini"))]
)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with (
        Loopback() as loopback,
        ModelServer(listener=loopback.listener) as server,
        Stage(tmp_path / "stage") as stage,
    ):
        yield Scene(request.param, stage, server, bring_up(request.param, server, loopback, tmp_path))


@pytest.mark.full
def test_a_rule_approves_its_own_command_and_no_other(scene: Scene) -> None:
    gateway = scene.stage.room.gateway
    rule = gateway.post("/rules", {"agent": scene.name, "pattern": RULE})["rule"]
    for command in COVERED:
        assert scene.ending(scene.have_it_run(command)) == ("Done.", "done"), command
    assert scene.answers() == list(COVERED)
    assert scene.ran.read_text().splitlines() == ["-q", "tests/a.py -k one or two"]

    for command in OTHERS:
        asking = scene.have_it_run(command)
        scene.wait_asking(command)
        # The room decides about a rule in the same batch that says what is asked.
        assert scene.answers() == list(COVERED), command
        scene.stage.press(scene.name, "deny")
        assert scene.ending(asking)[1] == "interrupted", command
    assert len(scene.ran.read_text().splitlines()) == len(COVERED)
    assert scene.kept.read_text() == "as it was"

    gateway.delete(f"/rules/{rule['number']}")
    asking = scene.have_it_run(COVERED[0])
    scene.wait_asking(COVERED[0])
    assert scene.answers() == list(COVERED)
    scene.stage.press(scene.name, "approve")
    assert scene.ending(asking) == ("Done.", "done")
