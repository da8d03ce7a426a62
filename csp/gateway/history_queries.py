"""Answer what agents ask of the room's history."""

import contextlib

from csp.errors import Broken
from csp.gateway.room_writer import RoomWriter
from csp.journal.history import History
from csp.journal.history_query import HistoryQuery
from csp.protocol.enums import MessageId
from csp.protocol.events import HISTORY_TYPES, decode_event
from csp.room.commands import AnswerQuery
from csp.room.orchestrator import log_text


class HistoryQueries:
    """The queries that wait are part of the room, so none is lost with the gateway."""

    def __init__(self, writer: RoomWriter, history: History, ttl_s: float) -> None:
        self._writer = writer
        self._history = history
        self._ttl_s = ttl_s

    async def answer(self) -> None:
        """Answer all that wait, each with what the agent that asked may read."""
        for query_id in list(self._writer.room.queries):
            await self._answer(query_id)

    async def _answer(self, query_id: MessageId) -> None:
        query = self._writer.room.queries.get(query_id)
        if query is None:
            return
        asked = HistoryQuery(limit=query.count, before=query.seq, types=HISTORY_TYPES, audience=query.agent)
        page = await self._history.page(asked)
        text = log_text(decode_event(line) for line in page.lines)
        # What cannot be written now is answered with the next query, or after the next start.
        with contextlib.suppress(Broken):
            await self._writer.submit(AnswerQuery(query=query_id, text=text, ttl_s=self._ttl_s))
