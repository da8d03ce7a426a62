"""The emulator that runs on Ghostty's terminal core."""

import ctypes
import weakref
from typing import Any, Final

from csp.errors import Broken
from csp.sidecar.emulator import libghostty as gh
from csp.sidecar.emulator.osc import OscReader
from csp.sidecar.emulator.sgr import rows_of
from csp.terminal.screen import Screen

# Below this size the library has been seen to crash.
MIN_COLS: Final = 20
MIN_ROWS: Final = 5
MAX_SIDE: Final = 1000
# The library counts pages of styled cells, so the bytes are only there to let the lines be the limit.
BYTES_PER_CELL: Final = 32
BRACKETED_PASTE: Final = 2004
SYNCHRONIZED: Final = 2026
GRAPHEME_CLUSTERS: Final = 2027
_CELL_PIXELS: Final = (8, 16)
_FIRST_BUFFER: Final = 32 * 1024
_APC_BYTES: Final = 4096
_OUT_OF_SPACE: Final = -3


class GhosttyEmulator:
    """Take the child's bytes in any pieces; give the screen they make."""

    def __init__(self, rows: int, cols: int, history_lines: int) -> None:
        self.dirty = 0
        self._lib = gh.load()
        self._osc = OscReader()
        self._buffer = ctypes.create_string_buffer(_FIRST_BUFFER)
        self._history_lines = history_lines
        self._true_cols = cols
        self._rows, self._cols = _bounded(rows, cols)
        self._terminal = ctypes.c_void_p()
        made = self._lib.ghostty_terminal_new(None, ctypes.byref(self._terminal), self._cols, self._rows)
        _check(made, "no terminal could be made")
        weakref.finalize(self, self._lib.ghostty_terminal_free, self._terminal)
        self._configure()

    def feed(self, data: bytes) -> None:
        if data:
            self._lib.ghostty_terminal_vt_write(self._terminal, data, len(data))
            self._osc.feed(data)
            self.dirty += 1

    def resize(self, rows: int, cols: int) -> None:
        self._true_cols = cols
        self.dirty += 1
        self._rows, self._cols = _bounded(rows, cols)
        self._keep_size()
        self._limit_history()

    def screen(self) -> Screen:
        self._keep_size()
        text = self._format(gh.FORMAT_VT, self._ref(gh.POINT_ACTIVE, 0, 0))
        return Screen(
            rows=rows_of(text, self._rows),
            cols=self._true_cols,
            cursor_row=self._get(gh.DATA_CURSOR_Y, ctypes.c_uint16),
            cursor_col=self._get(gh.DATA_CURSOR_X, ctypes.c_uint16),
            cursor_visible=bool(self._get(gh.DATA_CURSOR_VISIBLE, ctypes.c_bool)),
            alternate=self._get(gh.DATA_ACTIVE_SCREEN, ctypes.c_int) == 1,
            title=self._osc.title,
            bracketed_paste=self._mode(BRACKETED_PASTE),
            is_drawing=self._mode(SYNCHRONIZED),
            kitty_flags=self._get(gh.DATA_KITTY_KEYBOARD_FLAGS, ctypes.c_uint8),
        )

    def history(self, *, unwrap: bool = False) -> list[str]:
        """Give the lines that have scrolled off, then the screen's; `unwrap` joins what the margin broke."""
        self._keep_size()
        above = self._get(gh.DATA_SCROLLBACK_ROWS, ctypes.c_size_t)
        top = self._ref(gh.POINT_SCREEN, 0, max(0, above - self._history_lines))
        text = self._format(gh.FORMAT_PLAIN, top, unwrap=unwrap)
        return [line.rstrip(" ") for line in text.replace("\r\n", "\n").split("\n")]

    def drain_osc(self) -> list[tuple[int, str]]:
        return self._osc.drain()

    def _configure(self) -> None:
        clusters = gh.ModeConfig(GRAPHEME_CLUSTERS, value=True)
        self._set(gh.OPT_MODE_DEFAULT, clusters)
        self._lib.ghostty_terminal_vt_write(self._terminal, b"\x1bc", 2)
        # Pictures are of no use here, and would fill the memory.
        self._set(gh.OPT_KITTY_IMAGE_STORAGE_LIMIT, ctypes.c_uint64(0))
        self._set(gh.OPT_APC_MAX_BYTES, ctypes.c_size_t(_APC_BYTES))
        self._limit_history()

    def _keep_size(self) -> None:
        """Set the size that we were told; a program may have switched to 132 columns, which no pane does."""
        has = self._get(gh.DATA_ROWS, ctypes.c_uint16), self._get(gh.DATA_COLS, ctypes.c_uint16)
        if has != (self._rows, self._cols):
            done = self._lib.ghostty_terminal_resize(self._terminal, self._cols, self._rows, *_CELL_PIXELS)
            _check(done, f"no resize to {self._rows} x {self._cols}")

    def _limit_history(self) -> None:
        limit = (self._history_lines + self._rows) * self._cols * BYTES_PER_CELL
        self._set(gh.OPT_SCROLLBACK_MAX_BYTES, ctypes.c_size_t(limit))
        self._set(gh.OPT_SCROLLBACK_MAX_LINES, ctypes.c_size_t(self._history_lines))

    def _set(self, option: int, value: Any) -> None:
        done = self._lib.ghostty_terminal_set(self._terminal, option, ctypes.byref(value))
        _check(done, f"option {option} was not taken")

    def _get(self, key: int, kind: type[Any]) -> int:
        value = kind()
        _check(self._lib.ghostty_terminal_get(self._terminal, key, ctypes.byref(value)), f"no value {key}")
        return int(value.value)

    def _mode(self, number: int) -> bool:
        config = gh.ModeConfig(number)
        done = self._lib.ghostty_terminal_get(self._terminal, gh.DATA_MODE, ctypes.byref(config))
        _check(done, f"no mode {number}")
        return bool(config.value)

    def _ref(self, tag: int, x: int, y: int) -> gh.GridRef:
        ref = gh.GridRef(size=ctypes.sizeof(gh.GridRef))
        done = self._lib.ghostty_terminal_grid_ref(
            self._terminal, gh.Point(tag=tag, x=x, y=y), ctypes.byref(ref)
        )
        _check(done, f"no cell {x}, {y}")
        return ref

    def _format(self, emit: int, top: gh.GridRef, *, unwrap: bool = False) -> str:
        """Give the text from `top` to the end of the screen."""
        bottom = self._ref(gh.POINT_ACTIVE, self._cols - 1, self._rows - 1)
        area = gh.Selection(size=ctypes.sizeof(gh.Selection), start=top, end=bottom)
        options = gh.FormatOptions(size=ctypes.sizeof(gh.FormatOptions), emit=emit, unwrap=unwrap, trim=True)
        options.extra.size = ctypes.sizeof(gh.TerminalExtra)
        options.extra.screen.size = ctypes.sizeof(gh.ScreenExtra)
        options.selection = ctypes.pointer(area)
        formatter = ctypes.c_void_p()
        made = self._lib.ghostty_formatter_terminal_new(
            None, ctypes.byref(formatter), self._terminal, options
        )
        _check(made, "no formatter")
        try:
            return self._formatted(formatter)
        finally:
            self._lib.ghostty_formatter_free(formatter)

    def _formatted(self, formatter: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        done = _OUT_OF_SPACE
        while done == _OUT_OF_SPACE:
            room = len(self._buffer)
            done = self._lib.ghostty_formatter_format_buf(formatter, self._buffer, room, ctypes.byref(size))
            if done == _OUT_OF_SPACE:
                self._buffer = ctypes.create_string_buffer(max(size.value, 2 * room))
        _check(done, "the screen could not be read")
        text = ctypes.string_at(self._buffer, size.value).decode("utf-8", "replace")
        if len(self._buffer) > _FIRST_BUFFER:
            self._buffer = ctypes.create_string_buffer(_FIRST_BUFFER)
        return text


def _bounded(rows: int, cols: int) -> tuple[int, int]:
    return min(max(rows, MIN_ROWS), MAX_SIDE), min(max(cols, MIN_COLS), MAX_SIDE)


def _check(result: int, what: str) -> None:
    if result:
        raise Broken(f"terminal emulator: {what} ({result})", "set the emulator to 'pyte'")
