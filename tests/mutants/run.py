"""Plant mistakes in copies of the tree, one at a time, and report which ones the tests notice.

    python -m tests.mutants.run --all             every mutant
    python -m tests.mutants.run                   the fixed dozen, and those whose file or tests changed
    python -m tests.mutants.run NAME sidecar ...  the named ones, or all of an area

A mutant counts as killed when a test fails, not when the code cannot be imported.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.mutants.catalogue import ROOT, Mutant, changed_mutants, read_all
from tests.mutants.edits import BadEdit, apply

COPIED: Final = (
    *("bin", "csp", "docs", "examples", "prompts", "tests"),
    *("pyproject.toml", "uv.lock", "README.md", "CHANGELOG.md"),
)
AT_ONCE: Final = 2
TIMEOUT_S: Final = 600
OPTIONS: Final = (
    *("-o", "addopts=", "-x", "-q", "-n", "0", "--timeout=240", "--full"),
    *("-p", "no:schemathesis", "-p", "no:cacheprovider"),
)
# The tests of the core do without this plugin, which takes longer to start than many of them to run.
CORE_OPTIONS: Final = ("-p", "no:aiohttp")


class Run(NamedTuple):
    code: int
    said: str


class Verdict(NamedTuple):
    is_killed: bool
    text: str


def main(arguments: Sequence[str] | None = None) -> int:
    mutants = chosen(options_of(arguments))
    warm_up()
    began = time.monotonic()
    killed = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        original = place / "original"
        copy_tree(ROOT, original)
        if not is_green_without_a_mutant(place, mutants, original):
            return 1
        for mutant, verdict in judge_all(place, mutants, original):
            print(f"{mutant.area} {mutant.name}: {verdict.text}", flush=True)
            killed += verdict.is_killed
    print(f"mutants took {time.monotonic() - began:.0f} s")
    print(f"{killed} passed, {len(mutants) - killed} failed")
    return 0 if killed == len(mutants) > 0 else 1


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants or areas")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[Mutant]:
    mutants = read_all()
    if options.all:
        return mutants
    if options.names:
        wanted = set(options.names)
        if unknown := wanted - {mutant.name for mutant in mutants} - {mutant.area for mutant in mutants}:
            raise SystemExit(f"unknown mutants: {', '.join(sorted(unknown))}")
        return [mutant for mutant in mutants if {mutant.name, mutant.area} & wanted]
    changed = changed_mutants(mutants)
    return [mutant for mutant in mutants if mutant.always or mutant in changed]


# --- the copies ----------------------------------------------------------------------------------


def copy_tree(source: Path, target: Path) -> None:
    """Copy what the tests need, by links: nothing in a copy is ever changed in place."""
    target.mkdir()
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, copy_function=_link, symlinks=True)
        elif (source / name).exists():
            _link(source / name, target / name)


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Another file system, or one without links.
        shutil.copy2(source, target)


# --- the tests -----------------------------------------------------------------------------------


def warm_up() -> None:
    """Import what every run of the tests needs, so that the processes forked from this one have it."""
    # By pytest itself: it cannot rewrite the assertions of what is imported already.
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()):
        import pytest

        options = [option for option in OPTIONS if option != "--full"]
        pytest.main([empty, *options, "-c", os.devnull, "--rootdir", empty])
    import hypothesis.strategies
    import msgspec

    assert hypothesis.strategies and msgspec
    # The copies have modules of the same names.
    for name in [name for name in sys.modules if name.partition(".")[0] in ("csp", "tests")]:
        if not name.startswith("tests.mutants"):
            del sys.modules[name]


def run_tests(place: Path, tests: Iterable[str], *, are_compiled_kept: bool = False) -> Run:
    """Run tests of a copy in this process, which can do nothing else afterwards."""
    import pytest

    for name in [name for name in sys.modules if name.partition(".")[0] in ("csp", "tests")]:
        del sys.modules[name]
    sys.dont_write_bytecode = not are_compiled_kept
    os.environ["PYTHONPATH"] = str(place)
    os.chdir(place)
    # The installed csp is the clone's; testing that one instead of the copy would kill nothing.
    sys.path[:] = [str(place), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
    import csp

    assert Path(str(csp.__file__)).is_relative_to(place), csp.__file__
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        base = place.parent / f"tmp-{os.getpid()}"
        options = [*OPTIONS, "--hypothesis-profile=mutants", f"--basetemp={base}"]
        if all(test.startswith(("tests/room/", "tests/terminal/")) for test in tests):
            options += CORE_OPTIONS
        code = int(pytest.main([*tests, *options]))
    return Run(code, said.getvalue())


def judge(place: Path, mutant: Mutant, original: Path) -> Verdict:
    with tempfile.TemporaryDirectory(dir=place) as name:
        copy = Path(name) / "copy"
        copy_tree(original, copy)
        try:
            for edit in mutant.edits:
                apply(copy, edit)
        except BadEdit as exc:
            return Verdict(False, f"broken: {exc}")
        return verdict_of(run_tests(copy, mutant.tests))


def verdict_of(run: Run) -> Verdict:
    # With -x an error while collecting may exit with 1 as well, so a test has to be named.
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", run.said, re.MULTILINE)
    if run.code == 0:
        return Verdict(False, "SURVIVED")
    if run.code == 1 and failed:
        return Verdict(True, f"killed by {failed[1]}")
    return Verdict(False, f"broken: exit {run.code}\n{run.said[-4000:]}")


# --- all of them ---------------------------------------------------------------------------------


def in_a_fork(place: Path, job: Callable[[], Run | Verdict]) -> int:
    """Start a job in a copy of this process; its result goes to a file named like the process."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    # Whatever happens, the copy must not continue with the work of its parent.
    try:
        os.setpgid(0, 0)
        watchdog = threading.Timer(TIMEOUT_S, os._exit, [1])
        watchdog.daemon = True
        watchdog.start()
        began = time.monotonic()
        result = job()
        (place / f"{os.getpid()}.json").write_text(json.dumps([*result, time.monotonic() - began]))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def result_of(place: Path, pid: int) -> Any:
    """Return what a fork has written, after ending what it left running."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    path = place / f"{pid}.json"
    return json.loads(path.read_text()) if path.exists() else None


def judge_all(place: Path, mutants: Sequence[Mutant], original: Path) -> Iterator[tuple[Mutant, Verdict]]:
    """Yield each mutant with its verdict, in the order in which they end."""
    waiting, running = list(reversed(mutants)), dict[int, Mutant]()
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            mutant = waiting.pop()
            running[in_a_fork(place, partial(judge, place, mutant, original))] = mutant
        pid, _ = os.wait()
        killed, text, took_s = result_of(place, pid) or (False, f"broken: no result in {TIMEOUT_S} s", 0.0)
        yield running.pop(pid), Verdict(killed, f"{text} in {took_s:.1f} s")


def is_green_without_a_mutant(place: Path, mutants: Sequence[Mutant], original: Path) -> bool:
    """Report whether the tests pass in the copy; they leave it compiled."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    pid = in_a_fork(place, partial(run_tests, original, tests, are_compiled_kept=True))
    os.waitpid(pid, 0)
    code, said, _ = result_of(place, pid) or (None, "", 0.0)
    if code != 0:
        print(f"the tests fail without a mutant: exit {code}\n{said[-6000:]}")
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
