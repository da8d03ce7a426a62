"""The tests of the file of vectors: appended to, torn, cut, made again."""

import os
from pathlib import Path

import numpy as np
import pytest

from csp.whiteboard.vector_file import Vectors
from csp.whiteboard.word_vectors import Array, unit

SIZE = 32


def rows(count: int, seed: int = 0) -> Array:
    return unit(np.random.default_rng(seed).normal(size=(count, SIZE)).astype(np.float32))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "board.vectors"


def opened(path: Path, stamp: str = "a", most: int = 99) -> Vectors:
    vectors = Vectors(path, SIZE)
    vectors.attach(stamp, most)
    return vectors


def test_rows_are_there_again_after_a_start(path: Path) -> None:
    vectors = opened(path)
    vectors.append(rows(3))
    assert (vectors.rows == rows(3)).all()
    vectors.append(rows(2, seed=1))
    vectors.close()
    again = opened(path)

    assert again.count == 5
    assert (again.rows == np.concatenate([rows(3), rows(2, seed=1)])).all()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("lost", [1, 3, SIZE * 4 - 1, SIZE * 4 + 1])
def test_torn_tail_is_cut(path: Path, lost: int) -> None:
    vectors = opened(path)
    vectors.append(rows(3))
    vectors.close()
    os.truncate(path, path.stat().st_size - lost)
    again = opened(path)
    left = 3 - -(-lost // (SIZE * 4))

    assert again.count == left
    again.append(rows(3)[left:])
    assert (again.rows == rows(3)).all()


@pytest.mark.parametrize("size", [0, 5, SIZE * 4 * 2 + 3])
def test_file_that_is_cut_while_it_is_open_is_read_no_further(path: Path, size: int) -> None:
    vectors = opened(path)
    vectors.append(rows(3))
    assert len(vectors.rows) == 3
    os.truncate(path, size)
    vectors.attach("a", 99)
    left = max(0, size // (SIZE * 4) - 1)

    assert vectors.count == left
    vectors.append(rows(3)[left:])
    assert (vectors.rows == rows(3)).all()


@pytest.mark.parametrize("harm", [b"\0", b"\xff"])
def test_row_that_never_reached_the_disk_is_cut_with_all_behind_it(path: Path, harm: bytes) -> None:
    vectors = opened(path)
    vectors.append(rows(4))
    vectors.close()
    data = bytearray(path.read_bytes())
    data[3 * SIZE * 4 : 4 * SIZE * 4] = harm * (SIZE * 4)
    path.write_bytes(data)

    assert opened(path).count == 2


@pytest.mark.parametrize("harm", ["stamp", "head", "empty"])
def test_file_of_something_else_begins_anew(path: Path, harm: str) -> None:
    vectors = opened(path)
    vectors.append(rows(3))
    vectors.close()
    if harm == "head":
        path.write_bytes(b"x" + path.read_bytes()[1:])
    elif harm == "empty":
        path.write_bytes(b"")
    again = opened(path, "b" if harm == "stamp" else "a")

    assert (again.count, len(again.rows)) == (0, 0)


def test_more_rows_than_notes_are_cut(path: Path) -> None:
    vectors = opened(path)
    vectors.append(rows(3))
    vectors.close()
    again = opened(path, most=2)

    assert (again.rows == rows(3)[:2]).all()


def test_where_no_file_can_be_made_rows_stay_in_memory(tmp_path: Path) -> None:
    vectors = opened(tmp_path)
    vectors.append(rows(3))
    vectors.append(rows(1, seed=1))

    assert (vectors.rows == np.concatenate([rows(3), rows(1, seed=1)])).all()
    vectors.attach("a", 2)
    assert (vectors.rows == rows(3)[:2]).all()


def test_full_disk_loses_no_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = opened(path)
    vectors.append(rows(3))

    def fail(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("csp.whiteboard.vector_file.write_all", fail)
    vectors.append(rows(2, seed=1))

    assert (vectors.rows == np.concatenate([rows(3), rows(2, seed=1)])).all()


def test_rows_in_memory_return_to_the_disk_when_there_is_space(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = opened(path)
    vectors.append(rows(3))

    def fail(*_: object) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("csp.whiteboard.vector_file.write_all", fail)
        vectors.append(rows(2, seed=1))
        vectors._retry_at = 0.0
        vectors.attach("a", 99)
        assert (vectors.count, path.exists()) == (5, False)
    vectors.attach("a", 99)
    assert not path.exists()
    vectors._retry_at = 0.0
    vectors.attach("a", 99)

    assert (vectors.rows == np.concatenate([rows(3), rows(2, seed=1)])).all()
    vectors.append(rows(1, seed=2))
    vectors.close()
    assert opened(path).count == 6


def test_every_block_is_looked_at_for_rows_that_are_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = opened(path)
    vectors.append(rows(7))
    vectors.close()
    data = bytearray(path.read_bytes())
    data[6 * SIZE * 4 : 7 * SIZE * 4] = bytes(SIZE * 4)
    path.write_bytes(data)
    monkeypatch.setattr("csp.whiteboard.vector_file._CHECKED_AT_ONCE", 2)

    assert opened(path).count == 5


def test_a_row_that_is_nearly_of_length_one_is_good(path: Path) -> None:
    vectors = opened(path)
    vectors.append(np.concatenate([rows(1) * np.float32(1.0004), rows(1) * np.float32(1.001)]))
    vectors.close()

    assert opened(path).count == 1


def test_what_stands_open_for_the_same_notes_is_not_opened_again(path: Path) -> None:
    vectors = opened(path)
    vectors.append(rows(2))
    fd = vectors._fd
    vectors.attach("a", 99)
    assert (vectors._fd, vectors.count) == (fd, 2)
    vectors.attach("b", 99)
    assert vectors.count == 0
    vectors.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_full_disk_leaves_no_half_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = opened(path)

    def fail(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("csp.whiteboard.vector_file.write_all", fail)
    vectors.append(rows(1))

    assert (vectors.count, path.exists()) == (1, False)
