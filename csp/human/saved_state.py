"""State that the pane keeps between runs: the last event seen, and the lines typed.

All of this is optional: if nothing can be written, the pane works without it.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Final

from csp.fast_start.atomic_files import replace_file
from csp.room_registry import make_private_dir

MAX_TYPED: Final = 500
_MAX_BYTES: Final = 4 * 1024 * 1024


class SavedState:
    """The files of one room's human, which nobody else can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._folder / "seen"
        self._typed = self._folder / "typed"
        self._saved_seq = -1

    # --- seen events -----------------------------------------------------------------------------

    def last_seen(self) -> int | None:
        """Return the seq of the last event that was shown, or None."""
        try:
            return int(self._seen.read_text("ascii"))
        except (OSError, ValueError):
            return None

    def save_seen(self, seq: int) -> None:
        """Store the seq up to which everything has been shown."""
        if seq == self._saved_seq:
            return
        self._saved_seq = seq
        with contextlib.suppress(OSError):
            make_private_dir(self._folder)
            # This runs often while a user types, so it does not wait for the disk.
            replace_file(self._seen, str(seq).encode(), is_durable=False)

    # --- typed lines -----------------------------------------------------------------------------

    def typed(self) -> list[str]:
        """Return the lines typed earlier, oldest first; truncate the file if it has grown too long."""
        try:
            raw = self._typed.read_bytes()[-_MAX_BYTES:].splitlines()
        except OSError:
            return []
        lines: list[str] = []
        for line in raw:
            with contextlib.suppress(ValueError, RecursionError):
                text = json.loads(line)
                lines += [text] if text and isinstance(text, str) else []
        if len(lines) > 2 * MAX_TYPED:
            kept = "".join(f"{json.dumps(text)}\n" for text in lines[-MAX_TYPED:])
            with contextlib.suppress(OSError):
                replace_file(self._typed, kept.encode("ascii"), is_durable=False)
        return lines[-MAX_TYPED:]

    def add_typed(self, text: str) -> None:
        """Store a typed line."""
        with contextlib.suppress(OSError):
            make_private_dir(self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND
            with open(os.open(self._typed, flags, 0o600), "w", encoding="ascii") as file:
                file.write(f"{json.dumps(text)}\n")
