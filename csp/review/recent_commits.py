"""List the commits of a time, in every branch and worktree of a repository."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from csp.protocol.report import ReportCommits
from csp.review.safe_git import run_git

#: A report shows a few commits of a night; the others are counted.
MAX_SUBJECTS: Final = 20
MAX_COMMITS: Final = 1000
MAX_SUBJECT: Final = 100


def commits_since(dir: Path, since: float, env: Mapping[str, str]) -> ReportCommits | None:
    """Return the commits of a repository since a time, newest first; None if there are none or no repository.

    The states that CSP itself records for review runs are left out.
    """
    words = (
        *("log", "--no-show-signature", "--no-color", f"--max-count={MAX_COMMITS}"),
        *(f"--since=@{int(since)}", "--format=%h%x09%an%x09%s", "--exclude=refs/csp/*", "--all"),
    )
    try:
        done = run_git(dir, words, env)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode or not lines:
        return None
    subjects = tuple(_subject(line) for line in lines[:MAX_SUBJECTS])
    return ReportCommits(directory=str(dir), total=len(lines), subjects=subjects)


def _subject(line: str) -> str:
    short, author, subject = (*line.split("\t", 2), "", "")[:3]
    text = subject if len(subject) <= MAX_SUBJECT else f"{subject[: MAX_SUBJECT - 1]}…"
    return f"{short} {text} ({author})"
