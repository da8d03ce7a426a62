"""What a terminal shows: rows of styled text."""

from dataclasses import dataclass, field
from typing import Final


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
class Run:
    """Text of one style."""

    text: str
    style: Style = PLAIN


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the screen, as runs from left to right."""

    runs: tuple[Run, ...] = ()
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


BLANK: Final = Row()


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One moment of a terminal; the cursor counts cells from 0, at the top left."""

    rows: tuple[Row, ...]
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
