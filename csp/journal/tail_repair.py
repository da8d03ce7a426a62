"""Bring the end of a journal file into order after a crash."""

import contextlib
import os
from pathlib import Path
from typing import Final

from csp.fast_start.atomic_files import PRIVATE_FILE, sync_data, write_all
from csp.journal.line_reader import BLOCK_BYTES, blocks_back, intact_seq, read_at, seqs_lost
from csp.protocol.events import is_intact

TORN_NAME: Final = "journal.torn"


def mend_tail(fd: int, folder: Path) -> tuple[int, list[str]]:
    """End the file with a newline; return its size and what there is to say about it.

    A last piece that lacks only its newline is an event and stays. Any other was never
    acknowledged: it is cut, and kept in `journal.torn` for a person to look at.
    """
    size = os.fstat(fd).st_size
    start = _start_of_last_piece(fd, size)
    if start == size:
        return size, []
    piece = read_at(fd, start, size - start)
    if is_intact(piece):
        return _end_with_newline(fd, size), ["the last journal line lacked its newline; added it"]
    if is_intact(piece[:-1]):
        return _end_with_newline(fd, size - 1), [
            "the newline of the last journal line was damaged; mended it"
        ]
    keep_torn(folder, piece)
    os.ftruncate(fd, start)
    sync_data(fd)
    return start, [f"the last journal line was torn; cut {len(piece)} bytes, kept in {TORN_NAME}"]


def find_last_seq(fd: int, end: int) -> tuple[int, int]:
    """Return the seq of the last event and how many damaged lines stand at the very end.

    A damaged line counts as the events it was, so that no seq is ever given out twice.
    """
    lost = damaged = 0
    for _, data in blocks_back(fd, end):
        for line in reversed(data[:-1].split(b"\n")):
            seq = intact_seq(line)
            if seq is not None:
                return seq + lost, damaged
            lost += seqs_lost(line)
            damaged += 1
    return lost, damaged


def _start_of_last_piece(fd: int, size: int) -> int:
    end = size
    while end > 0:
        at = max(0, end - BLOCK_BYTES)
        newline = read_at(fd, at, end - at).rfind(b"\n")
        if newline >= 0:
            return at + newline + 1
        end = at
    return 0


def _end_with_newline(fd: int, offset: int) -> int:
    write_all(fd, b"\n", offset)
    sync_data(fd)
    return offset + 1


def keep_torn(folder: Path, piece: bytes) -> None:
    """Put what is taken out of a journal beside it, for a person to look at."""
    # Best effort: on a full disk the cut matters more than the copy.
    with contextlib.suppress(OSError):
        # A pipe in its place must not hold up the start.
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(folder / TORN_NAME, how, PRIVATE_FILE)
        try:
            os.write(fd, piece + b"\n")
        finally:
            os.close(fd)
