"""The only Markdown parser: CommonMark with chat rules; it also determines which lines are code.

The room uses it to find the lines that are code, and the page renders its tokens, so the two always agree.
It differs from CommonMark in these points:

- HTML, entities and link definitions are text; `---` is a rule, also below a paragraph.
- A line without its `>` or its indent ends the quote or the item (no lazy continuation).
- Only characters with a meaning here can be escaped, so paths and patterns keep their backslashes.
- Next to a Chinese, Japanese or Korean letter, `*` and `~` open and close without a space.
- An address becomes a link only if it is clearly a web or mail address; an image becomes a link.
- A table ends at the first line without a bar.
- Quotes and lists below `DEEPEST` levels, and after `MAX_CONTAINERS` of them, are text.

The cost is linear in the text: levels, columns, runs of markers and addresses are bounded.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkDestination, parseLinkLabel, parseLinkTitle
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock, blockquote, list_block, table
from markdown_it.rules_inline import StateInline, autolink, backtick, emphasis, escape, link, strikethrough
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

#: Maximum nesting of quotes and lists; a list with its item counts as two levels.
DEEPEST: Final = 16
#: Maximum number of quotes and lists in a text; each costs about 20 microseconds, and later ones are text.
MAX_CONTAINERS: Final = 1000
MAX_COLUMNS: Final = 64
#: A longer run of `*`, `_` or `~` is text.
MAX_RUN: Final = 8
MAX_ADDRESS: Final = 2048

_BLOCK_RULES: Final = ["table", "code", "fence", "blockquote", "hr", "list", "heading", "paragraph"]
_INLINE_RULES: Final = [
    *("text", "linkify", "newline", "escape", "backticks", "strikethrough", "emphasis", "link", "image"),
    "autolink",
]
_ESCAPABLE: Final = frozenset("*_~`[]|#<>")
_UNSPACED: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u3131-\u318e\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufad9\uff66-\uffdc\U0001b000-\U0001b167"
    "\U00020000-\U0003ffff]"
)
_WEB: Final = re.compile(r"https?://[^/\\@?#]+(?:[/?#]|\Z)", re.IGNORECASE)
_MAIL: Final = re.compile(r"mailto:[^\s@?]+@[^\s@?]+(?:\?|\Z)", re.IGNORECASE)
#: Control, space and invisible characters. A browser silently drops some of them from an address,
#: so the link would not lead to the address that is shown.
_HIDDEN: Final = (
    r"\s\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 17))
)
_DECEPTIVE: Final = re.compile(rf"[\\{_HIDDEN}]")
_NUMBERS: Final = re.compile(r"\[[0-9a-f:.]+\]", re.IGNORECASE)
_BARE_END: Final = re.compile(
    rf"[\\<>\[\]\"`|{_HIDDEN}\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
#: The scheme of an address as a separate word.
_SCHEME: Final = re.compile(r"(?<![A-Za-z0-9])https?\Z", re.IGNORECASE | re.ASCII)
_BRACKETS: Final = {")": "(", "}": "{"}
_TRAILING: Final = frozenset("?!.,:;*_~'")


def read_blocks(text: str) -> list[Token]:
    """Return the block tokens of a text; their inline content is not parsed yet."""
    tokens: list[Token] = []
    parser = _parser()
    parser.block.parse(text.replace("\r\n", "\n"), parser, {}, tokens)
    return tokens


def read_inline(content: str) -> list[Token]:
    """Return the inline tokens of one block; a code span has its position in `meta["span"]`."""
    parser = _parser()
    return parser.inline.parse(content, parser, {}, [])


@cache
def _parser() -> "_ChatMarkdown":
    return _ChatMarkdown()


class _ChatMarkdown(MarkdownIt):
    def __init__(self) -> None:
        super().__init__("zero", {"maxNesting": 100})
        self.enable(_BLOCK_RULES)
        block = self.block.ruler
        block.at(
            "blockquote", _bounded(blockquote), {"alt": ["paragraph", "reference", "blockquote", "list"]}
        )
        block.at("list", _bounded(list_block), {"alt": ["paragraph", "reference", "blockquote"]})
        block.at("table", _table, {"alt": ["paragraph", "reference"]})
        block.at("paragraph", _paragraph)
        self.inline = _ChatInline()
        self.inline.ruler.enableOnly(_INLINE_RULES)
        inline = self.inline.ruler
        inline.at("linkify", _bare_address)
        inline.at("escape", _escape)
        inline.at("backticks", _backticks)
        inline.at("strikethrough", _bounded_run("~", strikethrough.tokenize))
        inline.at("emphasis", _bounded_run("*_", emphasis.tokenize))
        inline.at("link", _link)
        inline.at("image", _image)
        inline.at("autolink", _autolink)
        helpers: Any = SimpleNamespace(
            parseLinkLabel=parseLinkLabel,
            parseLinkTitle=parseLinkTitle,
            parseLinkDestination=_destination,
        )
        self.helpers = helpers

    def validateLink(self, url: str) -> bool:
        """Return whether an address may become a link."""
        if len(url) > MAX_ADDRESS or _DECEPTIVE.search(url):
            return False
        return bool(_WEB.match(url) or _MAIL.match(url))

    def normalizeLink(self, url: str) -> str:
        """Return an address unchanged."""
        return url

    def normalizeLinkText(self, link: str) -> str:
        """Return an address unchanged."""
        return link


# --- blocks --------------------------------------------------------------------------------------

_BlockRule = Callable[[StateBlock, int, int, bool], bool]


def _bounded(rule: _BlockRule) -> _BlockRule:
    def bounded(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        count = state.env.get("containers", 0)
        if state.level >= DEEPEST or count >= MAX_CONTAINERS or not rule(state, start, end, True):
            return False
        if silent:
            return True
        state.env["containers"] = count + 1
        return rule(state, start, end, False)

    return bounded


def _paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a paragraph, or a heading if a line of `=` follows."""
    rules = state.md.block.ruler.getRules("paragraph")
    parent, state.parentType = state.parentType, "paragraph"
    line, kind, tag = start + 1, "paragraph", "p"
    while line < state.lineMax and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        if state.sCount[line] - state.blkIndent <= 3:
            text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
            if text[0] == "=" and not text.strip("= \t") and " " not in text.strip(" \t"):
                kind, tag = "heading", "h1"
                break
            if any(rule(state, line, state.lineMax, True) for rule in rules):
                break
        line += 1
    state.parentType = parent
    state.line = line + (kind == "heading")
    state.push(f"{kind}_open", tag, 1).map = [start, state.line]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, line, state.blkIndent, False).strip(" \t")
    inline.map = [start, line]
    state.push(f"{kind}_close", tag, -1)
    return True


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if not table(state, start, end, True):
        return False
    delimiters = state.src[state.bMarks[start + 1] : state.eMarks[start + 1]].strip(" \t|")
    if delimiters.count("|") >= MAX_COLUMNS:
        return False
    if silent:
        return True
    # For every line, the first line from there on that has no bar; computed once per text.
    ends: list[int] = state.env.setdefault("end_of_bars", [])
    if not ends:
        lines = state.src.split("\n")
        ends += [len(lines)] * (len(lines) + 1)
        for number in range(len(lines) - 1, -1, -1):
            ends[number] = ends[number + 1] if "|" in lines[number] else number
    return table(state, start, min(end, ends[start]), False)


# --- inline content ------------------------------------------------------------------------------

_InlineRule = Callable[[StateInline, bool], bool]


class _ChatInline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _ChatState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _ChatState(StateInline):
    def __init__(self, src: str, md: MarkdownIt, env: EnvType, outTokens: list[Token]) -> None:
        super().__init__(src, md, env, outTokens)
        #: No link can start or end after this position, so there is no need to look for a label.
        self.last_link = src.rfind("](")
        self.last_angle = src.rfind(">")

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """Return whether a run of markers opens or closes; some scripts put no spaces between words."""
        found = super().scanDelims(start, canSplitWord)
        if not canSplitWord or (found.can_open and found.can_close):
            return found
        before = self.src[start - 1 : start]
        after = self.src[start + found.length : start + found.length + 1]
        opens = bool(_UNSPACED.match(before)) and bool(after) and not after.isspace()
        closes = bool(_UNSPACED.match(after)) and bool(before) and not before.isspace()
        return Scanned(found.can_open or opens, found.can_close or closes, found.length)


def _escape(state: StateInline, silent: bool) -> bool:
    if state.src.startswith("\\\\", state.pos):
        # The second backslash escapes nothing, so both are shown.
        if not silent:
            state.append_pending("\\\\")
        state.pos += 2
        return True
    return state.src[state.pos + 1 : state.pos + 2] in _ESCAPABLE and escape(state, silent)


def _backticks(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if not backtick(state, silent):
        return False
    if not silent and not state.pending:
        # An unclosed run would be pending text.
        state.tokens[-1].meta = {"span": (start, state.pos)}
    return True


def _bounded_run(signs: str, rule: _InlineRule) -> _InlineRule:
    def bounded(state: StateInline, silent: bool) -> bool:
        sign = state.src[state.pos]
        if sign not in signs or silent:
            return False
        end = state.pos
        while end < state.posMax and state.src[end] == sign:
            end += 1
        if end - state.pos <= MAX_RUN:
            return rule(state, silent)
        state.append_pending(state.src[state.pos : end])
        state.pos = end
        return True

    return bounded


def _link(state: StateInline, silent: bool) -> bool:
    return isinstance(state, _ChatState) and state.pos <= state.last_link and link(state, silent)


def _image(state: StateInline, silent: bool) -> bool:
    """Parse an image as a link to it, so that no text can cause a download."""
    if not state.src.startswith("![", state.pos):
        return False
    state.pos += 1
    if _link(state, silent):
        return True
    state.pos -= 1
    return False


def _autolink(state: StateInline, silent: bool) -> bool:
    return isinstance(state, _ChatState) and state.pos < state.last_angle and autolink(state, silent)


def _destination(text: str, start: int, end: int) -> Any:
    """Return the address of a link; reject escapes, with which it would differ from the displayed text."""
    found = parseLinkDestination(text, start, min(end, start + MAX_ADDRESS))
    if found.ok and found.str != text[start : found.pos].removeprefix("<").removesuffix(">"):
        found.ok = False
    return found


def _bare_address(state: StateInline, silent: bool) -> bool:
    """Parse a bare address, starting at the colon of its scheme."""
    if state.linkLevel or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.src, max(0, state.pos - len("-https")), state.pos)
    if scheme is None:
        return False
    start = scheme.start()
    numbers = _NUMBERS.match(state.src, state.pos + 3)
    hit = _BARE_END.search(state.src, numbers.end() if numbers else start, state.posMax)
    stop = hit.start() if hit else state.posMax
    # Exclude punctuation after the address, and a bracket that it did not open.
    end, address = stop, state.src[start:stop]
    surplus = {close: address.count(close) - address.count(opened) for close, opened in _BRACKETS.items()}
    while (last := state.src[end - 1]) in _TRAILING or surplus.get(last, 0) > 0:
        if last in surplus:
            surplus[last] -= 1
        end -= 1
    url = state.src[start:end]
    if not state.md.validateLink(url):
        # Skip it, so that it is parsed only once.
        if not silent:
            state.append_pending(state.src[state.pos : stop])
        state.pos = stop
        return True
    if not silent:
        state.pending = state.pending[: start - state.pos]
        state.push("link_open", "a", 1).attrs = {"href": url}
        state.push("text", "", 0).content = url
        state.push("link_close", "a", -1)
    state.pos = end
    return True


# --- which lines are code ------------------------------------------------------------------------
#
# A line is code if it starts in a fence or within a code span. Indented code is not recognised, because
# nothing after a leading space has a meaning for the room.

#: Maximum number of lines that are examined; a line takes up to a tenth of a millisecond.
MAX_LINES: Final = 3_000
#: A line that opens or closes a fence of backticks, with its indent and its info string.
_FENCE: Final = re.compile(r"^( {0,3})(`{3,})([\w.+-]*)[ \t]*\r?$", re.MULTILINE)
#: The end of a link whose address has no special character; the start of an address that may have a backtick.
_PLAIN_LINK: Final = re.compile(r"\]\([^()<>`\"'\\\n]*\)")
_OPEN_ANGLE: Final = re.compile(r"<[^<>\x00-\x20]*`")
#: A line that consists of a fence, or opens one with the info string `json`.
_FENCE_LINE: Final = re.compile(r"^(`{3,})(json)?[ \t]*$", re.MULTILINE)


class Line(NamedTuple):
    """One line from `start` to `end` without its line ending; `is_code` if it starts inside code."""

    start: int
    end: int
    text: str
    is_blank: bool = False
    is_code: bool = False


@lru_cache(maxsize=32)
def read_lines(text: str) -> tuple[Line, ...]:
    """Return the lines of `text`; only \\n and \\r\\n end a line.

    Recent texts are cached, so that a long one can be parsed in a thread before the room processes it.
    """
    seen = _code_seen(text)
    code = set(_code_lines(text) if seen is None else seen)
    lines: list[Line] = []
    start = 0
    for number, part in enumerate(text.split("\n")):
        line = part[:-1] if part[-1:] == "\r" else part
        lines.append(Line(start, start + len(line), line, not line or line.isspace(), number in code))
        start += len(part) + 1
    return tuple(lines)


def first_lines(text: str, most: int = MAX_LINES) -> tuple[str, str]:
    """Return at most the first `most` lines of a text, and the rest."""
    parts = text.split("\n", most)
    if len(parts) <= most:
        return text, ""
    rest = parts[-1]
    return text[: len(text) - len(rest) - 1], rest


def _code_seen(text: str) -> list[int] | None:
    """Return the lines that start inside code, or None if only the parser can determine them.

    A fence in the first column ends every paragraph, list and quote, so it can be found without parsing them.
    """
    code: list[int] = []
    fence, number, place = "", 0, 0
    for line in _FENCE.finditer(text) if "```" in text else ():
        if not fence:
            if line[1] or not _is_plain(text[place : line.start()]):
                return None
            number, place = number + text.count("\n", place, line.start()), line.start()
            fence = line[2]
        elif len(line[2]) >= len(fence) and not line[3]:
            end = number + text.count("\n", place, line.end())
            code += range(number, end + 1)
            fence, number, place = "", end, line.end()
    if fence:
        # Trailing whitespace is not a line.
        text = text.rstrip(" \t")
        return [*code, *range(number, text.count("\n") + (not text.endswith("\n")))]
    return code if _is_plain(text[place:]) else None


def _is_plain(text: str) -> bool:
    """Return whether no line starts inside code: there is no fence, and code spans end on the same line."""
    if "`" not in text:
        return "~~~" not in text
    if any(sign in text for sign in ("``", "~~~", "\\`")):
        return False
    if any(line.count("`") % 2 for line in text.split("\n")):
        return False
    if "<" in text and _OPEN_ANGLE.search(text):
        return False
    # The address of a link could hide a backtick of its paragraph.
    return "](" not in text or not any(
        "`" in paragraph and "](" in _PLAIN_LINK.sub("", paragraph) for paragraph in text.split("\n\n")
    )


def _code_lines(text: str) -> Iterator[int]:
    """Yield the numbers of the lines that start inside code."""
    for token in read_blocks(text):
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "fence":
            yield from range(first, end)
        elif token.type == "inline" and end - first > 1 and "`" in token.content:
            # Only a code span over several lines can contain the start of a line.
            spans = [child.meta["span"] for child in read_inline(token.content) if child.meta]
            number, place = first, 0
            for begin, after in spans:
                number += token.content.count("\n", place, begin)
                hidden = token.content.count("\n", begin, after)
                yield from range(number + 1, number + hidden + 1)
                number, place = number + hidden, after


# --- objects in fences ---------------------------------------------------------------------------


@lru_cache(maxsize=32)
def fenced_objects(text: str) -> tuple[str, ...]:
    """Return the JSON-like objects in backtick fences, from a brace in the first column to the last brace.

    A text with a thousand opening fences costs no more than one: ends are looked up, not searched for.
    Recent texts are cached, as in `read_lines`.
    """
    if "```" not in text:
        return ()
    lines = list(_FENCE_LINE.finditer(text))
    #: By fence length: the start of each possible closing line, and the end of the object before it.
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
    return tuple(found)


def _end_before(text: str, at: int) -> int:
    """Return the end of the text before a position, ignoring whitespace."""
    while at and text[at - 1].isspace():
        at -= 1
    return at
