"""What Gemini CLI writes in the home of its run is in the user's place when it has ended."""

import json
import os
import signal
from pathlib import Path

import pytest

from csp.clis.gemini import gemini_home
from csp.clis.wiring import unwire
from tests.sidecar.stage import Seat, Stage
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(90)

#: Writes as Gemini does, by renaming over what is there; a line that is typed ends it.
PROGRAM = """#!/bin/sh
cd "$GEMINI_CLI_HOME/.gemini" || exit 1
echo '{"cwd": "TRUST_FOLDER"}' > .new
mv .new trustedFolders.json
sed 's/"dark"/"light"/' settings.json > .new
mv .new settings.json
echo written
read line
"""


@pytest.fixture
def seat(stage: Stage) -> Seat:
    """Start the program; it has written what it will write."""
    home = stage.room.home / ".gemini"
    home.mkdir()
    (home / "settings.json").write_text('{"ui": {"theme": "dark"}}')
    program = stage.folder / "gemini"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    seat = stage.seat("gemini", [str(program)], "--profile", "gemini")
    wait_until_sync(lambda: "written" in seat.screen(), 30, "the program")
    return seat


def end(seat: Seat) -> None:
    seat.keys("Enter")
    wait_until_sync(lambda: seat.ended.exists() and seat.ended.read_text(), 30, "the program's end")


def test_it_is_brought_home_when_the_cli_ends(stage: Stage, seat: Seat) -> None:
    home = stage.room.home / ".gemini"
    before = (home / "trustedFolders.json").exists()
    end(seat)
    wait_until_sync(lambda: not (seat.folder / "gemini-home").exists(), what="the overlay's end")

    assert not before
    assert json.loads((home / "trustedFolders.json").read_text()) == {"cwd": "TRUST_FOLDER"}
    assert json.loads((home / "settings.json").read_text()) == {"ui": {"theme": "light"}}


def test_without_a_brain_it_is_brought_home_by_the_next_launch(stage: Stage, seat: Seat) -> None:
    home = stage.room.home / ".gemini"
    os.kill(seat.relay, signal.SIGSTOP)
    os.kill(seat.brain, signal.SIGKILL)
    os.kill(seat.cli, signal.SIGKILL)
    os.kill(seat.relay, signal.SIGKILL)
    wait_until_sync(lambda: seat.ended.exists() and seat.ended.read_text(), 30, "the relay's end")

    assert not (home / "trustedFolders.json").exists()

    stage.tmux("rename-session", "-t", "gemini", "before")
    seat.start()
    wait_until_sync(lambda: "light" in (home / "settings.json").read_text(), 30, "the settings at home")

    assert json.loads((home / "trustedFolders.json").read_text()) == {"cwd": "TRUST_FOLDER"}


def test_the_home_of_another_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    home = tmp_path / "gemini-home"
    gemini_home.build(home, tmp_path / "user", {}, {})
    unwire(tmp_path, os.getpid() + 1)
    was_left = home.exists()
    unwire(tmp_path, os.getpid())

    assert was_left
    assert not home.exists()


def test_a_home_that_is_only_half_built_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "gemini-home" / ".gemini").mkdir(parents=True)
    unwire(tmp_path, os.getpid())

    assert (tmp_path / "gemini-home").exists()
