"""What readers may see of a journal at one moment."""

import gc
import os
from pathlib import Path

import pytest

from csp.journal.committed_journal import Cursor, JournalFile
from tests.journal.making import commit, lines_to, opened


def test_a_reader_that_is_up_to_date_looks_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(*where: object) -> int:
        raise AssertionError("the file was searched")

    with opened(tmp_path) as journal:
        commit(journal, lines_to(3))
        monkeypatch.setattr("csp.journal.line_reader.seek_after", looked)
        chunk = journal.view.read_after(3)

        assert (chunk.lines, chunk.last_seq, chunk.end) == ([], 3, True)
        assert chunk.cursor == Cursor(0, journal.view.end)


def test_a_chunk_has_a_line_unless_the_end_is_reached(tmp_path: Path) -> None:
    lines = lines_to(9)
    damaged = [line.replace(b"message", b"massage") for line in lines[:8]]
    with opened(tmp_path) as journal:
        commit(journal, [*damaged, lines[8]])
        chunk = journal.view.read_after(0, len(lines[0]))

        assert (chunk.lines, chunk.last_seq, chunk.end) == (lines[8:], 9, True)


def test_a_small_chunk_says_that_more_is_to_come(tmp_path: Path) -> None:
    lines = lines_to(3)
    with opened(tmp_path) as journal:
        commit(journal, lines)
        first = journal.view.read_after(0, len(lines[0]))
        rest = journal.view.read_after(first.last_seq, 1 << 20, first.cursor)

        assert not first.end and rest.end
        assert first.lines + rest.lines == lines


def test_a_file_is_closed_with_its_last_reader(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    file = JournalFile(fd)
    os.fstat(fd)
    del file
    gc.collect()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
