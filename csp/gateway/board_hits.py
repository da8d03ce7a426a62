"""What the whiteboard has for those who are asked next in a collaboration.

What was said last comes with every turn anyway: a search finds what is older, or was noted by others. It is
made before the room decides, so that deciding needs nothing but what it is given.
"""

import asyncio
import logging
import sqlite3
from typing import TYPE_CHECKING, Final

from csp.protocol.enums import AgentId
from csp.protocol.notes import ROOM_BOARD, FoundBy, HitView, NoteKind
from csp.room.commands import Hits
from csp.room.sessions.session_state import Session
from csp.room.visibility import ANYBODY
from csp.whiteboard.note_index import Filter

if TYPE_CHECKING:
    from csp.gateway.gateway import Gateway

log = logging.getLogger(__name__)

#: More than fit beside a window, so that those that stand in it can be left out.
MOST_HITS: Final = 24
#: How much of the objective, of the newest words, is looked for.
_WORDS: Final = 400


async def hits_for_reply(gateway: "Gateway", agent: AgentId, turn: str, text: str) -> Hits:
    """Return what the board has for who comes after this reply."""
    for session in gateway.writer.room.sessions.live_with(agent):
        held = session.turns.get(agent)
        if held is not None and turn in (held.id, held.message):
            return await _hits(gateway, [session], text)
    return {}


async def hits_for_all(gateway: "Gateway") -> Hits:
    """Return what the board has for every collaboration that goes on."""
    return await _hits(gateway, list(gateway.writer.room.sessions.live()), "")


async def hits_for_beginning(gateway: "Gateway", name: str | None, objective: str, said: str) -> Hits:
    """Return what the board has for a collaboration that begins, or goes on."""
    before = gateway.writer.room.sessions.find(name) if name else None
    if before is not None:
        return await _hits(gateway, [before], said)
    if not gateway.writer.room.boards.of(None).next_idx:
        return {}
    query = f"{objective[:_WORDS]} {said[:_WORDS]}"
    return {"": await asyncio.to_thread(_found, gateway, None, query)}


async def _hits(gateway: "Gateway", sessions: list[Session], text: str) -> Hits:
    found: dict[str, tuple[HitView, ...]] = {}
    for session in sessions:
        if session.setup.collaboration is not None and _has_more(gateway, session):
            query = f"{session.setup.topic[:_WORDS]} {text[:_WORDS] or _last_words(session)}"
            found[session.id] = await asyncio.to_thread(_found, gateway, session.id, query)
    return found


def _has_more(gateway: "Gateway", session: Session) -> bool:
    """Tell whether there is anything on the boards that the windows do not show."""
    boards = gateway.writer.room.boards
    return boards.of(None).next_idx > 0 or boards.of(session.id).next_idx > gateway.rules.window.items


def _last_words(session: Session) -> str:
    return session.items[-1].text[:_WORDS] if session.items else ""


def _found(gateway: "Gateway", session: str | None, query: str) -> tuple[HitView, ...]:
    """Return what a search finds; a turn without hits is better than none."""
    try:
        return tuple(_search(gateway, session, query))
    except (OSError, sqlite3.Error) as exc:
        log.warning("whiteboard not searched", extra={"problem": str(exc)})
        return ()


def _search(gateway: "Gateway", session: str | None, query: str) -> list[HitView]:
    """Return the last summary of a session's board, then the best hits on it and on the room's board."""
    board, found = gateway.board, list[HitView]()
    if session is not None:
        summary = board.page(Filter(session=session, kind=NoteKind.SUMMARY), 1, ANYBODY).notes
        found = [HitView(note=note, score=1.0, how=FoundBy.EXACT) for note in summary]
    names = [name for name in (session, ROOM_BOARD) if name is not None]
    hits = [hit for name in names for hit in board.search(query, Filter(session=name), MOST_HITS, ANYBODY)]
    best = sorted(hits, key=lambda hit: -hit.score)
    return [*found, *(hit for hit in best if hit.note.kind is not NoteKind.SUMMARY or not found)][:MOST_HITS]
