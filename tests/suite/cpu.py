"""Measure the CPU time of each test with everything it starts, daemons included.

    pytest -p tests.suite.cpu --cpu-into FOLDER ...      measure; each worker writes one file
    python -m tests.suite.cpu FOLDER                     print the seconds by folder, file and test

Each worker moves itself into a control group of its own, so nothing that it starts can get away. This needs
root and a Linux that accounts CPU time by control group, version 1 or 2.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

#: The folder of the groups, the file that states their time, and how many of its units are a second.
V1: Final = (Path("/sys/fs/cgroup/cpuacct"), "cpuacct.usage", 1e9)
V2: Final = (Path("/sys/fs/cgroup"), "cpu.stat", 1e6)


class Group:
    """The control group of this process and of all its descendants."""

    def __init__(self) -> None:
        parent, self._file, self._unit = V1 if V1[0].is_dir() else V2
        self.path = parent / f"csp-tests-{os.getpid()}"
        self.path.mkdir()
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def seconds(self) -> float:
        """Return the CPU time that the group has used so far."""
        # Version 1 writes a number; version 2 writes rows, the first of which is `usage_usec NUMBER`.
        return int((self.path / self._file).read_text().split("\n")[0].split()[-1]) / self._unit

    def leave(self) -> None:
        """Return to the parent group; the group stays while something else lives in it."""
        (self.path.parent / "cgroup.procs").write_text(str(os.getpid()))
        if not (self.path / "cgroup.procs").read_text():
            self.path.rmdir()


class Measured:
    """Appends a row to a file for each test: its CPU seconds and its name."""

    def __init__(self, folder: Path) -> None:
        self._group = Group()
        self._rows = (folder / f"{os.getpid()}.txt").open("a")
        self._at = self._group.seconds()

    def _note(self, name: str) -> None:
        now = self._group.seconds()
        self._rows.write(f"{now - self._at:.3f} {name}\n")
        self._at = now

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._note("(between tests)")
        result = yield
        self._note(item.nodeid.replace(" ", "_"))
        return result

    def pytest_unconfigure(self) -> None:
        self._note("(between tests)")
        self._rows.close()
        self._group.leave()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-into", type=Path, metavar="FOLDER", help="where the CPU seconds are written")


def pytest_configure(config: pytest.Config) -> None:
    folder: Path | None = config.getoption("--cpu-into")
    does_run_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if folder is not None and does_run_tests:
        folder.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Measured(folder), "csp-cpu")


def report(folder: Path, most: int = 60) -> None:
    """Print the CPU seconds by folder, by file and by test, the largest first."""
    rows = [row.split(" ", 1) for path in folder.rglob("*.txt") for row in path.read_text().splitlines()]
    for key in (_folder_of, _file_of, str):
        sums = defaultdict[str, float](float)
        for seconds, name in rows:
            sums[key(name)] += float(seconds)
        for name in sorted(sums, key=lambda name: -sums[name])[:most]:
            print(f"{sums[name]:8.1f}  {name}")
        print()
    print(f"{sum(float(seconds) for seconds, _ in rows):8.1f}  together")


def _file_of(name: str) -> str:
    return name.partition("::")[0]


def _folder_of(name: str) -> str:
    return "/".join(_file_of(name).split("/")[:2])


if __name__ == "__main__":
    report(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
