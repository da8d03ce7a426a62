"""pyte's screen, corrected where it loses or misplaces text."""

import unicodedata
from collections import deque
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

import pyte
from pyte.screens import Char, Margins
from wcwidth import wcwidth

from csp.sidecar.emulator.sgr import restyled
from csp.terminal.screen import ScreenRow, Style, StyledText

_JOINER: Final = "\u200d"
_EMOJI_STYLE: Final = "\ufe0f"
_WRAP: Final = pyte.modes.DECAWM
_INSERT: Final = pyte.modes.IRM
_HIDDEN: Final = ""  # the second half of a wide character


class Grid(pyte.Screen):
    """Cells of one screen; lines that leave it at the top are kept as text."""

    def __init__(self, columns: int, lines: int, history_lines: int) -> None:
        self.above: deque[str] = deque(maxlen=history_lines)
        super().__init__(columns, lines)

    def draw(self, data: str) -> None:
        for char in data:
            if char < "\x7f":
                self._place(char, 1)
            elif not self._joins(char):
                self._place(char, max(1, width_of(char)))

    def _place(self, char: str, width: int) -> None:
        cursor = self.cursor
        if cursor.x + width > self.columns:
            if _WRAP in self.mode:
                self.carriage_return()
                self.linefeed()
            else:
                cursor.x = max(0, self.columns - width)
        if _INSERT in self.mode:
            self.insert_characters(width)
        line = self.buffer[cursor.y]
        self._split(cursor.x, cursor.x + width)
        line[cursor.x] = cursor.attrs._replace(data=char)
        if width == 2:
            line[cursor.x + 1] = cursor.attrs._replace(data=_HIDDEN)
        cursor.x += width

    def _joins(self, char: str) -> bool:
        """Add to the character before the cursor what is drawn on top of it."""
        line, x = self.buffer[self.cursor.y], self.cursor.x - 1
        if x > 0 and line[x].data == _HIDDEN:
            x -= 1
        before = line[x].data if x >= 0 else ""
        if not (before and _is_joined(before, char)):
            return width_of(char) == 0
        line[x] = line[x]._replace(data=before + char)
        is_widened = char == _EMOJI_STYLE or _is_flag_half(char)
        if is_widened and x + 1 == self.cursor.x < self.columns:
            line[x + 1] = line[x]._replace(data=_HIDDEN)
            self.cursor.x += 1
        return True

    def _split(self, start: int, end: int) -> None:
        """Blank the halves of wide characters that are cut at either end of a change."""
        line = self.buffer[self.cursor.y]
        if start > 0 and line[start].data == _HIDDEN:
            line[start - 1] = line[start - 1]._replace(data=" ")
        if end < self.columns and line[end].data == _HIDDEN:
            line[end] = line[end]._replace(data=" ")

    def index(self) -> None:
        top, bottom = self.margins or Margins(0, self.lines - 1)
        if self.cursor.y == bottom and top == 0:
            self.above.append(self.line_text(0))
        super().index()

    def scroll(self, count: int) -> None:
        """Move the lines between the margins up, or down for a negative count."""
        top, bottom = self.margins or Margins(0, self.lines - 1)
        row, column, self.cursor.y = self.cursor.y, self.cursor.x, top
        if count > 0:
            if top == 0:
                self.above.extend(self.line_text(y) for y in range(min(count, bottom + 1)))
            self.delete_lines(count)
        else:
            self.insert_lines(-count)
        self.cursor.y, self.cursor.x = row, column

    def tab(self) -> None:
        # At the margin with a wrap to come a tab moves nothing.
        if self.cursor.x < self.columns:
            super().tab()

    def cursor_position(self, line: int | None = None, column: int | None = None) -> None:
        # pyte ignores a row below the margins; terminals take the last one.
        if self.margins and pyte.modes.DECOM in self.mode:
            line = min(line or 1, self.margins.bottom - self.margins.top + 1)
        super().cursor_position(line, column)

    def delete_lines(self, count: int | None = None) -> None:
        # pyte leaves a line as it was when the one that should replace it is blank.
        top, bottom = self.margins or Margins(0, self.lines - 1)
        if top <= self.cursor.y <= bottom:
            for y in range(self.cursor.y, bottom + 1):
                taken = self.buffer.pop(y + (count or 1), None) if y + (count or 1) <= bottom else None
                if taken is None:
                    self.buffer.pop(y, None)
                else:
                    self.buffer[y] = taken
            self.carriage_return()

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        first = self.cursor.x if how == 0 else 0
        last = self.cursor.x + 1 if how == 1 else self.columns
        if how in (0, 1, 2):
            self._blank(self.cursor.y, first, last)

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        if how == 3:
            self.above.clear()
        if how in (0, 1):
            self.erase_in_line(how)
        first = self.cursor.y + 1 if how == 0 else 0
        last = self.cursor.y if how == 1 else self.lines
        for y in range(first, last) if how in (0, 1, 2) else ():
            self._blank(y, 0, self.columns)

    def erase_characters(self, count: int | None = None) -> None:
        self._blank(self.cursor.y, self.cursor.x, min(self.columns, self.cursor.x + (count or 1)))

    def _blank(self, y: int, first: int, last: int) -> None:
        """Erase cells; only the colour behind the text stays."""
        if y == self.cursor.y:
            self._split(min(first, self.columns - 1), last)
        line = self.buffer[y]
        blank = self.default_char._replace(bg=self.cursor.attrs.bg)
        for x in range(first, last):
            line[x] = blank

    def restyle(self, parameters: str) -> None:
        style = restyled(_style_of(self.cursor.attrs), parameters)
        self.cursor.attrs = Char(
            " ",
            style.fg or "default",
            style.bg or "default",
            style.bold,
            style.italic,
            style.underline,
            blink=style.faint,
            reverse=style.reverse,
        )

    def fit(self, lines: int, columns: int) -> None:
        """Change the size; what no longer fits above the cursor moves off the top."""
        surplus = max(0, self.cursor.y - lines + 1)
        for _ in range(surplus):
            self.above.append(self.line_text(0))
            for y in range(self.lines):
                self.buffer[y] = self.buffer[y + 1]
        for y in [y for y in self.buffer if y >= lines]:
            del self.buffer[y]
        for line in self.buffer.values():
            for x in [x for x in line if x >= columns]:
                del line[x]
        self.lines, self.columns, self.margins = lines, columns, None
        self.cursor.y -= surplus
        self.cursor.x = min(self.cursor.x, columns - 1)

    def line_text(self, y: int) -> str:
        return "".join(self.buffer[y][x].data for x in range(self.columns)).rstrip(" ")

    def row(self, y: int) -> ScreenRow:
        line = self.buffer[y]
        cells = [line[x] for x in range(max(line, default=-1) + 1)]
        while cells and cells[-1] == self.default_char:
            cells.pop()
        runs = groupby(cells, key=_style_of)
        return ScreenRow(tuple(StyledText("".join(cell.data for cell in run), style) for style, run in runs))


@lru_cache(maxsize=4096)
def width_of(char: str) -> int:
    return int(wcwidth(char))


@lru_cache(maxsize=1024)
def _style_of_look(look: tuple[Any, ...]) -> Style:
    fg, bg, bold, italic, underline, _, reverse, faint = look
    return Style(
        fg=None if fg == "default" else fg,
        bg=None if bg == "default" else bg,
        bold=bold,
        faint=faint,
        italic=italic,
        underline=underline,
        reverse=reverse,
    )


def _style_of(cell: Char) -> Style:
    # pyte has no faint text; nobody asks us for blinking, so that field carries it.
    return _style_of_look(tuple(cell[1:]))


def _is_joined(before: str, char: str) -> bool:
    """Tell whether a character belongs to the cell before it, as terminals with grapheme clusters draw it."""
    if before.endswith(_JOINER) and before != _JOINER:
        return width_of(char) != 1 or unicodedata.category(char) == "So"
    if 0x1F3FB <= ord(char) <= 0x1F3FF:
        return width_of(before[0]) == 2 or _EMOJI_STYLE in before
    if _is_flag_half(char):
        return len(before) == 1 and _is_flag_half(before)
    return (width_of(char) == 0 and before != " ") or unicodedata.combining(char) != 0


def _is_flag_half(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF
