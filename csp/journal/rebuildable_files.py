"""Files next to a journal that can always be rebuilt from it, mostly SQLite databases."""

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from csp.fast_start.atomic_files import PRIVATE_FILE
from csp.journal.committed_journal import JournalView
from csp.journal.jsonl_journal import FULL_ERRNOS
from csp.journal.line_reader import line_at, read_at

SEARCH_NAME: Final = "search.sqlite"
BOARD_NAME: Final = "board.sqlite"
#: The file in which earlier versions stored the notes' vectors.
_FORMER_VECTORS_NAME: Final = "board.vectors"
_PUNCTUATION: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
#: An FTS5 tokenizer that splits only at spaces, escaped for use between double quotes in SQL.
BLANKS_ONLY: Final = "ascii tokenchars '{}'".format(_PUNCTUATION.replace("'", "''")).replace('"', '""')
PLACE_TABLE: Final = "CREATE TABLE place (inode INTEGER, first BLOB, upto INTEGER, last BLOB)"
_SIDE_FILES: Final = ("", "-wal", "-shm", "-journal")
_MARK_BYTES: Final = 64
#: SQLite's error codes for a full disk; for a database's auxiliary files it reports I/O errors.
_FULL_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)


class JournalPlace(NamedTuple):
    """The position up to which a journal was read; the bytes at both ends identify the journal."""

    inode: int
    first: bytes
    upto: int
    last: bytes


def place_of(view: JournalView, upto: int) -> JournalPlace:
    """Return the place of a reader that has read `view` up to an offset."""
    first = line_at(view.file.fd, 0, upto)[-_MARK_BYTES:]
    start = max(0, upto - _MARK_BYTES)
    return JournalPlace(
        os.fstat(view.file.fd).st_ino, first, upto, read_at(view.file.fd, start, upto - start)
    )


def is_of(view: JournalView, place: JournalPlace) -> bool:
    """Return whether a place belongs to this journal."""
    is_number = isinstance(place.upto, int)
    return is_number and 0 < place.upto <= view.end and place_of(view, place.upto) == place


def delete_files(folder: Path) -> None:
    """Delete all files derived from a journal; they are rebuilt when next needed."""
    delete_database(folder / SEARCH_NAME)
    delete_board(folder)


def delete_board(folder: Path) -> None:
    """Delete the index of notes."""
    delete_database(folder / BOARD_NAME)
    with contextlib.suppress(OSError):
        (folder / _FORMER_VECTORS_NAME).unlink(missing_ok=True)


def delete_database(path: Path) -> None:
    """Delete a database and SQLite's auxiliary files for it."""
    for suffix in _SIDE_FILES:
        with contextlib.suppress(OSError):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def connect(path: Path) -> sqlite3.Connection:
    """Open a database that only its owner may read; raise sqlite3.Error if that fails."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
    except OSError as exc:
        raise sqlite3.OperationalError(str(exc)) from exc
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        # After a kill or a power failure, no lines may be silently missing from the index.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        db.close()
        raise
    return db


def create_tables(db: sqlite3.Connection, statements: Iterable[str]) -> sqlite3.Connection:
    """Execute the statements on a new database in one transaction and return it; close it on error."""
    try:
        with transaction(db):
            for statement in statements:
                db.execute(statement)
    except sqlite3.Error:
        db.close()
        raise
    return db


def reached(db: sqlite3.Connection, schema_version: int, view: JournalView) -> int:
    """Return the offset up to which this journal was read; 0 for a database of another journal or version."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    row = db.execute("SELECT inode, first, upto, last FROM place").fetchone() if version else None
    place = JournalPlace(*row) if row else None
    return place.upto if version == schema_version and place and is_of(view, place) else 0


def write_place(db: sqlite3.Connection, view: JournalView, upto: int) -> None:
    """Store the position up to which a database has read its journal."""
    db.execute("DELETE FROM place")
    db.execute("INSERT INTO place VALUES (?, ?, ?, ?)", place_of(view, upto))


def quoted(token: str) -> str:
    """Return a token as a quoted string for an FTS5 query."""
    return '"' + token.replace('"', '""') + '"'


def is_full(exc: sqlite3.Error) -> bool:
    """Return whether the disk was full; if a file could not be opened, check the cause of the error."""
    cause = exc.__cause__
    if isinstance(cause, OSError):
        return cause.errno in FULL_ERRNOS
    return getattr(exc, "sqlite_errorcode", None) in _FULL_CODES


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction; on error the caller must roll back or close."""
    db.execute("BEGIN IMMEDIATE")
    yield
    db.execute("COMMIT")
