"""Look for a text in files that servers and gateways are writing."""

import contextlib
from pathlib import Path


def files_with(text: bytes, folder: Path) -> list[str]:
    """Return the files below a folder that contain the text; files may come and go meanwhile."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and text in path.read_bytes():
                found.append(str(path))
    return found
