"""Repair the end of a journal file after a crash."""

import contextlib
import os
from pathlib import Path
from typing import Final

from csp.fast_start.atomic_files import PRIVATE_FILE, sync_data, write_all
from csp.journal.line_reader import BLOCK_BYTES, blocks_back, intact_seq, read_at, seqs_lost
from csp.protocol.events import is_intact

TORN_NAME: Final = "journal.torn"


def repair_tail(fd: int, folder: Path) -> tuple[int, list[str]]:
    """Make the file end with a newline; return its size and the warnings to report.

    A last piece that lacks only its newline is an event and stays. Any other piece was never acknowledged:
    it is cut off and kept in `journal.torn` for inspection.
    """
    end = size = os.fstat(fd).st_size
    start = 0
    while end > 0:
        at = max(0, end - BLOCK_BYTES)
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

    A damaged line counts as the events that it held, so that no seq is ever assigned twice.
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


def _end_with_newline(fd: int, offset: int) -> int:
    write_all(fd, b"\n", offset)
    sync_data(fd)
    return offset + 1


def keep_torn(folder: Path, piece: bytes) -> None:
    """Append a piece removed from a journal to `journal.torn`, for inspection."""
    # Best effort: on a full disk the repair matters more than the copy.
    with contextlib.suppress(OSError):
        # If a pipe is in its place, opening it must not block the start.
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(folder / TORN_NAME, how, PRIVATE_FILE)
        try:
            os.write(fd, piece + b"\n")
        finally:
            os.close(fd)
