"""The committed part of a journal at one moment, safe to read in any thread."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from csp.journal.line_reader import blocks_back, blocks_forward, intact_seq, line_at, seek_after, split


class JournalFile:
    """A descriptor that stays open as long as this object is referenced.

    A rewrite swaps the file while other threads read it; each thread finishes with the file it started on.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)


class Cursor(NamedTuple):
    """A position between two lines; invalid after a rewrite, which starts a new generation."""

    generation: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Intact lines in order; `end` is true if nothing more is committed."""

    lines: list[bytes]
    last_seq: int
    end: bool
    cursor: Cursor


class JournalView(NamedTuple):
    """The first `end` bytes of `file`, whose last event is `seq`."""

    file: JournalFile
    end: int
    seq: int
    generation: int

    def offset_after(self, seq: int) -> int:
        """Return the offset of the first intact line with a higher seq, or `end`."""
        # The usual case: the reader is up to date.
        if seq >= self.seq:
            return self.end
        return seek_after(self.file.fd, self.end, seq)

    def line_at(self, offset: int) -> bytes:
        """Return the line that starts at `offset`, intact or damaged."""
        return line_at(self.file.fd, offset, self.end)

    def read_after(self, seq: int, max_bytes: int, cursor: Cursor | None) -> Chunk:
        """Return the lines after `seq`; damaged lines are skipped."""
        known = cursor is not None and cursor.generation == self.generation
        start = cursor.offset if cursor is not None and known else self.offset_after(seq)
        lines: list[bytes] = []
        for offset, data in blocks_forward(self.file.fd, start, self.end, max_bytes):
            for _, line in split(offset, data):
                here = intact_seq(line)
                if here is not None:
                    lines.append(line)
                    seq = here
            start = offset + len(data)
            if lines:
                break
        cursor = Cursor(self.generation, start)
        return Chunk(lines=lines, last_seq=seq, end=start >= self.end, cursor=cursor)

    def read_back(self) -> Iterator[tuple[int, bytes]]:
        """Yield (seq, line) of the intact lines, newest first."""
        for _, data in blocks_back(self.file.fd, self.end):
            for line in reversed(data.split(b"\n")):
                seq = intact_seq(line)
                if seq is not None:
                    yield seq, line
