"""Parse messages as markdown for the page, in a separate thread.

The page renders a stream of tokens. Text is a string, null closes the last opened element, and every other
token is a list that begins with the name of its element. Opening tokens are `p`, `h` with its level,
`blockquote`, `ul`, `ol` with its start, `li` with 0 or 1 if it is a task, `table`, `thead`, `tbody`, `tr`,
`th` or `td` with its alignment, `em`, `strong`, `del`, and `a` with its address. Tokens that need no end are
`hr`, `br`, `code` with its text, and `pre` with its info and text. If the text was cut within a `pre`, its
fence and indent follow.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from markdown_it.token import Token

from csp.gateway.gateway import Gateway
from csp.gateway.route_table import Asked
from csp.journal.history_query import HistoryQuery
from csp.protocol.events import HISTORY_TYPES, MessageEvent, decode_event
from csp.protocol.requests import MarkdownParams
from csp.protocol.responses import MarkdownText, MarkdownToken, MarkdownView
from csp.room.chat_markdown import read_blocks, read_inline

#: The maximum number of characters parsed per request: about 0.1 s of CPU time, at worst one second.
MAX_BATCH_CHARS: Final = 100_000
#: The number of history items read, starting at the oldest requested message.
MAX_ITEMS: Final = 200
_thread: Final = ThreadPoolExecutor(1, "markdown")
#: The length of the parsed part of a long text, up to the end of a line; the rest is shown as plain text.
MAX_CHARS: Final = 20_000
MAX_LINES: Final = 1000
#: The maximum nesting of emphasis and links.
MAX_DEPTH: Final = 16
_LOOK_BACK: Final = 2000
_TASK: Final = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
_LISTS: Final = ("bullet_list_open", "ordered_list_open")
_LIST_ENDS: Final = ("bullet_list_close", "ordered_list_close")


async def markdown(gateway: Gateway, call: Asked[MarkdownParams]) -> MarkdownView:
    params = call.query
    ids = params.ids.split(",")
    seqs = {int(one) for one in ids if not one.startswith("n-")}
    texts: dict[str, str] = {}
    if seqs:
        # Messages are read as in `GET /history`, with the same checks.
        query = HistoryQuery(
            limit=MAX_ITEMS,
            after=min(seqs) - 1,
            before=max(seqs) + 1,
            types=HISTORY_TYPES,
            audience=call.caller.reader,
        )
        for event in map(decode_event, (await gateway.history.page(query)).lines):
            if isinstance(event, MessageEvent) and event.seq in seqs:
                texts[str(event.seq)] = event.text
    await gateway.writer.settle()
    for note_id in (one for one in ids if one.startswith("n-")):
        note = await asyncio.to_thread(gateway.board.get, note_id, call.caller.reader)
        if note is not None:
            texts[note_id] = note.text
    gateway.recheck(call.caller)
    return await asyncio.get_running_loop().run_in_executor(_thread, _parsed, texts)


def _parsed(texts: dict[str, str]) -> MarkdownView:
    items = {}
    left = MAX_BATCH_CHARS
    for name, text in texts.items():
        left -= min(len(text), MAX_CHARS)
        if left >= 0:
            items[name] = markdown_tokens(text)
    return MarkdownView(items=items)


def markdown_tokens(text: str) -> MarkdownText:
    """Return the tokens of a text or of its beginning, in time linear in the parsed length."""
    end = min(len(text), MAX_CHARS)
    rows = text[:end].split("\n", MAX_LINES)
    if len(rows) > MAX_LINES:
        end -= len(rows[-1])
    if end < len(text):
        end = text.rfind("\n", max(0, end - _LOOK_BACK), end) + 1 or end
    head = text[:end]
    lines = head.split("\n")
    length = len(head.encode("utf-16-le", "surrogatepass")) // 2
    tokens = _nested(read_blocks(head), lines)
    return MarkdownText(length=length, tokens=tuple(_stream(tokens, lines, is_cut=len(head) < len(text))))


def _nested(tokens: Sequence[Token], lines: list[str]) -> list[Token]:
    """Return the tokens with each bullet list that is two columns deeper than a number nested in its item.

    CommonMark requires three columns or more, but few people or models count them.
    """
    result: list[Token] = []
    #: For each open list, the token that opened it, the tokens after its end, and the list it continues.
    opened: list[tuple[Token, list[Token], Token | None]] = []
    last: Token | None = None
    for token in tokens:
        if token.type in _LISTS:
            after: list[Token] = []
            outer = None
            if last is not None and result[-1].type == "ordered_list_close":
                deeper = _column(token, lines) - _column(last, lines)
                if token.type == "bullet_list_open" and deeper >= 2:
                    outer, after = last, result[-2:]
                    del result[-2:]
                elif token.type == "ordered_list_open" and deeper == 0 and token.markup == last.markup:
                    result.pop()
                    opened.append((last, [], None))
                    continue
            opened.append((token, after, outer))
            result.append(token)
        elif token.type in _LIST_ENDS:
            began, after, outer = opened.pop()
            result += [token, *after]
            last = outer or began
        else:
            result.append(token)
    return result


def _column(token: Token, lines: list[str]) -> int:
    line = lines[token.map[0]] if token.map else ""
    return len(line) - len(line.lstrip(" \t>"))


def _stream(tokens: list[Token], lines: list[str], *, is_cut: bool) -> Iterator[MarkdownToken]:
    task: re.Match[str] | None = None
    for number, token in enumerate(tokens):
        if token.hidden:
            continue
        if token.type == "inline":
            yield from _inline(token.content[task.end() if task else 0 :])
            task = None
        elif token.type == "list_item_open":
            # The checkbox at the beginning of the item's first paragraph.
            is_paragraph = tokens[number + 1].type == "paragraph_open"
            task = _TASK.match(tokens[number + 2].content) if is_paragraph else None
            yield ("li",) if task is None else ("li", int(task[1] != " "))
        elif token.type in ("fence", "code_block"):
            yield _code(token, lines, is_cut=is_cut)
        elif token.nesting < 0:
            yield None
        elif token.type == "ordered_list_open":
            yield ("ol", int(token.attrs.get("start", 1)))
        elif token.tag in ("th", "td"):
            yield (token.tag, str(token.attrs.get("style", "")).removeprefix("text-align:"))
        else:
            yield ("h", int(token.tag[1])) if token.type == "heading_open" else (token.tag,)


def _code(token: Token, lines: list[str], *, is_cut: bool) -> MarkdownToken:
    first, end = token.map or (0, 0)
    inside = lines[first + bool(token.markup) : end]
    # The parser normalises line endings, but code is copied as written.
    shown = zip(token.content.removesuffix("\n").split("\n"), inside, strict=False)
    text = "\n".join(line + "\r" * written.endswith("\r") for line, written in shown)
    code = ("pre", token.info.strip(), text.removesuffix("\r"))
    last = lines[end - 1].strip(" \t\r>")
    is_closed = end - 1 > first and last.startswith(token.markup) and not last.strip(token.markup[:1])
    if not is_cut or not token.markup or is_closed or end < len(lines) - 1:
        return code
    return (*code, token.markup, _column(token, lines))


def _inline(content: str) -> Iterator[MarkdownToken]:
    text = ""
    #: For each open element, whether it is rendered; one that is nested too deeply is shown as source text.
    opened: list[bool] = []
    for token in read_inline(content):
        is_shown = opened.pop() if token.nesting < 0 else len(opened) < MAX_DEPTH
        if token.nesting > 0:
            opened.append(is_shown)
        if token.type in ("text", "text_special") or not is_shown:
            text += token.content or token.markup
            continue
        if text:
            yield text
            text = ""
        if token.nesting < 0:
            yield None
        elif token.type == "link_open":
            yield ("a", str(token.attrs["href"]))
        elif token.type == "code_inline":
            yield ("code", token.content)
        else:
            yield ("del",) if token.tag == "s" else (token.tag,)
    if text:
        yield text
