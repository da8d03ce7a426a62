"""Break the core on purpose, one patch at a time, to see that its tests notice.

A mutant is a file NN-short-name.patch beside this one: a comment line that says what it breaks, a line
`# tests: tests/core/test_room.py` that names the tests which should see it, then a unified diff of csp/core,
csp/events.py or csp/wire. It counts as killed when a test fails, not when the code cannot be imported.
"""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
COPIED: Final = (
    *("csp", "prompts", "pyproject.toml"),
    *("tests/__init__.py", "tests/conftest.py", "tests/waiting.py", "tests/core"),
)
MAY_TOUCH: Final = re.compile(r"csp/(core/\w+|events|wire/\w+)\.py")
TOUCHED: Final = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+)", re.MULTILINE)
TESTS: Final = re.compile(r"^# tests: (.+)$", re.MULTILINE)
FEWEST: Final = 20
AT_ONCE: Final = 2
TIMEOUT_S: Final = 600
# Plugins that the core's tests do without take longer to start than those tests to run.
OPTIONS: Final = (
    *("-o", "addopts=", "-x", "-q", "-n", "0", "--timeout=60", "-p", "no:randomly"),
    *("-p", "no:schemathesis", "-p", "no:aiohttp", "-p", "no:cacheprovider"),
)


class Mutant(NamedTuple):
    """One patch; `complaint` says why it cannot be tried."""

    name: str
    patch: Path
    touched: tuple[str, ...]
    tests: tuple[str, ...]
    complaint: str


class Run(NamedTuple):
    code: int
    said: str


class Verdict(NamedTuple):
    is_killed: bool
    text: str


# --- the copies ----------------------------------------------------------------------------------


def copy_to(place: Path) -> None:
    for name in COPIED:
        source, target = ROOT / name, place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)


def apply_patch(place: Path, mutant: Mutant) -> str:
    """Return what git has to say against the patch, or nothing."""
    # Without the ceiling, git would look for a repository around the copy.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(place.parent)}
    command = ["git", "apply", "--whitespace=nowarn", str(mutant.patch)]
    run = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    for name in mutant.touched:
        # A .pyc is told stale by whole seconds alone: a mutant of the same length could run as the old code.
        for compiled in (place / name).parent.glob(f"__pycache__/{Path(name).stem}.*"):
            compiled.unlink()
    return run.stderr.strip() or "git apply failed" if run.returncode else ""


# --- the tests -----------------------------------------------------------------------------------


def warm_up() -> None:
    """Import what every run of the tests needs, so that the processes forked from this one have it."""
    # By pytest itself: what it finds imported by others it cannot rewrite, which is an error.
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()):
        import pytest

        pytest.main([empty, *OPTIONS, "-c", os.devnull, "--rootdir", empty, "-p", "no:asyncio"])
    import hypothesis.strategies
    import msgspec

    assert hypothesis.strategies and msgspec
    loaded = [name for name in sys.modules if name.partition(".")[0] in ("csp", "tests")]
    assert not loaded, f"the tests would not see the mutant in {loaded}"


def run_tests(place: Path, tests: Iterable[str], *, is_compiled_kept: bool = False) -> Run:
    """Run tests of a copy in this process, which is of no use for anything else afterwards."""
    import pytest

    sys.dont_write_bytecode = not is_compiled_kept
    os.environ.update(PYTHONPATH=str(place), PYTHONDONTWRITEBYTECODE="1")
    os.chdir(place)
    # The installed csp is the clone's; testing that instead of the copy would kill nothing.
    sys.path.insert(0, str(place))
    import csp

    assert Path(str(csp.__file__)).is_relative_to(place), csp.__file__
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = int(pytest.main([*tests, *OPTIONS, "--hypothesis-profile=mutants"]))
    return Run(code, said.getvalue())


def judge(mutant: Mutant, original: Path) -> Verdict:
    if mutant.complaint:
        return Verdict(False, f"broken: {mutant.complaint}")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve() / "copy"
        shutil.copytree(original, place)
        if complaint := apply_patch(place, mutant):
            return Verdict(False, f"broken: {complaint}")
        return verdict_of(run_tests(place, mutant.tests))


def verdict_of(run: Run) -> Verdict:
    # With -x a collection error may exit with 1 as well, so a failed test has to be named.
    failed = re.search(r"^FAILED (\S+)", run.said, re.MULTILINE)
    if run.code == 0:
        return Verdict(False, "SURVIVED")
    if run.code == 1 and failed:
        return Verdict(True, f"killed by {failed[1]}")
    return Verdict(False, f"broken: exit {run.code}\n{run.said[-4000:]}")


# --- all of them ---------------------------------------------------------------------------------


def read(patch: Path) -> Mutant:
    text = patch.read_text("utf-8")
    touched = tuple(sorted({name for name in TOUCHED.findall(text) if name != "/dev/null"}))
    tests = TESTS.search(text)
    complaint = ""
    if not text.startswith("# "):
        complaint = "the first line does not say what it breaks"
    elif tests is None:
        complaint = "no line names the tests"
    elif not touched or not all(MAY_TOUCH.fullmatch(name) for name in touched):
        complaint = f"touches {list(touched)}"
    return Mutant(patch.stem, patch, touched, tuple(tests[1].split()) if tests else (), complaint)


def in_a_fork(place: Path, job: Callable[[], Run | Verdict]) -> int:
    """Start a job in a copy of this process; its result goes to a file named like the process."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    # Whatever happens, a copy must not go on with what is its parent's work.
    try:
        watchdog = threading.Timer(TIMEOUT_S, os._exit, [1])
        watchdog.daemon = True
        watchdog.start()
        result = job()
        (place / str(os.getpid())).write_text(json.dumps(result))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def result_of(place: Path, pid: int) -> Any:
    path = place / str(pid)
    return json.loads(path.read_text()) if path.exists() else None


def judge_all(place: Path, mutants: Sequence[Mutant], original: Path) -> Iterator[tuple[Mutant, Verdict]]:
    """Yield each mutant with its verdict, as they come in."""
    waiting, running = list(reversed(mutants)), dict[int, Mutant]()
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            mutant = waiting.pop()
            running[in_a_fork(place, partial(judge, mutant, original))] = mutant
        pid, _ = os.wait()
        verdict = result_of(place, pid) or (False, f"broken: no result, in {TIMEOUT_S} s at most")
        yield running.pop(pid), Verdict(*verdict)


def is_green_without_a_mutant(place: Path, mutants: Sequence[Mutant], original: Path) -> bool:
    """Tell whether the tests pass in the copy; they leave it compiled."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    pid = in_a_fork(place, partial(run_tests, original, tests, is_compiled_kept=True))
    os.waitpid(pid, 0)
    code, said = result_of(place, pid) or (None, "")
    if code != 0:
        print(f"the tests fail without a mutant: exit {code}\n{said}")
    return code == 0


def main() -> int:
    mutants = [read(patch) for patch in sorted(HERE.glob("*.patch"))]
    warm_up()
    killed = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        original = place / "original"
        copy_to(original)
        if not is_green_without_a_mutant(place, mutants, original):
            return 1
        for mutant, verdict in judge_all(place, mutants, original):
            print(f"{mutant.name}: {verdict.text}", flush=True)
            killed += verdict.is_killed
    if len(mutants) < FEWEST:
        print(f"{len(mutants)} mutants, expected at least {FEWEST}")
    print(f"{killed} passed, {len(mutants) - killed} failed")
    return 0 if killed == len(mutants) >= FEWEST else 1


if __name__ == "__main__":
    sys.exit(main())
