"""Take lines out of a journal that stand in it for a second time, put others back into their order.

That is how a restore or a copy by hand may leave it. The numbers of a journal grow from line to line, and
everything that searches it relies on that. A sound one has as many lines as numbers, which is quickly
counted; only where it has not, or where numbers go back, every line is looked at. Of two lines with one
number the first is the journal's, because it was there when the next number was given out.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from csp.fast_start.atomic_files import create_private, sync_data, sync_folder, write_all
from csp.journal.line_reader import blocks_forward, intact_seq, line_at, read_at, split, type_and_seq
from csp.journal.tail_repair import TORN_NAME, find_last_seq, keep_torn

_BLOCK_BYTES: Final = 1 << 20
#: Of a longer journal only the line after each block is looked at: a start must not take long.
_LOOKED_THROUGH: Final = 16 << 20
_NEAR_BYTES: Final = 64 << 10


class _Stretch(NamedTuple):
    """Bytes of whole lines, from `start` up to `end`."""

    start: int
    end: int


class _Lines(NamedTuple):
    """The lines of a journal in the order of their numbers, and those that stood there twice."""

    own: list[_Stretch]
    doubled: list[_Stretch]
    is_ordered: bool


def take_out_doubled(path: Path, fresh: Path, fd: int, end: int) -> str:
    """Put a journal in order, without doubled lines, in the place of `path`; return what was done, or "".

    The caller must open the file again. The duplicates are kept in `journal.torn`.
    """
    if _has_a_line_for_each_number(fd, end) and _is_ascending(fd, end):
        return ""
    lines = _read(fd, end)
    if lines.is_ordered and not lines.doubled:
        return ""
    fresh.unlink(missing_ok=True)
    copy = create_private(fresh)
    try:
        size = 0
        for stretch in lines.own:
            size += _copy(fd, copy, stretch, size)
        sync_data(copy)
    finally:
        os.close(copy)
    for stretch in lines.doubled:
        keep_torn(path.parent, read_at(fd, stretch.start, stretch.end - stretch.start - 1))
    os.replace(fresh, path)
    sync_folder(path.parent)
    return _said(lines)


def _said(lines: _Lines) -> str:
    said = [] if lines.is_ordered else ["the journal lines were out of order; put them back"]
    if lines.doubled:
        said.append(
            f"{len(lines.doubled)} journal lines stood there twice; took them out, kept in {TORN_NAME}"
        )
    return ", and ".join(said)


def _has_a_line_for_each_number(fd: int, end: int) -> bool:
    if not end:
        return True
    first = intact_seq(line_at(fd, 0, end))
    last, damaged = find_last_seq(fd, end)
    return first is not None and not damaged and _count_lines(fd, end) == last - first + 1


def _count_lines(fd: int, end: int) -> int:
    places = range(0, end, _BLOCK_BYTES)
    return sum(read_at(fd, at, min(_BLOCK_BYTES, end - at)).count(b"\n") for at in places)


def _is_ascending(fd: int, end: int) -> bool:
    """Tell whether no number is below the one before, as far as is looked."""
    highest = -1
    for line in _all_lines(fd, end) if end <= _LOOKED_THROUGH else _some_lines(fd, end):
        head = type_and_seq(line)
        if head is not None:
            if head[1] < highest:
                return False
            highest = head[1]
    return True


def _all_lines(fd: int, end: int) -> Iterator[bytes]:
    for _, data in blocks_forward(fd, 0, end):
        yield from data.split(b"\n")


def _some_lines(fd: int, end: int) -> Iterator[bytes]:
    """Yield the first line that begins in each block, if its end is near."""
    for at in range(0, end, _BLOCK_BYTES):
        yield read_at(fd, at, min(_NEAR_BYTES, end - at)).partition(b"\n")[2].partition(b"\n")[0]


def _read(fd: int, end: int) -> _Lines:
    """Look at every line; damaged ones have no number and stay behind the line that they stand behind."""
    placed: list[tuple[int, bool, _Stretch]] = []
    doubled: list[_Stretch] = []
    known: set[int] = set()
    last = -1
    for offset, data in blocks_forward(fd, 0, end):
        for at, line in split(offset, data):
            stretch = _Stretch(at, at + len(line) + 1)
            seq = intact_seq(line)
            if seq in known:
                doubled.append(stretch)
                continue
            if seq is not None:
                known.add(seq)
                last = seq
            placed.append((last, seq is None, stretch))
    ordered = sorted(placed, key=lambda line: line[:2])
    return _Lines(_joined([stretch for _, _, stretch in ordered]), doubled, ordered == placed)


def _joined(stretches: list[_Stretch]) -> list[_Stretch]:
    """Return the same bytes in as few stretches as can be."""
    found: list[_Stretch] = []
    for stretch in stretches:
        if found and found[-1].end == stretch.start:
            found[-1] = _Stretch(found[-1].start, stretch.end)
        else:
            found.append(stretch)
    return found


def _copy(source: int, copy: int, stretch: _Stretch, to: int) -> int:
    """Copy a stretch; return its size."""
    for at in range(stretch.start, stretch.end, _BLOCK_BYTES):
        data = read_at(source, at, min(_BLOCK_BYTES, stretch.end - at))
        write_all(copy, data, to + at - stretch.start)
    return stretch.end - stretch.start
