"""Remove the files of old runs when their events are removed from the journal."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from csp.protocol.review_messages import RunRole
from csp.review.mailbox import Mailbox
from csp.review.run_folders import RunFolders


def forget_runs(folders: RunFolders, mailbox: Mailbox, before: int, keep: Iterable[str]) -> list[str]:
    """Remove folders and mail of runs whose last event is older than `before`, except `keep`."""
    kept = set(keep)
    old = [name for name in folders.names() if name not in kept and folders.seen(name) < before]
    for path in _mail_of(mailbox, old):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    for name in old:
        shutil.rmtree(folders.path(name))
    return old


def _mail_of(mailbox: Mailbox, runs: list[str]) -> Iterator[Path]:
    """Yield the mailbox files that name one of the runs, with their reason files."""
    marks = [f'"{run}"'.encode() for run in runs]
    for role in RunRole:
        for folder in ("inbox", "handled", "refused"):
            for path in sorted((mailbox.root / role / folder).glob("*")):
                if path.is_symlink() or not path.is_file() or path.name.endswith(".reason.txt"):
                    continue
                data = path.read_bytes()
                if any(mark in data for mark in marks):
                    yield path
                    yield path.with_name(os.fsdecode(os.fsencode(path.name) + b".reason.txt"))
