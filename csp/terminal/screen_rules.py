"""The patterns by which the screen of one kind of CLI is read."""

import re
from dataclasses import dataclass, field
from enum import StrEnum


class SignPlace(StrEnum):
    """Where on the screen a sign counts; elsewhere an agent's own text could imitate it."""

    ABOVE = "above"  # the rows right above the composer
    BELOW = "below"  # the rows below the composer
    DIALOG = "dialog"  # inside an open dialog
    BARE = "bare"  # anywhere, while there is neither a composer nor a dialog


class Frame(StrEnum):
    """How a CLI sets its composer off from the rest."""

    BORDERS = "borders"  # between two border rows
    SHADED = "shaded"  # between two border rows, else by its background
    SIGN = "sign"  # from the last row that begins with the prompt sign
    CURSOR = "cursor"  # the row that the cursor is in
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A pattern that means something in one place; `kind` says what, `until` is a group of the pattern."""

    pattern: re.Pattern[str]
    place: SignPlace
    kind: str = ""
    is_styled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposerRules:
    """How the composer is drawn."""

    frame: Frame = Frame.NONE
    top: re.Pattern[str] | None = None
    bottom: re.Pattern[str] | None = None
    scrolled: re.Pattern[str] | None = None
    """The border above a composer whose first rows, with the sign, are hidden."""
    sign: re.Pattern[str] | None = None
    other_sign: re.Pattern[str] | None = None
    """Stands in for the sign when what is typed is not a prompt, as in a shell mode: never empty."""
    edge: re.Pattern[str] | None = None
    """What closes a row at the right, as the side of a box does."""
    placeholder: re.Pattern[str] | None = None
    placeholder_colours: frozenset[str] = frozenset()
    is_placeholder_faint: bool = False
    paste_marker: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogRules:
    """How a dialog with choices is drawn."""

    choice: re.Pattern[str] | None = None
    """Groups `mark` (empty unless selected), `number`, `label`."""
    listed: re.Pattern[str] | None = None
    """The selected row of a list without numbers, with the cursor on it: groups `mark`, `label`."""
    yes: re.Pattern[str] | None = None
    no: re.Pattern[str] | None = None
    """The labels that approve, that deny, where no key does."""
    top: re.Pattern[str] | None = None
    """The row above a dialog's first."""
    side: re.Pattern[str] | None = None
    """What frames its rows, to be cut off."""
    is_question_first: bool = False
    question: re.Pattern[str] | None = None
    kinds: tuple[Sign, ...] = ()
    max_rows_after: int = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRules:
    """All that reading a screen needs to know about a CLI."""

    composer: ComposerRules = field(default_factory=ComposerRules)
    dialog: DialogRules = field(default_factory=DialogRules)
    blocked: tuple[Sign, ...] = ()
    busy: tuple[Sign, ...] = ()
    limits: tuple[Sign, ...] = ()
    overlays: tuple[Sign, ...] = ()
    starting: tuple[Sign, ...] = ()
    """What shows in the place of a notice that would say why nothing may be typed yet."""
    furniture: re.Pattern[str] | None = None
    """Rows that are never part of an answer."""
