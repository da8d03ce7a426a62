"""Answer history queries: the newest items from memory, the rest from the journal."""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice, takewhile
from typing import Final, NamedTuple

from csp.journal import history_query
from csp.journal.committed_journal import JournalView
from csp.journal.history_query import HIDDEN_TYPES, Concerns, Facets, HistoryQuery, admits
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.line_reader import blocks_back, blocks_forward, type_and_seq
from csp.journal.search_index import SearchIndex
from csp.journal.search_tokens import clauses_of, clauses_of_message, clauses_of_types
from csp.protocol.enums import MessageId
from csp.protocol.events import AnyEvent, DeliveryMoved, is_intact, type_of

log = logging.getLogger(__name__)

_HIDDEN: Final = frozenset(name.encode() for name in HIDDEN_TYPES)
# Small, because most matches are near the start, but large enough to be worth a system call.
_SCAN_BYTES: Final = 64 * 1024
_PLAIN: Final = re.compile(r"[!#-\[\]-~]+")
_RECENT_BYTES: Final = 4 * 1024 * 1024
# Reading this much is faster than a broad query of the index.
_NEAR_BYTES: Final = 512 * 1024
# A page without conditions nearly always fits within this, unless there are many internal events.
_FAR_BYTES: Final = 1024 * 1024
# A query of the index requests a few extra lines, because some fail the check; each retry requests more.
_SPARE: Final = 16
_GROWTH: Final = 4
_MOST_DELIVERIES: Final = 100_000
#: A page ends before it exceeds this size: building a larger one would keep the room silent for too long.
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024


class HistoryPage(NamedTuple):
    """Items, oldest first; `next` is the seq to continue from, or None if nothing older is left."""

    lines: list[bytes]
    next: int | None


class MessageHistory(NamedTuple):
    """A message and all states of its deliveries."""

    line: bytes
    event: AnyEvent
    deliveries: list[DeliveryMoved]


class _Recent(NamedTuple):
    line: bytes
    facets: Facets


class Hit(NamedTuple):
    """An item that matches a query."""

    seq: int
    line: bytes


class Taken(NamedTuple):
    """The hits of one page in the order they were found, and whether there are more."""

    hits: list[Hit]
    has_more: bool


class Scanner(NamedTuple):
    """One query, prepared for reading part of the journal in either direction.

    Each block is first searched for bytes that every match must contain; only lines with them are decoded.
    """

    query: HistoryQuery
    concerns: Concerns

    def newest_first(self, view: JournalView, end: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        """Yield (offset, hits newest first) block by block, backwards from `end`."""
        screen = _screen(self.query.q)
        for offset, data in blocks_back(view.file.fd, end, 0, _SCAN_BYTES):
            yield offset, self.checked(reversed(screen(data)))

    def oldest_first(self, view: JournalView, start: int, end: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        """Yield (end offset, hits in order) block by block, from `start` to `end`."""
        screen = _screen(self.query.q)
        for offset, data in blocks_forward(view.file.fd, start, end, _SCAN_BYTES):
            yield offset + len(data), self.checked(screen(data))

    def check(self, line: bytes) -> Hit | None:
        """Return the line as a hit if it matches the query and is intact."""
        head = type_and_seq(line)
        if head is None or head[0] in _HIDDEN:
            return None
        facets = history_query.facets_of(line)
        if facets is None or not admits(self.query, line, facets, self.concerns) or not is_intact(line):
            return None
        return Hit(facets.seq, line)

    def checked(self, lines: Iterable[bytes]) -> Iterator[Hit]:
        """Yield the lines that match the query."""
        for line in lines:
            if (hit := self.check(line)) is not None:
                yield hit


class History:
    """The history of one room.

    `concerns` is the room's rule for what an agent may read.
    """

    def __init__(self, journal: JsonlJournal, index: SearchIndex, cap: int, concerns: Concerns) -> None:
        self._journal = journal
        self._index = index
        self._cap = max(1, cap)
        self._concerns = concerns
        self._recent: deque[_Recent] = deque()
        self._recent_bytes = 0
        self._generation = journal.view.generation
        # All items with a higher seq are in memory.
        self._floor = journal.last_seq

    def load_recent(self) -> None:
        """Load the newest items from the end of the journal; the cost does not grow with the journal."""
        self._recent.clear()
        self._recent_bytes = 0
        self._generation = self._journal.view.generation
        self._floor = 0
        read = 0
        for seq, line in self._journal.view.read_back():
            read += len(line)
            if read > _RECENT_BYTES or len(self._recent) >= self._cap:
                self._floor = seq
                return
            facets = history_query.facets_of(line)
            if facets is not None and facets.type not in HIDDEN_TYPES:
                self._recent.appendleft(_Recent(line, facets))
                self._recent_bytes += len(line)

    def remember(self, line: bytes, event: AnyEvent) -> None:
        """Add a committed event to the memory and drop the oldest items if it is full."""
        if type_of(event) in HIDDEN_TYPES:
            return
        self._recent.append(_Recent(line, history_query.facets_of_event(event)))
        self._recent_bytes += len(line)
        while len(self._recent) > self._cap or self._recent_bytes > _RECENT_BYTES:
            gone = self._recent.popleft()
            self._recent_bytes -= len(gone.line)
            self._floor = gone.facets.seq

    async def page(self, query: HistoryQuery) -> HistoryPage:
        """Return one page; items that are not in memory are read in a thread."""
        taken = self._from_memory(query)
        if taken is None:
            taken = await asyncio.to_thread(self._from_disk, query)
        hits, has_more = taken
        if query.after is not None:
            return HistoryPage(lines=[hit.line for hit in hits], next=hits[-1].seq if hits else query.after)
        return HistoryPage(lines=[hit.line for hit in hits[::-1]], next=hits[-1].seq if has_more else None)

    async def find(self, message_id: MessageId) -> MessageHistory | None:
        """Return a message of any age with its deliveries, or None if there is no such message."""
        return await asyncio.to_thread(self._find, message_id)

    # --- in memory -------------------------------------------------------------------------------

    def _from_memory(self, query: HistoryQuery) -> Taken | None:
        """Return the hits if all of them are in memory; a text search is slow, so it runs in a thread."""
        if self._generation != self._journal.view.generation:
            self.load_recent()
        if query.q.strip():
            return None
        if query.after is not None:
            if query.after < self._floor:
                return None
            after = query.after
            # Readers that are up to date often request a few new items, so start from the newest.
            newer = list(takewhile(lambda item: item.facets.seq > after, reversed(self._recent)))
            return take(islice(self._remembered(query, reversed(newer)), query.limit), query.limit)
        taken = take(self._remembered(query, reversed(self._recent)), query.limit)
        return taken if taken.has_more or self._floor == 0 else None

    def _remembered(self, query: HistoryQuery, recent: Iterable[_Recent]) -> Iterator[Hit]:
        for line, facets in recent:
            if admits(query, line, facets, self._concerns):
                yield Hit(facets.seq, line)

    # --- on disk, in a thread --------------------------------------------------------------------

    def _from_disk(self, query: HistoryQuery) -> Taken:
        view = self._journal.view
        scanner = Scanner(query, self._concerns)
        if query.after is not None:
            # Do not check whether there are more items, because that could read the whole journal.
            return take(islice(self._oldest_first(view, scanner), query.limit), query.limit)
        return take(self._newest_first(view, scanner), query.limit)

    def _newest_first(self, view: JournalView, scanner: Scanner) -> Iterator[Hit]:
        query = scanner.query
        border = view.end if query.before is None else view.offset_after(query.before - 1)
        clauses = clauses_of(query)
        if not clauses:
            border = yield from _read_down(scanner, view, border, border - _FAR_BYTES)
            clauses = clauses_of_types(query.types)
        plan = self._index.plan(view, clauses) if border > 0 else None
        if plan is not None:
            # A broad query of the index is slow to start, so the nearest lines are read first.
            goal = min(plan.covered, border - _NEAR_BYTES) if plan.is_broad else plan.covered
            border = yield from _read_down(scanner, view, border, goal)
        count = query.limit + _SPARE
        while plan is not None:
            found = self._index.offsets(view, plan, 0, border, count, newest_first=True)
            if found is None:
                break
            yield from scanner.checked(map(view.line_at, found))
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
            yield from scanner.checked(map(view.line_at, found))
            # One byte past the start of a line already seen: a scan of the rest skips that line's remainder.
            start = found[-1] + 1 if len(found) == count else border
            count *= _GROWTH
        yield from _read_up(scanner, view, start, end, end)

    def _find(self, message_id: MessageId) -> MessageHistory | None:
        message: tuple[bytes, AnyEvent] | None = None
        deliveries: list[DeliveryMoved] = []
        for line in self._lines_naming(self._journal.view, message_id):
            event = history_query.event_of(line)
            if isinstance(event, DeliveryMoved):
                if event.message == message_id:
                    deliveries.append(event)
            elif message is None and event is not None and event.id == message_id:
                message = line, event
        if message is None:
            return None
        return MessageHistory(line=message[0], event=message[1], deliveries=deliveries)

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


def take(hits: Iterable[Hit], limit: int) -> Taken:
    """Take up to `limit` hits; fewer if they are long, but at least one."""
    taken: list[Hit] = []
    size = 0
    for hit in hits:
        size += len(hit.line)
        if len(taken) == limit or (taken and size > MAX_PAGE_BYTES):
            return Taken(taken, True)
        taken.append(hit)
    return Taken(taken, False)


def _read_down(scanner: Scanner, view: JournalView, border: int, goal: int) -> Generator[Hit, None, int]:
    """Yield the hits before `border`, newest first, down to about `goal`; return the offset reached."""
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
    """Yield the hits in [start, end) in order, up to about `goal`; return the offset reached."""
    for offset, hits in scanner.oldest_first(view, start, end):
        yield from hits
        start = offset
        if start >= goal:
            break
    return start


def _screen(q: str) -> Callable[[bytes], list[bytes]]:
    """Return a function that selects the lines of a block that may match `q`, judging only by their bytes."""
    wanted = history_query.pieces(q)
    if any(not piece.isascii() for piece in wanted):
        return lambda data: (
            [] if data.isascii() else [line for line in data.split(b"\n") if not line.isascii()]
        )
    # The longest run of characters that JSON does not escape.
    runs = [run for piece in wanted for run in _PLAIN.findall(piece)]
    needle = max(runs, key=len, default="").encode()

    def lines_with_needle(data: bytes) -> list[bytes]:
        if data.isascii() and needle not in data.lower():
            return []
        # Case folding turns some other characters into ASCII, so lines with such characters always pass.
        return [line for line in data.split(b"\n") if not line.isascii() or needle in line.lower()]

    return lines_with_needle if needle else lambda data: data.split(b"\n")
