"""Check whether the disk under a sidecar is full."""

import os
from pathlib import Path
from typing import Final

#: A hook's event is small, but not nothing.
LEAST_BYTES: Final = 16 * 1024


def is_full(folder: Path) -> bool:
    """Tell whether there is no space left, or no file more to be had; a folder that is gone is not full."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    # Some file systems have no count of files.
    return found.f_bavail * found.f_frsize < LEAST_BYTES or (found.f_files > 0 and found.f_favail == 0)
