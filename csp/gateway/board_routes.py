"""Whiteboard routes: write, list, search, export and summarise notes."""

import asyncio
import time
from functools import partial

import msgspec

from csp.errors import BadInput, NotFound
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import AnyCall, Asked, Posted, fill
from csp.protocol import notes
from csp.protocol.codec import check_text
from csp.protocol.events import NoteAdded
from csp.room.board_state import file_of, note_of, seq_of
from csp.room.commands import WriteNote
from csp.room.secrets import redact
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import NotePage, elapsed_ms

_PAGE = 1000
#: Longer texts (in characters) are searched for secrets in a thread.
LONG_TEXT = 4096


async def write(gateway: Gateway, call: Posted[notes.BoardBody]) -> notes.NotedView:
    body = call.body
    check_text(body.text)
    if len(body.text) > LONG_TEXT:
        # In a thread, so that a long text does not block the event loop.
        await asyncio.to_thread(redact, body.text, gateway.rules.secrets)
    events = await gateway.submit(fill(WriteNote, body, sender=call.caller.id))
    written = next((note_of(event) for event in events if isinstance(event, NoteAdded)), None)
    if written is None:
        _, known = gateway.writer.room.boards.keys[body.id or ""]
        written = await _known_note(gateway, known, call.caller)
    return notes.NotedView(success=True, note=written)


async def list_notes(gateway: Gateway, call: Asked[notes.BoardParams]) -> notes.BoardView:
    params = call.query
    page = await _page(gateway, _filter(params), params.limit, call.caller)
    seqs = [seq_of(note.id) for note in page.notes]
    # The next page starts after the last note or, going backwards, before the first. The last page has none.
    following = seqs[0] if page.has_more else None
    if params.after is not None:
        following = seqs[-1] if seqs else params.after
    return notes.BoardView(items=tuple(page.notes), next=following)


async def get_note(gateway: Gateway, call: AnyCall) -> notes.NoteView:
    return await _known_note(gateway, call.path["id"], call.caller)


async def search(gateway: Gateway, call: Asked[notes.SearchParams]) -> notes.BoardHitsView:
    params = call.query
    if not params.q.strip():
        raise BadInput("q is empty", "set q to words, names or a question")
    started = time.monotonic()
    wanted = _filter(params)
    await gateway.writer.settle()
    audience = call.caller.reader
    remote = await gateway.remote_boards.search(params.q, wanted, params.limit, audience)
    if remote is not None:
        return notes.BoardHitsView(
            items=tuple(remote), provider=notes.Provider.OPENAI, took_ms=elapsed_ms(started)
        )
    search_here = partial(gateway.board.search, rerank=bool(params.rerank))
    hits = await asyncio.to_thread(search_here, params.q, wanted, params.limit, audience)
    return notes.BoardHitsView(items=tuple(hits), provider=notes.Provider.LOCAL, took_ms=elapsed_ms(started))


async def export(gateway: Gateway, call: Asked[notes.ExportParams]) -> notes.ExportView:
    params = call.query
    found: list[notes.NoteView] = []
    after = 0
    while True:
        page = await _page(gateway, Filter(session=params.session, after=after), _PAGE, call.caller)
        found += page.notes
        if not page.has_more:
            return notes.ExportView(files=tuple(map(file_of, found)))
        after = seq_of(page.notes[-1].id)


async def summarise(gateway: Gateway, call: Posted[notes.SummariseBody]) -> notes.SummaryAskedView:
    body = call.body
    return await gateway.board_summaries.ask(body.session, body.by)


def _filter(params: notes.BoardParams | notes.SearchParams) -> Filter:
    fields = msgspec.structs.asdict(params)
    return Filter(**{name: value for name, value in fields.items() if name in Filter.__dataclass_fields__})


async def _page(gateway: Gateway, wanted: Filter, limit: int, caller: Caller) -> NotePage:
    await gateway.writer.settle()
    return await asyncio.to_thread(gateway.board.page, wanted, limit, caller.reader)


async def _known_note(gateway: Gateway, note_id: str, caller: Caller) -> notes.NoteView:
    found = None
    if notes.is_note_id(note_id):
        await gateway.writer.settle()
        found = await asyncio.to_thread(gateway.board.get, note_id, caller.reader)
    if found is None:
        raise NotFound(f"unknown note {note_id[:80]!r}", "see: csp board show")
    return found
