"""Lay out text for a terminal: wrap words, render simple markdown, and describe agents' commands.

All functions are pure. The returned rows are safe to print; only their styles are escape sequences.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from prompt_toolkit.utils import get_cwidth

from csp.human.safe_text import visible
from csp.human.theme import Theme

#: Below this width, rows are not wrapped here but by the terminal.
NARROW: Final = 20
_SPACED: Final = re.compile(r"(?<!\s)\s*\S+")
_INDENT: Final = "  "
#: A folded text with this few rows is shown without its blank lines.
_FEW_ROWS: Final = 5
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r"#{1,6}\s+(?P<text>.*)")
_ITEM: Final = re.compile(r"(?P<lead>\s*(?:[-*+•]|\d{1,3}[.)])\s+)(?P<text>.*)")
_QUOTE: Final = re.compile(r"\s*>\s?(?P<text>.*)")
_RULE: Final = re.compile(r"[\s|:-]+")
_STYLED: Final = re.compile(r"(?P<code>`[^`]+`)|\*\*(?P<bold>[^*\s](?:[^*]*[^*\s])?)\*\*")
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")
_WIDE_FROM: Final = 0x1100


def cells(text: str) -> int:
    """Return the width of a text in columns, excluding styles."""
    return get_cwidth(_ESCAPE.sub("", text)) if text else 0


def height(row: str, width: int) -> int:
    """Return the number of screen rows that a row occupies; an unwrapped one may occupy several."""
    return max(1, -(-cells(row) // width)) if width else 1


# --- words ---------------------------------------------------------------------------------------


class _Word(NamedTuple):
    """An unbreakable piece of text with its width; `gap` is true if a space precedes it."""

    text: str
    width: int
    gap: bool


def _words(look: Theme, text: str) -> list[_Word]:
    """Return the styled words of a line; a code span is always one word."""
    found: list[_Word] = []
    at, gap = 0, False
    for match in _STYLED.finditer(text) if look.has_colour else ():
        found += _plain_words(text[at : match.start()], gap=gap)
        gap = text[: match.start()][-1:].isspace()
        if match["code"] is not None:
            code = match["code"][1:-1]
            found.append(_Word(look.code(code), get_cwidth(code), gap))
        else:
            bold = _plain_words(match["bold"], gap=gap)
            found += [_Word(look.strong(word.text), word.width, word.gap) for word in bold]
        at, gap = match.end(), False
    return found + _plain_words(text[at:], gap=gap)


def _plain_words(text: str, *, gap: bool) -> list[_Word]:
    words = []
    for match in re.finditer(r"\S+", text):
        is_apart = gap if match.start() == 0 else True
        words += [
            _Word(part, get_cwidth(part), is_apart and number == 0)
            for number, part in enumerate(_breakable(match.group()))
        ]
    return words


def _breakable(word: str) -> list[str]:
    """Return a word's breakable pieces, split between the letters of scripts without spaces."""
    if (
        word.isascii()
        or "://" in word
        or not any(ord(letter) >= _WIDE_FROM and get_cwidth(letter) > 1 for letter in word)
    ):
        return [word]
    return re.findall(r"[^\u1100-\U0003ffff]+|.", word)


def wrap(look: Theme, text: str, width: int, *, first: str = "", further: str = "") -> list[str]:
    """Return a line of text as rows of at most `width` columns; a longer word has its own row."""
    rows: list[str] = []
    row, used = first, get_cwidth(first)
    is_empty = True
    for word in _words(look, text):
        space = 1 if word.gap and not is_empty else 0
        if not is_empty and width >= NARROW and used + space + word.width > width:
            rows.append(row)
            row, used, space = further, get_cwidth(further), 0
        row += " " * space + word.text
        used += space + word.width
        is_empty = False
    return [*rows, row.rstrip()]


def hanging(line: str, width: int, further: int | None = None) -> str:
    """Return a line broken between words if it is wider than the screen, its further rows further in.

    A line with styles stays as it is: it was laid out where it was drawn.
    """
    return line if "\x1b" in line else broken_at_words(line, width, further)


def broken_at_words(line: str, width: int, further: int | None = None) -> str:
    """Return a line, with or without styles, broken between words if it is wider than the screen."""
    if width < NARROW or cells(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2 if further is None else further)
    rows, row, used = [], "", 0
    for word in _SPACED.findall(line):
        if row.strip() and used + cells(word) > width:
            rows.append(row)
            row, used, word = indent, len(indent), word.lstrip()
        row += word
        used += cells(word)
    return "\n".join([*rows, row])


# --- blocks --------------------------------------------------------------------------------------


def body_rows(look: Theme, text: str, width: int, *, is_speech: bool = True) -> list[str]:
    """Return a text as rows indented by two columns; commands are described only in agents' messages."""
    rows: list[str] = []
    fence = ""
    lines = visible(text).split("\n")
    number = 0
    while number < len(lines):
        line = lines[number].rstrip()
        number += 1
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1][0] == fence[0] and len(mark[1]) >= len(fence))):
            fence = "" if fence else mark[1]
        elif fence:
            rows.append(f"{_INDENT}{_INDENT}{look.code(line)}".rstrip())
        elif not line:
            rows += [""] if rows and rows[-1] else []
        elif line.lstrip().startswith("|"):
            table = [line]
            while number < len(lines) and lines[number].lstrip().startswith("|"):
                table.append(lines[number].rstrip())
                number += 1
            rows += [f"{_INDENT}{row}" for row in _table(table, width - len(_INDENT))]
        else:
            rows += _line_rows(look, line, width, is_speech=is_speech)
    while rows and not rows[-1]:
        del rows[-1]
    return rows


def _line_rows(look: Theme, line: str, width: int, *, is_speech: bool) -> list[str]:
    if is_speech and (said := in_words(look, line)) is not None:
        return wrap(look, said, width, first=_INDENT, further=_INDENT * 2)
    if look.has_colour and (heading := _HEADING.fullmatch(line)):
        return [
            look.strong(row) for row in wrap(look, heading["text"], width, first=_INDENT, further=_INDENT)
        ]
    if quote := _QUOTE.fullmatch(line):
        lead = f"{_INDENT}> "
        return wrap(look, quote["text"], width, first=lead, further=lead)
    if item := _ITEM.fullmatch(line):
        lead = _INDENT + item["lead"]
        return wrap(look, item["text"], width, first=lead, further=" " * get_cwidth(lead))
    margin = _INDENT + line[: len(line) - len(line.lstrip())]
    return wrap(look, line, width, first=margin, further=margin)


def _table(lines: list[str], width: int) -> list[str]:
    """Return the rows of a table, with aligned columns if they fit."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    is_even = len({len(row) for row in rows}) == 1
    if not is_even:
        return [line.strip() for line in lines]
    rules = [all(_RULE.fullmatch(cell) for cell in row) for row in rows]
    shown = [row for row, is_rule in zip(rows, rules, strict=True) if not is_rule]
    widths = [max([get_cwidth(row[at]) for row in shown], default=1) for at in range(len(rows[0]))]
    if sum(widths) + 3 * len(widths) + 1 > width:
        return [line.strip() for line in lines]
    return [
        "| "
        + " | ".join(
            "-" * most if is_rule else cell + " " * (most - get_cwidth(cell))
            for cell, most in zip(row, widths, strict=True)
        )
        + " |"
        for row, is_rule in zip(rows, rules, strict=True)
    ]


# --- commands of agents --------------------------------------------------------------------------

_COMMAND: Final = re.compile(
    r"@(?:(?P<verb>send|handoff)\.(?P<to>[A-Za-z0-9-]{1,32})|(?P<bare>all|final|working))(?:\s+(?P<text>.*))?"
)
_VOTE: Final = re.compile(
    r"VOTE:\s*\[?\s*(?P<label>[A-Za-z]{1,2})\s*\]?[ .]*(?:REASON:\s*(?P<reason>.*))?", re.IGNORECASE
)
_REASON: Final = re.compile(r"REASON:\s*(?P<reason>.*)")


def in_words(look: Theme, line: str) -> str | None:
    """Return a description of an agent's line if it is a command, else None."""
    if vote := _VOTE.fullmatch(line):
        reason = f": {vote['reason']}" if vote["reason"] else ""
        return f"{look.signs.done} votes {vote['label'].upper()}{reason}"
    if reason_only := _REASON.fullmatch(line):
        return f"reason: {reason_only['reason']}"
    command = _COMMAND.fullmatch(line)
    if command is None:
        return None
    text = f": {command['text']}" if command["text"] else ""
    arrow = look.signs.arrow
    match command["verb"] or command["bare"]:
        case "send":
            return f"{arrow} to {command['to']}{text}"
        case "handoff":
            return f"{arrow} hands over to {command['to']}{text}"
        case "all":
            return f"{arrow} to all{text}"
        case "working":
            return f"{look.signs.dot} still working{text}"
        case _:
            return None if text else f"{look.signs.done} suggests finishing"


# --- folding -------------------------------------------------------------------------------------


def fold(rows: list[str], most: int, width: int, mark: Callable[[int], str]) -> list[str]:
    """Return the start of a text in at most `most` screen rows, ending with a mark.

    The mark shows the number of omitted rows. If there is no row left for it, it is added to the last row.
    """
    for shown in (rows, [row for row in rows if row]):
        if sum(height(row, width) for row in shown) <= most + 1:
            # A mark would occupy the row that it replaces.
            return shown
        if most > _FEW_ROWS:
            break
    kept = list(_first(shown, max(1, most - 1), width))
    if most > 1:
        return [*kept, _INDENT + mark(len(shown) - len(kept))]
    end = " " + mark(len(rows) - 1)
    return [cut(rows[0], max(NARROW, width - cells(end))) + end]


def _first(rows: list[str], most: int, width: int) -> Iterator[str]:
    """Yield the first rows that fit; if the first one alone does not fit, yield its beginning."""
    taken = 0
    for number, row in enumerate(rows):
        taken += height(row, width)
        if taken > most:
            if number == 0:
                yield cut(row, most * width)
            return
        yield row


def cut(row: str, width: int) -> str:
    """Return the beginning of a row up to a space, at most `width` columns wide, with its styles closed."""
    if cells(row) <= width:
        return row
    shown, used = "", 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", row):
        if part.startswith("\x1b"):
            shown += part
            continue
        for letter in part:
            used += get_cwidth(letter)
            if used > width - 1:
                break
            shown += letter
        if used > width - 1:
            break
    head, _, last = shown.rpartition(" ")
    shown = head if head.strip() and "\x1b" not in last else shown
    return shown.rstrip() + ("\x1b[0m" if "\x1b" in shown else "")
