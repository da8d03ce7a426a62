"""The few calls of pyghostty's native library that the emulator makes.

The library that the wheel carries is loaded by ctypes: importing the package itself parses the whole
C interface, which costs 0.3 s of a processor and 12 MB, and this costs 5 ms. The layouts below hold for
the one version that is pinned, and a test compares them with the package's own.
"""

import ctypes
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_int, c_size_t, c_uint16, c_uint32, c_void_p
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

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
DATA_KITTY_KEYBOARD_FLAGS: Final = 8
DATA_SCROLLBACK_ROWS: Final = 15
DATA_MODE: Final = 37


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
    """Load the library of the pinned version; raise OSError if it is not installed or is another one."""
    spec = PathFinder.find_spec("pyghostty")
    if spec is None or spec.origin is None:
        raise OSError("pyghostty is not installed")
    package = Path(spec.origin).parent
    if not (package.parent / f"pyghostty-{VERSION}.dist-info").is_dir():
        raise OSError(f"pyghostty is not at version {VERSION}, whose memory layout is known")
    path = next((package / "_lib" / name for name in _LIBRARIES if (package / "_lib" / name).exists()), None)
    if path is None:
        raise OSError(f"no native library in {package}")
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


__all__ = ["byref", "load"]
