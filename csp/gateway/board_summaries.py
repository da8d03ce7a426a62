"""Have the boards summed up: when somebody asks for it, or when enough has come together.

What is due is asked of the room's state after every commit and after a start, so no summary is forgotten.
"""

import asyncio
import logging
from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from csp.errors import BadInput, Broken, Refused
from csp.protocol.enums import JoinRole
from csp.protocol.events import AgentResponse, AnyEvent, BoardChanged, NoteAdded
from csp.protocol.notes import ROOM_BOARD, BoardChange, NoteKind, NoteView, SummaryAskedView
from csp.room.board.board_state import seq_of, summary_prompt
from csp.room.commands import CompactBoard, Summarise
from csp.room.visibility import ANYBODY
from csp.whiteboard.note_index import Filter

if TYPE_CHECKING:
    from csp.gateway.gateway import Gateway

log = logging.getLogger(__name__)

#: A summary of more than this would not fit into a prompt; the next one goes on from there.
_MOST: Final = 500


class BoardSummaries:
    """The summaries that the boards of one gateway need."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self._news = asyncio.Event()
        self._news.set()

    def take(self, events: Iterable[AnyEvent]) -> None:
        """Hear of what was committed."""
        for event in events:
            match event:
                case NoteAdded() | AgentResponse(idx=int()) | BoardChanged():
                    self._news.set()
                case _:
                    pass

    async def work(self) -> None:
        """Ask for the summaries that are due, for as long as the gateway lives."""
        while True:
            await self._news.wait()
            self._news.clear()
            for name in self.crowded():
                await self.compact(name)
            for name in self.due():
                by = self.summariser(name)
                if by is not None:
                    await self._ask_quietly(name, by)

    def due(self) -> list[str]:
        """Return the boards that should be summed up now."""
        gateway = self._gateway
        boards = gateway.writer.room.boards.by_name
        return [name for name, board in boards.items() if board.is_due(self._after(name), gateway.clock())]

    def crowded(self) -> list[str]:
        """Return the boards that need space and have notes which a summary stands for."""
        boards, limit = self._gateway.writer.room.boards.by_name, self._gateway.rules.board_max_bytes
        return [
            name
            for name, board in boards.items()
            if board.is_crowded(limit) and board.compacted < board.summed
        ]

    async def compact(self, name: str) -> None:
        """Take the notes off a board that its last summary stands for."""
        gateway = self._gateway
        await gateway.writer.settle()
        upto = gateway.writer.room.boards.of(name).summed
        freed = await asyncio.to_thread(gateway.board.bytes_until, name, upto)
        try:
            await gateway.submit(CompactBoard(session=name, upto=upto, freed=freed))
        except (Refused, BadInput, Broken) as exc:
            log.warning("whiteboard not compacted", extra={"board": name, "problem": exc.message})

    def _after(self, name: str) -> int:
        """Return after how many notes a board is summed up, the first where it is crowded; 0 for never."""
        gateway = self._gateway
        session, after = gateway.writer.room.sessions.get(name), gateway.rules.summary_after
        terms = session.setup.collaboration if session else None
        if session is not None and terms is not None and after:
            # A call that nobody has foreseen could pass a limit of money.
            after = terms.summarise_at if session.setup.limits.cost is None else 0
        is_crowded = gateway.writer.room.boards.of(name).is_crowded(gateway.rules.board_max_bytes)
        return min(after, 1) if is_crowded else after

    def summariser(self, name: str) -> str | None:
        """Return who is here to sum a board up: as the settings say, the session's own, the orchestrator."""
        room = self._gateway.writer.room
        session = room.sessions.get(name)
        bosses = [one.id for one in room.participants.values() if one.role is JoinRole.ORCHESTRATOR]
        wanted = [self._gateway.rules.summariser, session.setup.synth if session else None, *bosses]
        here = {one.id for one in room.participants.values() if one.online}
        return next((agent for agent in wanted if agent in here), None)

    async def _ask_quietly(self, name: str, by: str) -> None:
        try:
            await self.ask(name, by)
        except (Refused, BadInput, Broken) as exc:
            log.info("summary not asked for", extra={"board": name, "problem": exc.message})

    async def ask(self, session: str | None, by: str) -> SummaryAskedView:
        """Ask `by` to sum up what is new on a board."""
        gateway, name = self._gateway, session or ROOM_BOARD
        notes, before = await self._fresh(name)
        text = summary_prompt(gateway.rules.prompts, name, notes, before)
        stands_for = tuple(note.id for note in notes)
        ttl_s = gateway.settings.message_ttl_s
        command = Summarise(by=by, session=name, text=text, stands_for=stands_for, ttl_s=ttl_s)
        events = await gateway.submit(command)
        asked = next(
            event for event in events if isinstance(event, BoardChanged) and event.change is BoardChange.ASKED
        )
        assert asked.message is not None and asked.by is not None
        return SummaryAskedView(
            success=True, id=asked.message, by=asked.by, session=name, stands_for=stands_for
        )

    async def _fresh(self, name: str) -> tuple[list[NoteView], NoteView | None]:
        """Return the notes since the last summary, up to one that is still sealed, with that summary."""
        await self._gateway.writer.settle()
        page = self._gateway.board.page
        last = await asyncio.to_thread(page, Filter(session=name, kind=NoteKind.SUMMARY), 1, ANYBODY)
        before = last.notes[-1] if last.notes else None
        wanted = Filter(session=name, after=max(map(seq_of, before.stands_for), default=0) if before else 0)
        notes = (await asyncio.to_thread(page, wanted, _MOST, None)).notes
        known = {note.id for note in (await asyncio.to_thread(page, wanted, _MOST, ANYBODY)).notes}
        open_ones = takewhile(lambda note: note.id in known, notes)
        return [note for note in open_ones if note.kind is not NoteKind.SUMMARY], before
