"""The room's events on disk: appended in order, read from any position.

`JsonlJournal` is one file of JSON lines with a checksum per line. `append` writes a batch, `sync` brings it
to the disk and `commit` shows it to readers, so many messages share one sync. `tail_repair` and
`duplicate_lines` repair the file when it is opened, `rewrite` removes text from it, `scrub` looks for damage
and `snapshots` shorten the next start. `history` answers queries, from memory or with the help of
`search_index`, an SQLite file that can always be rebuilt.

`Journal` is the interface that the writer of a room needs. `history`, `search_index` and `rewrite` read the
file of `JsonlJournal` directly.
"""

from collections.abc import Sequence
from typing import Protocol

from csp.journal.journal_view import Chunk, Cursor
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.room_secret import load_secret

__all__ = ["Chunk", "Cursor", "Journal", "JsonlJournal", "load_secret"]


class Journal(Protocol):
    """An ordered, durable list of encoded events with one writer.

    `last_seq` is the seq of the last event appended.
    """

    last_seq: int

    @property
    def safe_seq(self) -> int:
        """The seq of the last event committed."""

    def append(self, lines: Sequence[bytes], first_seq: int) -> None:
        """Add a batch whose first event has the seq after `last_seq`; all of it or none."""

    def sync(self) -> None:
        """Return when everything appended would survive a power cut."""

    def commit(self) -> None:
        """Make everything appended visible to readers."""

    def rollback(self) -> None:
        """Remove everything appended since the last commit."""

    def can_grow(self) -> bool:
        """Tell, after StorageFull, whether there is space again."""

    def read_after(self, seq: int, max_bytes: int = ..., cursor: Cursor | None = None) -> Chunk:
        """Return the next committed lines with a higher seq."""

    def close(self) -> None:
        """Release the store."""
