"""The room's events on disk, appended in order and readable from any position.

`JsonlJournal` is one file of JSON lines with a checksum per line. `append` writes a batch, `sync` flushes it
to disk, and `commit` makes it visible to readers. One sync serves many messages. `journal_repair`
repairs the file when it is opened, `rewrite` removes text from it, `scrub` checks it for damage,
and `snapshots` makes the next start faster. `history` answers queries from memory or with the help of
`search_index`, an SQLite file that can always be rebuilt.

`history`, `search_index` and `rewrite` read the file of `JsonlJournal` directly.

A `Log` (`commit_log`) decides what is committed, and the writer of a room asks it and nothing else.
`LocalLog` is the log of a room with a single gateway: the file itself.
"""

from csp.journal.commit_log import Batch, Log, Place
from csp.journal.committed_journal import Chunk, Cursor
from csp.journal.disk_thread import DiskThread
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.local_log import LocalLog
from csp.journal.room_secret import load_secret

__all__ = [
    "Batch",
    "Chunk",
    "Cursor",
    "DiskThread",
    "JsonlJournal",
    "LocalLog",
    "Log",
    "Place",
    "load_secret",
]
