"""Record which test files run code of which source file, for `./bin/test --for FILE`.

    python -m tests.suite.recording          run the default suite and write tests/coverage_map.json
    python -m tests.suite.recording --new    run the test files that the map does not know, and add them

Each process of the suite measures itself with coverage.py: the workers of pytest through the plugin in
`measuring.py`, everything that they start through a .pth file, which Python reads at each start. A process
belongs to the test file that was running when it started. Code outside of functions runs at import and
says nothing about a test, so it does not count.
"""

import ast
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Any, Final

import coverage

from tests.suite.covering import MAP, read_map, suite_files

ROOT: Final = Path(__file__).resolve().parent.parent.parent
HOOK: Final = Path(sysconfig.get_path("purelib")) / "csp_measure_tests.pth"


def main(arguments: Sequence[str]) -> int:
    known = read_map(ROOT)["seconds"] if "--new" in arguments else {}
    tests = [test for test in suite_files(ROOT) if test not in known]
    if not tests:
        print("the map knows every test file")
        return 0
    with tempfile.TemporaryDirectory(prefix="csp-map-") as name:
        place = Path(name)
        code = measure(place, tests)
        if code not in (0, 1):
            return code
        before = read_map(ROOT) if known else {"covers": {}, "seconds": {}}
        # If all tests of a file are exhaustive, nothing of it ran: `--for` need not run it either.
        before = {"covers": before["covers"], "seconds": dict.fromkeys(tests, 0.0) | before["seconds"]}
        write_map(place, before)
    return code


def measure(place: Path, tests: Sequence[str]) -> int:
    """Run the suite with every process measured; return the exit code of pytest."""
    hook = Path(__file__).with_name("measuring.py")
    HOOK.write_text(f"import runpy; runpy.run_path({str(hook)!r}, {{'PLACE': {str(place)!r}}})\n")
    words = [*tests, "-n", str(2 * (os.cpu_count() or 1)), "--dist", "loadgroup"]
    try:
        command = [sys.executable, "-m", "pytest", "-p", "tests.suite.measuring", *words]
        run = subprocess.run(command, env=os.environ | {"MEASURED_INTO": str(place)}, check=False)
    finally:
        HOOK.unlink()
    return run.returncode


def write_map(place: Path, before: dict[str, Any]) -> None:
    """Write what was measured and what was known before, one line for each source file."""
    lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path in place.glob("data.*"):
        try:
            data = coverage.CoverageData(str(path))
            data.read()
        except coverage.CoverageException:
            # A process was killed while it wrote.
            continue
        for file in data.measured_files():
            inside = lines_in_functions(file)
            source = str(Path(file).relative_to(ROOT))
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts if line in inside else ():
                    lines[source][context].add(line)
    seconds: dict[str, float] = defaultdict(float)
    for path in place.glob("seconds.*"):
        for row in path.read_text().splitlines():
            test, took = row.rsplit(" ", 1)
            seconds[test] += float(took)
    known = set(suite_files(ROOT))
    measured = {source: ranked(found, seconds, known) for source, found in lines.items()}
    if not measured:
        raise SystemExit("nothing was measured; the map stays as it is")
    covers = merged(measured, before["covers"])
    seconds |= {test: took for test, took in before["seconds"].items() if test not in seconds}
    rows = [f"    {json.dumps(source)}: {json.dumps(tests)}" for source, tests in covers.items() if tests]
    times = [f"    {json.dumps(test)}: {took:.1f}" for test, took in sorted(seconds.items()) if test in known]
    text = '{{\n  "covers": {{\n{}\n  }},\n  "seconds": {{\n{}\n  }}\n}}\n'
    (ROOT / MAP).write_text(text.format(",\n".join(rows), ",\n".join(times)), "utf-8")


def merged(measured: dict[str, list[str]], before: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return both maps as one; the newer tests of a file come first, since they were written for its code."""
    sources = sorted(measured.keys() | before.keys())
    return {
        source: list(dict.fromkeys([*measured.get(source, []), *before.get(source, [])]))
        for source in sources
        if (ROOT / source).is_file()
    }


def ranked(found: dict[str, set[int]], seconds: dict[str, float], known: set[str]) -> list[str]:
    """Order test files so that the first few run every line of the file, the next few once more, and so on.

    Next is always the file that runs, for its time, the most lines that were not run yet in this round.
    """
    lines = {test: sum(1 << line for line in found[test]) for test in sorted(found) if test in known}
    order: list[str] = []
    missing = 0
    while lines:
        if not any(mask & missing for mask in lines.values()):
            missing = reduce(or_, lines.values())
        best = max(lines, key=lambda test: (lines[test] & missing).bit_count() / (1.0 + seconds[test]))
        missing &= ~lines.pop(best)
        order.append(best)
    return order


@cache
def lines_in_functions(file: str) -> set[int]:
    """Return the numbers of the lines that run when a function does."""
    tree = ast.parse(Path(file).read_text("utf-8"))
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        for line in range(statement.lineno, (statement.end_lineno or 0) + 1)
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
