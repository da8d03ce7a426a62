"""Background work for whiteboards: search notes for the next turns and request summaries.

A turn of a collaboration contains the newest messages anyway, so hits are older notes and notes from
outside it. The search runs before the room decides, because `decide` is a pure function of its arguments.
Due summaries are computed from the room's state after every commit and after a start, so none is lost.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Final

from csp.errors import BadInput, Broken, Refused
from csp.gateway.room_writer import RoomWriter
from csp.protocol.enums import AgentId, JoinRole
from csp.protocol.events import AgentResponse, AnyEvent, BoardChanged, NoteAdded
from csp.protocol.notes import ROOM_BOARD, BoardChange, FoundBy, HitView, NoteKind, NoteView, SummaryAskedView
from csp.room.board_state import seq_of, summary_prompt
from csp.room.commands import CompactBoard, Hits, RoomRules, Summarise
from csp.room.sessions.session_state import Session
from csp.room.visibility import ANYBODY
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import Whiteboard

log = logging.getLogger(__name__)

#: More hits than fit in a prompt, because those already in the message window are dropped.
MAX_HITS: Final = 24
#: The maximum number of characters of the objective and of the newest text in the query.
_QUERY_CHARS: Final = 400
#: More notes would not fit in a prompt; the next summary continues after them.
_MAX_NOTES: Final = 500


class BoardHits:
    """Searches the boards of one room."""

    def __init__(self, writer: RoomWriter, board: Whiteboard, rules: RoomRules) -> None:
        self._writer = writer
        self._board = board
        self._rules = rules

    async def for_reply(self, agent: AgentId, turn: str, text: str) -> Hits:
        """Return the hits for the agents whose turn follows this reply."""
        for session in self._writer.room.sessions.live_with(agent):
            held = session.turns.get(agent)
            if held is not None and turn in (held.id, held.message):
                return await self._for_sessions([session], text)
        return {}

    async def for_all(self) -> Hits:
        """Return the hits for every running collaboration."""
        return await self._for_sessions(list(self._writer.room.sessions.live()), "")

    async def for_start(self, name: str | None, objective: str, text: str) -> Hits:
        """Return the hits for a collaboration that is starting or continuing."""
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
            # Skip the search if the room board is empty and the session's board fits into the window.
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


class BoardSummaries:
    """Requests the due summaries of one room's boards."""

    def __init__(
        self,
        writer: RoomWriter,
        board: Whiteboard,
        rules: RoomRules,
        message_ttl_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._board = board
        self._rules = rules
        self._message_ttl_s = message_ttl_s
        self._clock = clock
        self._news = asyncio.Event()
        self._news.set()

    def observe(self, events: Iterable[AnyEvent]) -> None:
        """Trigger a check for due summaries after events that change a board."""
        for event in events:
            if isinstance(event, NoteAdded | BoardChanged) or (
                isinstance(event, AgentResponse) and event.idx is not None
            ):
                self._news.set()

    def look(self) -> None:
        """Trigger a check for due summaries."""
        self._news.set()

    async def work(self) -> None:
        """Request due summaries until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            if not self._writer.is_leading:
                continue
            for name in self.crowded():
                await self.compact(name)
            for name in self.due():
                by = self.summariser(name)
                if by is None:
                    continue
                try:
                    await self.ask(name, by)
                except (Refused, BadInput, Broken) as exc:
                    log.info("summary not requested", extra={"board": name, "problem": exc.message})

    def due(self) -> list[str]:
        """Return the boards that need a summary now."""
        boards = self._writer.room.boards.by_name
        return [name for name, board in boards.items() if board.is_due(self._after(name), self._clock())]

    def crowded(self) -> list[str]:
        """Return the boards that are nearly full and have notes covered by a summary."""
        boards, limit = self._writer.room.boards.by_name, self._rules.board_max_bytes
        full = [(name, board) for name, board in boards.items() if board.is_crowded(limit)]
        return [name for name, board in full if board.compacted < board.summed]

    async def compact(self, name: str) -> None:
        """Remove the notes that are covered by the board's last summary."""
        await self._writer.settle()
        upto = self._writer.room.boards.of(name).summed
        freed = await asyncio.to_thread(self._board.bytes_until, name, upto)
        try:
            await self._writer.submit(CompactBoard(session=name, upto=upto, freed=freed))
        except (Refused, BadInput, Broken) as exc:
            log.warning("whiteboard not compacted", extra={"board": name, "problem": exc.message})

    def _after(self, name: str) -> int:
        """Return the number of new notes that makes a summary due: 1 on a crowded board, 0 for never."""
        session, after = self._writer.room.sessions.get(name), self._rules.summary_after
        terms = session.setup.collaboration if session else None
        if session is not None and terms is not None and after:
            # The cost of the extra call is not estimated and could exceed the limit.
            after = terms.summarise_at if session.setup.limits.cost is None else 0
        is_crowded = self._writer.room.boards.of(name).is_crowded(self._rules.board_max_bytes)
        return min(after, 1) if is_crowded else after

    def summariser(self, name: str) -> str | None:
        """Return the first online agent: the configured summariser, the synthesiser, or an orchestrator."""
        room = self._writer.room
        session = room.sessions.get(name)
        bosses = [one.id for one in room.participants.values() if one.role is JoinRole.ORCHESTRATOR]
        wanted = [self._rules.summariser, session.setup.synth if session else None, *bosses]
        here = {one.id for one in room.participants.values() if one.online}
        return next((agent for agent in wanted if agent in here), None)

    async def ask(self, session: str | None, by: str) -> SummaryAskedView:
        """Ask `by` for a summary of the new notes on a board."""
        name = session or ROOM_BOARD
        notes, before = await self._fresh(name)
        text = summary_prompt(self._rules.prompts, name, notes, before)
        stands_for = tuple(note.id for note in notes)
        command = Summarise(by=by, session=name, text=text, stands_for=stands_for, ttl_s=self._message_ttl_s)
        events = await self._writer.submit(command)
        asked = next(
            event for event in events if isinstance(event, BoardChanged) and event.change is BoardChange.ASKED
        )
        assert asked.message is not None and asked.by is not None
        return SummaryAskedView(
            success=True, id=asked.message, by=asked.by, session=name, stands_for=stands_for
        )

    async def _fresh(self, name: str) -> tuple[list[NoteView], NoteView | None]:
        """Return the notes since the last summary, up to the first sealed one, and that summary."""
        await self._writer.settle()
        page = self._board.page
        last = await asyncio.to_thread(page, Filter(session=name, kind=NoteKind.SUMMARY), 1, ANYBODY)
        before = last.notes[-1] if last.notes else None
        wanted = Filter(session=name, after=max(map(seq_of, before.stands_for), default=0) if before else 0)
        notes = (await asyncio.to_thread(page, wanted, _MAX_NOTES, None)).notes
        known = {note.id for note in (await asyncio.to_thread(page, wanted, _MAX_NOTES, ANYBODY)).notes}
        open_ones = takewhile(lambda note: note.id in known, notes)
        return [note for note in open_ones if note.kind is not NoteKind.SUMMARY], before
