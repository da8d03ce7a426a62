"""Lay text out in rows of a terminal."""

import unicodedata
from typing import Final, NamedTuple

_NO_WIDTH: Final = ("Mn", "Me", "Cf")
_NARROWEST: Final = 2


class Place(NamedTuple):
    """A row with a column."""

    row: int
    column: int


def width_of(text: str) -> int:
    """Return how many cells a text takes, as nearly as can be told."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.category(char) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fitting(line: str, width: int) -> int:
    """Return how many characters fit in so many cells; one at least."""
    used = 0
    for at, char in enumerate(line):
        used += _cells(char)
        if used > width:
            return max(1, at)
    return len(line)


def wrapped(text: str, width: int) -> list[str]:
    """Return the rows of a text, broken at blanks where there are any."""
    rows: list[str] = []
    width = max(_NARROWEST, width)
    for line in text.split("\n"):
        while (end := _fitting(line, width)) < len(line):
            blank = line.rfind(" ", 1, end + 1)
            cut = blank if blank > 0 and line[:blank].strip() else end
            rows.append(line[:cut])
            line = line[cut:].lstrip(" ") if cut == blank else line[cut:]
        rows.append(line)
    return rows


def cut_in_rows(text: str, width: int) -> list[str]:
    """Return the rows of a text that is edited: broken anywhere, so that no character is lost."""
    rows: list[str] = []
    width = max(_NARROWEST, width)
    for line in text.split("\n"):
        while (end := _fitting(line, width)) < len(line):
            rows.append(line[:end])
            line = line[end:]
        rows.append(line)
    return rows


def place_in(text: str, cursor: int, width: int) -> Place:
    """Return where a character of an edited text is, among its rows."""
    rows = cut_in_rows(text[:cursor], width)
    row, column = len(rows) - 1, width_of(rows[-1])
    # Behind a full row the cursor stands at the start of the next one, once there is one.
    if column >= max(_NARROWEST, width) and cursor < len(text) and text[cursor] != "\n":
        return Place(row + 1, 0)
    return Place(row, column)
