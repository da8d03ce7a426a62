"""Find the reply of a program without a transcript: the lines that are new on its screen."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final

import msgspec

#: Stands for the lines of an answer that were on the screen, but are there no more.
SCROLLED: Final = "[the lines before these have scrolled off the screen]"

_SCROLLBAR: Final = re.compile(r"(?:^|\s)[│┃║█▌▐▕░▒▓]$")
#: What CLIs draw before the first line of an answer.
_BULLET: Final = re.compile(r"(\s*)([●⏺✦◆])\s(?=\s*\S)")


class Surround(msgspec.Struct, frozen=True, kw_only=True):
    """What stands above and below the conversation on each screen that was seen before a prompt."""

    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    def shared_with(self, rows: Sequence[str]) -> "Surround":
        """Return what one more screen has of it."""
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
    """Return the answer to a prompt that ends in `footer`, without furniture or blank ends.

    It stands below the echo of the prompt. Where `is_cut` says that the echo has scrolled off, the screen
    shows the rest of an answer. Where only the `header` of the prompt shows, as of a queued one, nothing
    above it is the answer. Without any echo the lines count that `after` has and `before` had not.
    """
    surround = surround or Surround()
    row = _echo_row(before, after, footer) if footer else None
    if row is not None:
        beside = after[row].partition(footer)[2]
        # What is set off from the echo in its row, such as the time of day, belongs to the echo.
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
    """Tell whether the echo of a prompt that ends in `footer` shows."""
    return _echo_row(before, after, footer) is not None


def _echo_row(before: Sequence[str], after: Sequence[str], footer: str) -> int | None:
    """Return the row of the first new `footer`; an answer may quote it further down."""
    start = _common(before, after)
    old = sum(footer in line for line in before[start:])
    rows = [y for y in range(start, len(after)) if footer in after[y]]
    return rows[old] if len(rows) > old else None


def _without_below(lines: Sequence[str], below: Sequence[str]) -> Sequence[str]:
    """Return lines without what always stands below them."""
    return lines[: len(lines) - _common(lines[::-1], below[::-1])]


def _rest(before: Sequence[str], after: Sequence[str], surround: Surround) -> Sequence[str]:
    """Return the rest of an answer whose beginning has scrolled off.

    That is all of the screen, the same text as before too, unless old lines stand above the new ones.
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
    """Return a text without the bullet before its first line, and without the blanks before all lines."""
    first, *rest = text.split("\n")
    bullet = _BULLET.match(first)
    indent = " " * bullet.end() if bullet else ""
    if bullet and all(line.startswith(indent) for line in rest if line):
        first = indent + first[bullet.end() :]
    lines = [first, *rest]
    blanks = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return "\n".join(line[blanks:] for line in lines)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the lines that both begin with; they are most of a long history."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((count for count, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))


def without_scrollbar(lines: Iterable[str], cols: int) -> list[str]:
    """Return the lines of a screen `cols` wide without what a program draws at its right side."""
    return [_SCROLLBAR.sub("", line).rstrip() if len(line) >= cols - 1 else line for line in lines]


def without_last(text: str, signs: Sequence[re.Pattern[str]]) -> str:
    """Return a text without the lines at its end that have one of the signs."""
    lines = text.split("\n")
    while lines and (not lines[-1].strip() or any(sign.search(lines[-1]) for sign in signs)):
        lines.pop()
    return "\n".join(lines)
