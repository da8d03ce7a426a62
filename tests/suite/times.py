"""Where the time of a run goes: print it by folder, and start what takes longest first."""

import importlib
import math
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from tests.suite.covering import read_map, suite_files

ROOT: Final = Path(__file__).resolve().parent.parent.parent


class TimesByFolder:
    """Adds up what the tests of each folder took, over all workers."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._tests: dict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = "/".join(report.nodeid.partition("::")[0].split("/")[:2])
        self._seconds[folder] += report.duration
        self._tests[folder] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._seconds) < 2:
            return
        terminalreporter.section("seconds and tests by folder")
        for folder, seconds in sorted(self._seconds.items(), key=lambda row: -row[1]):
            terminalreporter.line(f"{seconds:7.0f} {self._tests[folder]:6}  {folder}")


def longest_first(items: list[pytest.Item]) -> None:
    """Order test files by the seconds they took when the map was recorded, so that no worker ends late.

    Those that took no time are exhaustive and ran nothing then; some of them take minutes.
    """
    seconds = read_map(ROOT)["seconds"]
    items.sort(key=lambda item: -(seconds.get(item.nodeid.partition("::")[0]) or math.inf))


def in_order(items: list[pytest.Item], files: list[str]) -> None:
    """Order tests by their files."""
    places = {file: place for place, file in enumerate(files)}
    items.sort(key=lambda item: places[item.nodeid.partition("::")[0]])


def import_share(config: pytest.Config, number: int, workers: int) -> None:
    """Import the test files of one of several workers.

    In a fresh clone nothing is compiled, and that takes twice as long as all that a worker does before its
    first test. Without this, all workers would compile the same file at the same time.
    """
    ignored = tuple(f"{path}/" for path in config.getoption("ignore") or ())
    wanted = tuple(f"{path.rstrip('/')}/" for path in config.args)
    tests = [test for test in suite_files(ROOT) if test.startswith(wanted) and not test.startswith(ignored)]
    for test in tests[number::workers]:
        importlib.import_module(test.removesuffix(".py").replace("/", "."))
