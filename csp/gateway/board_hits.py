"""Find whiteboard notes for the next turns of a collaboration.

A turn carries the newest messages anyway, so the search is for older notes and for notes of others. It runs
before the room decides, because deciding may only use what it is given.
"""

import asyncio
import logging
import sqlite3
from typing import Final

from csp.gateway.room_writer import RoomWriter
from csp.protocol.enums import AgentId
from csp.protocol.notes import ROOM_BOARD, FoundBy, HitView, NoteKind
from csp.room.commands import Hits
from csp.room.room_rules import RoomRules
from csp.room.sessions.session_state import Session
from csp.room.visibility import ANYBODY
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import Whiteboard

log = logging.getLogger(__name__)

#: More than fit beside a window, because hits that are in the window are dropped.
MAX_HITS: Final = 24
#: How many characters of the objective, and of the newest text, go into the query.
_QUERY_CHARS: Final = 400


class BoardHits:
    """Searches the boards of one room."""

    def __init__(self, writer: RoomWriter, board: Whiteboard, rules: RoomRules) -> None:
        self._writer = writer
        self._board = board
        self._rules = rules

    async def for_reply(self, agent: AgentId, turn: str, text: str) -> Hits:
        """Return the hits for the agents that are asked after this reply."""
        for session in self._writer.room.sessions.live_with(agent):
            held = session.turns.get(agent)
            if held is not None and turn in (held.id, held.message):
                return await self._for_sessions([session], text)
        return {}

    async def for_all(self) -> Hits:
        """Return the hits for every running collaboration."""
        return await self._for_sessions(list(self._writer.room.sessions.live()), "")

    async def for_start(self, name: str | None, objective: str, text: str) -> Hits:
        """Return the hits for a collaboration that starts or continues."""
        before = self._writer.room.sessions.find(name) if name else None
        if before is not None:
            return await self._for_sessions([before], text)
        if not self._writer.room.boards.of(None).next_idx:
            return {}
        query = f"{objective[:_QUERY_CHARS]} {text[:_QUERY_CHARS]}"
        return {"": await asyncio.to_thread(self._search, None, query)}

    async def _for_sessions(self, sessions: list[Session], text: str) -> Hits:
        boards = self._writer.room.boards
        found: dict[str, tuple[HitView, ...]] = {}
        for session in sessions:
            if session.setup.collaboration is None:
                continue
            # With no room board and a session board that fits into the window, nothing is missing.
            if boards.of(None).next_idx > 0 or boards.of(session.id).next_idx > self._rules.window.items:
                newest = text or (session.items[-1].text if session.items else "")
                query = f"{session.setup.topic[:_QUERY_CHARS]} {newest[:_QUERY_CHARS]}"
                found[session.id] = await asyncio.to_thread(self._search, session.id, query)
        return found

    def _search(self, session: str | None, query: str) -> tuple[HitView, ...]:
        """Return the last summary of the session's board, then the best hits on it and on the room's board.

        A search that fails returns no hits: a turn without hits is better than no turn.
        """
        try:
            summaries: list[HitView] = []
            if session is not None:
                wanted = Filter(session=session, kind=NoteKind.SUMMARY)
                notes = self._board.page(wanted, 1, ANYBODY).notes
                summaries = [HitView(note=note, score=1.0, how=FoundBy.EXACT) for note in notes]
            hits = [
                hit
                for name in (session, ROOM_BOARD)
                if name is not None
                for hit in self._board.search(query, Filter(session=name), MAX_HITS, ANYBODY)
                if hit.note.kind is not NoteKind.SUMMARY or not summaries
            ]
        except (OSError, sqlite3.Error) as exc:
            log.warning("whiteboard search failed", extra={"problem": str(exc)})
            return ()
        return tuple([*summaries, *sorted(hits, key=lambda hit: -hit.score)][:MAX_HITS])
