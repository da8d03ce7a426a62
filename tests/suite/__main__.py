"""Run the parts of the suite that ./bin/test was asked for; `./bin/test --help` explains them.

The default run has two lanes beside each other. The tests wait for processes more than they compute, so
the checks that only compute (style, types, the core with its coverage, the mutants) take the other lane.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.suite.covering import choose
from tests.suite.parts import Part, run_lanes
from tests.suite.stress import busy_processes

ROOT: Final = Path(__file__).resolve().parent.parent.parent
#: Tests wait for other processes about half of their time.
WORKERS: Final = max(2, min(8, 2 * (os.cpu_count() or 1)))
#: The rules of the room and of the terminal: pure, so their tests run apart, with a gate on coverage.
PURE_TESTS: Final = ("tests/room", "tests/terminal")
PURE_SOURCES: Final = "csp/room,csp/terminal"
#: These measure; those of the parts of the bench lie in a folder of it.
WITHOUT_THE_BENCH: Final = "--ignore-glob=tests/bench/test_*"
NOT_IN_THE_MAIN_PART: Final = (*(f"--ignore={path}" for path in PURE_TESTS), WITHOUT_THE_BENCH)
#: On a busy machine an exhaustive test may need more than the usual limit, which is for tests that hang.
EXHAUSTIVE: Final = ("--full", "--timeout=1200")
BY_GROUP: Final = ("--dist", "loadgroup", "--no-loadscope-reorder")


def main(arguments: Sequence[str]) -> int:
    os.chdir(ROOT)
    options, pytest_arguments = parse(arguments)
    if pytest_arguments:
        lanes = [[pytest_part("tests", *with_bench_ignored(pytest_arguments))]]
    elif options.map:
        lanes = [[Part("map", ("-m", "tests.suite.recording", *(["--new"] if options.map == "new" else [])))]]
    elif options.covered:
        lanes = lanes_for(options.covered)
    elif options.fast:
        lanes = [[style(), core()]]
    else:
        lanes = [
            [main_tests(options.full)],
            [style(), types(options.full), checked_core(options.full), mutants(options.full)],
        ]
    with busy_processes(options.stress):
        return run_lanes(lanes)


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Separate our own options from those for pytest; the two do not go together."""
    parser = argparse.ArgumentParser(prog="bin/test", add_help=False, allow_abbrev=False)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--map", nargs="?", const="all", choices=("all", "new"))
    parser.add_argument("--for", dest="covered", action="append", default=[], metavar="FILE")
    parser.add_argument("--stress", type=int, default=0, metavar="N")
    options, rest = parser.parse_known_args(arguments)
    if rest and (options.fast or options.map or options.covered):
        parser.error(f"unexpected argument {rest[0]}; see bin/test --help")
    if options.full and rest:
        rest = [*EXHAUSTIVE, *rest]
    return options, rest


# --- the parts -----------------------------------------------------------------------------------


def style() -> Part:
    return Part("style", ("-m", "ruff", "format", "--check", "--quiet"), ("-m", "ruff", "check", "--quiet"))


def types(full: bool) -> Part:
    return Part("types", ("-m", "mypy" if full else "tests.suite.quick_types"))


def core() -> Part:
    return pytest_part("core", *PURE_TESTS, "-n", "2", "-p", "no:schemathesis", "-p", "no:aiohttp")


def checked_core(full: bool) -> Part:
    coverage = (
        "-m",
        "slipcover",
        "--branch",
        f"--source={PURE_SOURCES}",
        "--fail-under=100",
        "--skip-covered",
    )
    # SlipCover imports its own plugin before pytest could rewrite the assertions in it.
    quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    words = (*PURE_TESTS, "-n", "0", "-p", "no:schemathesis", "-p", "no:aiohttp", *quiet)
    return Part("core", (*coverage, "-m", "pytest", *words, *(["--full"] if full else [])))


def main_tests(full: bool) -> Part:
    words = (
        "tests",
        *NOT_IN_THE_MAIN_PART,
        "-n",
        str(WORKERS),
        *BY_GROUP,
        "--longest-first",
        "--durations=15",
    )
    return pytest_part("tests", *words, *(EXHAUSTIVE if full else []))


def mutants(full: bool) -> Part:
    return Part("mutants", ("-m", "tests.mutants.run", *(["--all"] if full else [])))


def lanes_for(paths: Sequence[str]) -> list[list[Part]]:
    """Return one part that runs the tests of these files, the nearest first, until one fails."""
    chosen = choose(ROOT, paths)
    print(f"{len(chosen.tests)} test files cover {', '.join(paths)}:", *chosen.tests, sep="\n  ", flush=True)
    if chosen.left_out:
        print(f"{len(chosen.left_out)} more run code of it, but take longer together; ./bin/test runs them.")
    # A test that hangs is to be seen within the time that a person waits.
    order = ("--in-order", ",".join(chosen.tests))
    # pytest loses the fixtures of a folder that it leaves for the one above and comes back to.
    words = (*sorted(chosen.tests), *order, "-x", "--timeout=150", "-n", str(WORKERS), *BY_GROUP)
    return [[pytest_part("tests", *words)]]


def pytest_part(name: str, *words: str) -> Part:
    return Part(name, ("-m", "pytest", *words))


def with_bench_ignored(words: Sequence[str]) -> list[str]:
    """The bench needs packages that the tests do without, so it runs only when it is named."""
    is_named = any("tests/bench" in word for word in words)
    return [*words] if is_named else [WITHOUT_THE_BENCH, *words]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
