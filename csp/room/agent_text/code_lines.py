"""Which lines of a text are code, as the one markdown parser has it.

Asked of a line is whether it begins in a fence or within a code span. Indented code is not asked for: nothing
that counts for the room begins behind a space.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from csp.room.agent_text.chat_markdown import read_blocks, read_inline

#: So many lines of a text are looked through; a line takes up to a tenth of a millisecond.
MAX_LINES: Final = 3_000
#: A line of nothing but a fence, or the first line of one that says it holds JSON.
_FENCE_LINE: Final = re.compile(r"^(`{3,})(json)?[ \t]*$", re.MULTILINE)


class Line(NamedTuple):
    """One line from `start` to `end`, without what ends it; `is_code` where it begins inside of code."""

    start: int
    end: int
    text: str
    is_blank: bool = False
    is_code: bool = False


@lru_cache(maxsize=32)
def read_lines(text: str) -> tuple[Line, ...]:
    """Return the lines of `text`; they end with \\n or \\r\\n, nothing else.

    Recent texts are remembered, so a long one can be read in a thread before the room decides about it.
    """
    code = set(_code_lines(text)) if _may_hide_lines(text) else ()
    lines: list[Line] = []
    start = 0
    for number, part in enumerate(text.split("\n")):
        line = part[:-1] if part[-1:] == "\r" else part
        lines.append(Line(start, start + len(line), line, not line or line.isspace(), number in code))
        start += len(part) + 1
    return tuple(lines)


def first_lines(text: str, most: int = MAX_LINES) -> tuple[str, str]:
    """Return so many lines of a text at most, and what is behind them."""
    parts = text.split("\n", most)
    if len(parts) <= most:
        return text, ""
    rest = parts[-1]
    return text[: len(text) - len(rest) - 1], rest


def _may_hide_lines(text: str) -> bool:
    """Tell whether a line may begin inside of code; nearly all texts have their code spans within a line."""
    if "`" not in text:
        return "~~~" in text
    is_plain = not any(sign in text for sign in ("``", "~~~", "\\`", "](", "<"))
    return not is_plain or any(line.count("`") % 2 for line in text.split("\n"))


def _code_lines(text: str) -> Iterator[int]:
    """Yield the numbers of the lines that begin inside of code."""
    for token in read_blocks(text):
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "fence":
            yield from range(first, end)
        elif token.type == "inline" and end - first > 1 and "`" in token.content:
            # Only a span over several lines hides where a line begins.
            spans = [child.meta["span"] for child in read_inline(token.content) if child.meta]
            number, place = first, 0
            for begin, after in spans:
                number += token.content.count("\n", place, begin)
                hidden = token.content.count("\n", begin, after)
                yield from range(number + 1, number + hidden + 1)
                number, place = number + hidden, after


# --- objects in fences ---------------------------------------------------------------------------


def fenced_objects(text: str) -> list[str]:
    """Return what stands in fences of backticks and runs from a brace in its first column to the last brace.

    A fence that opens a thousand times costs no more than one: its end is looked up, not looked for.
    """
    if "```" not in text:
        return []
    lines = list(_FENCE_LINE.finditer(text))
    #: By the length of a fence: where lines that may close one start, and where the object before them ends.
    closers: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for line in lines:
        end = _end_before(text, line.start())
        if line[2] is None and text[end - 1 : end] == "}":
            closers[len(line[1])].append((line.start(), end))
    found: list[str] = []
    done = 0
    for line in lines:
        begin = line.end() + 1
        if line.start() < done or not text.startswith("{", begin):
            continue
        same = closers[len(line[1])]
        at = bisect_left(same, (begin, 0))
        if at < len(same):
            done, end = same[at]
            done += 1
            found.append(text[begin:end])
    return found


def _end_before(text: str, at: int) -> int:
    """Return where the text before a place ends, blanks left out."""
    while at and text[at - 1].isspace():
        at -= 1
    return at
