"""How a child is ended and made to redraw, by the clock it is given."""

import os
import signal
import struct
import termios
from collections.abc import Iterator
from unittest import mock

import pytest

from csp.sidecar.child import Child
from csp.sidecar.keyboard import NEVER


@pytest.fixture
def child() -> Iterator[Child]:
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    yield Child(4321, master)
    os.close(master)
    os.close(slave)


def test_a_child_is_ended_harder_and_harder(child: Child) -> None:
    with mock.patch.object(os, "killpg") as killed:
        child.end(100.0)
        due = [child.due_at]
        for now in (100.0, 100.5, 103.0):
            child.do_what_is_due(now)
            due.append(child.due_at)

    sent = [call.args for call in killed.call_args_list]
    assert sent == [(4321, n) for n in (signal.SIGCONT, signal.SIGHUP, signal.SIGTERM, signal.SIGKILL)]
    assert due == [100.0, 100.5, 103.0, NEVER]


def test_a_dead_child_gets_no_signal(child: Child) -> None:
    child.status = 0
    with mock.patch.object(os, "killpg") as killed:
        child.signal(signal.SIGTERM)

    assert not killed.called


def test_a_redraw_is_a_row_less_then_the_old_size(child: Child) -> None:
    child.nudge(10.0)
    nudged, due = termios.tcgetwinsize(child.master), child.due_at
    child.do_what_is_due(due)

    assert (nudged, due) == ((23, 80), 10.1)
    assert termios.tcgetwinsize(child.master) == (24, 80)
    assert child.due_at == NEVER


def test_only_another_size_is_news(child: Child) -> None:
    same, other = struct.pack("HHHH", 24, 80, 0, 0), struct.pack("HHHH", 30, 90, 0, 0)

    assert [child.resize(same), child.resize(other), child.resize(other)] == [False, True, False]
    assert child.rows_cols == (30, 90)
