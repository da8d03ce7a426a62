"""The pure Python emulator, for systems without the native one.

pyte's own parser is not used: it drops text after a zero-width character, prints the bodies of unknown
strings, and fails on private sequences that current programs send. Its screen is corrected where it loses or
misplaces text.
"""

import codecs
import re
import unicodedata
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

import pyte
from pyte.screens import Margins
from wcwidth import wcwidth

from csp.protocol.screen_frames import PLAIN, RunView, StyleView
from csp.sidecar.emulator.escape_sequences import OscReader, restyled
from csp.terminal.screen import Screen, ScreenRow

MAX_SIDE: Final = 1000
MAX_ESCAPE: Final = 256
_TOKEN: Final = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<prefix>[<-?]?)(?P<numbers>[0-;]*)(?P<middle>[ -/]*)(?P<final>[@-~])"
    r"|(?P<string>\x1b[\]PX^_])"
    r"|\x1b(?P<escape>[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*)")
# Control characters inside a sequence take effect at once, as if they preceded it.
_MIXED: Final = re.compile(r"\x1b\[[ -?]*[\x00-\x17\x19\x1c-\x1f][ -?\x00-\x17\x19\x1c-\x1f]*")
_INNER: Final = re.compile(r"[\x00-\x17\x19\x1c-\x1f]+")
_STRING_END: Final = re.compile(r"[\x07\x18\x1a\x1b]")
_PRIVATE: Final = 5  # the shift of private mode numbers in pyte
_ALTERNATE: Final = (47, 1047, 1049)
_BRACKETED_PASTE: Final = 2004 << _PRIVATE
_CURSOR: Final = 25 << _PRIVATE
_LINE_DRAWING: Final = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

# The names of the grid's methods: pyte's own tables plus the missing entries.
_PLAIN: Final = {**pyte.Stream.basic, **pyte.Stream.escape, "E": "next_line", "#8": "alignment_display"}
_CSI: Final = {final: name for final, name in pyte.Stream.csi.items() if final not in "cn"} | {
    "`": "cursor_to_column",
    "I": "tabs",
    "S": "scroll_up",
    "T": "scroll_down",
    "Z": "back_tabs",
    "b": "repeat",
    "r": "limit_scrolling",
    "s": "save_cursor",
    "u": "restore_cursor",
}
#: Sequences that do not cancel a pending wrap at the margin first.
_AT_MARGIN: Final = frozenset("ISTZbrsu")
#: The number of parameters of sequences whose number is not one.
_PARAMETERS: Final = {"H": 2, "f": 2, "r": 2, "s": 0, "u": 0}
_JOINER: Final = "\u200d"
_EMOJI_STYLE: Final = "\ufe0f"
_WRAP: Final = pyte.modes.DECAWM
_INSERT: Final = pyte.modes.IRM
_HIDDEN: Final = ""  # the second half of a wide character


class Cell(NamedTuple):
    """One cell; pyte's own cell does not support faint text."""

    data: str = " "
    style: StyleView = PLAIN


class Grid(pyte.Screen):
    """The cells of one screen; lines that scroll off the top are kept as text."""

    cursor: Any
    buffer: Any
    default_char: Any = Cell()

    def __init__(self, columns: int, lines: int, history_lines: int) -> None:
        self.above: deque[str] = deque(maxlen=history_lines)
        self._last = ""
        super().__init__(columns, lines)

    def reset(self) -> None:
        self.above.clear()
        super().reset()
        self.cursor.attrs = Cell()

    def soft_reset(self) -> None:
        self.set_margins()
        self.restyle("0")
        self.mode -= {_INSERT, pyte.modes.DECOM}
        self.mode |= {_WRAP}

    def draw(self, data: str) -> None:
        self._last = data[-1:]
        for char in data:
            if char < "\x7f":
                self._place(char, 1)
            elif not self._joins(char):
                self._place(char, max(1, width_of(char)))

    def _place(self, char: str, width: int) -> None:
        cursor = self.cursor
        if cursor.x + width > self.columns:
            if _WRAP in self.mode:
                self.next_line()
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
        """Join a character to the one before the cursor if they combine; True if nothing is left to draw."""
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
        """Blank the remaining halves of wide characters that a change splits at either end."""
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

    def next_line(self) -> None:
        self.carriage_return()
        self.linefeed()

    def repeat(self, count: int) -> None:
        self.draw(self._last * min(count or 1, self.columns * self.lines))

    def scroll_up(self, count: int) -> None:
        self._scroll(1, self.index, count)

    def scroll_down(self, count: int) -> None:
        self._scroll(0, self.reverse_index, count)

    def _scroll(self, margin: int, scroll: Callable[[], None], count: int) -> None:
        """Scroll the lines between the margins, as a line feed at the bottom margin does."""
        row, self.cursor.y = self.cursor.y, (self.margins or Margins(0, self.lines - 1))[margin]
        for _ in range(min(count or 1, self.lines)):
            scroll()
        self.cursor.y = row

    def tab(self) -> None:
        # With a pending wrap at the margin, a tab does not move the cursor.
        if self.cursor.x < self.columns:
            super().tab()

    def tabs(self, count: int) -> None:
        for _ in range(min(count or 1, self.columns)):
            self.tab()

    def back_tabs(self, count: int) -> None:
        for _ in range(min(count or 1, self.columns)):
            self.cursor.x = max((stop for stop in self.tabstops if stop < self.cursor.x), default=0)

    def limit_scrolling(self, top: int, bottom: int = 0) -> None:
        """Set the margins unless top and bottom are reversed."""
        if (top or 1) < min(bottom or self.lines, self.lines):
            self.set_margins(top or 1, bottom or self.lines)

    def cursor_position(self, line: int | None = None, column: int | None = None) -> None:
        # pyte ignores a row below the margins; terminals use the last row.
        if self.margins and pyte.modes.DECOM in self.mode:
            line = min(line or 1, self.margins.bottom - self.margins.top + 1)
        super().cursor_position(line, column)

    def delete_lines(self, count: int | None = None) -> None:
        # pyte does not replace a line with one that was never written to, so touch all lines.
        for y in range(self.lines):
            _ = self.buffer[y]
        super().delete_lines(count)

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
        """Erase cells, keeping only the background colour."""
        if y == self.cursor.y:
            self._split(min(first, self.columns - 1), last)
        line = self.buffer[y]
        blank = Cell(style=StyleView(bg=self.cursor.attrs.style.bg))
        for x in range(first, last):
            line[x] = blank

    def restyle(self, parameters: str) -> None:
        self.cursor.attrs = Cell(style=restyled(self.cursor.attrs.style, parameters))

    def fit(self, lines: int, columns: int) -> None:
        """Change the size; lines that no longer fit above the cursor scroll off the top."""
        surplus = max(0, self.cursor.y - lines + 1)
        row, self.cursor.y, self.margins = self.cursor.y - surplus, self.lines - 1, None
        for _ in range(surplus):
            self.index()
        for y in range(lines, self.lines):
            self.buffer.pop(y, None)
        self.lines, self.cursor.y = lines, row
        self.resize(lines, columns)
        self.cursor.x = min(self.cursor.x, columns - 1)

    def line_text(self, y: int) -> str:
        return "".join(self.buffer[y][x].data for x in range(self.columns)).rstrip(" ")

    def row(self, y: int) -> ScreenRow:
        line = self.buffer[y]
        cells = [line[x] for x in range(max(line, default=-1) + 1)]
        while cells and cells[-1] == self.default_char:
            cells.pop()
        runs = groupby(cells, key=attrgetter("style"))
        return ScreenRow(tuple(RunView("".join(cell.data for cell in run), style) for style, run in runs))


@lru_cache(maxsize=4096)
def width_of(char: str) -> int:
    return int(wcwidth(char))


def _is_joined(before: str, char: str) -> bool:
    """Return whether a character joins the cell before it, as in terminals with grapheme clusters."""
    if before.endswith(_JOINER) and before != _JOINER:
        return width_of(char) != 1 or unicodedata.category(char) == "So"
    if 0x1F3FB <= ord(char) <= 0x1F3FF:
        return width_of(before[0]) == 2 or _EMOJI_STYLE in before
    if _is_flag_half(char):
        return len(before) == 1 and _is_flag_half(before)
    return (width_of(char) == 0 and before != " ") or unicodedata.combining(char) != 0


def _is_flag_half(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


class PyteEmulator:
    """An emulator that turns the child's output, in pieces of any size, into a screen."""

    def __init__(self, rows: int, cols: int, history_lines: int) -> None:
        self.dirty = 0
        self._osc = OscReader()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._history_lines = history_lines
        self._true_cols = cols
        self._primary = Grid(*_bounded(rows, cols), history_lines)
        self._alternate: Grid | None = None
        self._rest = ""
        self._is_in_string = False
        self._line_sets = [False, False]
        self._shift = 0

    @property
    def _grid(self) -> Grid:
        return self._alternate or self._primary

    def feed(self, data: bytes) -> None:
        if not data:
            return
        self.dirty += 1
        self._osc.feed(data)
        text = self._rest + self._decoder.decode(data)
        place, self._rest = 0, ""
        while place < len(text):
            if self._is_in_string:
                end = _STRING_END.search(text, place)
                if end is None:
                    return
                self._is_in_string = False
                place = end.start() if end.group() == "\x1b" else end.end()
            elif token := _TOKEN.match(text, place):
                self._act(token)
                place = token.end()
            elif mixed := _MIXED.match(text, place):
                inner = "".join(_INNER.findall(mixed.group()))
                text = text[:place] + inner + _INNER.sub("", mixed.group()) + text[mixed.end() :]
            else:
                unfinished = _UNFINISHED.match(text, place)
                end_of_it = unfinished.end() if unfinished else place + 1
                if end_of_it == len(text) and end_of_it - place <= MAX_ESCAPE:
                    self._rest = text[place:]
                    return
                place = end_of_it

    def resize(self, rows: int, cols: int) -> None:
        self._true_cols = cols
        columns, lines = _bounded(rows, cols)
        for grid in (self._primary, self._alternate):
            if grid is not None:
                grid.fit(lines, columns)
        self.dirty += 1

    def screen(self) -> Screen:
        grid = self._grid
        return Screen(
            rows=tuple(grid.row(y) for y in range(grid.lines)),
            cols=self._true_cols,
            cursor_row=grid.cursor.y,
            cursor_col=min(grid.cursor.x, grid.columns - 1),
            cursor_visible=_CURSOR in self._primary.mode,
            alternate=self._alternate is not None,
            title=self._osc.title,
            bracketed_paste=_BRACKETED_PASTE in self._primary.mode,
        )

    def history(self, *, unwrap: bool = False) -> list[str]:
        """Return the scrollback and the lines of the screen; `unwrap` joins lines broken at the margin."""
        grid = self._grid
        lines = [*grid.above, *(grid.line_text(y) for y in range(grid.lines))]
        while len(lines) > 1 and not lines[-1]:
            lines.pop()
        if not unwrap:
            return lines
        # A line that fills the width is joined with the next one, because pyte does not record wrapping.
        joined: list[str] = []
        is_full = False
        for line in lines:
            if is_full:
                joined[-1] += line
            else:
                joined.append(line)
            is_full = len(line) == grid.columns
        return joined

    def drain_osc(self) -> list[tuple[int, str]]:
        return self._osc.drain()

    def _act(self, token: re.Match[str]) -> None:
        grid, escape = self._grid, token["escape"] or " "
        match token.lastgroup:
            case "text":
                text = token["text"]
                grid.draw(text.translate(_LINE_DRAWING) if self._line_sets[self._shift] else text)
            case "string":
                self._is_in_string = True
            case "control" if token["control"] in "\x0e\x0f":
                self._shift = int(token["control"] == "\x0e")
            case "escape" if escape[0] in "()":
                self._line_sets["()".index(escape[0])] = escape[1:] == "0"
            case "escape" if escape == "c":
                self._alternate = None
                self._line_sets, self._shift = [False, False], 0
                self._primary.reset()
            case "control" | "escape":
                if name := _PLAIN.get(token[0].removeprefix("\x1b")):
                    getattr(grid, name)()
            case "final" if not token["middle"]:
                self._control_sequence(token["prefix"], token["numbers"], token["final"])
            case "final" if token["middle"] + token["final"] == "!p":
                self._line_sets, self._shift = [False, False], 0
                grid.soft_reset()

    def _control_sequence(self, prefix: str, text: str, final: str) -> None:
        grid = self._grid
        if final == "m" and not prefix:
            grid.restyle(text)
            return
        numbers = [min(int(part.partition(":")[0] or 0), 9999) for part in text.split(";")]
        if final in "hl" and prefix in ("", "?"):
            is_private, is_set = prefix == "?", final == "h"
            for number in numbers:
                if is_private and number in _ALTERNATE:
                    self._switch(number, is_alternate=is_set)
                elif is_private and number == 1048:
                    (self._grid.save_cursor if is_set else self._grid.restore_cursor)()
                elif not is_private or number not in (3, 5):  # 132 columns, reversed colours
                    for grid in {self._primary, self._grid}:
                        (grid.set_mode if is_set else grid.reset_mode)(number, private=is_private)
        elif (not prefix or (prefix == "?" and final in "JK")) and (name := _CSI.get(final)):
            if final not in _AT_MARGIN:
                grid.cursor.x = min(grid.cursor.x, grid.columns - 1)
            getattr(grid, name)(*numbers[: _PARAMETERS.get(final, 1)])

    def _switch(self, number: int, *, is_alternate: bool) -> None:
        if is_alternate and self._alternate is None:
            if number == 1049:
                self._primary.save_cursor()
            self._alternate = Grid(self._primary.columns, self._primary.lines, 0)
            self._alternate.mode = set(self._primary.mode)
            there, here = self._alternate.cursor, self._primary.cursor
            there.x, there.y, there.attrs = here.x, here.y, here.attrs
        elif not is_alternate and self._alternate is not None:
            cursor = self._alternate.cursor
            self._primary.mode = set(self._alternate.mode)
            self._alternate = None
            if number == 1049:
                self._primary.restore_cursor()
            else:
                self._primary.cursor.x, self._primary.cursor.y = cursor.x, cursor.y


def _bounded(rows: int, cols: int) -> tuple[int, int]:
    return min(max(cols, 2), MAX_SIDE), min(max(rows, 1), MAX_SIDE)
