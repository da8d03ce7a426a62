"""A clock that is set moves no deadline."""

import logging
import time

import pytest

from csp.gateway.server import JUMP_S, SteadyClock
from csp.gateway.sleep_gauge import passed_s


class Machine:
    """The clocks of a machine, which a test sets."""

    def __init__(self) -> None:
        self.wall = 1_000_000.0
        self.up = 50.0

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.up)


def test_clock_begins_with_the_time_of_day_and_goes_on() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wait(7.0)

    assert clock() == 1_000_007.0


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 86_400.0 * 365])
def test_jump_of_the_machines_clock_is_not_followed(jump: float) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += jump
    machine.wait(5.0)

    assert clock() == 1_000_005.0


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_jump_is_told_at_the_next_look_and_once(jump: float, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += jump
    with caplog.at_level(logging.WARNING):
        clock()
        clock()

    assert [(record.message, record.__dict__["by_s"]) for record in caplog.records] == [
        ("clock was set", jump)
    ]
    assert clock.ahead_s == jump


def test_small_corrections_are_no_jump(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += JUMP_S / 2
    clock()

    assert caplog.records == []


def test_time_passes_on_this_machine() -> None:
    before = passed_s()

    assert passed_s() >= before
    assert abs(SteadyClock()() - time.time()) < JUMP_S


def test_time_passes_where_the_system_counts_no_suspension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    before = time.monotonic()

    assert passed_s() >= before
