"""The disk under a sidecar runs full, then has space again: a scene with a real CLI, run as a script.

It mounts a small disk of its own, so it has to run in a mount namespace of its own.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from csp.sidecar.run_record import SidecarRecord
from tests.clis.bringup import SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Rule, Text
from tests.models.server import ModelServer
from tests.rooms import LiveRoom
from tests.sidecar.stage import Seat, Stage
from tests.sidecar.wired import READY
from tests.waiting import wait_until_sync

RULES: Final = [Rule(match="word (.*)", reply=[Text(text="I heard it.")])]


class Disk:
    """A small disk for what a room has in its runtime directory."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Take all the space there is, also that of files which are replaced later."""
        with self._filler.open("ab", buffering=0) as file:
            try:
                while file.write(bytes(512)):
                    pass
            except OSError:
                return

    def free(self) -> None:
        self._filler.unlink()


class OnlyGateway(LiveRoom):
    """A room whose gateway is the only one: to load csp for others to be forked would take longer."""

    def launch(self) -> None:
        command = [sys.executable, "-P", "-m", "csp.cli", "gateway", "--port", str(self.port)]
        self._start(command)


class Scene:
    """A room whose runtime directory is on a small disk, with one CLI in it."""

    def __init__(self, stage: Stage, seat: Seat, server: ModelServer) -> None:
        self.stage, self.seat, self.server = stage, seat, server
        self.said: list[str] = []

    def talk(self, word: str) -> None:
        """Say something, wait for the answer to it."""
        name = self.seat.name
        self.said.append(f"word {word}")
        message = self.stage.send(name, f"word {word}")
        reply = self.stage.reply_to(message, name, 180)

        assert reply["text"] == "I heard it.", reply
        assert self.stage.state(message, name)[0] == "confirmed"

    def notices(self) -> list[str]:
        items = self.stage.room.gateway.get("/history", limit=1000)["items"]
        return [item["text"] for item in items if "no space is left" in item.get("text", "")]

    def check(self) -> None:
        """Every message was one prompt, has one answer."""
        heard = [prompt.split("\n")[1] for prompt in self.server.prompts(self.seat.name)]

        assert list(dict.fromkeys(heard)) == self.said, heard
        assert len(self.stage.replies(self.seat.name)) == len(self.said)


def play(scene: Scene, disk: Disk) -> None:
    seat = scene.seat
    cli, brain = seat.cli, seat.brain
    disk.fill()
    wait_until_sync(scene.notices, 120, "the notice")
    for number in range(2):
        scene.talk(f"full {number}")

    assert (seat.cli, seat.brain) == (cli, brain), seat.log()

    os.kill(brain, signal.SIGKILL)
    wait_until_sync(lambda: seat.brain not in (0, brain), 120, "another brain")
    brain = seat.brain
    for number in range(2):
        scene.talk(f"full again {number}")

    assert (seat.cli, seat.brain) == (cli, brain), seat.log()
    assert len(scene.notices()) == 1, scene.notices()

    disk.free()
    scene.talk("after")
    wait_until_sync(lambda: (run := SidecarRecord.load(seat.folder)) and run.transcripts, 120, "the record")

    assert (seat.cli, seat.brain) == (cli, brain), seat.log()
    assert not list((seat.folder / "spool").glob(".*")), "what hooks could not write is left behind"
    scene.check()


def main(name: str, folder: Path) -> None:
    stage = Stage(folder / "stage")
    stage.room = OnlyGateway(stage.folder / "small")
    disk = Disk(stage.folder / "small" / "run")
    with Loopback() as loopback, ModelServer(RULES, listener=loopback.listener) as server, stage:
        cli = bring_up(name, server, loopback, folder, SetUp())
        seat = stage.seat(name, cli.argv, env=cli.env, cwd=cli.cwd)
        wait_until_sync(lambda: re.search(READY[name], seat.screen(), re.MULTILINE), 180, "the CLI")
        wait_until_sync(lambda: seat.brain, 120, "the brain")
        play(Scene(stage, seat, server), disk)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
