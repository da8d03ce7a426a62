"""The end of a journal file after a crash."""

import errno
import os
from pathlib import Path

import pytest

from csp.journal import journal_repair
from csp.journal.journal_repair import TORN_NAME, find_last_seq, repair_tail
from tests.journal.making import lines_to, write_journal


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes that the file had when it was synced."""
    sizes: list[int] = []
    monkeypatch.setattr(journal_repair, "sync_data", lambda fd: sizes.append(os.fstat(fd).st_size))
    return sizes


def mended(path: Path) -> tuple[int, list[str]]:
    fd = os.open(path, os.O_RDWR)
    try:
        return repair_tail(fd, path.parent)
    finally:
        os.close(fd)


def test_a_mended_end_is_on_the_disk_before_the_journal_goes_on(tmp_path: Path, synced: list[int]) -> None:
    (line,) = lines_to(1)
    size = len(line) + 1
    for end in (b"", b"#", b"\ntorn"):
        path = write_journal(tmp_path, line + end)
        assert mended(path)[0] == size
        assert path.read_bytes() == line + b"\n"

    assert synced == [size, size, size]


def test_a_good_end_is_left_alone(tmp_path: Path, synced: list[int]) -> None:
    path = write_journal(tmp_path, b"\n".join(lines_to(2)) + b"\n")

    assert mended(path) == (path.stat().st_size, [])
    assert synced == []


def test_a_torn_line_is_cut_even_where_no_copy_of_it_can_be_kept(tmp_path: Path) -> None:
    (line,) = lines_to(1)
    path = write_journal(tmp_path, line + b"\n" + line[:20])
    (tmp_path / TORN_NAME).mkdir()
    size, warnings = mended(path)

    assert (size, path.read_bytes()) == (len(line) + 1, line + b"\n")
    assert len(warnings) == 1


def test_a_copy_that_could_not_be_written_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    (line,) = lines_to(1)
    path = write_journal(tmp_path, line + b"\ntorn")
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "write", full)
    mended(path)
    monkeypatch.undo()

    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(("damaged", "last"), [(0, (3, 0)), (1, (3, 1)), (3, (3, 3))])
def test_damaged_lines_at_the_end_count_as_events(
    tmp_path: Path, damaged: int, last: tuple[int, int]
) -> None:
    lines = lines_to(3)
    for at in range(3 - damaged, 3):
        lines[at] = lines[at].replace(b"message", b"massage")
    path = write_journal(tmp_path, b"\n".join(lines) + b"\n")
    fd = os.open(path, os.O_RDONLY)
    try:
        assert find_last_seq(fd, path.stat().st_size) == last
    finally:
        os.close(fd)
