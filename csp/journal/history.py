"""Answer questions about what was said: the newest from memory, the rest from the journal."""

import asyncio
import logging
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final, NamedTuple

from csp.errors import BadInput
from csp.journal.history_query import (
    HIDDEN_TYPES,
    Concerns,
    Facets,
    HistoryQuery,
    admits,
    facets_of,
    facets_of_event,
)
from csp.journal.journal_view import JournalView
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.line_reader import blocks_forward
from csp.journal.line_scan import Hit, Scanner
from csp.journal.search_index import SearchIndex, SearchPlan
from csp.journal.search_tokens import clauses_of, clauses_of_message, clauses_of_types
from csp.protocol.enums import MessageId
from csp.protocol.events import AnyEvent, DeliveryMoved, decode_event, type_of

log = logging.getLogger(__name__)

_RECENT_BYTES: Final = 4 * 1024 * 1024
# Reading this much is quicker than asking the index something broad.
_NEAR_BYTES: Final = 512 * 1024
# A page without any condition is nearly always within this; beyond lies much of the room's machinery.
_FAR_BYTES: Final = 1024 * 1024
# A few more than asked for, because some will not stand the check; then more and more.
_SPARE: Final = 16
_GROWTH: Final = 4
_MOST_DELIVERIES: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """Items oldest first; `next` is the seq to go on from, None where nothing older is left."""

    lines: list[bytes]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHistory:
    """A message with everything that happened to it on its way."""

    line: bytes
    event: AnyEvent
    deliveries: list[DeliveryMoved]


class _Recent(NamedTuple):
    line: bytes
    facets: Facets


class History:
    """The items of one room's history; `page` and `find` may be asked at any time.

    `concerns` is the room's rule of what an agent may read.
    """

    def __init__(self, journal: JsonlJournal, index: SearchIndex, cap: int, concerns: Concerns) -> None:
        self._journal = journal
        self._index = index
        self._cap = max(1, cap)
        self._concerns = concerns
        self._recent: deque[_Recent] = deque()
        self._recent_bytes = 0
        self._generation = journal.generation
        # Every item with a higher seq is in memory.
        self._floor = journal.last_seq

    def load_recent(self) -> None:
        """Fill the memory from the journal's end; its cost does not grow with the journal."""
        self._recent.clear()
        self._recent_bytes = 0
        self._generation = self._journal.generation
        self._floor = 0
        read = 0
        for seq, line in self._journal.read_back():
            read += len(line)
            if read > _RECENT_BYTES or len(self._recent) >= self._cap:
                self._floor = seq
                return
            facets = _item(line)
            if facets is not None:
                self._recent.appendleft(_Recent(line, facets))
                self._recent_bytes += len(line)

    def remember(self, line: bytes, event: AnyEvent) -> None:
        """Take a committed event into the memory; the oldest item makes room for it."""
        if type_of(event) in HIDDEN_TYPES:
            return
        self._recent.append(_Recent(line, facets_of_event(event)))
        self._recent_bytes += len(line)
        while len(self._recent) > self._cap or self._recent_bytes > _RECENT_BYTES:
            gone = self._recent.popleft()
            self._recent_bytes -= len(gone.line)
            self._floor = gone.facets.seq

    async def page(self, query: HistoryQuery) -> HistoryPage:
        """Return one page; what memory cannot answer is read in a thread."""
        hits = self._from_memory(query)
        if hits is None:
            hits = await asyncio.to_thread(self._from_disk, query)
        if query.after is not None:
            return HistoryPage(lines=[hit.line for hit in hits], next=hits[-1].seq if hits else query.after)
        more = len(hits) > query.limit
        shown = hits[: query.limit][::-1]
        return HistoryPage(lines=[hit.line for hit in shown], next=shown[0].seq if more else None)

    async def find(self, message_id: MessageId) -> MessageHistory | None:
        """Return a message of any age with its deliveries, None if there is no such message."""
        return await asyncio.to_thread(self._find, message_id)

    # --- in memory -------------------------------------------------------------------------------

    def _from_memory(self, query: HistoryQuery) -> list[Hit] | None:
        """Return the hits if memory holds all of them; a search reads much text, so it goes to a thread."""
        if self._generation != self._journal.generation:
            self.load_recent()
        if query.q.strip():
            return None
        if query.after is not None:
            if query.after < self._floor:
                return None
            return list(islice(self._remembered(query, self._newer_than(query.after)), query.limit))
        hits = list(islice(self._remembered(query, reversed(self._recent)), query.limit + 1))
        return hits if len(hits) > query.limit or self._floor == 0 else None

    def _newer_than(self, seq: int) -> Iterator[_Recent]:
        """Yield what came after `seq` in order; readers that are up to date ask for it all the time."""
        return reversed(list(takewhile(lambda item: item.facets.seq > seq, reversed(self._recent))))

    def _remembered(self, query: HistoryQuery, recent: Iterable[_Recent]) -> Iterator[Hit]:
        for line, facets in recent:
            if admits(query, line, facets, self._concerns):
                yield Hit(facets.seq, line)

    # --- on disk, in a thread --------------------------------------------------------------------

    def _from_disk(self, query: HistoryQuery) -> list[Hit]:
        view = self._journal.view
        scanner = Scanner(query, self._concerns)
        if query.after is not None:
            return list(islice(self._oldest_first(view, scanner), query.limit))
        return list(islice(self._newest_first(view, scanner), query.limit + 1))

    def _newest_first(self, view: JournalView, scanner: Scanner) -> Iterator[Hit]:
        query = scanner.query
        border = view.end if query.before is None else view.offset_after(query.before - 1)
        clauses = clauses_of(query)
        if not clauses:
            border = yield from _read_down(scanner, view, border, border - _FAR_BYTES)
            clauses = clauses_of_types(query.types)
        plan = self._index.plan(view, clauses) if border > 0 else None
        if plan is not None:
            border = yield from _read_down(scanner, view, border, _scan_goal(plan, border))
        count = query.limit + _SPARE
        while plan is not None:
            found = self._index.offsets(view, plan, 0, border, count, newest_first=True)
            if found is None:
                break
            yield from _checked(scanner, view, found)
            if len(found) < count:
                return
            border, count = found[-1], count * _GROWTH
        yield from _read_down(scanner, view, border, 0)

    def _oldest_first(self, view: JournalView, scanner: Scanner) -> Iterator[Hit]:
        query = scanner.query
        start = view.offset_after(query.after or 0)
        end = view.end if query.before is None else view.offset_after(query.before - 1)
        clauses = clauses_of(query)
        if not clauses:
            start = yield from _read_up(scanner, view, start, end, start + _FAR_BYTES)
            clauses = clauses_of_types(query.types)
        plan = self._index.plan(view, clauses) if start < end else None
        count = query.limit + _SPARE
        while plan is not None and (border := min(end, plan.covered)) - start > _NEAR_BYTES:
            found = self._index.offsets(view, plan, start, border, count, newest_first=False)
            if found is None:
                break
            yield from _checked(scanner, view, found)
            # Past the start of a line already seen: should the rest be scanned, its tail is no line.
            start = found[-1] + 1 if len(found) == count else border
            count *= _GROWTH
        yield from _read_up(scanner, view, start, end, end)

    def _find(self, message_id: MessageId) -> MessageHistory | None:
        message: tuple[bytes, AnyEvent] | None = None
        deliveries: list[DeliveryMoved] = []
        for line in self._lines_naming(self._journal.view, message_id):
            event = _decoded(line)
            if isinstance(event, DeliveryMoved):
                if event.message == message_id:
                    deliveries.append(event)
            elif message is None and event is not None and event.id == message_id:
                message = line, event
        return (
            None
            if message is None
            else MessageHistory(line=message[0], event=message[1], deliveries=deliveries)
        )

    def _lines_naming(self, view: JournalView, message_id: MessageId) -> Iterator[bytes]:
        start = 0
        plan = self._index.plan(view, clauses_of_message(message_id))
        if plan is not None:
            found = self._index.offsets(view, plan, 0, plan.covered, _MOST_DELIVERIES, newest_first=False)
            if found is not None:
                yield from map(view.line_at, found)
                start = plan.covered
        needle = b'"%b"' % message_id.encode(errors="surrogatepass")
        for _, data in blocks_forward(view.file.fd, start, view.end):
            if needle in data:
                yield from (line for line in data.split(b"\n") if needle in line)


def _scan_goal(plan: SearchPlan, border: int) -> int:
    """Return down to which offset to read before the index is asked."""
    return min(plan.covered, border - _NEAR_BYTES) if plan.is_broad else plan.covered


def _read_down(scanner: Scanner, view: JournalView, border: int, goal: int) -> Generator[Hit, None, int]:
    """Yield the hits before `border` newest first, down to `goal` or somewhat further; return how far."""
    if border > goal:
        for offset, hits in scanner.newest_first(view, border):
            yield from hits
            border = offset
            if border <= goal:
                break
    return border


def _read_up(
    scanner: Scanner, view: JournalView, start: int, end: int, goal: int
) -> Generator[Hit, None, int]:
    """Yield the hits in [start, end) in order, up to `goal` or somewhat further; return how far."""
    for offset, hits in scanner.oldest_first(view, start, end):
        yield from hits
        start = offset
        if start >= goal:
            break
    return start


def _checked(scanner: Scanner, view: JournalView, offsets: list[int]) -> Iterator[Hit]:
    for at in offsets:
        if (hit := scanner.check(view.line_at(at))) is not None:
            yield hit


def _item(line: bytes) -> Facets | None:
    facets = facets_of(line)
    return None if facets is None or facets.type in HIDDEN_TYPES else facets


def _decoded(line: bytes) -> AnyEvent | None:
    try:
        return decode_event(line)
    except BadInput:
        return None
