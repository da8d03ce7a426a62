"""Follow our prompt on the screen of a program without a profile: locate it, then read its reply.

The paste itself reveals the composer: the text that consequently appears at the caret is ours. A prompt
has left the composer when it is no longer shown and its place looks as before the paste. For a program
without a transcript, the reply is the new text on its screen.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from enum import Enum, auto
from typing import Final, NamedTuple

import msgspec

from csp.terminal.screen import Screen, ScreenRow

_BARS: Final = ("│", "┃", "▌", "▏")
#: Characters of borders and rules; such rows are never part of a composer's text.
_LINES: Final = frozenset("─━═╌┄▄▀▔▁")
_CORNERS: Final = frozenset(" ╭╮╰╯┌┐└┘├┤╹╻│┃")
_RULE_LENGTH: Final = 4
#: Maximum length of the prompt symbol that a program draws before text typed while it was starting.
_SIGN_LENGTH: Final = 3
#: The markers that CLIs show in place of a long paste.
_MARKER: Final = re.compile(r"\[\s*(?:Pasted|Paste|Pasting)\b[^\]]{0,60}\]", re.IGNORECASE)
_UNSEEN: Final = re.compile(r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]+")
#: A row that ends this close to the right edge may continue on the next row.
_MARGIN: Final = 2
#: The replacement for lines of an answer that have scrolled off the screen.
SCROLLED: Final = "[the lines before these have scrolled off the screen]"

_SCROLLBAR: Final = re.compile(r"(?:^|\s)[│┃║█▌▐▕░▒▓]$")
#: The bullets that CLIs draw before the first line of an answer.
_BULLET: Final = re.compile(r"(\s*)([●⏺✦◆])\s(?=\s*\S)")


class PastePlace(Enum):
    """The location of our prompt."""

    HERE = auto()  # in the composer, with nothing before it
    EMPTY = auto()  # not in the composer, which is empty
    GONE = auto()  # no longer where it was, but no empty composer is shown either
    OTHER = auto()  # something else is in the composer
    UNSEEN = auto()  # there is no readable composer


class Caret(NamedTuple):
    row: int
    col: int


class _Spot(NamedTuple):
    """The position of our mark before Enter: its row from the top and the end, and the text around it."""

    mark: str
    row: int
    below: int
    prefix: str
    next: str


class PasteContext(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that the screen does not show."""

    is_entered: bool = False
    is_clearing: bool = False
    #: The program reads whole lines (canonical mode), so it does not have its own line editor.
    reads_lines: bool = False
    #: The time allowed for the program to show a paste is over.
    is_late: bool = False
    #: A person has typed since the paste.
    has_typed: bool = False


def find_caret(screen: Screen) -> Caret | None:
    """Return the insertion point: the cursor, or the one that a program draws while hiding it."""
    if screen.cursor_visible:
        return Caret(screen.cursor_row, screen.cursor_col) if screen.cursor_row < len(screen.rows) else None
    for y in range(len(screen.rows) - 1, -1, -1):
        col = 0
        for run in screen.rows[y].runs:
            if run.style.reverse and len(run.text) == 1:
                return Caret(y, col)
            col += len(run.text)
    return None


def stands_behind(screen: Screen, caret: Caret, text: str) -> bool:
    """Return whether all of the composer's `text` is after the caret, as with a placeholder."""
    behind = "".join(run.text for run in screen.rows[caret.row].runs)[caret.col :]
    return _compact(_inner(behind)) == _compact(text)


def is_blank(screen: Screen) -> bool:
    return not any(row.text for row in screen.rows)


class PasteLocator:
    """A tracker of one prompt on the screen; `before` is the screen just before its paste, if known."""

    def __init__(self, header: str, footer: str, before: Screen | None) -> None:
        self._header, self._footer = _compact(header), _compact(footer)
        self._last_line = footer
        self._before = before
        caret = find_caret(before) if before is not None else None
        left = _left(before, caret) if before is not None and caret is not None else ""
        self._has_bar = left.strip().startswith(_BARS)
        self._sign = _inner(left)
        #: The text after the prompt symbol: nothing or a space.
        self._ends = ("",) if left[-1:].strip() else (" ", "\xa0")
        self._empty = self._composed(before, caret) if before is not None and caret is not None else ""
        #: The text that the composer shows in place of the prompt, if it does not show the prompt itself.
        self._mark = ""
        self._is_whole = False
        #: The text that a program puts before each continuation row, such as `...`.
        self._goes_on_with = ""
        #: Its position before Enter, and whether that is the only clue because there is no caret.
        self._spot: _Spot | None = None
        self._is_astray = False

    def look(self, screen: Screen, known: PasteContext) -> PastePlace:
        """Return the current location of the prompt."""
        before = self._before
        # The program may have taken over the screen after a paste that it may not have read.
        has_come_up = before is not None and (
            (screen.alternate and not before.alternate)
            or (screen.bracketed_paste and not before.bracketed_paste)
        )
        if is_blank(screen) or (has_come_up and not self._has_taken_up(screen)):
            return PastePlace.UNSEEN
        caret = find_caret(screen)
        if caret is None or self._is_astray:
            return self._placed(screen, known)
        text = self._composed(screen, caret)
        if known.is_entered:
            return self._entered(screen, caret, text, known)
        place = self._pasted(screen, caret, text, known)
        if place is PastePlace.EMPTY and known.is_late and self._has_come(screen):
            # It is shown, but not at the caret: the cursor is not where text is inserted.
            return self._placed(screen, known)
        if place is PastePlace.HERE:
            self._spot, self._is_whole = self._find_spot(screen), self._header in text
            self._goes_on_with = _compact(self._own(_left(screen, caret)).partition(self._last_line)[0])
        return place

    def _has_taken_up(self, screen: Screen) -> bool:
        """Return whether a program started since then shows the prompt after a symbol; if so, adopt that
        symbol.

        Without a symbol, the text may be the terminal's echo, which the program need not have read.
        """
        caret = find_caret(screen)
        text = self._composed(screen, caret) if caret is not None else ""
        sign, found, _ = text.partition(self._header)
        if not (found and text.endswith(self._footer) and 0 < len(sign) <= _SIGN_LENGTH):
            return False
        self._before, self._sign, self._ends, self._empty = None, sign, ("",), ""
        return True

    # --- before Enter ----------------------------------------------------------------------------

    def _pasted(self, screen: Screen, caret: Caret, text: str, known: PasteContext) -> PastePlace:
        if text.endswith(self._footer):
            is_ours = text.rfind(self._header) <= 0
            return PastePlace.HERE if is_ours else PastePlace.OTHER
        left = _left(screen, caret)
        here = self._own(left)
        found = _MARKER.search(here)
        is_ours = found is not None and _compact(found[0]) == _compact(here)
        if known.is_late and not known.has_typed and here.strip():
            # Text was added to the same composer; a dialog may have replaced it, though.
            is_barred = self._has_bar and left.lstrip().startswith(_BARS)
            is_ours = is_ours or (self._is_signed(left) if self._sign else is_barred)
        if is_ours:
            self._mark = _compact(here)
            return PastePlace.HERE
        return PastePlace.EMPTY if text == self._empty else PastePlace.OTHER

    # --- after Enter -----------------------------------------------------------------------------

    def _entered(self, screen: Screen, caret: Caret, text: str, known: PasteContext) -> PastePlace:
        if self._stands_in(screen, text, known):
            is_read = known.reads_lines and not self._own(_left(screen, caret)).strip()
            return PastePlace.EMPTY if is_read else PastePlace.HERE
        if text in ("", self._empty):
            return PastePlace.EMPTY
        is_added_to = known.has_typed and any(mark and mark in text for mark in (self._footer, self._mark))
        return PastePlace.OTHER if is_added_to else PastePlace.GONE

    def _stands_in(self, screen: Screen, text: str, known: PasteContext) -> bool:
        """Return whether a composer contains the prompt; any text after its end would be the program's."""
        more = self._goes_on_with
        while more and not self._mark and text.endswith(self._footer + more):
            text = text.removesuffix(more)
        if text.endswith(self._footer):
            # If the first line was visible before, the last line alone belongs to a copy above the composer.
            is_shown = any(self._header in _compact(row.text) for row in screen.rows)
            return self._header in text or not self._is_whole or not is_shown
        if self._mark and text.endswith(self._mark):
            return True
        return known.is_clearing and text.startswith(self._header) and self._footer not in text

    # --- without a caret -------------------------------------------------------------------------

    def _placed(self, screen: Screen, known: PasteContext) -> PastePlace:
        """Judge by the position of the text that appeared with the paste, because there is no caret."""
        if self._spot is not None and self._is_held(screen, self._spot):
            return PastePlace.HERE
        is_as_before = self._before is not None and screen.text == self._before.text
        if known.is_entered:
            return PastePlace.EMPTY if is_as_before else PastePlace.GONE
        if known.is_late and self._has_come(screen):
            self._spot, self._is_astray = self._find_spot(screen), True
            return PastePlace.HERE
        return PastePlace.EMPTY if is_as_before else PastePlace.UNSEEN

    def _has_come(self, screen: Screen) -> bool:
        """Return whether our last line, or a paste marker, is newly shown."""
        return self._before is not None and self._count(screen) > self._count(self._before)

    def _count(self, screen: Screen) -> int:
        return sum(self._last_line in row.text or bool(_MARKER.search(row.text)) for row in screen.rows)

    def _find_spot(self, screen: Screen) -> _Spot | None:
        rows = screen.rows
        last = _last_row(rows)
        for y in range(last, -1, -1):
            marker = _MARKER.search(rows[y].text)
            mark = self._last_line if self._last_line in rows[y].text else marker[0] if marker else ""
            if mark:
                prefix = rows[y].text.partition(mark)[0]
                following = rows[y + 1].text if y + 1 < len(rows) else ""
                return _Spot(mark, y, last - y, prefix, following)
        return None

    def _is_held(self, screen: Screen, spot: _Spot) -> bool:
        rows, last = screen.rows, _last_row(screen.rows)
        for y, row in enumerate(rows):
            prefix, found, _ = row.text.partition(spot.mark)
            following = rows[y + 1].text if y + 1 < len(rows) else ""
            if not found or prefix != spot.prefix or following != spot.next:
                continue
            if last - y == spot.below or (y == spot.row and following.strip()):
                return True
        return False

    # --- the composer ----------------------------------------------------------------------------

    def _composed(self, screen: Screen, caret: Caret) -> str:
        """Return the composer's text up to the caret, without whitespace, prompt symbols or frames."""
        here = _left(screen, caret)
        parts = [self._own(here)]
        is_first = self._is_signed(here)
        y = caret.row - 1
        while y >= 0 and not is_first and self._goes_on(screen, y, parts):
            is_first = self._is_signed(screen.rows[y].text)
            parts.insert(0, self._own(screen.rows[y].text))
            y -= 1
        return _compact("".join(parts))

    def _goes_on(self, screen: Screen, y: int, parts: Sequence[str]) -> bool:
        """Return whether the row above these parts may belong to the same text."""
        text = screen.rows[y].text
        if set(text) <= _LINES | _CORNERS and sum(sign in _LINES for sign in text) >= _RULE_LENGTH:
            return False
        if self._has_bar:
            return text.lstrip().startswith(_BARS)
        if self._sign:
            return True
        # The composer has no frame: its text is the text right before the caret, perhaps wrapped.
        return not any(part.strip() for part in parts) or len(text) >= screen.cols - _MARGIN

    def _is_signed(self, text: str) -> bool:
        inner, sign = _inner(text), self._sign
        return bool(sign) and (inner == sign or inner.startswith(tuple(sign + end for end in self._ends)))

    def _own(self, text: str) -> str:
        inner = _inner(text)
        return inner[len(self._sign) :] if self._is_signed(text) else inner


def _inner(text: str) -> str:
    """Return a row's text without whitespace or the sides of a box."""
    text = text.strip()
    text = text[1:].lstrip() if text.startswith(_BARS) else text
    return text[:-1].rstrip() if text.endswith(_BARS) else text


def _left(screen: Screen, caret: Caret) -> str:
    return "".join(run.text for run in screen.rows[caret.row].runs)[: caret.col].ljust(caret.col)


def _last_row(rows: Sequence[ScreenRow]) -> int:
    return max((y for y, row in enumerate(rows) if row.text), default=0)


def _compact(text: str) -> str:
    return _UNSEEN.sub("", text)


# --- the reply -----------------------------------------------------------------------------------


class Surround(msgspec.Struct, frozen=True, kw_only=True):
    """The rows above and below the conversation on every screen seen before a prompt."""

    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    def shared_with(self, rows: Sequence[str]) -> "Surround":
        """Return the part that another screen shares."""
        above, below = _common(self.above, rows), _common(self.below[::-1], rows[::-1])
        return Surround(above=self.above[:above], below=self.below[len(self.below) - below :])


def settled_text(
    before: Sequence[str],
    after: Sequence[str],
    footer: str = "",
    *,
    header: str = "",
    surround: Surround | None = None,
    furniture: re.Pattern[str] | None = None,
    is_cut: bool = False,
) -> str:
    """Return the answer to a prompt that ends in `footer`, without the rows or blank lines around it.

    The answer is below the echo of the prompt. If the echo has scrolled off (`is_cut`), the screen shows the
    rest of an answer. If only the `header` of the prompt is shown, as for a queued prompt, the answer is
    below it. Without any echo, the answer consists of the lines in `after` that are not in `before`.
    """
    surround = surround or Surround()
    row = _echo_row(before, after, footer) if footer else None
    if row is not None:
        beside = after[row].partition(footer)[2]
        # Text in the row that is set off from the echo, such as the time of day, belongs to the echo.
        is_answer = beside.strip() and not beside.startswith("  ")
        lines = _without_below([*([beside] if is_answer else []), *after[row + 1 :]], surround.below)
    elif is_cut:
        lines = _rest(before, after, surround)
    elif header and (begun := _echo_row(before, after, header)) is not None:
        lines = _without_below(after[begun + 1 :], surround.below)
    else:
        lines = _added(before, after)
    kept = [line.rstrip() for line in lines if not (furniture and furniture.search(line))]
    text = _flush_left("\n".join(kept).strip("\n"))
    return f"{SCROLLED}\n{text}" if is_cut and row is None and text else text


def has_echo(before: Sequence[str], after: Sequence[str], footer: str) -> bool:
    """Return whether the echo of a prompt that ends in `footer` is shown."""
    return _echo_row(before, after, footer) is not None


def _echo_row(before: Sequence[str], after: Sequence[str], footer: str) -> int | None:
    """Return the row of the first new `footer`; an answer may quote it further down."""
    start = _common(before, after)
    old = sum(footer in line for line in before[start:])
    rows = [y for y in range(start, len(after)) if footer in after[y]]
    return rows[old] if len(rows) > old else None


def _without_below(lines: Sequence[str], below: Sequence[str]) -> Sequence[str]:
    """Return the lines without those that are always below them."""
    return lines[: len(lines) - _common(lines[::-1], below[::-1])]


def _rest(before: Sequence[str], after: Sequence[str], surround: Surround) -> Sequence[str]:
    """Return the rest of an answer whose start has scrolled off.

    That is the whole screen, even text that was there before, unless old lines are above the new ones.
    """
    above = _common(surround.above, after)
    shown = _without_below(after[above if above == len(surround.above) else 0 :], surround.below)
    added = _added(before, shown)
    first = next((line for line in shown if line.strip()), "")
    return added if any(map(str.strip, added)) and first not in added else shown


def _added(before: Sequence[str], after: Sequence[str]) -> list[str]:
    start = _common(before, after)
    old, new = before[start:], after[start:]
    added: list[str] = []
    for tag, _, _, low, high in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            added.extend(new[low:high])
    return added


def _flush_left(text: str) -> str:
    """Return the text without the bullet before its first line and without common indentation."""
    first, *rest = text.split("\n")
    bullet = _BULLET.match(first)
    indent = " " * bullet.end() if bullet else ""
    if bullet and all(line.startswith(indent) for line in rest if line):
        first = indent + first[bullet.end() :]
    lines = [first, *rest]
    blanks = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return "\n".join(line[blanks:] for line in lines)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the leading lines that are equal; in a long history these are most of the lines."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((count for count, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))


def without_scrollbar(lines: Iterable[str], cols: int) -> list[str]:
    """Return the lines of a screen `cols` wide without a scroll bar at the right edge."""
    return [_SCROLLBAR.sub("", line).rstrip() if len(line) >= cols - 1 else line for line in lines]


def without_last(text: str, signs: Sequence[re.Pattern[str]]) -> str:
    """Return the text without trailing lines that match one of the patterns."""
    lines = text.split("\n")
    while lines and (not lines[-1].strip() or any(sign.search(lines[-1]) for sign in signs)):
        lines.pop()
    return "\n".join(lines)
