"""What a case of chaos comes to."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """The figures of a case, and every invariant that it broke."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    #: Times in seconds by what was timed.
    times: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, float] = field(default_factory=dict)

    def add(self, **counts: int) -> None:
        """Count something."""
        self.counts.update(counts)

    def check(self, holds: bool, what: str) -> None:
        """Note an invariant that does not hold."""
        if not holds:
            self.wrong.append(what)
