"""Find lines by their tokens, in an SQLite file next to the journal that can always be rebuilt.

The id of a row is the offset of its line, so a hit costs one read. The index only locates candidates; the
caller checks the line. It may be missing the newest lines, but no others.
"""

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from csp.journal import rebuildable_files as files
from csp.journal.committed_journal import JournalView
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.line_reader import blocks_forward, intact_seq, split
from csp.journal.search_tokens import Clause, is_vocabulary, tokens_of_line

log = logging.getLogger(__name__)

_SCHEMA_VERSION: Final = 1
_SCHEMA: Final = (
    "CREATE VIRTUAL TABLE lines USING fts5(tokens, content='', columnsize=0, detail=none, "
    f'tokenize="{files.BLANKS_ONLY}")',
    "CREATE TABLE words (word TEXT PRIMARY KEY) WITHOUT ROWID",
    files.PLACE_TABLE,
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
# Joining the lists of a few hundred words takes milliseconds. SQLite's own prefix search first copies the
# lists of all words, so it is used only for prefixes shared by more words.
_MAX_WORDS: Final = 256
_BATCH_TOKENS: Final = 200_000
_BATCH_BYTES: Final = 1024 * 1024
_MAX_FAILURES: Final = 3
# A full disk, or a disk that damages every new index, may recover.
_PAUSE_S: Final = 30.0


class SearchPlan(NamedTuple):
    """An FTS5 query (empty: no line matches) that is valid for the first `covered` bytes.

    A broad query is slow to start, so it is worth reading the nearest lines first.
    """

    covered: int
    expression: str
    is_broad: bool


class SearchIndex:
    """The search index of one journal; its methods are thread-safe and never raise sqlite3.Error."""

    def __init__(self, journal: JsonlJournal) -> None:
        self._journal = journal
        self._path = journal.folder / files.SEARCH_NAME
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._upto = 0
        self._generation = -1
        self._failures = 0
        self._paused_until = 0.0
        self._grows_from = 0.0

    @property
    def lag_bytes(self) -> int:
        """The number of bytes not indexed yet, as far as is known without opening the index."""
        view = self._journal.view
        return view.end - (self._upto if self._generation == view.generation else 0)

    def catch_up(self, max_lines: int = 1000) -> int:
        """Index the next lines; return the number of bytes left to index, or 0 if it must wait."""
        with self._locked():
            view = self._journal.view
            db = None if time.monotonic() < self._grows_from else self._attached(view)
            if db is None:
                return 0
            rows, upto = _next_rows(view, self._upto, max_lines)
            if upto != self._upto:
                words = {token for _, tokens in rows for token in tokens if is_vocabulary(token)}
                with files.transaction(db):
                    db.executemany(
                        "INSERT OR IGNORE INTO words VALUES (?)", ((word,) for word in sorted(words))
                    )
                    db.executemany(
                        "INSERT INTO lines (rowid, tokens) VALUES (?, ?)",
                        ((offset, " ".join(tokens)) for offset, tokens in rows),
                    )
                    files.write_place(db, view, upto)
                self._upto = upto
            return view.end - upto
        return 0

    def plan(self, view: JournalView, clauses: Sequence[Clause]) -> SearchPlan | None:
        """Return a plan for finding the lines that meet all clauses; None if the journal must be read."""
        with self._locked():
            db = self._attached(view)
            return None if db is None else _plan(db, clauses, self._upto)
        return None

    def offsets(
        self, view: JournalView, plan: SearchPlan, low: int, high: int, count: int, *, newest_first: bool
    ) -> list[int] | None:
        """Return the offsets of the plan's first `count` lines in [low, high); None if they must be read."""
        if not plan.expression:
            return []
        with self._locked():
            if self._db is None or self._generation != view.generation:
                return None
            rows = self._db.execute(
                "SELECT rowid FROM lines WHERE lines MATCH ? AND rowid >= ? AND rowid < ? "
                f"ORDER BY rowid {'DESC' if newest_first else 'ASC'} LIMIT ?",
                (plan.expression, low, high, count),
            )
            return [row[0] for row in rows]
        return None

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            self._detach()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock; an SQLite error ends the block, and the index is dropped or waits."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as exc:
                self._give_up(exc)

    # --- with the lock held ----------------------------------------------------------------------

    def _attached(self, view: JournalView) -> sqlite3.Connection | None:
        """Return this journal file's database, a new one if necessary; None while it must wait."""
        if time.monotonic() < self._paused_until:
            return None
        if self._db is None or self._generation != view.generation:
            self._detach()
            self._db, self._upto = _open(self._path, view)
            self._generation = view.generation
        return self._db

    def _give_up(self, exc: sqlite3.Error) -> None:
        if files.is_full(exc):
            # Keep the index as it is, so that everything indexed so far can still be found.
            log.warning("no space for the search index", extra={"path": str(self._path), "problem": str(exc)})
            self._grows_from = time.monotonic() + _PAUSE_S
            if self._db is None:
                self._paused_until = self._grows_from
                return
            try:
                self._db.rollback()
            except sqlite3.Error:
                self._detach()
            return
        log.warning("search index dropped", extra={"path": str(self._path), "problem": str(exc)})
        self._detach()
        files.delete_database(self._path)
        self._failures += 1
        if self._failures >= _MAX_FAILURES:
            self._failures = 0
            self._paused_until = time.monotonic() + _PAUSE_S

    def _detach(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None
        self._upto = 0


def _open(path: Path, view: JournalView) -> tuple[sqlite3.Connection, int]:
    """Return a database that belongs to the journal, and the offset up to which it is indexed."""
    try:
        db = files.connect(path)
    except sqlite3.Error as exc:
        if files.is_full(exc):
            raise
    else:
        with contextlib.suppress(sqlite3.Error):
            if upto := files.reached(db, _SCHEMA_VERSION, view):
                return db, upto
        db.close()
    files.delete_database(path)
    return files.create_tables(files.connect(path), _SCHEMA), 0


def _next_rows(view: JournalView, upto: int, max_lines: int) -> tuple[list[tuple[int, frozenset[str]]], int]:
    """Return (offset, tokens) for the lines from `upto` on, and the offset after the last line read."""
    rows: list[tuple[int, frozenset[str]]] = []
    seen = weight = size = 0
    for offset, data in blocks_forward(view.file.fd, upto, view.end):
        for at, line in split(offset, data):
            if seen >= max_lines or weight >= _BATCH_TOKENS or size >= _BATCH_BYTES:
                return rows, at
            seen += 1
            size += len(line)
            tokens = tokens_of_line(line) if intact_seq(line) is not None else None
            if tokens:
                rows.append((at, tokens))
                weight += len(tokens)
        upto = offset + len(data)
    return rows, upto


def _plan(db: sqlite3.Connection, clauses: Sequence[Clause], covered: int) -> SearchPlan:
    exact: list[str] = []
    broad: list[str] = []
    for clause in clauses:
        tokens: Sequence[str] = clause.tokens
        if clause.prefix:
            # "{" follows "z", the last character that a word may contain.
            rows = db.execute(
                "SELECT word FROM words WHERE word >= ? AND word < ? LIMIT ?",
                (clause.prefix, clause.prefix + "{", _MAX_WORDS + 1),
            )
            tokens = [row[0] for row in rows]
        if not tokens:
            return SearchPlan(covered, "", is_broad=False)
        if len(tokens) > _MAX_WORDS:
            broad.append(files.quoted(clause.prefix) + "*")
        else:
            exact.append("(" + " OR ".join(map(files.quoted, tokens)) + ")")
    expression = " AND ".join(exact or broad)
    try:
        expression.encode()
    except UnicodeEncodeError:
        # No line contains a lone surrogate from a broken client, and SQLite rejects it.
        expression = ""
    return SearchPlan(covered, expression, is_broad=not exact)
