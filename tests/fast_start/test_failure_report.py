"""What a csp command reports about its failure to the program that started it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from csp.fast_start import failure_report
from csp.fast_start.failure_report import VARIABLE, FailurePipe, claim, report

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _unclaimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_report, "_claimed", [])


def run_csp(pipe: FailurePipe, *words: str) -> int:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nowhere", **pipe.variables}
    argv = (sys.executable, "-m", "csp.cli", *words)
    return subprocess.run(argv, env=env, pass_fds=(pipe.fd,), capture_output=True, check=False).returncode


def test_a_command_reports_message_and_hint() -> None:
    with FailurePipe() as pipe:
        code = run_csp(pipe, "no-such-verb")
        message, hint = pipe.read()

    assert code == 2
    assert "no-such-verb" in message
    assert hint


def test_a_command_that_succeeds_reports_nothing() -> None:
    with FailurePipe() as pipe:
        assert run_csp(pipe, "--version") == 0
        assert pipe.read() == ("", "")


def test_the_pipe_is_for_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with FailurePipe() as pipe:
        os.set_inheritable(pipe.fd, True)
        monkeypatch.setenv(VARIABLE, str(pipe.fd))
        claim()
        assert not os.get_inheritable(pipe.fd)
        assert VARIABLE not in os.environ
        report("first")
        report("x" * 5000, "a \ud800 hint")

        assert pipe.read() == ("x" * 4000, "a \ud800 hint")


@pytest.mark.parametrize("number", ["", "x", "-1", "987654"])
def test_a_pipe_that_is_not_there_is_ignored(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    monkeypatch.setenv(VARIABLE, number)
    claim()
    report("nobody listens")

    assert failure_report._claimed == []


def test_a_parent_that_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setenv(VARIABLE, str(writer))
    claim()
    os.close(reader)
    report("too late")
    os.close(writer)
