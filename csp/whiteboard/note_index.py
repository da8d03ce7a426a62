"""The index of a room's notes: an SQLite file next to the journal that can always be rebuilt.

It stores each note's offset in the journal, its words, the names in it and its vector. The text itself
stays in the journal, so a hit costs one read, and text removed from the journal cannot be found here.
"""

import contextlib
import logging
import re
import sqlite3
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log1p
from pathlib import Path
from typing import Any, Final, NamedTuple

from csp.errors import BadInput
from csp.journal.committed_journal import JournalView
from csp.journal.line_reader import blocks_forward, intact_seq, split
from csp.journal.rebuildable_files import (
    BLANKS_ONLY,
    BOARD_NAME,
    PLACE_TABLE,
    connect,
    create_tables,
    delete_board,
    quoted,
    reached,
    transaction,
    write_place,
)
from csp.protocol.events import AnyEvent, BoardChanged, decode_event
from csp.protocol.notes import ROOM_BOARD, BoardChange, NoteKind, NoteView
from csp.room.board_state import note_of
from csp.whiteboard.identifiers import identifiers, is_hash, spelt_out

log = logging.getLogger(__name__)

_SCHEMA_VERSION: Final = 4
_SCHEMA: Final = (
    "CREATE TABLE notes (seq INTEGER PRIMARY KEY, row INTEGER UNIQUE, offset INTEGER, session TEXT, "
    "author TEXT, kind TEXT, tags TEXT, ts REAL, is_off INTEGER)",
    "CREATE INDEX by_session ON notes (session, seq)",
    "CREATE INDEX by_author ON notes (author, seq)",
    "CREATE VIRTUAL TABLE words USING fts5("
    "text, content='', tokenize='porter unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE names USING fts5("
    f"tokens, content='', columnsize=0, detail=none, tokenize=\"{BLANKS_ONLY}\")",
    "CREATE TABLE vectors (row INTEGER PRIMARY KEY, vector BLOB)",
    PLACE_TABLE,
    "CREATE TABLE stamp (value TEXT)",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)
#: Only these lines can be notes; comparing their first bytes saves decoding all others.
_NOTE_HEAD: Final = b'{"v":1,"type":"note"'
_REPLY_HEAD: Final = b'{"v":1,"type":"agent_response"'
_PLACED: Final = b'"idx":'
_CHANGE_HEAD: Final = b'{"v":1,"type":"board"'
_COMPACTED: Final = b'"change":"compacted"'
#: A compacted note keeps its row, because vectors are stored by row.
_COMPACT: Final = "UPDATE notes SET is_off = 1 WHERE session = ? AND seq <= ? AND kind != ?"
_BATCH_BYTES: Final = 4 * 1024 * 1024
_WORD: Final = re.compile(r"\w+")
#: The maximum number of index entries that a search by words may read; the rarest words are first.
_MOST_ENTRIES: Final = 20_000
#: The highest score for words, because a note that repeats a word is not a better match.
_MOST_WORDS: Final = 1.5
COMMON_WORDS: Final = frozenset(
    word
    for line in (
        "a an and are as at be been but by can did do does for from had has have how i if in into is it",
        "its me my no not of on or our should so than that the their them then there these they this to",
        "too us was we were what when where which who why will with would you your",
    )
    for word in line.split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions for the notes to return; a field that is None is ignored."""

    session: str | None = None
    author: str | None = None
    kind: str | None = None
    tag: str | None = None
    since: float | None = None
    until: float | None = None
    after: int | None = None
    before: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether all notes match."""
        return self == Filter()

    def sql(self) -> tuple[str, list[Any]]:
        """Return the SQL conditions on the notes table, and their values."""
        tag = None if self.tag is None else f"\n{self.tag}\n"
        given = (
            ("session = ?", self.session),
            ("author = ?", self.author),
            ("kind = ?", self.kind),
            ("instr(tags, ?) > 0", tag),
            ("ts >= ?", self.since),
            ("ts <= ?", self.until),
            ("seq > ?", self.after),
            ("seq < ?", self.before),
        )
        used = [(condition, value) for condition, value in given if value is not None]
        conditions = ["is_off = 0", *(condition for condition, _ in used)]
        return "".join(f" AND {condition}" for condition in conditions), [value for _, value in used]


class Entry(NamedTuple):
    """A note: the seq of its event, its row among all notes and its offset in the journal."""

    seq: int
    row: int
    offset: int


class NoteIndex:
    """The index of one journal, for one thread at a time; it raises sqlite3.Error if it is damaged."""

    def __init__(self, folder: Path, secrets: Sequence[str] = (), *, in_memory: bool = False) -> None:
        self._secrets = secrets
        self._folder = folder
        self.in_memory = in_memory
        self._db: sqlite3.Connection | None = None
        self._generation = -1
        self.upto = 0
        self.count = 0
        #: Identifies the database; every new database has a different stamp.
        self.stamp = ""

    def attach(self, view: JournalView) -> None:
        """Open the journal's database; create one if there is none or if it belongs to another journal."""
        if self._db is None or self._generation != view.generation:
            self.close()
            self._db = self._open(view)
            self._generation = view.generation

    def extend(self, view: JournalView, max_lines: int) -> bool:
        """Index the next lines; return whether nothing is left."""
        notes, compacted, upto = _next_notes(view, self.upto, max_lines, self._secrets)
        if upto == self.upto:
            return True
        db = self._opened
        with self._rollback_on_error(), transaction(db):
            for number, (offset, note, seq) in enumerate(notes, start=self.count):
                _insert(db, seq, number, offset, note)
            for session, last in compacted:
                db.execute(_COMPACT, (session, last, NoteKind.SUMMARY))
            if not self.in_memory:
                write_place(db, view, upto)
        self.upto = upto
        self.count += len(notes)
        return upto >= view.end

    def page(self, wanted: Filter, *, newest_first: bool) -> Iterator[Entry]:
        """Yield the matching notes in order."""
        where, values = wanted.sql()
        order = "DESC" if newest_first else "ASC"
        sql = f"SELECT seq, row, offset FROM notes WHERE 1{where} ORDER BY seq {order}"
        for row in self._opened.execute(sql, values):
            yield Entry(*row)

    def entries(self, seqs: Sequence[int]) -> dict[int, Entry]:
        """Return the entries for these notes."""
        marks = ",".join("?" * len(seqs))
        found = self._opened.execute(f"SELECT seq, row, offset FROM notes WHERE seq IN ({marks})", list(seqs))
        return {row[0]: Entry(*row) for row in found}

    def seqs_of(self, rows: Sequence[int]) -> dict[int, int]:
        """Return the seqs of the notes in these rows."""
        marks = ",".join("?" * len(rows))
        sql = f"SELECT row, seq FROM notes WHERE is_off = 0 AND row IN ({marks})"
        return dict(self._opened.execute(sql, list(rows)))

    def rows(self, wanted: Filter) -> list[int]:
        """Return the rows of the matching notes."""
        where, values = wanted.sql()
        return [row[0] for row in self._opened.execute(f"SELECT row FROM notes WHERE 1{where}", values)]

    def from_row(self, row: int, count: int) -> list[Entry]:
        """Return up to `count` notes, starting at a row."""
        sql = "SELECT seq, row, offset FROM notes WHERE row >= ? ORDER BY row LIMIT ?"
        return [Entry(*found) for found in self._opened.execute(sql, (row, count))]

    def vectors(self) -> list[bytes]:
        """Return the notes' stored vectors in row order."""
        # SQLite does not detect a flipped bit in a value, which would silently change the ranking.
        stored = [row[0] for row in self._opened.execute("SELECT vector FROM vectors ORDER BY row")]
        if not all(isinstance(one, bytes) and _with_checksum(one[:-4]) == one for one in stored):
            raise sqlite3.DatabaseError("a stored vector is damaged")
        return [one[:-4] for one in stored]

    def add_vectors(self, row: int, vectors: Sequence[bytes]) -> None:
        """Store the vectors of notes, starting at a row."""
        with self._rollback_on_error(), transaction(self._opened):
            stored = map(_with_checksum, vectors)
            self._opened.executemany("INSERT INTO vectors VALUES (?, ?)", enumerate(stored, row))

    def by_words(self, q: str, wanted: Filter, count: int) -> dict[int, float]:
        """Return the notes that best match the words of `q`, best first, each with a score.

        A note with all words scores about 1. Rare words weigh more, as do words that no note contains.
        """
        terms, weight = self._search_terms(q)
        if not terms:
            return {}
        where, values = wanted.sql()
        sql = (
            "SELECT words.rowid, -bm25(words) FROM words JOIN notes ON notes.seq = words.rowid "
            f"WHERE words MATCH ?{where} ORDER BY bm25(words) LIMIT ?"
        )
        found = self._opened.execute(sql, [" OR ".join(terms), *values, count])
        return {seq: min(max(score, 0.0) / weight, _MOST_WORDS) for seq, score in found}

    def by_names(self, names: Sequence[str], wanted: Filter, count: int) -> dict[int, int]:
        """Return the notes with any of these names, newest first, each with the number of names in it."""
        where, values = wanted.sql()
        sql = (
            "SELECT names.rowid FROM names JOIN notes ON notes.seq = names.rowid "
            f"WHERE names MATCH ?{where} ORDER BY names.rowid DESC LIMIT ?"
        )
        held: dict[int, int] = {}
        for name in names:
            expression = quoted(name) + ("*" if is_hash(name) else "")
            for (seq,) in self._opened.execute(sql, [expression, *values, count]):
                held[seq] = held.get(seq, 0) + 1
        return held

    def close(self) -> None:
        """Close the file; `attach` opens it again."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None
        self.upto = self.count = 0

    def drop(self) -> None:
        """Delete the file; `attach` creates a new one."""
        self.close()
        if not self.in_memory:
            delete_board(self._folder)

    # --- internals -------------------------------------------------------------------------------

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            raise sqlite3.ProgrammingError("the note index is not attached")
        return self._db

    @contextlib.contextmanager
    def _rollback_on_error(self) -> Iterator[None]:
        """Roll back the open transaction on error."""
        try:
            yield
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                self._opened.rollback()
            raise

    def _open(self, view: JournalView) -> sqlite3.Connection:
        """Return a database for this journal, reusing the one on disk if it belongs to the journal."""
        if not self.in_memory:
            try:
                db = connect(self._folder / BOARD_NAME)
                with contextlib.suppress(sqlite3.Error):
                    if upto := reached(db, _SCHEMA_VERSION, view):
                        self.count = db.execute("SELECT count(*) FROM notes").fetchone()[0]
                        self.stamp = db.execute("SELECT value FROM stamp").fetchone()[0]
                        self.upto = upto
                        return db
                db.close()
            except sqlite3.DatabaseError as exc:
                log.warning("note index unreadable", extra={"problem": str(exc)})
            delete_board(self._folder)
            db = connect(self._folder / BOARD_NAME)
        else:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.stamp = uuid.uuid4().hex
        self.upto = self.count = 0
        return create_tables(db, (*_SCHEMA, f"INSERT INTO stamp VALUES ('{self.stamp}')"))

    def _search_terms(self, q: str) -> tuple[list[str], float]:
        """Return the words of `q` to search for, and the weight of all its words.

        The rarest words are first, up to a limit on the entries to read.
        """
        words = list(dict.fromkeys(word.lower() for word in _WORD.findall(_clean(f"{q} {spelt_out(q)}"))))
        words = [word for word in words if word not in COMMON_WORDS] or words
        sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        counted = sorted(
            (int(self._opened.execute(sql, (quoted(word), _MOST_ENTRIES + 1)).fetchone()[0]), word)
            for word in words
        )
        weight = sum(log1p((max(self.count - entries, 0) + 0.5) / (entries + 0.5)) for entries, _ in counted)
        budget = _MOST_ENTRIES
        kept: list[str] = []
        for entries, word in counted:
            if entries and (not kept or entries <= budget):
                kept.append(quoted(word))
                budget -= entries
        return kept, weight or 1.0


def _with_checksum(vector: bytes) -> bytes:
    return vector + zlib.crc32(vector).to_bytes(4)


def event_at(view: JournalView, offset: int) -> AnyEvent | None:
    """Return the event of the line at an offset, or None if the line is damaged."""
    try:
        return decode_event(view.line_at(offset))
    except BadInput:
        return None


def _next_notes(
    view: JournalView, upto: int, max_lines: int, secrets: Sequence[str]
) -> tuple[list[tuple[int, NoteView, int]], list[tuple[str, int]], int]:
    """Return the notes from `upto` on, the compacted boards, and the offset after the last line read.

    A note is (offset, note, seq); a compacted board is (board, seq of the last compacted event).
    """
    notes: list[tuple[int, NoteView, int]] = []
    compacted: list[tuple[str, int]] = []
    seen = size = 0
    for offset, data in blocks_forward(view.file.fd, upto, view.end):
        for at, line in split(offset, data):
            if seen >= max_lines or size >= _BATCH_BYTES:
                return notes, compacted, at
            seen += 1
            size += len(line)
            if line.startswith(_NOTE_HEAD) or (line.startswith(_REPLY_HEAD) and _PLACED in line):
                seq = intact_seq(line)
                event = None if seq is None else decode_event(line)
                note = None if event is None else note_of(event, secrets)
                if seq is not None and note is not None:
                    notes.append((at, note, seq))
            elif line.startswith(_CHANGE_HEAD) and _COMPACTED in line and intact_seq(line) is not None:
                event = decode_event(line)
                if isinstance(event, BoardChanged) and event.change is BoardChange.COMPACTED:
                    compacted.append((event.session_id or ROOM_BOARD, event.upto))
        upto = offset + len(data)
    return notes, compacted, upto


def _insert(db: sqlite3.Connection, seq: int, row: int, offset: int, note: NoteView) -> None:
    tags = "".join(f"\n{tag}\n" for tag in note.tags)
    values = (seq, row, offset, note.session, note.author, note.kind, tags, note.ts, 0)
    db.execute("INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    text = _clean(f"{note.text}\n{spelt_out(note.text)}\n{' '.join(note.tags)}")
    db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (seq, text))
    names = [name for name in identifiers(f"{note.text} {' '.join(note.tags)}") if name]
    if names:
        db.execute("INSERT INTO names (rowid, tokens) VALUES (?, ?)", (seq, " ".join(names)))


def _clean(text: str) -> str:
    """Replace lone surrogates, which broken clients may send and SQLite rejects."""
    return text.encode(errors="replace").decode()
