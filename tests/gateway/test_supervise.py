"""A supervised gateway comes back by itself, but not for ever."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from csp.gateway.supervise import MAX_RESTARTS
from tests.gateway.processes import Process, children, is_alive
from tests.rooms import ROOT
from tests.waiting import wait_until_sync

BACK_S = 2.0


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Process]:
    with Process(tmp_path, "--supervise") as running:
        yield running


def _serving(room: Process) -> int:
    """Return the process that serves, 0 while there is none."""
    announced = room.announced()
    return announced.pid if announced is not None and is_alive(announced.pid) else 0


def _kill_and_wait(room: Process) -> float:
    """Kill the serving process; return how long the room was away."""
    old, began = _serving(room), monotonic()
    os.kill(old, signal.SIGKILL)
    wait_until_sync(lambda: _serving(room) not in (0, old), 30, "the next gateway")
    room.wait()
    return monotonic() - began


def test_a_killed_gateway_is_back_on_its_port(room: Process) -> None:
    before, url = _serving(room), room.announced()
    room.gateway.post("/message", {"to": "all", "content": "hello"})

    away_s = _kill_and_wait(room)

    after = room.announced()
    assert before != room.process.pid
    assert away_s < BACK_S
    assert url is not None and after is not None
    assert (after.url, after.supervisor, after.token) == (url.url, room.process.pid, url.token)
    assert after.pid not in (before, room.process.pid)
    assert [item["text"] for item in room.gateway.get("/history")["items"]] == ["hello"]


def test_a_call_made_while_the_gateway_is_away_is_answered(room: Process) -> None:
    os.kill(_serving(room), signal.SIGKILL)

    # The supervisor holds the port, so the caller waits instead of being refused.
    assert room.gateway.get("/health")["status"] == "ok"


def test_the_room_is_announced_while_it_restarts(room: Process) -> None:
    os.kill(_serving(room), signal.SIGKILL)
    seen = set()
    for _ in range(100):
        seen.add(room.announced() is not None)

    assert seen == {True}


def test_one_crash_too_many_ends_it(room: Process) -> None:
    for _ in range(MAX_RESTARTS):
        _kill_and_wait(room)

    os.kill(_serving(room), signal.SIGKILL)
    code = room.wait_for_end()

    assert code == 1
    assert room.said().count("gateway died and is started again") == MAX_RESTARTS
    assert room.said().count("gateway keeps dying") == 1
    assert "Traceback" not in room.said()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_both_processes(room: Process, number: signal.Signals) -> None:
    child = _serving(room)

    os.kill(room.process.pid, number)
    code = room.wait_for_end()

    assert code == 0
    assert not is_alive(child)
    assert room.announced() is None
    assert not (room.state_dir / "default.json").exists()
    _until_alone(room)


def test_a_signal_to_the_child_alone_ends_both(room: Process) -> None:
    os.kill(_serving(room), signal.SIGTERM)

    assert room.wait_for_end() == 0
    assert not (room.state_dir / "default.json").exists()


#: Sends each child a signal at its very birth, when it still has the handlers of its parent.
EARLY_SIGNAL = """
import os, signal, sys
from csp.gateway.supervise import supervise
fork = os.fork
def fork_and_signal():
    child = fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGTERM)
    return child
os.fork = fork_and_signal
sys.exit(supervise(lambda ready: 0))
"""


def test_a_signal_at_the_birth_of_a_child_is_not_lost_on_it() -> None:
    run = subprocess.run([sys.executable, "-c", EARLY_SIGNAL], cwd=ROOT, capture_output=True, check=False)

    # Every child has died of its signal; one that missed it would have ended with 0.
    assert run.returncode == 1
    assert run.stderr.count(b"gateway keeps dying") == 1


def test_the_supervisor_has_one_child_at_a_time(room: Process) -> None:
    for _ in range(2):
        _kill_and_wait(room)

    assert children(room.process.pid) == [_serving(room)]


def test_a_gateway_killed_while_it_starts_is_tried_again(tmp_path: Path) -> None:
    room = Process(tmp_path, "--supervise")
    try:
        room.launch()
        (child,) = wait_until_sync(lambda: children(room.process.pid), 30, "the first child")
        os.kill(child, signal.SIGKILL)
        room.wait()

        assert _serving(room) not in (0, child)
    finally:
        room.stop()


@pytest.mark.parametrize("delay", range(5))
def test_a_stop_in_the_middle_of_a_restart_ends_both(tmp_path: Path, delay: int) -> None:
    with Process(tmp_path, "--supervise") as room:
        os.kill(_serving(room), signal.SIGKILL)
        for _ in range(10 * delay):
            room.announced()

        assert room.end() == 0
        assert room.announced() is None
        _until_alone(room)


def test_a_gateway_that_cannot_start_is_not_tried_again(room: Process, tmp_path: Path) -> None:
    with _second(room, tmp_path) as other:
        code = other.wait_for_end()

    assert code == 1
    assert "started again" not in other.said()
    assert other.said().count("already served by process") == 1
    assert len(other.said().splitlines()) == 1


def _second(room: Process, tmp_path: Path) -> Process:
    """Return a second supervised gateway for the same room."""

    class Second(Process):
        def start(self) -> None:
            self.launch()

    return Second(tmp_path / "other", "--supervise", "--history", str(room.history_dir))


def _until_alone(room: Process) -> None:
    """Wait until nothing is left of the session that the gateway was started in.

    The scrub of a gateway that was killed ends by itself.
    """

    def left() -> str:
        command = ["ps", "-s", str(room.process.pid), "-o", "args="]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    wait_until_sync(lambda: left() == "", what="the end of all processes")
