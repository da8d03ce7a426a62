"""What a terminal shows: rows of styled text, in whole frames."""

from dataclasses import dataclass, field
from typing import Final

#: A program that has not ended its frame for so long, or that has drawn so much, is not waited for.
FRAME_S: Final = 0.2
MAX_FRAME_BYTES: Final = 1 << 20
#: Synchronised output: what stands between is one frame.
_BEGIN: Final = b"\x1b[?2026h"
_END: Final = b"\x1b[?2026l"


class Frames:
    """Holds back a frame until the program has said that it is whole: half a frame would be misread."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._since = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """Take output in any pieces; return what may be shown."""
        searched = max(0, len(self._held) - len(_END) + 1)
        self._held += data
        end = self._held.rfind(_END, searched)
        begin = self._held.find(_BEGIN, 0 if end < 0 else end + len(_END))
        # The first bytes of a frame may be the last ones of a piece.
        whole = begin if begin >= 0 else len(self._held) - _cut_off(self._held)
        if whole or not searched:
            self._since = now
        shown = bytes(self._held[:whole])
        del self._held[:whole]
        return shown if len(self._held) <= MAX_FRAME_BYTES else shown + self.release()

    @property
    def due(self) -> float | None:
        """Return when to `release` what is held back, if anything is."""
        return self._since + FRAME_S if self._held else None

    def release(self) -> bytes:
        """Return what is held back, whole or not."""
        held = bytes(self._held)
        self._held.clear()
        return held


def _cut_off(data: bytearray) -> int:
    """Return how many bytes at the end may be those that a frame begins with."""
    return next((size for size in range(len(_BEGIN) - 1, 0, -1) if data.endswith(_BEGIN[:size])), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Say how text is drawn; a colour is a palette index ("246"), an RGB value ("#afafaf") or the default."""

    fg: str | None = None
    bg: str | None = None
    bold: bool = False
    faint: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


PLAIN: Final = Style()


@dataclass(frozen=True, slots=True)
class StyledText:
    """Text of one style."""

    text: str
    style: Style = PLAIN


@dataclass(frozen=True, slots=True)
class ScreenRow:
    """One row of the screen, as runs from left to right."""

    runs: tuple[StyledText, ...] = ()
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        text = "".join(run.text for run in self.runs)
        object.__setattr__(self, "text", text.rstrip(" "))

    def style_at(self, place: int) -> Style:
        """Give the style of the character at a place of the text; plain behind its end."""
        for run in self.runs:
            if place < len(run.text):
                return run.style
            place -= len(run.text)
        return PLAIN


BLANK: Final = ScreenRow()


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One moment of a terminal; the cursor counts cells from 0, at the top left."""

    rows: tuple[ScreenRow, ...]
    cols: int
    cursor_row: int = 0
    cursor_col: int = 0
    cursor_visible: bool = True
    alternate: bool = False
    title: str = ""
    bracketed_paste: bool = False
    is_drawing: bool = False
    """The program has said that what it draws is not yet whole (?2026)."""
    kitty_flags: int = 0

    @property
    def text(self) -> str:
        """Give the rows as lines, without blank ones at the end."""
        return "\n".join(row.text for row in self.rows).rstrip("\n")
