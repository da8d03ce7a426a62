"""The room's events on disk, appended in order and readable from any position.

`JsonlJournal` is one file of JSON lines with a checksum per line. `append` writes a batch, `sync` flushes it
to disk, and `commit` makes it visible to readers. One sync serves many messages. `journal_repair`
repairs the file when it is opened, `rewrite` removes text from it, `scrub` checks it for damage,
and `snapshots` makes the next start faster. `history` answers queries from memory or with the help of
`search_index`, an SQLite file that can always be rebuilt.

`history`, `search_index` and `rewrite` read the file of `JsonlJournal` directly.
"""

from csp.journal.journal_view import Chunk, Cursor
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.room_secret import load_secret

__all__ = ["Chunk", "Cursor", "JsonlJournal", "load_secret"]
