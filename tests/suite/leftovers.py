"""Find processes that tests have started and left running."""

import os
from pathlib import Path


def leftovers(folder: Path, proc: Path = Path("/proc")) -> list[str]:
    """Return the command lines of the processes whose environment or command line names a path in `folder`.

    Without /proc, none can be found. A process that is being collected has neither.
    """
    mark, found = os.fsencode(f"{folder}/"), []
    for entry in proc.glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            is_ours = mark in words or mark in (entry / "environ").read_bytes()
        except OSError:
            continue
        if is_ours:
            found.append(f"{entry.name}: {words.replace(bytes(1), b' ').decode(errors='replace').strip()}")
    return found
