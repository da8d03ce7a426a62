"""Exponential backoff with jitter."""

import random
from typing import Final

FIRST_S: Final = 0.1
LAST_S: Final = 5.0


class Backoff:
    """A delay that doubles with each try; jitter keeps many clients from retrying at once."""

    def __init__(self) -> None:
        self._tries = 0

    def reset(self) -> None:
        """Reset to the shortest delay."""
        self._tries = 0

    def next_s(self) -> float:
        """Return the next delay, between half of the full one and all of it."""
        full = min(LAST_S, FIRST_S * 2.0 ** min(self._tries, 16))
        self._tries += 1
        return full * random.uniform(0.5, 1.0)
