"""The clock of a gateway: the time of day at its start plus the time that has passed.

Deadlines of turns and messages are times of day, so that they outlive the gateway. If somebody sets the clock
of the machine, or a time server does, no turn may run out early and none may get an hour more for that.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)

#: A larger difference to the clock of the machine is logged.
JUMP_S: Final = 2.0


def passed_s() -> float:
    """Return the uptime of the machine, with suspended time where the system counts it."""
    boot_clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)


class SteadyClock:
    """Returns the time when called; a jump of the machine's clock is logged and not followed."""

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = passed_s) -> None:
        self._wall = wall
        self._passed = passed
        self._began = wall() - passed()
        #: How far the machine's clock is ahead of this one.
        self.ahead_s = 0.0

    def __call__(self) -> float:
        now = self._began + self._passed()
        ahead_s = self._wall() - now
        if abs(ahead_s - self.ahead_s) > JUMP_S:
            log.warning("clock was set", extra={"by_s": round(ahead_s - self.ahead_s, 1), "followed": False})
            self.ahead_s = ahead_s
        return now
