"""Repair a journal when it is opened, both its end after a crash and the order of its lines.

A restore or a manual copy can leave duplicate lines, or lines that are out of order. Everything that searches
a journal relies on seqs that increase from line to line. An intact journal has as many lines as seqs, which
is quick to check; every line is examined only if the counts differ or a seq decreases. Of two lines with the
same seq, the first one is kept, because it was there when the next seq was assigned.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from csp.fast_start.atomic_files import PRIVATE_FILE, create_private, sync_data, sync_folder, write_all
from csp.journal import line_reader
from csp.journal.line_reader import blocks_forward, intact_seq, read_at, split
from csp.protocol.events import is_intact

TORN_NAME: Final = "journal.torn"
_BLOCK_BYTES: Final = 1 << 20
#: In a longer journal, only one line per block is examined, because a start must be fast.
_FULL_CHECK_BYTES: Final = 16 << 20
_SAMPLE_BYTES: Final = 64 << 10
#: A range of whole lines, as the offsets of its first byte and of the byte after it.
_Range = tuple[int, int]


def repair_tail(fd: int, folder: Path) -> tuple[int, list[str]]:
    """Make the file end with a newline; return its size and the warnings to report.

    A last piece that lacks only its newline is an event and is kept. Any other piece was never acknowledged:
    it is cut off and kept in `journal.torn` for inspection.
    """
    end = size = os.fstat(fd).st_size
    start = 0
    while end > 0:
        at = max(0, end - line_reader.BLOCK_BYTES)
        newline = read_at(fd, at, end - at).rfind(b"\n")
        if newline >= 0:
            start = at + newline + 1
            break
        end = at
    if start == size:
        return size, []
    piece = read_at(fd, start, size - start)
    if is_intact(piece):
        return _end_with_newline(fd, size), ["the last journal line had no newline; added it"]
    if is_intact(piece[:-1]):
        return _end_with_newline(fd, size - 1), [
            "the newline of the last journal line was damaged; repaired it"
        ]
    keep_torn(folder, piece)
    os.ftruncate(fd, start)
    sync_data(fd)
    return start, [f"the last journal line was incomplete; cut {len(piece)} bytes, kept in {TORN_NAME}"]


def find_last_seq(fd: int, end: int) -> tuple[int, int]:
    """Return the seq of the last event and the number of damaged lines at the very end.

    A damaged line counts as many times as it contained events, so that no seq is ever assigned twice.
    """
    lost = damaged = 0
    for _, data in line_reader.blocks_back(fd, end):
        for line in reversed(data[:-1].split(b"\n")):
            seq = intact_seq(line)
            if seq is not None:
                return seq + lost, damaged
            lost += line_reader.seqs_lost(line)
            damaged += 1
    return lost, damaged


def _end_with_newline(fd: int, offset: int) -> int:
    write_all(fd, b"\n", offset)
    sync_data(fd)
    return offset + 1


def keep_torn(folder: Path, piece: bytes) -> None:
    """Append a piece removed from a journal to `journal.torn`, for inspection."""
    # Best effort, because on a full disk the repair matters more than the copy.
    with contextlib.suppress(OSError):
        # If the path is a named pipe, opening it must not block the start.
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(folder / TORN_NAME, how, PRIVATE_FILE)
        try:
            os.write(fd, piece + b"\n")
        finally:
            os.close(fd)


def repair_line_order(path: Path, fresh: Path, fd: int, end: int) -> str:
    """Replace `path` with a sorted journal without duplicates; return a description of the repair, or "".

    `fresh` is the path of the temporary file. After a repair, the caller must reopen the file. The
    duplicates are kept in `journal.torn`.
    """
    if _is_complete(fd, end) and _is_ascending(fd, end):
        return ""
    kept, duplicates, was_ordered = _sort_lines(fd, end)
    if was_ordered and not duplicates:
        return ""
    fresh.unlink(missing_ok=True)
    copy = create_private(fresh)
    try:
        size = 0
        for start, stop in kept:
            for at in range(start, stop, _BLOCK_BYTES):
                data = read_at(fd, at, min(_BLOCK_BYTES, stop - at))
                write_all(copy, data, size)
                size += len(data)
        sync_data(copy)
    finally:
        os.close(copy)
    for start, stop in duplicates:
        keep_torn(path.parent, read_at(fd, start, stop - start - 1))
    os.replace(fresh, path)
    sync_folder(path.parent)
    done = [] if was_ordered else ["sorted journal lines that were out of order"]
    if duplicates:
        done.append(f"removed {len(duplicates)} duplicate journal lines; kept them in {TORN_NAME}")
    return ", ".join(done)


def _is_complete(fd: int, end: int) -> bool:
    """Return whether the journal has exactly one line for each seq from its first to its last."""
    if not end:
        return True
    first = intact_seq(line_reader.line_at(fd, 0, end))
    last, damaged = find_last_seq(fd, end)
    if first is None or damaged:
        return False
    blocks = range(0, end, _BLOCK_BYTES)
    count = sum(read_at(fd, at, min(_BLOCK_BYTES, end - at)).count(b"\n") for at in blocks)
    return count == last - first + 1


def _is_ascending(fd: int, end: int) -> bool:
    """Return whether every examined line has a seq no lower than the one before it."""
    if end <= _FULL_CHECK_BYTES:
        lines = (line for _, data in blocks_forward(fd, 0, end) for line in data.split(b"\n"))
    else:
        # The first whole line of each block, if it is short enough.
        samples = (read_at(fd, at, min(_SAMPLE_BYTES, end - at)) for at in range(0, end, _BLOCK_BYTES))
        lines = (sample.partition(b"\n")[2].partition(b"\n")[0] for sample in samples)
    highest = -1
    for line in lines:
        head = line_reader.type_and_seq(line)
        if head is not None:
            if head[1] < highest:
                return False
            highest = head[1]
    return True


def _sort_lines(fd: int, end: int) -> tuple[list[_Range], list[_Range], bool]:
    """Examine every line; return them in the order of their seqs, the duplicates, and whether it was kept.

    A damaged line has no seq and stays after its predecessor.
    """
    placed: list[tuple[int, bool, _Range]] = []
    duplicates: list[_Range] = []
    known: set[int] = set()
    last = -1
    for offset, data in blocks_forward(fd, 0, end):
        for at, line in split(offset, data):
            place = (at, at + len(line) + 1)
            seq = intact_seq(line)
            if seq in known:
                duplicates.append(place)
                continue
            if seq is not None:
                known.add(seq)
                last = seq
            placed.append((last, seq is None, place))
    ordered = sorted(placed, key=lambda line: line[:2])
    kept: list[_Range] = []
    for _, _, place in ordered:
        # Neighbouring lines are copied together.
        if kept and kept[-1][1] == place[0]:
            kept[-1] = (kept[-1][0], place[1])
        else:
            kept.append(place)
    return kept, duplicates, ordered == placed
