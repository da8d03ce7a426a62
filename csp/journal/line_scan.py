"""Find matching lines by reading a part of the journal, in either direction.

Each block is first searched for bytes that every match must contain; only lines with these are decoded.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from csp.journal.history_query import HIDDEN_TYPES, Concerns, HistoryQuery, admits, facets_of, pieces
from csp.journal.journal_view import JournalView
from csp.journal.line_reader import blocks_back, blocks_forward, type_and_seq
from csp.protocol.events import is_intact

_HIDDEN: Final = frozenset(name.encode() for name in HIDDEN_TYPES)
# Small, because most matches are near the start, but large enough for a system call.
_SCAN_BYTES: Final = 64 * 1024
_PLAIN: Final = re.compile(r"[!#-\[\]-~]+")


@dataclass(frozen=True, slots=True)
class Hit:
    """An item that matches a query."""

    seq: int
    line: bytes


@dataclass(frozen=True, slots=True)
class Scanner:
    """One query, prepared for reading many lines."""

    query: HistoryQuery
    concerns: Concerns

    def newest_first(self, view: JournalView, end: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        """Yield (offset, hits newest first) for one block after another, from `end` down."""
        screen = _screen(self.query.q)
        for offset, data in blocks_back(view.file.fd, end, 0, _SCAN_BYTES):
            yield offset, self._checked(reversed(screen(data)))

    def oldest_first(self, view: JournalView, start: int, end: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        """Yield (end offset, hits in order) for one block after another, from `start` up to `end`."""
        screen = _screen(self.query.q)
        for offset, data in blocks_forward(view.file.fd, start, end, _SCAN_BYTES):
            yield offset + len(data), self._checked(screen(data))

    def check(self, line: bytes) -> Hit | None:
        """Return the line as a hit if it matches the query and is intact."""
        head = type_and_seq(line)
        if head is None or head[0] in _HIDDEN:
            return None
        facets = facets_of(line)
        if facets is None or not admits(self.query, line, facets, self.concerns) or not is_intact(line):
            return None
        return Hit(facets.seq, line)

    def _checked(self, lines: Iterable[bytes]) -> Iterator[Hit]:
        for line in lines:
            if (hit := self.check(line)) is not None:
                yield hit


def _screen(q: str) -> Callable[[bytes], list[bytes]]:
    """Return a function that picks the lines of a block that may match `q`, judging by their bytes alone."""
    wanted = pieces(q)
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
