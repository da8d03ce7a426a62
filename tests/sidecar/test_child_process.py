"""How a child is ended and made to redraw, by the clock it is given."""

import os
import select
import signal
import struct
import termios
import tty
from collections.abc import Iterator
from unittest import mock

import pytest

from csp.sidecar.relay.child_process import ChildProcess
from csp.sidecar.relay.input_queue import NEVER

#: No process has so high a number.
GONE = 2**22 + 1


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    master, slave = os.openpty()
    tty.setraw(slave)
    termios.tcsetwinsize(slave, (24, 80))
    yield master, slave
    os.close(master)
    os.close(slave)


@pytest.fixture
def child(pair: tuple[int, int]) -> ChildProcess:
    return ChildProcess(4321, pair[0])


@pytest.fixture
def slave(pair: tuple[int, int]) -> int:
    return pair[1]


def test_a_child_is_ended_harder_and_harder(child: ChildProcess) -> None:
    with mock.patch.object(os, "killpg") as killed:
        child.end(100.0)
        due = [child.due_at]
        for now in (100.0, 100.5, 103.0):
            child.do_what_is_due(now)
            due.append(child.due_at)

    sent = [call.args for call in killed.call_args_list]
    assert sent == [(4321, n) for n in (signal.SIGCONT, signal.SIGHUP, signal.SIGTERM, signal.SIGKILL)]
    assert due == [100.0, 100.5, 103.0, NEVER]


def test_a_child_has_read_when_nothing_waits_at_its_end(child: ChildProcess, slave: int) -> None:
    assert child.has_read()
    os.write(child.master, b"keys")
    assert select.select([slave], [], [], 60)[0], "the kernel passes the keys on"
    assert not child.has_read()
    os.read(slave, 4)
    assert child.has_read()


def test_looking_whether_a_child_has_read_leaves_no_descriptor_open(child: ChildProcess) -> None:
    child.has_read()
    before = len(os.listdir("/proc/self/fd"))
    child.has_read()

    assert len(os.listdir("/proc/self/fd")) == before


def test_where_nobody_can_know_a_child_counts_as_having_read(child: ChildProcess) -> None:
    """Else nothing typed would ever count as done."""
    os.write(child.master, b"keys")
    with mock.patch.object(os, "open", side_effect=OSError):
        assert child.has_read()
    with mock.patch("fcntl.ioctl", side_effect=OSError):
        assert child.has_read()
    with mock.patch("fcntl.ioctl", side_effect=[bytes(8), OSError]):
        assert ChildProcess(1, child.master).has_read()


def test_a_dead_child_gets_no_signal(child: ChildProcess) -> None:
    child.status = 0
    with mock.patch.object(os, "killpg") as killed:
        child.signal(signal.SIGTERM)

    assert not killed.called


def test_a_redraw_is_a_row_less_then_the_old_size(child: ChildProcess) -> None:
    child.nudge(10.0)
    nudged, due = termios.tcgetwinsize(child.master), child.due_at
    child.do_what_is_due(due)

    assert (nudged, due) == ((23, 80), 10.1)
    assert termios.tcgetwinsize(child.master) == (24, 80)
    assert child.due_at == NEVER


def test_only_another_size_is_news(child: ChildProcess) -> None:
    same, other = struct.pack("HHHH", 24, 80, 0, 0), struct.pack("HHHH", 30, 90, 0, 0)

    assert [child.resize(same), child.resize(other), child.resize(other)] == [False, True, False]
    assert child.rows_cols == (30, 90)


@pytest.mark.parametrize("number", [-2, 0, 1000, 2**40, -(2**40)])
def test_a_signal_that_there_is_not_does_no_harm(child: ChildProcess, number: int) -> None:
    with mock.patch.object(child, "pid", GONE):
        child.signal(number)


@pytest.mark.parametrize("status", [0, None])
def test_only_a_child_that_lives_gets_a_signal(child: ChildProcess, status: int | None) -> None:
    """Its number may be another's by now."""
    child.status = status
    with mock.patch.object(os, "killpg") as killed:
        child.signal(signal.SIGINT)

    assert killed.call_args_list == ([mock.call(4321, signal.SIGINT)] if status is None else [])
