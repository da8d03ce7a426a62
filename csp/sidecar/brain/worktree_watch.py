"""Watch the git worktree in which the agent works: its branch and its changed files."""

import asyncio
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from csp.config import process_environment
from csp.review.safe_git import run_git
from csp.sidecar.brain.state_reporter import StateReporter
from csp.sidecar.run_record import SidecarRecord

#: The minimum time between two looks; git reads the whole worktree at each.
REST_S: Final = 3.0
_MAX: Final = 200
_MAX_MARK: Final = 4096
_BRANCH: Final = b"# branch.head "
_FIGURES: Final = re.compile(rb"(\d+) insertions?\(\+\)|(\d+) deletions?\(-\)")


class WorktreeWatch:
    """A look at the worktree after each tool and each reply; nothing if the agent shares the repository."""

    def __init__(self, run: SidecarRecord, reporter: StateReporter) -> None:
        self._dir, self._env, self._reporter = Path(run.cwd), process_environment(), reporter

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            is_own = is_own_worktree(self._dir)
        except OSError:
            is_own = False
        if not is_own:
            await asyncio.get_running_loop().create_future()
        while True:
            self._reporter.note_work(await asyncio.to_thread(work_in, self._dir, self._env))
            await asyncio.sleep(REST_S)
            await self._reporter.worked.wait()
            self._reporter.worked.clear()


def is_own_worktree(dir: Path) -> bool:
    """Return whether a directory is in a linked worktree, which an agent does not share with the others."""
    marks = (parent / ".git" for parent in (dir, *dir.parents))
    mark = next((mark for mark in marks if mark.exists()), None)
    if mark is None or not mark.is_file():
        return False
    # A submodule has such a file too.
    text = mark.read_text("utf-8", "replace")[:_MAX_MARK]
    return "/worktrees/" in text and "/modules/" not in text


def work_in(dir: Path, env: Mapping[str, str]) -> str:
    """Return the branch and the number of changed files with their lines; empty if git cannot tell."""
    status = _git(dir, env, "status", "--porcelain=v2", "--branch").splitlines()
    heads = [line.removeprefix(_BRANCH) for line in status if line.startswith(_BRANCH)]
    if not heads:
        return ""
    files = sum(not line.startswith(b"#") for line in status)
    changed = _git(dir, env, "diff", "--shortstat", "--no-ext-diff", "--no-textconv", "HEAD")
    more, less = 0, 0
    for inserted, deleted in _FIGURES.findall(changed):
        more, less = more + int(inserted or 0), less + int(deleted or 0)
    noun = "changed file" if files == 1 else "changed files"
    # The lines of new files are not counted.
    lines = f" +{more} -{less}" if more or less else ""
    figures = f": {files} {noun}{lines}" if files else ", no changed files"
    return f"{heads[0].decode(errors='replace')[:_MAX]}{figures}"


def _git(dir: Path, env: Mapping[str, str], *words: str) -> bytes:
    try:
        done = run_git(dir, words, env)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return b"" if done.returncode else done.stdout
