"""Lines that stand in a journal twice, as after a restore or a copy by hand."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from csp.journal import JsonlJournal, journal_repair
from csp.journal.journal_repair import TORN_NAME
from csp.journal.line_reader import intact_seq
from tests.journal.making import commit, lines_to, read_all, write_journal

COUNT = 20
Lines = list[bytes]


def _damaged(line: bytes) -> bytes:
    return line.replace(b"message", b"massage")


#: The lines of a journal, and those of them that are not its own.
COPIES: dict[str, Callable[[Lines], tuple[Lines, Lines]]] = {
    "the whole journal": lambda lines: (lines + lines, lines),
    "its last lines": lambda lines: (lines + lines[-5:], lines[-5:]),
    "its first line at the end": lambda lines: (lines + lines[:1], lines[:1]),
    "its last line": lambda lines: (lines + lines[-1:], lines[-1:]),
    "a line in the middle": lambda lines: (lines[:7] + lines[6:], lines[6:7]),
    "an older copy before it": lambda lines: (lines[:9] + lines, lines[:9]),
    "a stretch in its midst": lambda lines: (lines[:12] + lines[3:8] + lines[12:], lines[3:8]),
    "three times": lambda lines: (lines * 3, lines * 2),
    "beside a damaged line": lambda lines: (
        [*lines[:4], _damaged(lines[4]), *lines[5:], *lines[-2:]],
        lines[-2:],
    ),
    "after damaged lines": lambda lines: ([*lines[:-1], _damaged(lines[-1]), *lines[:3]], lines[:3]),
    "of a pruned journal": lambda lines: (lines[10:] + lines[12:15], lines[12:15]),
}


@pytest.mark.parametrize("copied", COPIES)
def test_line_that_stands_twice_is_taken_out(tmp_path: Path, copied: str) -> None:
    there, taken = COPIES[copied](lines_to(COUNT))
    path = write_journal(tmp_path, b"\n".join(there) + b"\n")
    own = {line for line in there if intact_seq(line) is not None}

    journal = JsonlJournal.open(tmp_path)
    try:
        assert read_all(journal) == sorted(own, key=lambda line: intact_seq(line) or 0)
        assert journal.last_seq == COUNT
        assert f"removed {len(taken)} duplicate journal lines" in " ".join(journal.warnings)
        assert sorted((tmp_path / TORN_NAME).read_bytes().splitlines()) == sorted(taken)
        commit(journal, lines_to(COUNT + 1)[-1:])
        assert intact_seq(read_all(journal, COUNT)[0]) == COUNT + 1
    finally:
        journal.close()
    again = JsonlJournal.open(tmp_path)
    again.close()
    assert not any("twice" in warning for warning in again.warnings)
    assert path.stat().st_mode & 0o777 == 0o600


def test_sound_journal_is_not_checked_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_repair, "_sort_lines", lambda fd, end: pytest.fail("read every line"))
    for lines in ([], lines_to(1), lines_to(COUNT), lines_to(COUNT)[5:]):
        write_journal(tmp_path, b"".join(line + b"\n" for line in lines))
        journal = JsonlJournal.open(tmp_path)
        journal.close()

        assert journal.warnings == []


def test_file_is_left_alone_where_nothing_stands_twice(tmp_path: Path) -> None:
    lines = lines_to(COUNT)
    lines[3] = _damaged(lines[3]) + lines[4]
    del lines[4]
    path = write_journal(tmp_path, b"\n".join(lines) + b"\n")
    before = path.stat().st_ino
    JsonlJournal.open(tmp_path).close()

    assert path.stat().st_ino == before
    assert not (tmp_path / TORN_NAME).exists()


def test_full_disk_leaves_the_journal_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"\n".join(lines_to(COUNT) * 2) + b"\n"
    path = write_journal(tmp_path, data)

    def full(fd: int, data: bytes, offset: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(journal_repair, "write_all", full)
    with pytest.raises(Exception, match="cannot open the journal: No space left"):
        JsonlJournal.open(tmp_path)

    assert path.read_bytes() == data


# --- order ---------------------------------------------------------------------------------------

#: The lines of a journal in an order that is not theirs.
ORDERS: dict[str, Callable[[Lines], Lines]] = {
    "two lines swapped": lambda lines: [*lines[:5], lines[9], *lines[6:9], lines[5], *lines[10:]],
    "the last first": lambda lines: [lines[-1], *lines[:-1]],
    "backwards": lambda lines: lines[::-1],
    "two copies, mixed": lambda lines: [*lines[10:], *lines[:15]],
}


@pytest.mark.parametrize("order", ORDERS)
def test_lines_out_of_order_are_put_back(tmp_path: Path, order: str) -> None:
    lines = lines_to(COUNT)
    write_journal(tmp_path, b"\n".join(ORDERS[order](lines)) + b"\n")

    journal = JsonlJournal.open(tmp_path)
    try:
        assert read_all(journal) == lines
        assert "out of order" in " ".join(journal.warnings)
    finally:
        journal.close()


def test_a_damaged_line_stays_behind_the_line_before_it(tmp_path: Path) -> None:
    lines = lines_to(COUNT)
    hurt = _damaged(lines[6])
    path = write_journal(tmp_path, b"\n".join([*lines[3:6], hurt, *lines[7:], *lines[:3]]) + b"\n")

    JsonlJournal.open(tmp_path).close()

    assert path.read_bytes().splitlines() == [*lines[:6], hurt, *lines[7:]]


def test_in_a_long_journal_blocks_out_of_order_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_to(COUNT)
    monkeypatch.setattr(journal_repair, "_FULL_CHECK_BYTES", 0)
    monkeypatch.setattr(journal_repair, "_BLOCK_BYTES", 3 * len(lines[0]))
    write_journal(tmp_path, b"\n".join([lines[0], *lines[8:12], *lines[1:8], *lines[12:]]) + b"\n")

    journal = JsonlJournal.open(tmp_path)
    try:
        assert read_all(journal) == lines
    finally:
        journal.close()
