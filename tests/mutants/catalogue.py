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
        mutant
        for path in sorted(HERE.glob("*.toml"))
        for mutant in read_text(path.stem, path.read_text("utf-8"))
    ]


def read_text(area: str, text: str) -> list[Mutant]:
    """Return the mutants of one file."""
    return [_mutant(area, row) for row in tomllib.loads(text).get("mutant", [])]


def _mutant(area: str, row: dict[str, Any]) -> Mutant:
    edits = tuple(Edit(edit["symbol"], edit["old"], edit["new"]) for edit in row["edit"])
    return Mutant(area, row["name"], row["breaks"], tuple(row["tests"]), edits, row.get("always", False))


def files_of(mutant: Mutant) -> set[str]:
    """Return the source and test files that a mutant depends on, from the top of the repository."""
    sources = {str(locate(ROOT, edit.symbol).path.relative_to(ROOT)) for edit in mutant.edits}
    return sources | {test.partition("::")[0] for test in mutant.tests}


def changed_mutants(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the mutants whose source file, test file or own row changed."""
    base = _base()
    changed = _changed_files(base)
    before = {
        mutant.name: mutant.edits
        for area in {mutant.area for mutant in mutants}
        for mutant in read_text(area, _git_text("show", f"{base}:tests/mutants/{area}.toml"))
    }
    return [
        mutant
        for mutant in mutants
        if files_of(mutant) & changed or before.get(mutant.name, mutant.edits) != mutant.edits
    ]


def _base() -> str:
    """Return the commit that changes are counted from.

    On a branch that is where it left origin/main. On origin/main itself it is the commit before the last, or
    the last one if that is a merge, which would bring the changes of a whole branch.
    """
    head = _git_text("rev-parse", "HEAD").strip()
    base = _git_text("merge-base", "HEAD", "origin/main").strip()
    if base and base != head:
        return base
    is_merge = bool(_git_text("rev-parse", "--verify", "HEAD^2"))
    return "HEAD" if is_merge else "HEAD~1"


def _changed_files(base: str) -> set[str]:
    """Return the files that differ from the base, with those that are not committed."""
    uncommitted = _git_text("status", "--porcelain", "--untracked-files=all", "--no-renames")
    committed = _git_text("diff", "--name-only", "--no-renames", base, "HEAD")
    return {line[3:] for line in uncommitted.splitlines()} | set(committed.splitlines())


def _git_text(*words: str) -> str:
    """Return what git prints; nothing where there is no repository or no such commit."""
    run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else ""
