"""Draw a conversation that stays, with a few rows below it that change.

The terminal's own scrolling is used, not its alternate screen: what was said goes up into the scrollback. The
rows at the bottom are drawn anew in place. What a size of the terminal has made of the rows cannot be known
afterwards, so a new size begins with a clear screen.
"""

import os
from collections.abc import Sequence
from typing import Final

from csp.agents.demo.text_rows import Place

_BEGIN: Final = "\x1b[?2026h\x1b[?25l\x1b[?7l"
_END: Final = "\x1b[?7h\x1b[?25h\x1b[?2026l"

FAINT: Final = "\x1b[2m"
BOLD: Final = "\x1b[1m"
PLAIN: Final = "\x1b[0m"


class Screen:
    """Writes to a terminal in raw mode; knows where in the changing rows the cursor is."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._cursor_row = 0
        self._shown: tuple[Sequence[str], Place] | None = None

    def open(self) -> None:
        """Ask for pastes to be marked; begin at the start of a row."""
        self._write("\r\x1b[?2004h")

    def draw(self, staying: Sequence[str], changing: Sequence[str], cursor: Place) -> None:
        """Add rows that stay; put the others below them."""
        if not staying and self._shown == (changing, cursor):
            return
        parts = [_BEGIN, self._to_top(), "\x1b[J"]
        parts += [f"{row}\r\n" for row in staying]
        parts.append("\r\n".join(changing))
        below = len(changing) - 1 - cursor.row
        parts.append(f"\x1b[{below}A" if below else "")
        parts.append(f"\x1b[{cursor.column + 1}G{_END}")
        self._write("".join(parts))
        self._cursor_row = cursor.row
        self._shown = (list(changing), cursor)

    def clear(self) -> None:
        """Begin again on an empty screen."""
        self._write("\x1b[H\x1b[J")
        self._cursor_row, self._shown = 0, None

    def close(self, last: str) -> None:
        """Take the changing rows away; leave the terminal as it was, behind a last row."""
        self._write(f"{self._to_top()}\x1b[J{last}\r\n\x1b[?2004l\x1b[?7h\x1b[?25h")
        self._cursor_row, self._shown = 0, None

    def _to_top(self) -> str:
        return f"\r\x1b[{self._cursor_row}A" if self._cursor_row else "\r"

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._fd, data) :]
