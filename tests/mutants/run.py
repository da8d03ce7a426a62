"""Break the core on purpose, one patch at a time, to see that its tests notice.

A mutant is a file NN-short-name.patch beside this one: a comment line that says what it breaks, if wanted
a line `# tests: tests/core/test_room.py` that narrows the tests, then a unified diff of csp/core,
csp/events.py or csp/wire. It counts as killed when a test fails, not when the code cannot be imported.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
COPIED: Final = (
    *("csp", "prompts", "pyproject.toml"),
    *("tests/__init__.py", "tests/conftest.py", "tests/waiting.py", "tests/core"),
)
MAY_TOUCH: Final = re.compile(r"csp/(core/\w+|events|wire/\w+)\.py")
TOUCHED: Final = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+)", re.MULTILINE)
NARROWED: Final = re.compile(r"^# tests: (.+)$", re.MULTILINE)
FEWEST: Final = 20
AT_ONCE: Final = 2
TIMEOUT_S: Final = 600

# The installed csp is the clone's; running that instead of the copy would kill nothing, so it is an error.
WRONG_COPY: Final = 70
LAUNCH: Final = f"""
import sys, pathlib, csp, pytest
is_copy = pathlib.Path(csp.__file__).is_relative_to(sys.argv[1])
sys.exit(pytest.main(sys.argv[2:]) if is_copy else {WRONG_COPY})
"""


class Verdict(NamedTuple):
    is_killed: bool
    text: str


def copy_to(place: Path) -> None:
    for name in COPIED:
        source, target = ROOT / name, place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def run_tests(place: Path, selection: list[str]) -> subprocess.CompletedProcess[str]:
    # A .pyc is told stale by whole seconds alone, so a mutant of the same length could run as the old code.
    environment = os.environ | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-o", "addopts=", "-x", "-q", "-n", "0", "--timeout=60", "-p", "no:randomly"]
    # Plugins that the core's tests do without take longer to start than those tests to run.
    options += ["-p", "no:schemathesis", "-p", "no:aiohttp", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-c", LAUNCH, str(place), *selection, *options],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def apply_patch(place: Path, patch: Path) -> str:
    """Return what git has to say against the patch, or nothing."""
    # Without the ceiling, git would look for a repository around the copy.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(place.parent)}
    command = ["git", "apply", "--whitespace=nowarn", str(patch)]
    run = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    return run.stderr.strip() or "git apply failed" if run.returncode else ""


def judge(patch: Path) -> Verdict:
    text = patch.read_text("utf-8")
    touched = {name for name in TOUCHED.findall(text) if name != "/dev/null"}
    if not text.startswith("# "):
        return Verdict(False, "broken: the first line does not say what it breaks")
    if not touched or not all(MAY_TOUCH.fullmatch(name) for name in touched):
        return Verdict(False, f"broken: touches {sorted(touched)}")
    narrowed = NARROWED.search(text)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        copy_to(place)
        if complaint := apply_patch(place, patch):
            return Verdict(False, f"broken: {complaint}")
        try:
            return verdict_of(run_tests(place, narrowed[1].split() if narrowed else ["tests/core"]))
        except subprocess.TimeoutExpired:
            return Verdict(False, f"broken: no result in {TIMEOUT_S} s")


def verdict_of(run: subprocess.CompletedProcess[str]) -> Verdict:
    # With -x a collection error may exit with 1 as well, so a failed test has to be named.
    failed = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
    if run.returncode == 0:
        return Verdict(False, "SURVIVED")
    if run.returncode == 1 and failed:
        return Verdict(True, f"killed by {failed[1]}")
    return Verdict(False, f"broken: exit {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


def is_green_without_a_mutant() -> bool:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        copy_to(place)
        run = run_tests(place, ["tests/core"])
    if run.returncode:
        print(f"the tests fail without a mutant: exit {run.returncode}\n{run.stdout}{run.stderr}")
    return run.returncode == 0


def main() -> int:
    patches = sorted(HERE.glob("*.patch"))
    if not is_green_without_a_mutant():
        return 1
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = pool.map(judge, patches)
        killed = 0
        for patch, verdict in zip(patches, verdicts, strict=True):
            print(f"{patch.stem}: {verdict.text}", flush=True)
            killed += verdict.is_killed
    if len(patches) < FEWEST:
        print(f"{len(patches)} mutants, expected at least {FEWEST}")
    print(f"{killed} passed, {len(patches) - killed} failed")
    return 0 if killed == len(patches) >= FEWEST else 1


if __name__ == "__main__":
    sys.exit(main())
