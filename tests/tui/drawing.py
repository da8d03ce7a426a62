"""Draws the scripted TUI: settled lines above, a live part below that is drawn anew."""

import os
import unicodedata
from typing import Final

FAINT: Final = "\x1b[2m"
PLAIN: Final = "\x1b[0m"


class Drawing:
    """Writes to the terminal; remembers how many rows the live part takes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rows = 0
        self.columns = 80

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
        wrapped = [piece for row in rows for piece in wrap(row, self.columns)]
        self.write(self._erased() + "\r\n".join(wrapped))
        self._rows = len(wrapped)

    def _erased(self) -> str:
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return f"\x1b[?25l\r{up}\x1b[J\x1b[?25h"


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
    if unicodedata.combining(character) or character in "\u200d\ufe0f\u2060":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
