"""Answer the history queries of agents."""

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
    """Answers the queries in the state of the room, so a restart loses none."""

    def __init__(self, writer: RoomWriter, history: History, ttl_s: float) -> None:
        self._writer = writer
        self._history = history
        self._ttl_s = ttl_s

    async def answer(self) -> None:
        """Answer all waiting queries, each with what its agent may read."""
        for query_id in list(self._writer.room.queries):
            await self._answer(query_id)

    async def _answer(self, query_id: MessageId) -> None:
        query = self._writer.room.queries.get(query_id)
        if query is None:
            return
        asked = HistoryQuery(limit=query.count, before=query.seq, types=HISTORY_TYPES, audience=query.agent)
        page = await self._history.page(asked)
        text = log_text(decode_event(line) for line in page.lines)
        # If it cannot be written now, the next query or the next start answers it.
        with contextlib.suppress(Broken):
            await self._writer.submit(AnswerQuery(query=query_id, text=text, ttl_s=self._ttl_s))
