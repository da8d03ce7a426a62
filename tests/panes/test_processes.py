"""Processes are found and ended wherever CSP runs, also where no ps is installed."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from csp.panes import processes
from csp.panes.processes import alive, end, family, matching
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
