"""Commands that somebody got nearly right.

Only what has the form of a command is looked at; `@claude said`, `@all-hands`, `@sendgrid` are prose.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

#: Commands that name an agent behind the dot.
ADDRESSED: Final = ("send", "handoff")
FIXED: Final = ("mode.set", "mode.status", "query.log")
PLAIN: Final = ("all", "working", "final")
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,32}")
_SHOWN: Final = 60
_CUTOFF: Final = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Misspelt:
    """A line that was meant as a command; if it says to whom, it counts only where `to` is somebody."""

    line: str
    hint: str
    to: str = ""


def misspelt(line: str, hint: str, to: str = "") -> Misspelt:
    """Return what is wrong with `line`, of which a notice shows the beginning."""
    shown = line.rstrip()
    return Misspelt(line=shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…", hint=hint, to=to)


def near_miss(line: str, word: str, tail: str | None, mark: str, rest: str) -> Misspelt | None:
    """Return what `@word.tail` was meant to be; `mark` is a colon or comma behind it, `rest` what follows."""
    hint, to = _dotted(word, tail, mark) if tail is not None else _undotted(word, mark, rest)
    return misspelt(line, hint, to) if hint else None


def _dotted(word: str, tail: str, mark: str) -> tuple[str, str]:
    lower = word.lower()
    meant = next((name for name in ADDRESSED if _is_near(lower, name)), "")
    if meant and not tail:
        return f"name an agent: @{meant}.<id> text", ""
    if meant:
        return f"write it as @{meant}.{tail.lower()}" + (f" without the {mark!r}" if mark else ""), ""
    close = get_close_matches(f"{lower}.{tail.lower()}", FIXED, n=1, cutoff=_CUTOFF)
    return (f"write it as @{close[0]}" if close else ""), ""


def _undotted(word: str, mark: str, rest: str) -> tuple[str, str]:
    lower = word.lower()
    first, _, more = rest.partition(" ")
    if lower in ADDRESSED and not mark and more.strip() and _ID.fullmatch(first):
        return f"write it as @{lower}.{first.lower()} text", first.lower()
    if f"{lower}.{first.strip().lower()}" in FIXED:
        return f"write it as @{lower}.{first.strip().lower()}", ""
    if lower in PLAIN:
        return f"write it as @{lower}" + (f" without the {mark!r}" if mark else " in lower case"), ""
    if rest or mark:
        return "", ""
    # Alone on its line it is hardly prose.
    meant = next((name for name in ("working", "final") if _is_near(lower, name)), "")
    return (f"write it as @{meant}" if meant else ""), ""


def _is_near(word: str, name: str) -> bool:
    """Tell whether one letter too many, too few, wrong or in its neighbour's place makes the difference."""
    at = next(
        (i for i, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name))
    )
    left, right = word[at:], name[at:]
    return (
        left[1:] == right[1:]
        or left[1:] == right
        or left == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )
