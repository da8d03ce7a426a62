"""Whiteboard routes: write, list, search, export and summarise notes."""

import asyncio
import time

from csp.errors import BadInput, NotFound
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call
from csp.protocol.codec import check_text
from csp.protocol.enums import AgentId
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
    is_note_id,
)
from csp.room.board.board_state import file_of, note_of
from csp.room.commands import WriteNote
from csp.room.secrets import redact
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import NotePage, elapsed_ms

_PAGE = 1000
#: Texts of more characters are searched for secrets in a thread.
LONG_TEXT = 4096


async def write(gateway: Gateway, call: Call) -> Answer:
    body: BoardBody = call.body
    check_text(body.text)
    if len(body.text) > LONG_TEXT:
        # In a thread, so that a long text does not block the event loop.
        await asyncio.to_thread(redact, body.text, gateway.rules.secrets)
    command = WriteNote(
        sender=call.caller.id, text=body.text, session=body.session, tags=body.tags, id=body.id
    )
    events = await gateway.submit(command)
    written = next((note_of(event) for event in events if isinstance(event, NoteAdded)), None)
    if written is None:
        _, known = gateway.writer.room.boards.keys[body.id or ""]
        written = await _known_note(gateway, known, call.caller)
    return NotedView(success=True, note=written)


async def list_notes(gateway: Gateway, call: Call) -> Answer:
    params: BoardParams = call.query
    wanted = Filter(
        session=params.session,
        author=params.author,
        kind=params.kind,
        tag=params.tag,
        after=params.after,
        before=params.before,
    )
    page = await _page(gateway, wanted, params.limit, call.caller)
    return BoardView(items=tuple(page.notes), next=_next(page, params.after))


def _next(page: NotePage, after: int | None) -> int | None:
    """Return the position of the next page: after the last note, or before the first; None at the end."""
    seqs = [int(note.id.removeprefix("n-")) for note in page.notes]
    if after is not None:
        return seqs[-1] if seqs else after
    return seqs[0] if page.has_more else None


async def get_note(gateway: Gateway, call: Call) -> Answer:
    return await _known_note(gateway, call.path["id"], call.caller)


async def search(gateway: Gateway, call: Call) -> Answer:
    params: SearchParams = call.query
    if not params.q.strip():
        raise BadInput("q is empty", "give words, names, or a question as q")
    started = time.monotonic()
    wanted = Filter(
        session=params.session,
        author=params.author,
        kind=params.kind,
        tag=params.tag,
        since=params.since,
        until=params.until,
    )
    await gateway.writer.settle()
    audience = audience_of(call.caller)
    remote = await gateway.remote_boards.search(params.q, wanted, params.limit, audience)
    if remote is not None:
        return BoardHitsView(items=tuple(remote), provider=Provider.OPENAI, took_ms=elapsed_ms(started))
    hits = await asyncio.to_thread(
        gateway.board.search,
        params.q,
        wanted,
        params.limit,
        audience,
        rerank=bool(params.rerank),
    )
    return BoardHitsView(items=tuple(hits), provider=Provider.LOCAL, took_ms=elapsed_ms(started))


async def export(gateway: Gateway, call: Call) -> Answer:
    params: ExportParams = call.query
    notes: list[NoteView] = []
    after = 0
    while True:
        page = await _page(gateway, Filter(session=params.session, after=after), _PAGE, call.caller)
        notes += page.notes
        if not page.has_more:
            return ExportView(files=tuple(map(file_of, notes)))
        after = int(page.notes[-1].id.removeprefix("n-"))


async def summarise(gateway: Gateway, call: Call) -> Answer:
    body: SummariseBody = call.body
    return await gateway.board_summaries.ask(body.session, body.by)


def audience_of(caller: Caller) -> AgentId | None:
    """Return the agent whose notes are searched; None for a caller that may read all."""
    return caller.reader


async def _page(gateway: Gateway, wanted: Filter, limit: int, caller: Caller) -> NotePage:
    await gateway.writer.settle()
    return await asyncio.to_thread(gateway.board.page, wanted, limit, audience_of(caller))


async def _known_note(gateway: Gateway, note_id: str, caller: Caller) -> NoteView:
    found = None
    if is_note_id(note_id):
        await gateway.writer.settle()
        found = await asyncio.to_thread(gateway.board.get, note_id, audience_of(caller))
    if found is None:
        raise NotFound(f"unknown note {note_id[:80]!r}", "see: csp board show")
    return found
