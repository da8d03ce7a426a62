"""A supervised gateway comes back by itself, but not for ever."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.gateway import server as supervise_module
from csp.gateway.server import MAX_RESTARTS, STORAGE_FAILED, WINDOW_S, supervise
from tests.gateway.processes import Process, children, is_alive
from tests.rooms import ROOT
from tests.waiting import wait_until_sync

KILLED = -signal.SIGKILL
FAILED = 1


# --- whether to start it again -------------------------------------------------------------------


class Children:
    """The ends of the children that a supervisor will have; each lives for `lived_s`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ends: list[tuple[bool, int]] = []
        self.lived_s = 0.0
        self.now = 1000.0
        monkeypatch.setattr(supervise_module._Guard, "run_child", lambda guard, serve: self._run())
        monkeypatch.setattr("csp.gateway.server.time.monotonic", lambda: self.now)

    def _run(self) -> tuple[bool, int]:
        self.now += self.lived_s
        return self.ends.pop(0)

    def supervise(self, *ends: tuple[bool, int]) -> int:
        """Return the exit code of a supervisor whose children end so, one after the other."""
        self.ends = list(ends)
        return supervise(lambda ready: 0)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield Children(monkeypatch)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_an_orderly_end_is_the_end(ends: Children) -> None:
    assert ends.supervise((True, 0), (True, FAILED)) == 0
    assert ends.ends == [(True, FAILED)]


@pytest.mark.parametrize("code", [KILLED, FAILED])
def test_a_gateway_that_dies_is_started_again(ends: Children, code: int) -> None:
    assert ends.supervise((True, code), (True, code), (True, 0)) == 0
    assert ends.ends == []


def test_a_gateway_killed_while_it_starts_is_started_again(ends: Children) -> None:
    assert ends.supervise((False, KILLED), (True, 0)) == 0
    assert ends.ends == []


@pytest.mark.parametrize("code", [1, 2])
def test_a_gateway_that_cannot_start_is_not_started_again(ends: Children, code: int) -> None:
    assert ends.supervise((False, code), (True, 0)) == code
    assert len(ends.ends) == 1


def test_a_failing_disk_is_not_asked_again(ends: Children) -> None:
    assert ends.supervise((True, STORAGE_FAILED), (True, 0)) == 1
    assert len(ends.ends) == 1


def test_one_death_too_many_within_a_minute_ends_it(ends: Children, caplog: pytest.LogCaptureFixture) -> None:
    ends.lived_s = WINDOW_S / MAX_RESTARTS - 0.1

    code = ends.supervise(*[(True, KILLED)] * (MAX_RESTARTS + 2), (True, 0))

    assert code == 1
    assert len(ends.ends) == 2
    assert caplog.messages.count("gateway died and is being restarted") == MAX_RESTARTS == 5
    assert caplog.messages.count("gateway keeps dying") == 1


def test_deaths_far_apart_never_end_it(ends: Children) -> None:
    ends.lived_s = WINDOW_S / MAX_RESTARTS + 0.1

    assert ends.supervise(*[(True, KILLED)] * 30, (True, 0)) == 0
    assert ends.ends == []


# --- signals -------------------------------------------------------------------------------------

#: A supervisor of a child that says that it is ready, then waits to be told to end.
PATIENT = """
import os, signal, sys, time
from csp.gateway.server import supervise
def serve(ready):
    def end(number, frame):
        # The signal may come in the midst of the print below, which cannot be entered twice.
        os.write(1, b"the child ends by %d\\n" % number)
        raise SystemExit
    signal.signal(signal.SIGTERM, end)
    ready()
    try:
        print("ready", flush=True)
        while True:
            time.sleep(0.05)
    except SystemExit:
        return 0
sys.exit(supervise(serve))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_both_processes(number: signal.Signals) -> None:
    command = [sys.executable, "-c", PATIENT]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None and supervisor.stdout.readline() == "ready\n"
        (child,) = children(supervisor.pid)

        supervisor.send_signal(number)

        assert supervisor.stdout.read() == f"the child ends by {signal.SIGTERM.value}\n"
        assert supervisor.wait(60) == 0
    assert not is_alive(child)


#: Sends each child a signal at its very birth, when it still has the handlers of its parent.
EARLY_SIGNAL = """
import os, signal, sys
from csp.gateway.server import supervise
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


#: What a child that fails in its own way makes of itself: each line is one child's exit code.
EXIT_CODES = """
import sys
from csp.errors import Broken, StorageFailed
from csp.gateway import server as module
errors = [Broken("no"), StorageFailed("no"), KeyboardInterrupt(), RuntimeError("no")]
for error in errors:
    def serve(ready):
        raise error
    print(module._Guard().run_child(serve))
"""


def test_the_exit_code_of_a_child_says_how_it_failed() -> None:
    run = subprocess.run(
        [sys.executable, "-c", EXIT_CODES], cwd=ROOT, capture_output=True, text=True, check=True
    )

    ends = [(False, 1), (False, STORAGE_FAILED), (False, 0), (False, 1)]
    assert run.stdout.splitlines() == [str(end) for end in ends]
    assert run.stderr.count("gateway crashed") == 1


# --- a real gateway ------------------------------------------------------------------------------


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Process]:
    with Process(tmp_path, "--supervise") as running:
        yield running


def _serving(room: Process) -> int:
    """Return the process that serves, 0 while there is none."""
    announced = room.announced()
    return announced.pid if announced is not None and is_alive(announced.pid) else 0


def test_a_killed_gateway_is_back_on_its_port(room: Process) -> None:
    before, told = _serving(room), room.announced()
    room.gateway.post("/message", {"to": "all", "content": "hello"})

    os.kill(before, signal.SIGKILL)
    # The supervisor holds the port, so the caller waits instead of being refused.
    health = room.gateway.get("/health")
    seen = {room.announced() is not None for _ in range(100)}
    wait_until_sync(lambda: _serving(room) not in (0, before), what="the next gateway")
    after = room.announced()

    assert health["status"] == "ok"
    assert seen == {True}
    assert before != room.process.pid
    assert told is not None and after is not None
    assert (after.url, after.supervisor, after.token) == (told.url, room.process.pid, told.token)
    assert after.pid not in (before, room.process.pid)
    assert [item["text"] for item in room.gateway.get("/history")["items"]] == ["hello"]
    assert children(room.process.pid) == [after.pid]

    assert room.end() == 0
    assert not is_alive(after.pid)
    assert not (room.state_dir / "default.json").exists()
    assert "Traceback" not in room.said()
    _until_alone(room)


def test_a_signal_to_the_child_alone_ends_both(room: Process) -> None:
    os.kill(_serving(room), signal.SIGTERM)

    assert room.wait_for_end() == 0
    assert not (room.state_dir / "default.json").exists()


@pytest.mark.parametrize(
    "delay", [2, *(pytest.param(delay, marks=pytest.mark.full) for delay in (0, 1, 3, 4))]
)
def test_a_stop_in_the_middle_of_a_restart_ends_both(tmp_path: Path, delay: int) -> None:
    with Process(tmp_path, "--supervise") as room:
        os.kill(_serving(room), signal.SIGKILL)
        for _ in range(10 * delay):
            room.announced()

        assert room.end() == 0
        assert room.announced() is None
        _until_alone(room)


def test_a_gateway_that_cannot_start_says_why_and_ends(tmp_path: Path) -> None:
    room = Process(tmp_path, "--supervise")
    room.history_dir.write_text("not a folder")
    room.launch()
    try:
        code = room.wait_for_end()
    finally:
        room.stop()

    assert code == 1
    assert "started again" not in room.said()
    assert len(room.said().splitlines()) == 1


def _until_alone(room: Process) -> None:
    """Wait until nothing is left of the session that the gateway was started in.

    The scrub of a gateway that was killed ends by itself.
    """

    def left() -> str:
        command = ["ps", "-s", str(room.process.pid), "-o", "args="]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    wait_until_sync(lambda: left() == "", what="the end of all processes")


#: Gets a signal in the very moment in which it begins to wait, before Python can run a handler.
SIGNAL_BEFORE_WAITING = """
import os, signal, sys, time
from csp.gateway import server as module
waits = signal.sigwait
def signalled_first(numbers):
    signal.sigwait = waits
    os.kill(os.getpid(), signal.SIGTERM)
    return waits(numbers)
signal.sigwait = signalled_first
def serve(ready):
    ready()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        time.sleep(0.05)
sys.exit(module.supervise(serve))
"""


def test_a_signal_just_before_the_supervisor_waits_is_not_lost() -> None:
    run = subprocess.run([sys.executable, "-c", SIGNAL_BEFORE_WAITING], cwd=ROOT, timeout=120, check=False)

    assert run.returncode == 0
