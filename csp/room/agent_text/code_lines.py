"""Which lines of a text are code, as CommonMark has it.

Of its containers only lists are known, because a fence may stand deeper in them. What else is a container or
code begins with a sign or a space of its own, and all that is asked of these lines is their first column.
A line without its sign right below a quote counts as out of it, though CommonMark would let it go on.
"""

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_FENCE: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?P<list>(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+)(?P<mark>`{3,}+|~{3,}+)"
)
_LIST: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\Z)")
#: A heading, a quote, an item of a list, a rule: none of them goes on with the paragraph before it.
_BREAK: Final = re.compile(
    r" {0,3}(?:#{1,6}(?:[ \t]|\Z)|>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\Z)|[-=*_]{3,}[ \t]*\Z)"
)
#: After these the paragraph is over, too.
_ONE_LINE: Final = re.compile(r" {0,3}(?:#{1,6}(?:[ \t]|\Z)|[-=*_]{3,}[ \t]*\Z)")
_TICKS: Final = re.compile(r"`+")
#: A line of nothing but a fence, or the first line of one that says it holds JSON.
_FENCE_LINE: Final = re.compile(r"^(`{3,})(json)?[ \t]*$", re.MULTILINE)
_TAB: Final = 4


class Line(NamedTuple):
    """One line from `start` to `end`, without what ends it; `is_code` where it begins inside of code."""

    start: int
    end: int
    text: str
    is_blank: bool = False
    is_code: bool = False


class _Fence(NamedTuple):
    mark: str
    is_in_list: bool


def read_lines(text: str) -> list[Line]:
    """Return the lines of `text`; they end with \\n or \\r\\n, nothing else."""
    lines = list(_split(text))
    if "```" in text or "~~~" in text:
        lines = list(_mark_fences(lines))
    if "`" in text:
        for begin, end in list(_paragraphs(lines)):
            _mark_spans(text, lines, begin, end)
    return lines


def first_lines(text: str, most: int) -> tuple[str, str]:
    """Return so many lines of a text at most, and what is behind them."""
    parts = text.split("\n", most)
    if len(parts) <= most:
        return text, ""
    rest = parts[-1]
    return text[: len(text) - len(rest) - 1], rest


def _split(text: str) -> Iterator[Line]:
    start = 0
    for part in text.split("\n"):
        line = part[:-1] if part[-1:] == "\r" else part
        yield Line(start, start + len(line), line, not line or line.isspace())
        start += len(part) + 1


# --- fences --------------------------------------------------------------------------------------


def _mark_fences(lines: Sequence[Line]) -> Iterator[Line]:
    fence: _Fence | None = None
    is_in_list = was_blank = False
    for line in lines:
        if fence is not None:
            yield _code(line)
            fence = None if _closes(fence, line.text) else fence
            continue
        if _LIST.match(line.text):
            is_in_list = True
        elif was_blank and not line.is_blank and line.text[0] not in " \t":
            is_in_list = False
        was_blank = line.is_blank
        fence = _opened(line.text, is_in_list=is_in_list)
        yield line if fence is None else _code(line)


def _code(line: Line) -> Line:
    # Half the cost of `_replace`, and a text may be one fence of a quarter of a million lines.
    return Line(line.start, line.end, line.text, line.is_blank, True)


def _opened(line: str, *, is_in_list: bool) -> _Fence | None:
    found = _FENCE.match(line)
    if found is None or (not is_in_list and _width(found["indent"]) >= _TAB):
        return None
    if found["mark"][0] == "`" and "`" in line[found.end() :]:
        return None
    return _Fence(found["mark"], is_in_list)


def _closes(fence: _Fence, line: str) -> bool:
    marks = line.strip(" \t")
    if len(marks) < len(fence.mark):
        return False
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return not marks.strip(fence.mark[0]) and (fence.is_in_list or _width(indent) < _TAB)


def _width(indent: str) -> int:
    return len(indent.expandtabs(_TAB))


# --- code spans ----------------------------------------------------------------------------------


def _paragraphs(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the paragraphs of two lines or more with a backtick: only they can hide where a line begins."""
    begin, has_ticks = 0, False
    for number, line in enumerate(lines):
        is_apart = line.is_blank or line.is_code
        if is_apart or _BREAK.match(line.text):
            if has_ticks and number - begin > 1:
                yield begin, number
            begin, has_ticks = number + 1 if is_apart or _ONE_LINE.match(line.text) else number, False
        has_ticks = has_ticks or "`" in line.text
    if has_ticks and len(lines) - begin > 1:
        yield begin, len(lines)


def _mark_spans(text: str, lines: list[Line], begin: int, end: int) -> None:
    number = begin
    for opened, closed in _spans(text, lines[begin].start, lines[end - 1].end):
        while number < end and lines[number].start <= opened:
            number += 1
        while number < end and lines[number].start < closed:
            lines[number] = _code(lines[number])
            number += 1


def _spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where code spans start, end: from a run of backticks to the next run of the same length."""
    runs = [found.span() for found in _TICKS.finditer(text, begin, end)]
    closers: defaultdict[int, deque[int]] = defaultdict(deque)
    for start, stop in runs:
        closers[stop - start].append(start)
    done = begin
    for start, stop in runs:
        if start < done:
            continue
        # A backslash takes one backtick out of the run; inside of code it is a backslash.
        size = stop - start - _is_escaped(text, start, begin)
        same = closers[size]
        while same and same[0] < stop:
            same.popleft()
        if size and same:
            done = same[0] + size
            yield start, done


def _is_escaped(text: str, at: int, begin: int) -> bool:
    first = at
    while first > begin and text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


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
