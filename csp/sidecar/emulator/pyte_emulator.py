"""The emulator in pure Python, for systems without the native one.

pyte's own parser is not used: it drops text after a character without width, prints the bodies of unknown
strings, and fails on private sequences that today's programs send.
"""

import codecs
import re
from collections.abc import Callable
from typing import Final

import pyte

from csp.sidecar.emulator.osc import OscReader
from csp.sidecar.emulator.pyte_screen import Grid
from csp.terminal.screen import Screen

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
# Controls in the middle of a sequence act at once, as if they stood before it.
_MIXED: Final = re.compile(r"\x1b\[[ -?]*[\x00-\x17\x19\x1c-\x1f][ -?\x00-\x17\x19\x1c-\x1f]*")
_INNER: Final = re.compile(r"[\x00-\x17\x19\x1c-\x1f]+")
_STRING_END: Final = re.compile(r"[\x07\x18\x1a\x1b]")
_PRIVATE: Final = 5  # how far pyte shifts the numbers of private modes
_ALTERNATE: Final = (47, 1047, 1049)
_BRACKETED_PASTE: Final = 2004 << _PRIVATE
_SYNCHRONIZED: Final = 2026 << _PRIVATE
_CURSOR: Final = 25 << _PRIVATE
_LINE_DRAWING: Final = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

# Each with the most parameters it takes.
_CSI: Final[dict[str, tuple[str, int]]] = {
    "@": ("insert_characters", 1),
    "A": ("cursor_up", 1),
    "B": ("cursor_down", 1),
    "C": ("cursor_forward", 1),
    "D": ("cursor_back", 1),
    "E": ("cursor_down1", 1),
    "F": ("cursor_up1", 1),
    "G": ("cursor_to_column", 1),
    "H": ("cursor_position", 2),
    "J": ("erase_in_display", 1),
    "K": ("erase_in_line", 1),
    "L": ("insert_lines", 1),
    "M": ("delete_lines", 1),
    "P": ("delete_characters", 1),
    "X": ("erase_characters", 1),
    "`": ("cursor_to_column", 1),
    "a": ("cursor_forward", 1),
    "d": ("cursor_to_line", 1),
    "e": ("cursor_down", 1),
    "f": ("cursor_position", 2),
    "g": ("clear_tab_stop", 1),
}
_CONTROLS: Final = {
    "\x08": "backspace",
    "\t": "tab",
    "\n": "linefeed",
    "\x0b": "linefeed",
    "\x0c": "linefeed",
    "\r": "carriage_return",
}
_ESCAPES: Final = {
    "7": "save_cursor",
    "8": "restore_cursor",
    "D": "index",
    "E": "linefeed",
    "H": "set_tab_stop",
    "M": "reverse_index",
    "#8": "alignment_display",
}


class PyteEmulator:
    """Take the child's bytes in any pieces; give the screen they make."""

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
        self._last = ""
        self._line_sets = [False, False]
        self._shift = 0
        self._kitty = [0]

    @property
    def _grid(self) -> Grid:
        return self._alternate or self._primary

    def feed(self, data: bytes) -> None:
        if data:
            self._osc.feed(data)
            self._parse(self._rest + self._decoder.decode(data))
            self.dirty += 1

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
            is_drawing=_SYNCHRONIZED in self._primary.mode,
            kitty_flags=self._kitty[-1],
        )

    def history(self, *, unwrap: bool = False) -> list[str]:
        """Give the lines that have scrolled off, then the screen's; `unwrap` joins what the margin broke."""
        grid = self._grid
        lines = [*grid.above, *(grid.line_text(y) for y in range(grid.lines))]
        while len(lines) > 1 and not lines[-1]:
            lines.pop()
        return _joined(lines, grid.columns) if unwrap else lines

    def drain_osc(self) -> list[tuple[int, str]]:
        return self._osc.drain()

    def _parse(self, text: str) -> None:
        place, self._rest = 0, ""
        while place < len(text):
            if self._is_in_string:
                end = _STRING_END.search(text, place)
                if end is None:
                    return
                self._is_in_string = False
                place = end.start() if end.group() == "\x1b" else end.end()
                continue
            token = _TOKEN.match(text, place)
            if token is not None:
                self._act(token)
                place = token.end()
                continue
            if mixed := _MIXED.match(text, place):
                inner = "".join(_INNER.findall(mixed.group()))
                text = text[:place] + inner + _INNER.sub("", mixed.group()) + text[mixed.end() :]
                continue
            unfinished = _UNFINISHED.match(text, place)
            end_of_it = unfinished.end() if unfinished else place + 1
            if end_of_it == len(text) and end_of_it - place <= MAX_ESCAPE:
                self._rest = text[place:]
                return
            place = end_of_it

    def _act(self, token: re.Match[str]) -> None:
        grid = self._grid
        if (text := token["text"]) is not None:
            self._last = text[-1]
            grid.draw(text.translate(_LINE_DRAWING) if self._line_sets[self._shift] else text)
        elif (control := token["control"]) is not None:
            if name := _CONTROLS.get(control):
                getattr(grid, name)()
            elif control in "\x0e\x0f":
                self._shift = int(control == "\x0e")
        elif token["string"] is not None:
            self._is_in_string = True
        elif (escape := token["escape"]) is not None:
            self._escape(escape)
        elif not token["middle"]:
            self._control_sequence(token["prefix"], token["numbers"], token["final"])
        elif token["middle"] == "!" and token["final"] == "p":
            self._soft_reset()

    def _escape(self, escape: str) -> None:
        if escape == "c":
            self._reset()
        elif escape[0] in "()":
            self._line_sets["()".index(escape[0])] = escape[1:] == "0"
        elif name := _ESCAPES.get(escape):
            if escape == "E":
                self._grid.carriage_return()
            getattr(self._grid, name)()

    def _control_sequence(self, prefix: str, text: str, final: str) -> None:
        grid = self._grid
        if final == "m" and not prefix:
            grid.restyle(text)
            return
        numbers = [min(int(part.partition(":")[0] or 0), 9999) for part in text.split(";")]
        if final in "hl" and prefix in ("", "?"):
            self._modes(numbers, is_private=prefix == "?", is_set=final == "h")
        elif final == "u" and prefix:
            self._keyboard(prefix, numbers)
        elif prefix and not (prefix == "?" and final in "JK"):
            return
        elif row := _CSI.get(final):
            grid.cursor.x = min(grid.cursor.x, grid.columns - 1)
            getattr(grid, row[0])(*numbers[: row[1]])
        elif action := _MORE.get(final):
            action(self, numbers)

    def _modes(self, numbers: list[int], *, is_private: bool, is_set: bool) -> None:
        for number in numbers:
            if is_private and number in _ALTERNATE:
                self._switch(number, is_alternate=is_set)
            elif is_private and number == 1048:
                (self._grid.save_cursor if is_set else self._grid.restore_cursor)()
            elif is_private and number in (3, 5):  # 132 columns, reversed colours
                continue
            else:
                for grid in {self._primary, self._grid}:
                    (grid.set_mode if is_set else grid.reset_mode)(number, private=is_private)

    def _switch(self, number: int, *, is_alternate: bool) -> None:
        if is_alternate and self._alternate is None:
            if number == 1049:
                self._primary.save_cursor()
            self._alternate = Grid(self._primary.columns, self._primary.lines, 0)
            self._alternate.mode = set(self._primary.mode)
            self._alternate.cursor.x, self._alternate.cursor.y = (
                self._primary.cursor.x,
                self._primary.cursor.y,
            )
            self._alternate.cursor.attrs = self._primary.cursor.attrs
        elif not is_alternate and self._alternate is not None:
            cursor = self._alternate.cursor
            self._primary.mode = set(self._alternate.mode)
            self._alternate = None
            if number == 1049:
                self._primary.restore_cursor()
            else:
                self._primary.cursor.x, self._primary.cursor.y = cursor.x, cursor.y

    def _keyboard(self, prefix: str, numbers: list[int]) -> None:
        if prefix == ">":
            self._kitty = [*self._kitty[-15:], numbers[0]]
        elif prefix == "<":
            self._kitty = self._kitty[: -max(1, numbers[0])] or [0]
        elif prefix == "=":
            self._kitty[-1] = numbers[0]

    def _soft_reset(self) -> None:
        self._grid.set_margins()
        self._grid.restyle("0")
        self._grid.mode -= {pyte.modes.IRM, pyte.modes.DECOM}
        self._grid.mode |= {pyte.modes.DECAWM}
        self._line_sets, self._shift = [False, False], 0

    def _reset(self) -> None:
        self._alternate = None
        self._line_sets, self._shift = [False, False], 0
        self._kitty = [0]
        self._primary.reset()
        self._primary.above.clear()

    def _margins(self, numbers: list[int]) -> None:
        top, bottom = numbers[0] or 1, numbers[1] if len(numbers) > 1 and numbers[1] else self._grid.lines
        if top < min(bottom, self._grid.lines):
            self._grid.set_margins(top, bottom)

    def _repeat(self, numbers: list[int]) -> None:
        self._grid.draw(self._last * min(numbers[0] or 1, self._grid.columns * self._grid.lines))

    def _tabs(self, numbers: list[int]) -> None:
        for _ in range(min(numbers[0] or 1, self._grid.columns)):
            self._grid.tab()

    def _back_tabs(self, numbers: list[int]) -> None:
        grid = self._grid
        for _ in range(min(numbers[0] or 1, grid.columns)):
            grid.cursor.x = max((stop for stop in grid.tabstops if stop < grid.cursor.x), default=0)


_MORE: Final[dict[str, Callable[[PyteEmulator, list[int]], None]]] = {
    "I": PyteEmulator._tabs,
    "S": lambda self, numbers: self._grid.scroll(numbers[0] or 1),
    "T": lambda self, numbers: self._grid.scroll(-(numbers[0] or 1)),
    "Z": PyteEmulator._back_tabs,
    "b": PyteEmulator._repeat,
    "r": PyteEmulator._margins,
    "s": lambda self, _: self._grid.save_cursor(),
    "u": lambda self, _: self._grid.restore_cursor(),
}


def _bounded(rows: int, cols: int) -> tuple[int, int]:
    return min(max(cols, 2), MAX_SIDE), min(max(rows, 1), MAX_SIDE)


def _joined(lines: list[str], columns: int) -> list[str]:
    """Join a line that fills the width with the next one: nothing else says here that it was wrapped."""
    joined: list[str] = []
    is_full = False
    for line in lines:
        if is_full:
            joined[-1] += line
        else:
            joined.append(line)
        is_full = len(line) == columns
    return joined
