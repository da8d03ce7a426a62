"""Whiteboard routes: write, list, search, export and summarise notes."""

import asyncio
import time
from functools import partial

import msgspec

from csp.errors import BadInput, NotFound
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import AnyCall, Asked, Posted, fill
from csp.protocol.codec import check_text
from csp.protocol.events import NoteAdded
from csp.protocol.notes import (
    BoardBody,
    BoardHitsView,
    BoardParams,
    BoardView,
    ExportParams,
    ExportView,
    NotedView,
    NoteView,
    Provider,
    SearchParams,
    SummariseBody,
    SummaryAskedView,
    is_note_id,
)
from csp.room.board_state import file_of, note_of, seq_of
from csp.room.commands import WriteNote
from csp.room.secrets import redact
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import NotePage, elapsed_ms

_PAGE = 1000
#: Texts of more characters are searched for secrets in a thread.
LONG_TEXT = 4096


async def write(gateway: Gateway, call: Posted[BoardBody]) -> NotedView:
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
    return NotedView(success=True, note=written)


async def list_notes(gateway: Gateway, call: Asked[BoardParams]) -> BoardView:
    params = call.query
    page = await _page(gateway, _filter(params), params.limit, call.caller)
    seqs = [seq_of(note.id) for note in page.notes]
    # The next page is after the last note, or before the first; there is none at the end.
    following = seqs[0] if page.has_more else None
    if params.after is not None:
        following = seqs[-1] if seqs else params.after
    return BoardView(items=tuple(page.notes), next=following)


async def get_note(gateway: Gateway, call: AnyCall) -> NoteView:
    return await _known_note(gateway, call.path["id"], call.caller)


async def search(gateway: Gateway, call: Asked[SearchParams]) -> BoardHitsView:
    params = call.query
    if not params.q.strip():
        raise BadInput("q is empty", "give words, names, or a question as q")
    started = time.monotonic()
    wanted = _filter(params)
    await gateway.writer.settle()
    audience = call.caller.reader
    remote = await gateway.remote_boards.search(params.q, wanted, params.limit, audience)
    if remote is not None:
        return BoardHitsView(items=tuple(remote), provider=Provider.OPENAI, took_ms=elapsed_ms(started))
    search_here = partial(gateway.board.search, rerank=bool(params.rerank))
    hits = await asyncio.to_thread(search_here, params.q, wanted, params.limit, audience)
    return BoardHitsView(items=tuple(hits), provider=Provider.LOCAL, took_ms=elapsed_ms(started))


async def export(gateway: Gateway, call: Asked[ExportParams]) -> ExportView:
    params = call.query
    notes: list[NoteView] = []
    after = 0
    while True:
        page = await _page(gateway, Filter(session=params.session, after=after), _PAGE, call.caller)
        notes += page.notes
        if not page.has_more:
            return ExportView(files=tuple(map(file_of, notes)))
        after = seq_of(page.notes[-1].id)


async def summarise(gateway: Gateway, call: Posted[SummariseBody]) -> SummaryAskedView:
    body = call.body
    return await gateway.board_summaries.ask(body.session, body.by)


def _filter(params: BoardParams | SearchParams) -> Filter:
    fields = msgspec.structs.asdict(params)
    return Filter(**{name: value for name, value in fields.items() if name in Filter.__dataclass_fields__})


async def _page(gateway: Gateway, wanted: Filter, limit: int, caller: Caller) -> NotePage:
    await gateway.writer.settle()
    return await asyncio.to_thread(gateway.board.page, wanted, limit, caller.reader)


async def _known_note(gateway: Gateway, note_id: str, caller: Caller) -> NoteView:
    found = None
    if is_note_id(note_id):
        await gateway.writer.settle()
        found = await asyncio.to_thread(gateway.board.get, note_id, caller.reader)
    if found is None:
        raise NotFound(f"unknown note {note_id[:80]!r}", "see: csp board show")
    return found
