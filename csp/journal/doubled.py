"""Take lines out of a journal that stand in it for a second time, as after a restore or a copy by hand.

The numbers of a journal grow from line to line, and everything that searches it relies on that. A sound one
has as many lines as numbers, which is quickly counted; only where it has not, every line is looked at. Of two
lines with one number the first is the journal's, because it was there when the next number was given out.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from csp.journal.files import create_private, sync_data, sync_folder, write_all
from csp.journal.lines import blocks_forward, intact_seq, line_at, read_at, split
from csp.journal.tail import TORN_NAME, find_last_seq, keep_torn

_BLOCK_BYTES: Final = 1 << 20


class _Stretch(NamedTuple):
    """Bytes of whole lines, from `start` up to `end`."""

    start: int
    end: int


def take_out_doubled(path: Path, fresh: Path, fd: int, end: int) -> str:
    """Put a journal without its doubled lines in the place of `path`; return what was done, "" for nothing.

    The caller must open the file again. The duplicates are kept in `journal.torn`.
    """
    if _has_a_line_for_each_number(fd, end):
        return ""
    doubled = _doubled(fd, end)
    if not doubled:
        return ""
    fresh.unlink(missing_ok=True)
    copy = create_private(fresh)
    try:
        size = at = 0
        for stretch in (*doubled, _Stretch(end, end)):
            size += _copy(fd, copy, _Stretch(at, stretch.start), size)
            at = stretch.end
        sync_data(copy)
    finally:
        os.close(copy)
    for stretch in doubled:
        keep_torn(path.parent, read_at(fd, stretch.start, stretch.end - stretch.start - 1))
    os.replace(fresh, path)
    sync_folder(path.parent)
    return f"{len(doubled)} journal lines stood there twice; took them out, kept in {TORN_NAME}"


def _has_a_line_for_each_number(fd: int, end: int) -> bool:
    if not end:
        return True
    first = intact_seq(line_at(fd, 0, end))
    last, damaged = find_last_seq(fd, end)
    return first is not None and not damaged and _count_lines(fd, end) == last - first + 1


def _count_lines(fd: int, end: int) -> int:
    places = range(0, end, _BLOCK_BYTES)
    return sum(read_at(fd, at, min(_BLOCK_BYTES, end - at)).count(b"\n") for at in places)


def _doubled(fd: int, end: int) -> list[_Stretch]:
    """Return the lines whose number is not above that of every line before; damaged ones have none."""
    found: list[_Stretch] = []
    highest = -1
    for offset, data in blocks_forward(fd, 0, end):
        for at, line in split(offset, data):
            seq = intact_seq(line)
            if seq is not None and seq <= highest:
                found.append(_Stretch(at, at + len(line) + 1))
            elif seq is not None:
                highest = seq
    return found


def _copy(source: int, copy: int, stretch: _Stretch, to: int) -> int:
    """Copy a stretch; return its size."""
    for at in range(stretch.start, stretch.end, _BLOCK_BYTES):
        data = read_at(source, at, min(_BLOCK_BYTES, stretch.end - at))
        write_all(copy, data, to + at - stretch.start)
    return stretch.end - stretch.start
