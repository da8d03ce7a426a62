"""Draws the scripted TUI: settled lines above, a live part below that is drawn anew."""

import os
import re
import unicodedata
from typing import Final

FAINT: Final = "\x1b[2m"
PLAIN: Final = "\x1b[0m"
#: Stands in a row where the cursor is to be.
CARET: Final = "\x00"
_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;]*m")


class Drawing:
    """Writes to the terminal; remembers how many rows the live part takes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rows = 0
        #: How many rows below the cursor belong to the live part.
        self._below = 0
        self.columns = 80
        self.has_cursor = True

    def write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def settle(self, lines: list[str]) -> None:
        """Put lines above the live part, for good."""
        self.write(self._erased() + "".join(f"{line}\r\n" for line in lines))
        self._rows = 0

    def live(self, rows: list[str]) -> None:
        """Draw the live part anew; rows that are too wide are wrapped here, never by the terminal."""
        self.write(self._erased())
        self.page(rows)

    def page(self, rows: list[str]) -> None:
        """Draw rows from here on, then put the cursor where one of them has its mark."""
        wrapped = [piece for row in rows for piece in wrap(row, self.columns)]
        self._rows, self._below = len(wrapped), 0
        text, back = "\r\n".join(wrapped).replace(CARET, ""), ""
        for at, row in enumerate(wrapped):
            if CARET in row and self.has_cursor:
                self._below = len(wrapped) - 1 - at
                up = f"\x1b[{self._below}A" if self._below else ""
                column = len(_SEQUENCE.sub("", row.partition(CARET)[0]))
                back = (
                    f"{up}\r" + (f"\x1b[{column}C" if column else "")
                    if self._below or row[-1] != CARET
                    else ""
                )
        self.write(text + back + ("\x1b[?25h" if self.has_cursor else ""))

    def clear(self) -> None:
        """Clear the screen."""
        self.write("\x1b[?25l\x1b[2J\x1b[H")
        self._rows = self._below = 0

    def _erased(self) -> str:
        down = f"\x1b[{self._below}B" if self._below else ""
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return f"\x1b[?25l\r{down}{up}\x1b[J" + ("\x1b[?25h" if self.has_cursor else "")


def wrap(row: str, columns: int) -> list[str]:
    """Cut a row into pieces that fit; escape sequences and combining marks take no cell."""
    pieces, piece, used, is_escape = [], "", 0, False
    for character in row:
        is_escape = is_escape or character == "\x1b"
        width = 0 if is_escape else _width(character)
        if used + width > columns - 1:
            pieces.append(piece)
            piece, used = "", 0
        piece += character
        used += width
        if is_escape and character.isalpha():
            is_escape = False
    return [*pieces, piece]


def _width(character: str) -> int:
    if unicodedata.combining(character) or character in "\x00\u200d\ufe0f\u2060":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
