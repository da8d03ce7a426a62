"""What a program has written between two looks at its output."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final

_SCROLLBAR: Final = re.compile(r"(?:^|\s)[│┃║█▌▐▕░▒▓]$")


def settled_text(before: list[str], after: list[str], furniture: re.Pattern[str] | None = None) -> str:
    """Give the lines that `after` has and `before` had not, in order, without furniture or blank ends."""
    start = _common(before, after)
    old, new = before[start:], after[start:]
    added: list[str] = []
    for tag, _, _, low, high in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            added.extend(new[low:high])
    lines = [line.rstrip() for line in added if not (furniture and furniture.search(line))]
    return "\n".join(lines).strip("\n")


def _common(before: list[str], after: list[str]) -> int:
    """Count the lines that both begin with; they are most of a long history."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def without_scrollbar(lines: Iterable[str], cols: int) -> list[str]:
    """Return the lines of a screen `cols` wide without what a program draws at its right side."""
    return [_SCROLLBAR.sub("", line).rstrip() if len(line) >= cols - 1 else line for line in lines]


def behind_echo(text: str, footer: str) -> str:
    """Return what follows the first `footer`, the end of a prompt's echo; all of it where there is no echo.

    What is set off in the same row, such as the time of day, belongs to the echo. The answer may quote it.
    """
    _, found, behind = text.partition(footer)
    row, _, below = behind.partition("\n")
    answer = text if not found else below if row.startswith("  ") else behind
    return answer.strip("\n")


def without_last(text: str, signs: Sequence[re.Pattern[str]]) -> str:
    """Return a text without the lines at its end that have one of the signs."""
    lines = text.split("\n")
    while lines and (not lines[-1].strip() or any(sign.search(lines[-1]) for sign in signs)):
        lines.pop()
    return "\n".join(lines)
