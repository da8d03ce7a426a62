"""What the pane remembers from one run to the next: what was seen, what was typed.

Everything here is a comfort: where nothing can be written, the pane works and forgets.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Final

from csp.room_registry import make_private_dir

MAX_TYPED: Final = 500
_MAX_BYTES: Final = 4 * 1024 * 1024


class SavedState:
    """The files of one room's human, readable for nobody else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._folder / "seen"
        self._typed = self._folder / "typed"
        self._saved_seq = -1

    # --- what was seen ---------------------------------------------------------------------------

    def last_seen(self) -> int | None:
        """Return the seq of the last event that was shown, if any ever was."""
        try:
            return int(self._seen.read_text("ascii"))
        except (OSError, ValueError):
            return None

    def save_seen(self, seq: int) -> None:
        """Remember how far everything has been shown."""
        if seq == self._saved_seq:
            return
        self._saved_seq = seq
        draft = self._folder / f".seen.{os.getpid()}"
        with contextlib.suppress(OSError):
            self._make_folder()
            _write(draft, str(seq), os.O_TRUNC)
            draft.replace(self._seen)

    # --- what was typed --------------------------------------------------------------------------

    def typed(self) -> list[str]:
        """Return the lines typed before, oldest first; a file grown too long is cut."""
        try:
            raw = self._typed.read_bytes()[-_MAX_BYTES:].splitlines()
        except OSError:
            return []
        lines = [text for line in raw if (text := _read(line))]
        if len(lines) > 2 * MAX_TYPED:
            self._cut(lines[-MAX_TYPED:])
        return lines[-MAX_TYPED:]

    def add_typed(self, text: str) -> None:
        """Remember a line."""
        with contextlib.suppress(OSError):
            self._make_folder()
            _write(self._typed, f"{json.dumps(text)}\n", os.O_APPEND)

    def _cut(self, lines: list[str]) -> None:
        draft = self._folder / f".typed.{os.getpid()}"
        with contextlib.suppress(OSError):
            _write(draft, "".join(f"{json.dumps(text)}\n" for text in lines), os.O_TRUNC)
            draft.replace(self._typed)

    def _make_folder(self) -> None:
        make_private_dir(self._folder)


def _read(line: bytes) -> str:
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""


def _write(path: Path, text: str, how: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | how, 0o600)
    with open(fd, "w", encoding="ascii") as file:
        file.write(text)
