"""Hold what was measured against what it should be."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final, NamedTuple, Self

from tests.bench.machine.figures import short

BEGIN: Final = "<!-- bench -->"
END: Final = "<!-- /bench -->"
HEADINGS: Final = ("what", "must", "aim", "figure", "spread", "", "medians")

Variant = Callable[[], float]


class Limit(NamedTuple):
    """What a ratio must reach, and what it should; without these it is only told.

    With a unit it is no ratio but a difference, in seconds or the like.
    """

    what: str
    must: float | None = None
    aim: float | None = None
    more_is_better: bool = False
    unit: str = ""


class Taken(NamedTuple):
    """A ratio, one value per round, with the medians behind it."""

    ratios: list[float]
    note: str


@dataclass(frozen=True, slots=True)
class Result:
    """A limit with what was measured; `missing` says why nothing was."""

    limit: Limit
    ratios: list[float] = field(default_factory=list)
    note: str = ""
    missing: str = ""

    @property
    def figure(self) -> float:
        return median(self.ratios)

    @property
    def verdict(self) -> str:
        """Say how far the figure comes."""
        if self.missing:
            return "left out"
        if self.limit.must is None or self.limit.aim is None:
            return ""
        reached = self._reaches(self.limit.must), self._reaches(self.limit.aim)
        return "aim met" if all(reached) else "must met" if reached[0] else "NOT MET"

    def _reaches(self, value: float) -> bool:
        return self.figure >= value if self.limit.more_is_better else self.figure <= value

    def cells(self) -> tuple[str, ...]:
        """Return one cell for each heading."""
        unit = self.limit.unit
        limits = [said(value, unit) for value in (self.limit.must, self.limit.aim)]
        if self.missing:
            return (self.limit.what, *limits, "", "", self.verdict, self.missing)
        spread = f"{said(min(self.ratios), unit)} .. {said(max(self.ratios), unit)}"
        return (self.limit.what, *limits, said(self.figure, unit), spread, self.verdict, self.note)

    def as_json(self) -> dict[str, Any]:
        """Return the result for a file."""
        return asdict(self) | {"limit": self.limit._asdict()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Read a result back from a file."""
        return cls(**values | {"limit": Limit(**values["limit"])})


def said(ratio: float | None, unit: str = "") -> str:
    """Return a ratio as people say it: 1/240, 0.36, 12.4; or a difference: 0.012 s."""
    if ratio is None:
        return ""
    if unit:
        return f"{ratio:.3f} {unit}"
    return f"1/{1 / ratio:.0f}" if 0 < ratio < 0.1 else short(ratio)


class Rounds:
    """Values of several variants, taken in turns so that the machine's moods fall on all of them alike."""

    def __init__(self, variants: Mapping[str, Variant], rounds: int, on_step: Callable[[str], None]) -> None:
        self._values: dict[str, list[float]] = {name: [] for name in variants}
        for turn in range(rounds):
            for name in list(variants)[:: 1 if turn % 2 == 0 else -1]:
                on_step(f"round {turn + 1} of {rounds}: {name}")
                self._values[name].append(variants[name]())

    def ratio(self, name: str, over: str, unit: str) -> Taken:
        """Return the ratio of two variants, round by round."""
        pairs = zip(self._values[name], self._values[over], strict=True)
        medians = [f"{which} {short(median(self._values[which]))} {unit}" for which in (name, over)]
        return Taken([value / other for value, other in pairs], ", ".join(medians))

    def values(self, name: str) -> list[float]:
        """Return what was taken of a variant, round by round."""
        return self._values[name]

    def difference(self, name: str, over: str, unit: str) -> Taken:
        """Return by how much one variant exceeds another, round by round."""
        pairs = zip(self._values[name], self._values[over], strict=True)
        medians = [f"{which} {short(median(self._values[which]))} {unit}" for which in (name, over)]
        return Taken([value - other for value, other in pairs], ", ".join(medians))


def text_table(results: list[Result]) -> str:
    """Return the results for a terminal."""
    rows = [HEADINGS, *(result.cells() for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def markdown_table(results: list[Result], remark: str) -> str:
    """Return the results for docs/performance.md, between its markers."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *(result.cells() for result in results)]
    return "\n".join([BEGIN, *(f"| {' | '.join(row)} |" for row in rows), "", remark, END])
