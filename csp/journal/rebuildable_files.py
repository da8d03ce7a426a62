"""Files beside a journal that can always be made again from it, most of them databases of SQLite."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from csp.fast_start.atomic_files import PRIVATE_FILE
from csp.journal.journal_view import JournalView
from csp.journal.jsonl_journal import FULL_ERRNOS
from csp.journal.line_reader import line_at, read_at

SEARCH_NAME: Final = "search.sqlite"
BOARD_NAME: Final = "board.sqlite"
VECTORS_NAME: Final = "board.vectors"
_SIDE_FILES: Final = ("", "-wal", "-shm", "-journal")
_MARK_BYTES: Final = 64
#: What SQLite says where there is no space; of the files that it keeps beside a database it says I/O error.
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
    """Which journal was read how far; the bytes at both ends tell it from any other."""

    inode: int
    first: bytes
    upto: int
    last: bytes


def place_of(view: JournalView, upto: int) -> JournalPlace:
    """Return the place of somebody who has read `view` up to an offset."""
    first = line_at(view.file.fd, 0, upto)[-_MARK_BYTES:]
    start = max(0, upto - _MARK_BYTES)
    return JournalPlace(
        os.fstat(view.file.fd).st_ino, first, upto, read_at(view.file.fd, start, upto - start)
    )


def is_of(view: JournalView, place: JournalPlace) -> bool:
    """Tell whether a place is one in this very journal."""
    is_number = isinstance(place.upto, int)
    return is_number and 0 < place.upto <= view.end and place_of(view, place.upto) == place


def delete_files(folder: Path) -> None:
    """Remove everything that was made from a journal; it is made again when it is next asked for."""
    for name in (SEARCH_NAME, BOARD_NAME):
        delete_database(folder / name)
    with contextlib.suppress(OSError):
        (folder / VECTORS_NAME).unlink(missing_ok=True)


def delete_database(path: Path) -> None:
    """Remove a database with the files that SQLite keeps beside it."""
    for suffix in _SIDE_FILES:
        with contextlib.suppress(OSError):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def connect(path: Path) -> sqlite3.Connection:
    """Open a database that is for its owner alone; what cannot be opened is an error of SQLite."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
    except OSError as exc:
        raise sqlite3.OperationalError(str(exc)) from exc
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        # A kill or a power cut must not leave an index that quietly lacks lines.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        db.close()
        raise
    return db


def is_full(exc: sqlite3.Error) -> bool:
    """Tell whether there was no space; of files SQLite itself could not open, the cause knows."""
    cause = exc.__cause__
    if isinstance(cause, OSError):
        return cause.errno in FULL_ERRNOS
    return getattr(exc, "sqlite_errorcode", None) in _FULL_CODES


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Make the changes within one; on an error the caller rolls back or closes."""
    db.execute("BEGIN IMMEDIATE")
    yield
    db.execute("COMMIT")
