"""A terminal's screen: rows of styled text, whole frames, and the patterns for reading a CLI's screen."""

import re
from enum import StrEnum
from functools import cached_property
from typing import Final

import msgspec

from csp.protocol.screen_frames import PLAIN, RunView, StyleView

#: Do not wait for the end of a frame that takes longer than this, or that is larger than this.
FRAME_S: Final = 0.2
MAX_FRAME_BYTES: Final = 1 << 20
#: Synchronised output: everything between these sequences is one frame.
_BEGIN: Final = b"\x1b[?2026h"
_END: Final = b"\x1b[?2026l"


class Frames:
    """Holds back a frame until the program marks it as complete: half a frame would be misread."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._since = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """Process output in chunks of any size; return the part that may be shown."""
        searched = max(0, len(self._held) - len(_END) + 1)
        self._held += data
        end = self._held.rfind(_END, searched)
        begin = self._held.find(_BEGIN, 0 if end < 0 else end + len(_END))
        whole = begin
        if begin < 0:
            # The end of this piece may be the start of a frame marker.
            sizes = range(len(_BEGIN) - 1, 0, -1)
            whole = len(self._held) - next((n for n in sizes if self._held.endswith(_BEGIN[:n])), 0)
        if whole or not searched:
            self._since = now
        shown = bytes(self._held[:whole])
        del self._held[:whole]
        return shown if len(self._held) <= MAX_FRAME_BYTES else shown + self.release()

    @property
    def due(self) -> float | None:
        """Return when to `release` the held output, if there is any."""
        return self._since + FRAME_S if self._held else None

    def release(self) -> bytes:
        """Return the held output, complete or not."""
        held = bytes(self._held)
        self._held.clear()
        return held


class ScreenRow(msgspec.Struct, frozen=True, dict=True):
    """One row of the screen, as runs of styled text from left to right."""

    runs: tuple[RunView, ...] = ()

    @cached_property
    def text(self) -> str:
        return "".join(run.text for run in self.runs).rstrip(" ")

    def style_at(self, place: int) -> StyleView:
        """Return the style of the character at this position in the text; plain past its end."""
        for run in self.runs:
            if place < len(run.text):
                return run.style
            place -= len(run.text)
        return PLAIN


BLANK: Final = ScreenRow()


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a terminal at one moment; the cursor is counted in cells from 0 at the top left."""

    rows: tuple[ScreenRow, ...]
    cols: int
    cursor_row: int = 0
    cursor_col: int = 0
    cursor_visible: bool = True
    alternate: bool = False
    title: str = ""
    bracketed_paste: bool = False

    @property
    def text(self) -> str:
        """Return the rows as lines, without blank lines at the end."""
        return "\n".join(row.text for row in self.rows).rstrip("\n")


# --- rules for reading a CLI's screen -------------------------------------------------------------


class SignPlace(StrEnum):
    """The part of the screen where a pattern counts; elsewhere an agent's own text could imitate it."""

    ABOVE = "above"  # the rows right above the composer
    BELOW = "below"  # the rows below the composer
    DIALOG = "dialog"  # inside an open dialog
    BARE = "bare"  # anywhere, while there is neither a composer nor a dialog


class Frame(StrEnum):
    """The way a CLI separates its composer from the rest of the screen."""

    BORDERS = "borders"  # between two border rows
    SHADED = "shaded"  # between two border rows, or else by its background
    SIGN = "sign"  # from the last row that begins with the prompt symbol
    CURSOR = "cursor"  # the row of the cursor
    NONE = "none"


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern for one part of the screen; `kind` names its meaning, and `until` is one of its groups."""

    pattern: re.Pattern[str]
    place: SignPlace
    kind: str = ""
    is_styled: bool = False


class ComposerRules(msgspec.Struct, frozen=True, kw_only=True):
    """The appearance of the composer."""

    frame: Frame = Frame.NONE
    top: re.Pattern[str] | None = None
    bottom: re.Pattern[str] | None = None
    #: The border above a composer whose first rows, including the prompt symbol, are hidden.
    scrolled: re.Pattern[str] | None = None
    sign: re.Pattern[str] | None = None
    #: Replaces the symbol when the input is not a prompt, as in a shell mode; such a composer is never empty.
    other_sign: re.Pattern[str] | None = None
    #: The right end of a row, such as the side of a box.
    edge: re.Pattern[str] | None = None
    placeholder: re.Pattern[str] | None = None
    placeholder_colours: frozenset[str] = frozenset()
    is_placeholder_faint: bool = False
    paste_marker: re.Pattern[str] | None = None


class DialogKind(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern for a question or its choices, and the name of such a dialog."""

    pattern: re.Pattern[str]
    kind: str = ""


class DialogRules(msgspec.Struct, frozen=True, kw_only=True):
    """The appearance of a dialog with choices."""

    #: Groups `mark` (empty unless selected), `number`, `label`.
    choice: re.Pattern[str] | None = None
    #: The selected row of a list without numbers, with the cursor on it: groups `mark`, `label`.
    listed: re.Pattern[str] | None = None
    #: The labels that approve and deny, if no key does.
    yes: re.Pattern[str] | None = None
    no: re.Pattern[str] | None = None
    #: The row above the first row of a dialog.
    top: re.Pattern[str] | None = None
    #: The frame around its rows, which is cut off.
    side: re.Pattern[str] | None = None
    is_question_first: bool = False
    question: re.Pattern[str] | None = None
    max_rows_after: int = 6
    kinds: tuple[DialogKind, ...] = ()


class ScreenRules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules needed to read a CLI's screen."""

    #: Rows that are never part of an answer.
    furniture: re.Pattern[str] | None = None
    composer: ComposerRules = ComposerRules()
    dialog: DialogRules = DialogRules()
    blocked: tuple[Sign, ...] = ()
    busy: tuple[Sign, ...] = ()
    limits: tuple[Sign, ...] = ()
    overlays: tuple[Sign, ...] = ()
    #: Shown in place of a notice that would explain why nothing may be typed yet.
    starting: tuple[Sign, ...] = ()
    #: Shown while text stays in the composer after Enter and is submitted later; a key would withdraw it.
    accepted: tuple[Sign, ...] = ()
