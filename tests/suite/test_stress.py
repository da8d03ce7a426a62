"""The busy processes compute, and end with the run, even with one that is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.suite.stress import busy_processes
from tests.waiting import wait_until_sync


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def computes(pid: int) -> bool:
    """Report whether a process has used the processor for a while since its start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) > 20


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_they_compute_until_the_run_is_over() -> None:
    before = set(children_of(os.getpid()))
    with busy_processes(2):
        busy = set(children_of(os.getpid())) - before

        assert len(busy) == 2
        wait_until_sync(lambda: all(map(computes, busy)), 60, "busy processes")
    assert not any(map(is_alive, busy))


def test_they_end_when_the_runner_is_killed() -> None:
    code = (
        "import time\nfrom tests.suite.stress import busy_processes\nwith busy_processes(1): time.sleep(600)"
    )
    runner = subprocess.Popen([sys.executable, "-c", code])
    busy = wait_until_sync(lambda: children_of(runner.pid), 60, "a busy process")

    runner.send_signal(signal.SIGKILL)
    runner.wait()

    wait_until_sync(lambda: not any(map(is_alive, busy)), 60, "the end of the busy process")
