"""A sidecar that is killed while it joins: the next one of its name has its id, and gets its messages."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sidecar.stage import Stage, tui
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(180)

_KILLED = """
import os, signal, sys
from csp.sidecar import launch
launch.save_token = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from csp.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_next_sidecar_of_one_that_was_killed_right_after_it_joined_has_its_name(stage: Stage) -> None:
    command = [sys.executable, "-c", _KILLED, "sidecar", "--name", "tui", "--", "cat"]
    killed = stage.tmux("new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "x", *env_of(stage), *command)
    wait_until_sync(lambda: stage.agent("tui"), 60, "the room to know it")
    # tmux may not have collected it yet.
    wait_until_sync(lambda: state_of(int(killed)) in ("", "Z"), 60, "its end")
    stage.seat("tui", tui(stage.folder / "log"))
    message = stage.send("tui", "hello")

    stage.reply_to(message, "tui")
    assert [view["id"] for view in stage.room.gateway.get("/agents")] == ["tui"]


def test_one_that_nobody_has_collected_is_gone_all_the_same(stage: Stage) -> None:
    command = [sys.executable, "-c", _KILLED, "sidecar", "--name", "tui", "--", "cat"]
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*env_of(stage), "TERM=xterm", *command], stdin=slave, stdout=slave, cwd=stage.room.dir
    ) as killed:
        wait_until_sync(lambda: stage.agent("tui"), 60, "the room to know it")
        wait_until_sync(lambda: state_of(killed.pid) == "Z", 60, "its end")
        stage.seat("tui", tui(stage.folder / "log"))
        message = stage.send("tui", "hello")

        stage.reply_to(message, "tui")
        assert [view["id"] for view in stage.room.gateway.get("/agents")] == ["tui"]
        assert state_of(killed.pid) == "Z"
    os.close(master)
    os.close(slave)


def state_of(pid: int) -> str:
    return subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout[:1]


def env_of(stage: Stage) -> list[str]:
    return ["env", "-i", *(f"{name}={value}" for name, value in stage.room.env.items())]


def test_a_brain_that_outlives_its_relay_does_not_send_its_successor_away(stage: Stage) -> None:
    seat = stage.seat("tui", tui(stage.folder / "log"))
    seat.wait_ready()
    relay, orphan = seat.relay, seat.brain
    os.kill(orphan, signal.SIGSTOP)
    os.kill(relay, signal.SIGKILL)
    stage.tmux("kill-session", "-t", "tui", check=False)
    wait_until_sync(lambda: not Path(f"/proc/{relay}").exists(), 60, "the relay's end")
    seat.start()
    wait_until_sync(lambda: seat.brain not in (0, orphan), 60, "another brain")
    seat.wait_ready()
    os.kill(orphan, signal.SIGCONT)
    wait_until_sync(lambda: not Path(f"/proc/{orphan}").exists(), 60, "the orphan's end")
    message = stage.send("tui", "hello")

    stage.reply_to(message, "tui")
    assert [view["id"] for view in stage.room.gateway.get("/agents")] == ["tui"]
