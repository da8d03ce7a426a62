"""The committed part of a journal at one moment, safe to read from any thread."""

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from csp.journal import line_reader


class JournalFile:
    """A descriptor that stays open as long as this object is referenced.

    A rewrite replaces the file while other threads read it; each thread keeps the file it started with.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)


class Cursor(NamedTuple):
    """A position between two lines; a rewrite starts a new generation and invalidates it."""

    generation: int
    offset: int


class Chunk(NamedTuple):
    """Intact lines in order; `end` is true if no more lines are committed."""

    lines: list[bytes]
    last_seq: int
    end: bool
    cursor: Cursor


class JournalView(NamedTuple):
    """The first `end` bytes of `file`, whose last event is `seq`.

    `generation` increases by one whenever a rewrite replaces the file.
    """

    file: JournalFile
    end: int
    seq: int
    generation: int

    def offset_after(self, seq: int) -> int:
        """Return the offset of the first intact line with a seq above `seq`, or `end`."""
        # The usual case: the reader is up to date.
        if seq >= self.seq:
            return self.end
        return line_reader.seek_after(self.file.fd, self.end, seq)

    def line_at(self, offset: int) -> bytes:
        """Return the line that starts at `offset`, intact or damaged."""
        return line_reader.line_at(self.file.fd, offset, self.end)

    def read_after(
        self, seq: int, max_bytes: int = line_reader.BLOCK_BYTES, cursor: Cursor | None = None
    ) -> Chunk:
        """Read the lines after `seq`: about `max_bytes`, but at least one line unless the end is reached.

        Damaged lines are skipped. Pass the previous chunk's `cursor` to avoid a search for the position.
        """
        known = cursor is not None and cursor.generation == self.generation
        start = cursor.offset if cursor is not None and known else self.offset_after(seq)
        lines: list[bytes] = []
        for offset, data in line_reader.blocks_forward(self.file.fd, start, self.end, max_bytes):
            for _, line in line_reader.split(offset, data):
                here = line_reader.intact_seq(line)
                if here is not None:
                    lines.append(line)
                    seq = here
            start = offset + len(data)
            if lines:
                break
        cursor = Cursor(self.generation, start)
        return Chunk(lines=lines, last_seq=seq, end=start >= self.end, cursor=cursor)

    def lines_after(self, seq: int) -> Iterator[bytes]:
        """Yield the intact lines after `seq`, in order."""
        for _, data in line_reader.blocks_forward(self.file.fd, self.offset_after(seq), self.end, 1 << 20):
            yield from (line for line in data.split(b"\n") if line_reader.intact_seq(line) is not None)

    def read_back(self) -> Iterator[tuple[int, bytes]]:
        """Yield (seq, line) for each intact line, newest first."""
        for _, data in line_reader.blocks_back(self.file.fd, self.end):
            for line in reversed(data.split(b"\n")):
                seq = line_reader.intact_seq(line)
                if seq is not None:
                    yield seq, line
