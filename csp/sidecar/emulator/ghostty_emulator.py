"""The emulator based on Ghostty's terminal core, through the native library of pyghostty.

The library in the wheel is loaded with ctypes, which takes 5 ms. Importing the package itself parses the
whole C interface, which takes 0.3 s of CPU time and 12 MB. The layouts below are valid for the one pinned
version; a test compares them with those of the package.
"""

import ctypes
import weakref
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_int, c_size_t, c_uint16, c_uint32, c_void_p
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final

from csp.errors import Broken
from csp.sidecar.emulator.escape_sequences import OscReader, rows_of
from csp.terminal.screen import Screen

VERSION: Final = "0.1.3"
_LIBRARIES: Final = ("libghostty-vt.so", "libghostty-vt.dylib")

FORMAT_PLAIN: Final = 0
FORMAT_VT: Final = 1
POINT_ACTIVE: Final = 0
POINT_SCREEN: Final = 2

OPT_KITTY_IMAGE_STORAGE_LIMIT: Final = 15
OPT_APC_MAX_BYTES: Final = 19
OPT_SCROLLBACK_MAX_BYTES: Final = 27
OPT_SCROLLBACK_MAX_LINES: Final = 28
OPT_MODE_DEFAULT: Final = 33

DATA_COLS: Final = 1
DATA_ROWS: Final = 2
DATA_CURSOR_X: Final = 3
DATA_CURSOR_Y: Final = 4
DATA_ACTIVE_SCREEN: Final = 6
DATA_CURSOR_VISIBLE: Final = 7
DATA_SCROLLBACK_ROWS: Final = 15
DATA_MODE: Final = 37

# Below this size, the library was observed to crash.
MIN_COLS: Final = 20
MIN_ROWS: Final = 5
MAX_SIDE: Final = 1000
# The library limits the bytes of styled cells. This value is so large that the line limit applies first.
BYTES_PER_CELL: Final = 32
BRACKETED_PASTE: Final = 2004
GRAPHEME_CLUSTERS: Final = 2027
_CELL_PIXELS: Final = (8, 16)
_FIRST_BUFFER: Final = 32 * 1024
_APC_BYTES: Final = 4096
_OUT_OF_SPACE: Final = -3


class Point(Structure):
    _fields_ = (("tag", c_int), ("pad", c_uint32), ("x", c_uint16), ("y", c_uint32), ("rest", c_size_t))


class GridRef(Structure):
    _fields_ = (("size", c_size_t), ("node", c_void_p), ("x", c_uint16), ("y", c_uint16))


class Selection(Structure):
    _fields_ = (("size", c_size_t), ("start", GridRef), ("end", GridRef), ("rectangle", c_bool))


class ScreenExtra(Structure):
    _fields_ = (
        ("size", c_size_t),
        *((name, c_bool) for name in ("cursor", "style", "hyperlink", "protection")),
        *((name, c_bool) for name in ("kitty_keyboard", "charsets")),
    )


class TerminalExtra(Structure):
    _fields_ = (
        ("size", c_size_t),
        *((name, c_bool) for name in ("palette", "modes", "scrolling_region", "tabstops")),
        *((name, c_bool) for name in ("pwd", "keyboard")),
        ("screen", ScreenExtra),
    )


class FormatOptions(Structure):
    _fields_ = (
        ("size", c_size_t),
        ("emit", c_int),
        ("unwrap", c_bool),
        ("trim", c_bool),
        ("extra", TerminalExtra),
        ("selection", POINTER(Selection)),
    )


class ModeConfig(Structure):
    _fields_ = (("mode", c_uint16), ("value", c_bool))


_SIGNATURES: Final = {
    "ghostty_terminal_new": (c_int, (c_void_p, POINTER(c_void_p), c_uint16, c_uint16)),
    "ghostty_terminal_free": (None, (c_void_p,)),
    "ghostty_terminal_resize": (c_int, (c_void_p, c_uint16, c_uint16, c_uint32, c_uint32)),
    "ghostty_terminal_set": (c_int, (c_void_p, c_int, c_void_p)),
    "ghostty_terminal_get": (c_int, (c_void_p, c_int, c_void_p)),
    "ghostty_terminal_vt_write": (None, (c_void_p, c_char_p, c_size_t)),
    "ghostty_terminal_grid_ref": (c_int, (c_void_p, Point, POINTER(GridRef))),
    "ghostty_formatter_terminal_new": (c_int, (c_void_p, POINTER(c_void_p), c_void_p, FormatOptions)),
    "ghostty_formatter_format_buf": (c_int, (c_void_p, c_char_p, c_size_t, POINTER(c_size_t))),
    "ghostty_formatter_free": (None, (c_void_p,)),
}


def load() -> ctypes.CDLL:
    """Load the library; raise OSError if it is not installed or is not the pinned version."""
    spec = PathFinder.find_spec("pyghostty")
    if spec is None or spec.origin is None:
        raise OSError("pyghostty is not installed")
    package = Path(spec.origin).parent
    if not (package.parent / f"pyghostty-{VERSION}.dist-info").is_dir():
        raise OSError(f"pyghostty is not at version {VERSION}, the only one with a known memory layout")
    path = next((package / "_lib" / name for name in _LIBRARIES if (package / "_lib" / name).exists()), None)
    if path is None:
        raise OSError(f"no native library in {package}")
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class GhosttyEmulator:
    """An emulator that turns the child's output, in pieces of any size, into a screen."""

    def __init__(self, rows: int, cols: int, history_lines: int) -> None:
        self.dirty = 0
        self._lib = load()
        self._osc = OscReader()
        self._buffer = ctypes.create_string_buffer(_FIRST_BUFFER)
        self._history_lines = history_lines
        self._true_cols = cols
        self._rows, self._cols = _bounded(rows, cols)
        self._terminal = c_void_p()
        made = self._lib.ghostty_terminal_new(None, byref(self._terminal), self._cols, self._rows)
        _check(made, "the terminal could not be created")
        weakref.finalize(self, self._lib.ghostty_terminal_free, self._terminal)
        self._set(OPT_MODE_DEFAULT, ModeConfig(GRAPHEME_CLUSTERS, value=True))
        self._lib.ghostty_terminal_vt_write(self._terminal, b"\x1bc", 2)
        # Images are not needed here and would fill the memory.
        self._set(OPT_KITTY_IMAGE_STORAGE_LIMIT, ctypes.c_uint64(0))
        self._set(OPT_APC_MAX_BYTES, c_size_t(_APC_BYTES))
        self._limit_history()

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
        text = self._format(FORMAT_VT, self._ref(POINT_ACTIVE, 0, 0))
        pasting = ModeConfig(BRACKETED_PASTE)
        done = self._lib.ghostty_terminal_get(self._terminal, DATA_MODE, byref(pasting))
        _check(done, f"cannot read mode {BRACKETED_PASTE}")
        return Screen(
            rows=rows_of(text, self._rows),
            cols=self._true_cols,
            cursor_row=self._get(DATA_CURSOR_Y, c_uint16),
            cursor_col=self._get(DATA_CURSOR_X, c_uint16),
            cursor_visible=bool(self._get(DATA_CURSOR_VISIBLE, c_bool)),
            alternate=self._get(DATA_ACTIVE_SCREEN, c_int) == 1,
            title=self._osc.title,
            bracketed_paste=pasting.value,
        )

    def history(self, *, unwrap: bool = False) -> list[str]:
        """Return the scrollback and the lines of the screen; `unwrap` joins lines broken at the margin."""
        self._keep_size()
        above = self._get(DATA_SCROLLBACK_ROWS, c_size_t)
        top = self._ref(POINT_SCREEN, 0, max(0, above - self._history_lines))
        text = self._format(FORMAT_PLAIN, top, unwrap=unwrap)
        return [line.rstrip(" ") for line in text.replace("\r\n", "\n").split("\n")]

    def drain_osc(self) -> list[tuple[int, str]]:
        return self._osc.drain()

    def _keep_size(self) -> None:
        """Restore our size, because a program may have switched to 132 columns, which panes ignore."""
        has = self._get(DATA_ROWS, c_uint16), self._get(DATA_COLS, c_uint16)
        if has != (self._rows, self._cols):
            done = self._lib.ghostty_terminal_resize(self._terminal, self._cols, self._rows, *_CELL_PIXELS)
            _check(done, f"cannot resize to {self._rows} x {self._cols}")

    def _limit_history(self) -> None:
        limit = (self._history_lines + self._rows) * self._cols * BYTES_PER_CELL
        self._set(OPT_SCROLLBACK_MAX_BYTES, c_size_t(limit))
        self._set(OPT_SCROLLBACK_MAX_LINES, c_size_t(self._history_lines))

    def _set(self, option: int, value: Any) -> None:
        done = self._lib.ghostty_terminal_set(self._terminal, option, byref(value))
        _check(done, f"option {option} was rejected")

    def _get(self, key: int, kind: type[Any]) -> int:
        value = kind()
        _check(self._lib.ghostty_terminal_get(self._terminal, key, byref(value)), f"cannot read value {key}")
        return int(value.value)

    def _ref(self, tag: int, x: int, y: int) -> GridRef:
        ref = GridRef(size=ctypes.sizeof(GridRef))
        done = self._lib.ghostty_terminal_grid_ref(self._terminal, Point(tag=tag, x=x, y=y), byref(ref))
        _check(done, f"cannot read cell {x}, {y}")
        return ref

    def _format(self, emit: int, top: GridRef, *, unwrap: bool = False) -> str:
        """Return the text from `top` to the end of the screen."""
        bottom = self._ref(POINT_ACTIVE, self._cols - 1, self._rows - 1)
        area = Selection(size=ctypes.sizeof(Selection), start=top, end=bottom)
        options = FormatOptions(size=ctypes.sizeof(FormatOptions), emit=emit, unwrap=unwrap, trim=True)
        options.extra.size = ctypes.sizeof(TerminalExtra)
        options.extra.screen.size = ctypes.sizeof(ScreenExtra)
        options.selection = ctypes.pointer(area)
        formatter = c_void_p()
        made = self._lib.ghostty_formatter_terminal_new(None, byref(formatter), self._terminal, options)
        _check(made, "no formatter")
        size = c_size_t()
        done = _OUT_OF_SPACE
        try:
            while done == _OUT_OF_SPACE:
                room = len(self._buffer)
                done = self._lib.ghostty_formatter_format_buf(formatter, self._buffer, room, byref(size))
                if done == _OUT_OF_SPACE:
                    self._buffer = ctypes.create_string_buffer(max(size.value, 2 * room))
        finally:
            self._lib.ghostty_formatter_free(formatter)
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
