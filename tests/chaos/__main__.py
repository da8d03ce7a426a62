"""Run chaos: python -m tests.chaos --seed 7 --minutes 10."""

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.chaos import clocks, disks, files, floods, kills, readers, soak, texts
from tests.chaos.cases import Outcome

PARTS: Final[dict[str, Callable[[Path, str], Outcome]]] = {
    "kills": kills.play,
    "files": files.play,
    "readers": readers.play,
    "disks": disks.play,
    "clocks": clocks.play,
    "floods": floods.play,
    "soak": soak.play,
    "texts": texts.play,
}
#: How often a part has its turn beside the others.
_TURNS: Final = {"kills": 4, "files": 12, "readers": 1, "disks": 2, "clocks": 1}
#: These take long and are measured rather than drawn: once in a run, at its end.
_ONCE: Final = ("floods", "soak", "texts")
_EPILOG: Final = """\
examples:
  python -m tests.chaos --seed 7 --minutes 10
  python -m tests.chaos --seed 7 --minutes 30 --only kills,files --json > figures.json
  python -m tests.chaos --seed 7 --case kills:12        # the same case once more
"""


class Case(NamedTuple):
    part: str
    number: int

    def __str__(self) -> str:
        return f"{self.part}:{self.number}"


def main(argv: list[str] | None = None) -> int:
    """Run cases until the time is over; return 1 if an invariant broke."""
    options = _options(argv)
    try:
        return _run(options)
    except KeyboardInterrupt:
        print("chaos: stopped", file=sys.stderr)
        return 130


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description="Kill gateways, damage their files, fill their disks; check that they keep their word.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="what the cases are drawn from (default: 1)")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to go on (default: 1)")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, of {','.join(PARTS)} (default: all)")
    parser.add_argument("--case", help="run this case alone, such as kills:12")
    parser.add_argument("--cases", type=int, default=0, help="stop after so many cases")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(argv)
    options.parts = [part.strip() for part in options.only.split(",") if part.strip()]
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown or not options.parts:
        parser.error(f"--only: expected parts of {', '.join(PARTS)}, got {options.only!r}")
    options.one = _case(parser, options.case) if options.case else None
    return options


def _case(parser: argparse.ArgumentParser, text: str) -> Case:
    part, _, number = text.partition(":")
    if part not in PARTS or not number.isdigit():
        parser.error(f"--case: expected PART:NUMBER with a part of {', '.join(PARTS)}, got {text!r}")
    return Case(part, int(number))


# --- running ---------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    began = time.monotonic()
    total = Outcome()
    played: Counter[str] = Counter()
    for case in _cases(options, began):
        outcome = play(options.seed, case)
        played[case.part] += 1
        for problem in outcome.wrong:
            print(f"chaos: {case}: {problem}", file=sys.stderr)
        if outcome.wrong:
            again = f"python -m tests.chaos --seed {options.seed} --case {case}"
            print(f"chaos: run it again with: {again}", file=sys.stderr)
        _merge(total, outcome)
        _show_progress(total, played, time.monotonic() - began)
    figures = _figures(total, played, options.seed, time.monotonic() - began)
    print(json.dumps(figures, indent=1) if options.json else _table(figures))
    return 1 if total.wrong else 0


def _cases(options: argparse.Namespace, began: float) -> Iterator[Case]:
    """Yield the cases of a run: each part in its turn, what is done once at the end."""
    if options.one is not None:
        yield options.one
        return
    once = [part for part in options.parts if part in _ONCE]
    turns = [part for part in options.parts for _ in range(_TURNS.get(part, 0))]
    numbers: Counter[str] = Counter()
    count = 0
    while turns and time.monotonic() - began < options.minutes * 60:
        for part in _mixed(turns):
            if (options.cases and count >= options.cases) or time.monotonic() - began > options.minutes * 60:
                break
            yield Case(part, numbers[part])
            numbers[part] += 1
            count += 1
        if options.cases and count >= options.cases:
            break
    for part in once:
        yield Case(part, 0)


def _mixed(turns: list[str]) -> list[str]:
    """Return a round in which the turns of each part are spread, so that a short run has some of all."""
    counts = Counter(turns)
    places = [((at + 0.5) / count, part) for part, count in counts.items() for at in range(count)]
    return [part for _, part in sorted(places)]


def play(seed: int, case: Case) -> Outcome:
    """Play one case in a folder of its own, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{case.part}-"))
    try:
        return PARTS[case.part](folder / "room", f"{seed}/{case}")
    except Exception as error:  # the figures of the other cases must not be lost with it
        return Outcome(wrong=[f"{type(error).__name__}: {error}"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _merge(total: Outcome, one: Outcome) -> None:
    total.counts.update(one.counts)
    total.wrong += one.wrong
    total.notes |= one.notes
    for name, times in one.times.items():
        total.times.setdefault(name, []).extend(times)


def _show_progress(total: Outcome, played: Counter[str], past_s: float) -> None:
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in total.counts.items())
    end = "\r" if sys.stderr.isatty() else "\n"
    if sys.stderr.isatty() or sum(played.values()) % 20 == 0:
        print(f"chaos: {past_s:.0f} s: {counts}, {len(total.wrong)} broken\x1b[K", end=end, file=sys.stderr)


# --- figures ---------------------------------------------------------------------------------------


def _figures(total: Outcome, played: Counter[str], seed: int, past_s: float) -> dict[str, Any]:
    said = " ".join(total.wrong)
    figures: dict[str, Any] = {"seed": seed, "minutes": round(past_s / 60, 1)}
    figures |= {f"cases of {part}": count for part, count in played.items()}
    figures |= {name.replace("_", " "): count for name, count in sorted(total.counts.items())}
    figures |= {"lost": said.count("lost:"), "doubled": said.count("doubled:"), "broken": len(total.wrong)}
    for name, times in total.times.items():
        figures[f"{name}, p50 ms"] = round(quantile(times, 0.5) * 1000, 1)
        figures[f"{name}, p99 ms"] = round(quantile(times, 0.99) * 1000, 1)
    return figures | {name: round(value, 2) for name, value in total.notes.items()}


def quantile(values: list[float], share: float) -> float:
    """Return the value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _table(figures: dict[str, Any]) -> str:
    width = max(map(len, figures))
    return "\n".join(f"{name:{width}}  {value}" for name, value in figures.items())


if __name__ == "__main__":
    sys.exit(main())
