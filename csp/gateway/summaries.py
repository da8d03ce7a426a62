"""Have the boards summed up: when somebody asks for it, or when enough has come together.

What is due is asked of the room's state after every commit and after a start, so no summary is forgotten.
"""

import asyncio
import logging
from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from csp.core.board import seq_of, summary_prompt
from csp.core.commands import Summarise
from csp.errors import BadInput, Broken, Refused
from csp.events import AgentResponse, AnyEvent, BoardChanged, Noted
from csp.whiteboard.notes import Filter
from csp.wire import ROOM_BOARD, AgentId, BoardChange, JoinRole, NoteKind, NoteView, SummaryAskedView

if TYPE_CHECKING:
    from csp.gateway.gateway import Gateway

log = logging.getLogger(__name__)

#: A summary of more than this would not fit into a prompt; the next one goes on from there.
_MOST: Final = 500
#: Who takes part in nothing reads what all may read; no participant can have this name.
_ANYBODY: Final = AgentId("none")


class Summaries:
    """The summaries that the boards of one gateway need."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self._news = asyncio.Event()
        self._news.set()

    def take(self, events: Iterable[AnyEvent]) -> None:
        """Hear of what was committed."""
        for event in events:
            match event:
                case Noted() | AgentResponse(idx=int()) | BoardChanged():
                    self._news.set()
                case _:
                    pass

    async def work(self) -> None:
        """Ask for the summaries that are due, for as long as the gateway lives."""
        while True:
            await self._news.wait()
            self._news.clear()
            for name in self.due():
                by = self.summariser(name)
                if by is not None:
                    await self._ask_quietly(name, by)

    def due(self) -> list[str]:
        """Return the boards that should be summed up now."""
        gateway = self._gateway
        boards = gateway.writer.room.boards.by_name
        return [name for name, board in boards.items() if board.is_due(self._after(name), gateway.clock())]

    def _after(self, name: str) -> int:
        """Return after how many notes a board is summed up; 0 for never."""
        session, after = self._gateway.writer.room.sessions.get(name), self._gateway.rules.summary_after
        terms = session.setup.collaboration if session else None
        if session is None or terms is None or not after:
            return after
        # A call that nobody has foreseen could pass a limit of money.
        return terms.summarise_at if session.setup.limits.cost is None else 0

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
        last = await asyncio.to_thread(page, Filter(session=name, kind=NoteKind.SUMMARY), 1, None)
        before = last.notes[-1] if last.notes else None
        wanted = Filter(session=name, after=max(map(seq_of, before.stands_for), default=0) if before else 0)
        notes = (await asyncio.to_thread(page, wanted, _MOST, None)).notes
        known = {note.id for note in (await asyncio.to_thread(page, wanted, _MOST, _ANYBODY)).notes}
        open_ones = takewhile(lambda note: note.id in known, notes)
        return [note for note in open_ones if note.kind is not NoteKind.SUMMARY], before
