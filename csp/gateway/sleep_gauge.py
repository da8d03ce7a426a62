"""Measure how long the machine was suspended, for example while the lid of a laptop was closed."""

import time
from collections.abc import Callable
from typing import Final

#: Two clocks are never read at the same moment, and a busy machine is not a sleeping one.
LEAST_S: Final = 5.0


def passed_s() -> float:
    """Return the machine's uptime, including suspended time where the system counts it."""
    boot_clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)


class SleepGauge:
    """The difference between a clock that runs while the machine is suspended and one that does not."""

    def __init__(
        self, passed: Callable[[], float] = passed_s, awake: Callable[[], float] = time.monotonic
    ) -> None:
        self._passed, self._awake = passed, awake
        self._slept_s = passed() - awake()

    def take(self) -> float:
        """Return for how many seconds the machine has slept since the last call, or 0."""
        slept_s = self._passed() - self._awake()
        news = slept_s - self._slept_s
        if news < LEAST_S:
            return 0.0
        self._slept_s = slept_s
        return news
