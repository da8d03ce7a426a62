"""Run csp on a disk that fails to sync as soon as a certain file exists: python -m ... FILE ARGUMENT..."""

import errno
import os
import sys
from pathlib import Path

from csp.cli import main
from csp.fast_start.atomic_files import sync_data
from csp.journal import jsonl_journal


def run(trigger: Path, arguments: list[str]) -> int:
    def fail(fd: int) -> None:
        if trigger.exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync_data(fd)

    jsonl_journal.sync_data = fail  # type: ignore[attr-defined]  # a module that imports it keeps its own name
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
