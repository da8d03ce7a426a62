"""The room's events on disk: written once, in order; read back from any place.

`Journal` is what the writer of a room asks of a store. `history`, `index` and `rewrite` read the file of
`JsonlJournal` itself: another store brings its own.
"""

from collections.abc import Sequence
from typing import Protocol

from csp.journal.journal_view import Chunk, Cursor
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.room_secret import load_secret

__all__ = ["Chunk", "Cursor", "Journal", "JsonlJournal", "load_secret"]


class Journal(Protocol):
    """An ordered, durable list of encoded events that one writer extends.

    `last_seq` is that of the last event appended.
    """

    last_seq: int

    @property
    def safe_seq(self) -> int:
        """The seq of the last event committed."""

    def append(self, lines: Sequence[bytes], first_seq: int) -> None:
        """Add a batch whose first event has the seq after `last_seq`; all of it or nothing."""

    def sync(self) -> None:
        """Return when everything appended would survive a power cut."""

    def commit(self) -> None:
        """Show readers everything appended."""

    def rollback(self) -> None:
        """Take back everything appended since the last commit."""

    def can_grow(self) -> bool:
        """Tell, after StorageFull, whether there is space again."""

    def read_after(self, seq: int, max_bytes: int = ..., cursor: Cursor | None = None) -> Chunk:
        """Return the next committed lines with a higher seq."""

    def close(self) -> None:
        """Let go of the store."""
