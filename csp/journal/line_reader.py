"""Read whole lines from a journal file by position.

All functions use pread on a given descriptor, so any number of threads may read the same file.
"""

import os
import re
from collections.abc import Iterator
from typing import Final

from csp.protocol.events import is_intact

BLOCK_BYTES: Final = 256 * 1024
_PROBE_BYTES: Final = 8 * 1024
#: Matches the head of every line; the groups are type and seq.
HEAD: Final = re.compile(rb'\{"v":\d+,"type":"([^"\\]*)","seq":(\d+),')
_LINE_START: Final = b'{"v":1,"type":"'


def type_and_seq(line: bytes) -> tuple[bytes, int] | None:
    """Return the type and the seq of a line without decoding it or verifying its checksum."""
    head = HEAD.match(line)
    return None if head is None else (head[1], int(head[2]))


def intact_seq(line: bytes) -> int | None:
    """Return the seq of a line if its checksum is valid, else None."""
    head = HEAD.match(line)
    return int(head[2]) if head is not None and is_intact(line) else None


def seqs_lost(damaged: bytes) -> int:
    """Return the number of events in a damaged line; a lost newline joins two lines."""
    return max(1, damaged.count(_LINE_START))


def read_at(fd: int, offset: int, size: int) -> bytes:
    """Return `size` bytes from `offset`, or fewer at the end of the file."""
    data = os.pread(fd, size, offset)
    while len(data) < size:
        more = os.pread(fd, size - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def blocks_forward(
    fd: int, start: int, end: int, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) pieces of whole lines from `start`, which must be the start of a line, to `end`.

    Only the last piece may lack its newline, and only if the file itself does.
    A file that has been cut ends early.
    """
    size = block_bytes
    while start < end:
        wanted = min(size, end - start)
        data = read_at(fd, start, wanted)
        if not data:
            return
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) == wanted and start + wanted < end:
            size *= 2
            continue
        data = data[:cut] or data
        yield start, data
        start += len(data)
        size = block_bytes


def blocks_back(
    fd: int, end: int, start: int = 0, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) pieces of whole lines, last piece first, between two line boundaries."""
    size = block_bytes
    while end > start:
        at = max(start, end - size)
        data = read_at(fd, at, end - at)
        if at > start:
            # The bytes before the first newline belong to a line that starts before `at`.
            cut = data.find(b"\n") + 1
            if cut in (0, len(data)):
                size *= 2
                continue
            at, data = at + cut, data[cut:]
        yield at, data
        end = at
        size = block_bytes


def split(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line without its newline) for each line of a piece."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        yield offset, line
        offset += len(line) + 1


def line_at(fd: int, offset: int, end: int) -> bytes:
    """Return the line that starts at `offset`, without its newline."""
    size = 1024
    while True:
        wanted = min(size, end - offset)
        data = read_at(fd, offset, wanted)
        cut = data.find(b"\n")
        if cut >= 0:
            return data[:cut]
        if len(data) < wanted or offset + wanted >= end:
            return data
        size *= 4


def seek_after(fd: int, end: int, seq: int) -> int:
    """Return the offset of the first intact line with a seq above `seq`, or `end`, by binary search."""
    low, high = 0, end
    while high - low > _PROBE_BYTES:
        middle = (low + high) // 2
        found = _first_intact(fd, middle, high, end)
        if found is None or found[0] > seq:
            high = middle
        else:
            low = found[1]
    for offset, data in blocks_forward(fd, low, end, _PROBE_BYTES):
        for at, line in split(offset, data):
            here = intact_seq(line)
            if here is not None and here > seq:
                return at
    return end


def _first_intact(fd: int, middle: int, high: int, end: int) -> tuple[int, int] | None:
    """Return (seq, end) of the first intact line that starts in [middle, high)."""
    # A line starts at `middle` itself if the preceding byte is a newline.
    start = middle - 1
    while start < high:
        data = read_at(fd, start, _PROBE_BYTES)
        cut = data.find(b"\n")
        start += cut + 1 if cut >= 0 else len(data)
        if cut >= 0 or not data:
            break
    for offset, data in blocks_forward(fd, start, end, _PROBE_BYTES):
        for at, line in split(offset, data):
            if at >= high:
                return None
            seq = intact_seq(line)
            if seq is not None:
                return seq, at + len(line) + 1
    return None
