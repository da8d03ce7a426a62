"""Parse what was said as markdown, for pages: beside the event loop, one request after the other."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call
from csp.gateway.markdown_tokens import MAX_CHARS, markdown_tokens
from csp.journal.history_query import HistoryQuery
from csp.protocol.events import HISTORY_TYPES, MessageEvent, decode_event
from csp.protocol.requests import MarkdownParams
from csp.protocol.responses import MarkdownView

#: Characters that one request has parsed: some 0.1 s of a processor, at the worst a second.
MAX_BATCH_CHARS: Final = 100_000
#: How much of the history is looked through, from the oldest message that is asked for on.
MAX_ITEMS: Final = 200
_thread: Final = ThreadPoolExecutor(1, "markdown")


async def markdown(gateway: Gateway, call: Call) -> Answer:
    params: MarkdownParams = call.query
    ids = params.ids.split(",")
    texts = await _messages(gateway, call, [int(one) for one in ids if not one.startswith("n-")])
    await gateway.writer.settle()
    for note_id in (one for one in ids if one.startswith("n-")):
        note = await asyncio.to_thread(gateway.board.get, note_id, call.caller.reader)
        if note is not None:
            texts[note_id] = note.text
    gateway.recheck(call.caller)
    return await asyncio.get_running_loop().run_in_executor(_thread, _parsed, texts)


async def _messages(gateway: Gateway, call: Call, seqs: list[int]) -> dict[str, str]:
    """Return the texts of messages; they are read as `GET /history` reads them, with the same checks."""
    if not seqs:
        return {}
    query = HistoryQuery(
        limit=MAX_ITEMS,
        after=min(seqs) - 1,
        before=max(seqs) + 1,
        types=HISTORY_TYPES,
        audience=call.caller.reader,
    )
    page = await gateway.history.page(query)
    wanted = set(seqs)
    events = map(decode_event, page.lines)
    return {
        str(event.seq): event.text
        for event in events
        if isinstance(event, MessageEvent) and event.seq in wanted
    }


def _parsed(texts: dict[str, str]) -> MarkdownView:
    items = {}
    left = MAX_BATCH_CHARS
    for name, text in texts.items():
        left -= min(len(text), MAX_CHARS)
        if left >= 0:
            items[name] = markdown_tokens(text)
    return MarkdownView(items=items)
