"""Make texts fit to be shown: nobody's words drive the terminal, none fill it."""

import re
import textwrap
import time
from typing import Final

#: C0 but tab and newline, DEL, C1, and what turns the direction of writing: each could fake a line.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F
MAX_LINES: Final = 30
_NARROW: Final = 40
MAX_CHARS: Final = 6000


def visible(text: str) -> str:
    """Return text with each control character shown as a picture or a code."""

    def picture(match: re.Match[str]) -> str:
        code = ord(match.group())
        if code < 0x20:
            return chr(_PICTURES + code)
        if code == _DELETE:
            return "\u2421"
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _CONTROL.sub(picture, text)


def one_line(text: str, size: int, more: str = "…") -> str:
    """Return text as one line of at most `size` characters."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - len(more)] + more


def folded(text: str, how_to_see: str, max_lines: int = MAX_LINES) -> str:
    """Return the head of a text that may be long, saying how to see it whole."""
    lines = text.split("\n")
    head = "\n".join(lines[: max_lines - 1]) if len(lines) > max_lines else text
    if len(head) > MAX_CHARS:
        return f"{head[:MAX_CHARS]}\n... {len(text) - MAX_CHARS} more characters, {how_to_see}"
    return text if head == text else f"{head}\n... {len(lines) - max_lines + 1} more lines, {how_to_see}"


def wrapped(text: str, taken: int, columns: int) -> str:
    """Return text wrapped at words, all lines except the first indented; `taken` columns are in use."""
    lines: list[str] = []
    for number, line in enumerate(text.split("\n")):
        start = "  " if number else " " * taken
        further = "    " if line.startswith("- ") else "  "
        words = textwrap.TextWrapper(
            width=columns if columns >= _NARROW else len(line) + taken + 2,
            initial_indent=start,
            subsequent_indent=further,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += words.wrap(line) or [start]
    return "\n".join(lines)[taken:]


def clock(when: float) -> str:
    """Return a time of day; of another day than today, with its date."""
    day = time.localtime(when)
    is_today = day[:3] == time.localtime()[:3]
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", day)


def minutes(seconds: float) -> str:
    """Return a span of time as a clock shows it: 0:42."""
    whole = max(0, int(seconds))
    return f"{whole // 60}:{whole % 60:02d}"


def count(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun; `nouns` where more of them are not spelt with an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or f'{noun}s'}"


def columns(rows: list[list[str]]) -> list[str]:
    """Return rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
