"""Files beside a journal that can be made again from it."""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from csp.journal.rebuildable_files import (
    JournalPlace,
    connect,
    delete_files,
    is_full,
    is_of,
    place_of,
    transaction,
)
from tests.journal.making import commit, lines_to, opened


def test_a_place_is_known_by_both_its_ends(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        view, half = journal.view, len(lines_to(1)[0]) + 1
        place = place_of(view, half)

        assert is_of(view, place)
        assert place.upto == half and place.last.endswith(b"\n")
        others: dict[str, Any] = {"inode": place.inode + 1, "first": b"x", "last": b"x", "upto": half + 1}
        for name, value in others.items():
            assert not is_of(view, place._replace(**{name: value})), name
        assert not is_of(view, place._replace(upto=view.end + 1))
        assert not is_of(view, JournalPlace(place.inode, b"", 0, b""))
        assert is_of(view, place_of(view, view.end))


def test_a_database_is_for_its_owner_and_written_ahead(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "a.sqlite")) as db:
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 1
    assert (tmp_path / "a.sqlite").stat().st_mode & 0o777 == 0o600


def _insert_twice(db: sqlite3.Connection, *statements: str) -> None:
    with transaction(db):
        for statement in statements:
            db.execute(statement)


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "a.sqlite")) as db:
        with transaction(db):
            db.execute("CREATE TABLE t (n)")
        with pytest.raises(sqlite3.OperationalError):
            _insert_twice(db, "INSERT INTO t VALUES (1)", "INSERT INTO nothing VALUES (1)")
        db.rollback()

        assert db.execute("SELECT count(*) FROM t").fetchone()[0] == 0
        with transaction(db):
            db.execute("INSERT INTO t VALUES (1)")
        assert not db.in_transaction


@pytest.mark.parametrize(
    ("cause", "is_so"),
    [
        (OSError(errno.ENOSPC, "full"), True),
        (OSError(errno.EDQUOT, "full"), True),
        (OSError(errno.EACCES, "no"), False),
        (None, False),
    ],
)
def test_a_full_disk_is_told_by_its_cause(cause: OSError | None, is_so: bool) -> None:
    error = sqlite3.OperationalError("unable to open")
    error.__cause__ = cause

    assert is_full(error) is is_so


@pytest.mark.parametrize(
    ("code", "is_so"),
    [
        (sqlite3.SQLITE_FULL, True),
        (sqlite3.SQLITE_IOERR_WRITE, True),
        (sqlite3.SQLITE_IOERR_SHMSIZE, True),
        (sqlite3.SQLITE_IOERR_READ, False),
        (sqlite3.SQLITE_CORRUPT, False),
    ],
)
def test_a_full_disk_may_be_an_error_of_a_file_beside_the_database(code: int, is_so: bool) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code

    assert is_full(error) is is_so


def test_a_full_disk_is_told_by_the_code_of_sqlite(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "a.sqlite")) as db:
        db.execute("CREATE TABLE t (n)")
        db.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as caught:
            db.execute("INSERT INTO t VALUES (zeroblob(100000))")

    assert is_full(caught.value)


def test_a_file_that_cannot_be_opened_is_an_error_of_sqlite(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        connect(tmp_path)


def test_everything_derived_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    derived = ["board.vectors"]
    derived += [
        f"{name}.sqlite{end}" for name in ("search", "board") for end in ("", "-wal", "-shm", "-journal")
    ]
    for name in [*derived, "journal.jsonl", "secret"]:
        (tmp_path / name).write_bytes(b"")
    delete_files(tmp_path)

    assert sorted(os.listdir(tmp_path)) == ["journal.jsonl", "secret"]
