"""Sum up what several rounds have measured."""

from dataclasses import dataclass, field
from statistics import median

from tests.bench.machine.usage import load_average


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing measured, a value per round."""

    name: str
    unit: str
    values: list[float] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return median(self.values)

    def as_json(self) -> dict[str, object]:
        """Return the figure for a script."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.middle,
            "min": min(self.values),
            "max": max(self.values),
            "rounds": len(self.values),
        }


class Figures:
    """All figures of a run, in the order in which they first came."""

    def __init__(self) -> None:
        self._figures: dict[str, Figure] = {}
        self._loads = [load_average()]

    def add(self, name: str, unit: str, value: float) -> None:
        """Take in the value of one round."""
        self._figures.setdefault(name, Figure(name, unit)).values.append(value)

    def all(self) -> list[Figure]:
        """Return what there is."""
        return list(self._figures.values())

    def load(self) -> str:
        """Say how busy the machine was meanwhile, this run included."""
        self._loads.append(load_average())
        return f"load average {self._loads[0]:.2f} before, {self._loads[-1]:.2f} after"


def short(value: float) -> str:
    """Return a number with three digits that mean something."""
    if value != value:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(figures: list[Figure]) -> list[str]:
    """Return the lines of a table for a person."""
    rows = [("what", "median", "unit", "spread")]
    for figure in figures:
        spread = f"{short(min(figure.values))} .. {short(max(figure.values))}"
        rows.append((figure.name, short(figure.middle), figure.unit, spread))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        f"{name:{widths[0]}}  {value:>{widths[1]}}  {unit:{widths[2]}}  {spread}".rstrip()
        for name, value, unit, spread in rows
    ]
