"""Read the mutants: small mistakes, each with the tests that must notice it.

The mutants of a part of the product are in one TOML file beside this one:

    [[mutant]]
    name = "injection-timeout-is-ignored"
    breaks = "CSP_INJECTION_TIMEOUT has no effect."
    tests = ["tests/sidecar/test_launch.py::test_the_injection_timeout_reaches_the_injector"]
    always = true                                 # optional: part of every ./bin/test

    [[mutant.edit]]
    symbol = "launch.settings_of"                 # how it is found: see edits.py
    old = "timeout_s=config.injection_timeout_s"
    new = "timeout_s=30.0"
"""

import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.mutants.edits import Edit, locate

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake; `area` is the name of its file."""

    area: str
    name: str
    breaks: str
    tests: tuple[str, ...]
    edits: tuple[Edit, ...]
    always: bool


def read_all() -> list[Mutant]:
    """Return every mutant, in the order of files and rows."""
    return [
        _mutant(path.stem, row)
        for path in sorted(HERE.glob("*.toml"))
        for row in tomllib.loads(path.read_text("utf-8"))["mutant"]
    ]


def _mutant(area: str, row: dict[str, Any]) -> Mutant:
    edits = tuple(Edit(edit["symbol"], edit["old"], edit["new"]) for edit in row["edit"])
    return Mutant(area, row["name"], row["breaks"], tuple(row["tests"]), edits, row.get("always", False))


def touched_by(mutants: Iterable[Mutant], changed: set[str]) -> list[Mutant]:
    """Return the mutants whose source file, tests or own row are in one of the changed files."""
    return [mutant for mutant in mutants if files_of(mutant) & changed]


def files_of(mutant: Mutant) -> set[str]:
    """Return the files that a mutant depends on, from the top of the repository."""
    sources = {str(locate(ROOT, edit.symbol).path.relative_to(ROOT)) for edit in mutant.edits}
    tests = {test.partition("::")[0] for test in mutant.tests}
    return sources | tests | {f"tests/mutants/{mutant.area}.toml"}


def changed_files() -> set[str]:
    """Return the files changed since the branch left origin/main, or else by the last commit."""
    uncommitted = _git("status", "--porcelain", "--untracked-files=all", "--no-renames")
    changed = {line[3:] for line in uncommitted}
    base = _git("merge-base", "HEAD", "origin/main")
    head = _git("rev-parse", "HEAD")
    since = base[0] if base and base != head else "HEAD~1"
    return changed | set(_git("diff", "--name-only", "--no-renames", since, "HEAD"))


def _git(*words: str) -> list[str]:
    """Return the lines that git prints; none where there is no repository or no such commit."""
    run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.splitlines() if run.returncode == 0 else []
