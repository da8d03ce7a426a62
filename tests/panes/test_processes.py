"""Processes are found and ended wherever CSP runs, also where no ps is installed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.panes import processes
from csp.panes.processes import Process, alive, end, family, is_child, matching
from tests.waiting import wait_until_sync

SLEEP = "import time; time.sleep(600)"
START = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}, sys.argv[1]]); {SLEEP}"


@pytest.fixture
def outer(monkeypatch: pytest.MonkeyPatch) -> Iterator["subprocess.Popen[bytes]"]:
    monkeypatch.setenv("PATH", "/nowhere")
    process = subprocess.Popen([sys.executable, "-c", START, "an (odd) name"])
    yield process
    process.kill()
    process.wait()


def test_a_process_is_found_with_what_it_has_started(
    outer: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, first), *others = processes.STEPS
    monkeypatch.setattr(processes, "STEPS", ((0.1, first), *others))
    wait_until_sync(lambda: len(matching(f"{SLEEP} an (odd) name")) == 2, what="both processes")
    found = family([outer.pid])

    assert found == matching("an (odd) name")
    outer.kill()
    assert end(found) == set()
    assert alive(found) == set()


def test_one_that_hears_no_polite_signal_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = f"import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); {SLEEP}"
    process = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    numbers: list[int] = []
    kill = os.kill

    def noted(pid: int, number: int) -> None:
        numbers.append(number)
        kill(pid, number)

    monkeypatch.setattr(os, "kill", noted)
    steps = ((0.05, signal.SIGTERM), (0.05, signal.SIGKILL), (60.0, None))
    monkeypatch.setattr(processes, "STEPS", steps)

    assert end(family([process.pid])) == set()
    assert numbers == [signal.SIGTERM, signal.SIGKILL]
    assert [number for _, number in processes.STEPS] == [number for _, number in steps]
    process.communicate()


def test_the_last_resort_comes_after_the_polite_ones() -> None:
    assert processes.STEPS == ((6.0, signal.SIGTERM), (3.0, signal.SIGKILL), (3.0, None))


def test_a_later_process_of_the_same_number_is_another() -> None:
    (me,) = [process for process in matching("") if process.pid == os.getpid()]

    assert alive({me}) == {me}
    assert alive({me._replace(started="0")}) == set()
    assert me not in family([os.getpid()])


def test_the_dead_that_nobody_has_buried_are_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (found,) = family([process.pid])
    assert is_child(process.pid, os.getpid()) and not is_child(process.pid, 1)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert (alive({found}), family([process.pid])) == (set(), set())
    assert found not in matching("input()")
    process.communicate()
    assert not is_child(process.pid, os.getpid())


def test_nobody_is_a_descendant_of_nothing() -> None:
    assert family([0, 1]) == set()


def test_a_machine_without_proc_is_read_by_ps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "  1 0 Ss Mon Jan  5 10:00:00 2026 init\n 22 1 Z+ Mon Jan  5 10:00:01 2026 (dead)\n"
    rows += " 33 1 S Mon Jan  5 10:00:02 2026 python -m  x y\n"
    ps = tmp_path / "ps"
    ps.write_text(f"#!/bin/sh\nprintf '%s' '{rows}'\n")
    ps.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "platform", "darwin")

    assert matching("python") == {Process(33, "Mon Jan 5 10:00:02 2026", "python -m  x y")}
    assert matching("dead") == set()
    assert is_child(33, 1)
