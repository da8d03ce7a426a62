"""Remove duplicate lines from a journal and sort lines that are out of order.

A restore or a manual copy can leave a journal in that state. Everything that searches a journal relies on
seqs that grow from line to line. A sound journal has as many lines as seqs, which is quick to count; every
line is examined only if the counts differ or a seq goes back. Of two lines with the same seq the first one
is kept, because it was there when the next seq was assigned.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from csp.fast_start.atomic_files import create_private, sync_data, sync_folder, write_all
from csp.journal.line_reader import blocks_forward, intact_seq, line_at, read_at, split, type_and_seq
from csp.journal.tail_repair import TORN_NAME, find_last_seq, keep_torn

_BLOCK_BYTES: Final = 1 << 20
#: In a longer journal only one line per block is examined, because a start must not take long.
_FULL_CHECK_BYTES: Final = 16 << 20
_SAMPLE_BYTES: Final = 64 << 10


#: The bytes of whole lines, from a start up to an end.
_Range = tuple[int, int]


def repair_line_order(path: Path, fresh: Path, fd: int, end: int) -> str:
    """Replace `path` by a sorted journal without duplicates; return what was done, or "".

    `fresh` is the name of the temporary file. If something was done, the caller must reopen the file. The
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
    """Tell whether the journal has exactly one line for each seq from its first to its last."""
    if not end:
        return True
    first = intact_seq(line_at(fd, 0, end))
    last, damaged = find_last_seq(fd, end)
    if first is None or damaged:
        return False
    blocks = range(0, end, _BLOCK_BYTES)
    count = sum(read_at(fd, at, min(_BLOCK_BYTES, end - at)).count(b"\n") for at in blocks)
    return count == last - first + 1


def _is_ascending(fd: int, end: int) -> bool:
    """Tell whether no examined line has a lower seq than the one before it."""
    highest = -1
    for line in _lines_to_check(fd, end):
        head = type_and_seq(line)
        if head is not None:
            if head[1] < highest:
                return False
            highest = head[1]
    return True


def _lines_to_check(fd: int, end: int) -> Iterator[bytes]:
    if end <= _FULL_CHECK_BYTES:
        for _, data in blocks_forward(fd, 0, end):
            yield from data.split(b"\n")
        return
    for at in range(0, end, _BLOCK_BYTES):
        # The first whole line of the block, if it is short enough.
        yield read_at(fd, at, min(_SAMPLE_BYTES, end - at)).partition(b"\n")[2].partition(b"\n")[0]


def _sort_lines(fd: int, end: int) -> tuple[list[_Range], list[_Range], bool]:
    """Examine every line; return them in the order of their seqs, the duplicates, and whether it was kept.

    A damaged line has no seq and stays after the line that it follows.
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
        # Neighbours are copied together.
        if kept and kept[-1][1] == place[0]:
            kept[-1] = (kept[-1][0], place[1])
        else:
            kept.append(place)
    return kept, duplicates, ordered == placed
