"""Who could continue a child that was stopped; that it can be stopped at all is in test_relay_signals.py."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from csp.sidecar.relay import job_control

GROUP, SESSION = 500, 400


@contextmanager
def processes(*above: tuple[int, int]) -> Iterator[None]:
    """Have these processes above us, the nearest first, each with its group and session; then init."""
    known = {10 + at: place for at, place in enumerate(above)} | {1: (1, 1)}
    with (
        mock.patch.object(os, "getpgrp", return_value=GROUP),
        mock.patch.object(os, "getppid", return_value=10 if above else 1),
        mock.patch.object(os, "getpgid", side_effect=lambda pid: known[pid][0]),
        mock.patch.object(os, "getsid", side_effect=lambda pid: known[pid][1] if pid else SESSION),
        mock.patch.object(job_control, "_parent", side_effect=lambda pid: pid + 1 if pid + 1 in known else 1),
    ):
        yield


@pytest.mark.parametrize(
    ("above", "is_there"),
    [
        ([(400, SESSION)], True),
        ([(GROUP, SESSION), (400, SESSION)], True),
        ([(GROUP, SESSION)], False),
        ([(300, 300)], False),
        ([(GROUP, SESSION), (300, 300)], False),
        ([], False),
    ],
)
def test_a_shell_is_in_our_session_but_not_in_our_group(above: list[tuple[int, int]], is_there: bool) -> None:
    with processes(*above):
        assert job_control.has_shell_above() is is_there


def test_a_process_that_cannot_be_looked_at_is_no_shell() -> None:
    with processes((GROUP, SESSION)), mock.patch.object(os, "getpgid", side_effect=PermissionError):
        assert not job_control.has_shell_above()


@pytest.mark.parametrize("is_there", [True, False])
def test_there_is_a_pipe_only_where_somebody_could_continue_us(is_there: bool) -> None:
    with mock.patch.object(job_control, "has_shell_above", return_value=is_there):
        fds = job_control.open_life()

    assert (fds != (-1, -1)) is is_there
    for fd in fds if is_there else ():
        os.close(fd)


def test_the_parent_is_read_whatever_a_process_is_called() -> None:
    assert job_control._parent(os.getpid()) == os.getppid()
    stat = mock.mock_open(read_data=b"7 (a b) c) S 42 7 7")
    with mock.patch("builtins.open", stat):
        assert job_control._parent(7) == 42


def test_those_who_stand_by_hear_no_signal_and_hold_nothing_but_the_pipe() -> None:
    with (
        mock.patch("csp.sidecar.relay.job_control.signal.signal") as handled,
        mock.patch.object(os, "open", return_value=77),
        mock.patch.object(os, "dup2") as placed,
        mock.patch.object(os, "closerange") as closed,
        mock.patch.object(os, "execve") as became,
    ):
        job_control._wait_for_the_end(9)
    ignored = {call.args[0] for call in handled.call_args_list}

    assert {signal.SIGTSTP, signal.SIGHUP, signal.SIGINT, signal.SIGTERM} <= ignored
    assert ignored.isdisjoint({signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})
    assert {call.args[1] for call in handled.call_args_list} == {signal.SIG_IGN}
    assert placed.call_args_list == [mock.call(9, 0), mock.call(77, 1), mock.call(77, 2)]
    closed.assert_called_once_with(3, 1 << 16)
    became.assert_called_once_with("/bin/sh", ["/bin/sh", "-c", "read _"], {})
