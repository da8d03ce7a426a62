"""Run the bench: python -m tests.bench [NAME...]"""

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.bench.cases import CASES
from tests.bench.machine.usage import load_average
from tests.bench.results import Result, markdown_table, text_table
from tests.bench.setting import Setting


def main() -> int:
    """Measure what was asked for; print how it compares."""
    args = _arguments()
    if args.saved:
        results, remark = read_saved(args.saved)
    else:
        results, remark = _measure(args)
    if args.json:
        values = {"remark": remark, "results": [result.as_json() for result in results]}
        args.json.write_text(json.dumps(values, indent=1) + "\n")
    print(markdown_table(results, remark) if args.markdown else f"{text_table(results)}\n\n{remark}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench", description="Hold CSP against its limits.")
    names = [case.name for case in CASES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names)}; default: all")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each case; default: 5")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each load; default: 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here too")
    parser.add_argument("--markdown", action="store_true", help="print a markdown table")
    parser.add_argument(
        "--saved",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="print what --json wrote, measure nothing; a later file replaces rows of an earlier one",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="leave the long journal here for the next run"
    )
    args = parser.parse_args()
    unknown = set(args.names) - set(names)
    if unknown:
        parser.error(f"unknown name {min(unknown)!r}, expected some of: {', '.join(names)}")
    return args


def read_saved(files: list[Path]) -> tuple[list[Result], str]:
    """Return the results of several runs in the order of the cases, each row from its last run."""
    runs = [json.loads(file.read_bytes()) for file in files]
    found = {result.limit.what: result for run in runs for result in map(Result.from_json, run["results"])}
    order = [limit.what for case in CASES for limit in case.limits]
    results = [found[what] for what in order if what in found]
    return results, " ".join(dict.fromkeys(run["remark"] for run in runs))


def _measure(args: argparse.Namespace) -> tuple[list[Result], str]:
    before = load_average()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="csp-bench-") as folder:
        for case in CASES:
            if args.names and case.name not in args.names:
                continue
            setting = Setting(Path(folder), args.rounds, args.seconds, partial(_tell, case.name), args.keep)
            results += case.results(setting)
    remark = (
        f"{args.rounds} rounds, variants in turn; a figure is the median of same-round ratios; "
        f"load average {before:.1f} before, {load_average():.1f} after."
    )
    return results, remark


def _tell(name: str, step: str) -> None:
    print(f"{name}: {step}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
