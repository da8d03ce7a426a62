"""Find processes and their descendants, and end them reliably."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from csp.fast_start.child_environment import TOOL, child_environment
from csp.fast_start.process_environment import process_environment

#: The signals for processes that do not end, each with a delay in seconds.
STEPS: Final = ((6.0, signal.SIGTERM), (3.0, signal.SIGKILL), (3.0, None))
_POLL_S: Final = 0.1
#: The index of the start time in /proc/PID/stat, counted from the parent's pid.
_STARTED: Final = 17


class Process(NamedTuple):
    """A process; its start time distinguishes it from a later one with the same pid."""

    pid: int
    started: str
    command: str


class _Row(NamedTuple):
    process: Process
    parent: int
    is_zombie: bool


def _table() -> dict[int, _Row]:
    # A minimal Debian system has no ps, and macOS has no /proc.
    rows = _from_proc() if sys.platform == "linux" else _from_ps()
    return {row.process.pid: row for row in rows}


def _from_proc() -> Iterator[_Row]:
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        # A process may end while its data is being read.
        with contextlib.suppress(OSError):
            stat = Path(entry.path, "stat").read_text(errors="replace")
            words = Path(entry.path, "cmdline").read_bytes().decode(errors="replace").split("\0")
            # The name in parentheses may contain spaces and parentheses.
            state, parent, *more = stat.rpartition(")")[2].split()
            process = Process(int(entry.name), more[_STARTED], " ".join(words).rstrip())
            yield _Row(process, int(parent), state == "Z")


def _from_ps() -> Iterator[_Row]:
    command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,lstart=,args="]
    own = child_environment(TOOL, process_environment())
    listing = subprocess.run(
        command, env=own, capture_output=True, text=True, errors="replace", check=True
    ).stdout
    for line in listing.splitlines():
        pid, parent, stat, *more = line.split(None, 8)
        process = Process(int(pid), " ".join(more[:5]), more[5] if len(more) > 5 else "")
        yield _Row(process, int(parent), stat.startswith("Z"))


def family(pids: Iterable[int]) -> set[Process]:
    """Return those of the processes and their descendants that are alive."""
    table = _table()
    children: dict[int, list[int]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row.process.pid)
    found: set[Process] = set()
    todo = [pid for pid in pids if pid > 1]
    while todo:
        here = table.get(todo.pop())
        if here is not None and here.process not in found and not here.is_zombie:
            found.add(here.process)
            todo += children.get(here.process.pid, [])
    return found - {process for process in found if process.pid == os.getpid()}


def is_child(pid: int, parent: int) -> bool:
    """Return whether a process is a child of another one; orphans have a different parent."""
    row = _table().get(pid)
    return row is not None and row.parent == parent


def matching(words: str) -> set[Process]:
    """Return the processes whose command line contains this text."""
    rows = _table().values()
    return {row.process for row in rows if words in row.process.command and not row.is_zombie}


def alive(processes: set[Process]) -> set[Process]:
    """Return the processes that are still running, excluding zombies."""
    table = _table() if processes else {}
    rows = (table.get(process.pid) for process in processes)
    living = {(row.process.pid, row.process.started) for row in rows if row and not row.is_zombie}
    return {process for process in processes if (process.pid, process.started) in living}


def end(processes: set[Process]) -> set[Process]:
    """Wait for processes to end, then send increasingly strong signals; return those that remain."""
    for patience_s, number in STEPS:
        deadline = time.monotonic() + patience_s
        while (processes := alive(processes)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        for process in processes if number else ():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number or 0)
    return processes
