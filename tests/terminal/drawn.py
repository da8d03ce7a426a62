"""Screens drawn by hand: `~x~` faint, `^x^` reversed, `*x*` coloured, `%x%` shaded, `█` the cursor."""

import re
from typing import Final

from csp.protocol.screen_frames import RunView, StyleView
from csp.terminal.screen import Screen, ScreenRow

_STYLES: Final = {
    "~": StyleView(faint=True),
    "^": StyleView(reverse=True),
    "*": StyleView(fg="211"),
    "%": StyleView(bg="240"),
}
_PART: Final = re.compile(r"([~^*%])(.+?)\1|([^~^*%]+)")


def drawn(text: str, *, cols: int = 40, rows: int = 0, is_cursor_visible: bool = True) -> Screen:
    """Read a drawing; without a cursor sign the cursor is at the end of the last row."""
    lines = text.strip("\n").split("\n")
    lines += [""] * (rows - len(lines))
    row, column = len(lines) - 1, len(lines[-1])
    for y, line in enumerate(lines):
        if "█" in line:
            row, column = y, len(re.sub(r"[~^*%]", "", line.partition("█")[0]))
            lines[y] = line.replace("█", "")
    return Screen(
        rows=tuple(row_of(line) for line in lines),
        cols=cols,
        cursor_row=row,
        cursor_col=column,
        cursor_visible=is_cursor_visible,
    )


def row_of(line: str) -> ScreenRow:
    return ScreenRow(
        tuple(
            RunView(match[2], _STYLES[match[1]]) if match[1] else RunView(match[3])
            for match in _PART.finditer(line)
        )
    )
