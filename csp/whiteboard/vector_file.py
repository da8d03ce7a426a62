"""The vectors of notes in one file that is mapped into memory: a row for each note, in their order.

The first row says what the file belongs to. Rows are only ever appended; what a crash has torn off, or left
as nothing, is cut and made again. While the disk has no space the rows stay in memory.
"""

import contextlib
import logging
import mmap
import os
import time
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from csp.fast_start.atomic_files import PRIVATE_FILE, write_all

log = logging.getLogger(__name__)

Array = NDArray[np.float32]

_MAGIC: Final = b"csp vectors 1\n"
#: How far the length of a good row may be from one.
_TOLERANCE: Final = 1e-3
_CHECKED_AT_ONCE: Final = 8192
#: How long rows stay in memory before the disk is tried again.
RETRY_S: Final = 30.0


class Vectors:
    """Rows of so many numbers each; not for two threads at once."""

    def __init__(self, path: Path, dimensions: int) -> None:
        self._path = path
        self._dimensions = dimensions
        self._row_bytes = 4 * dimensions
        self._fd = -1
        self._mapped: Array | None = None
        self._loose: list[Array] = []
        self._stamp = ""
        self._retry_at = 0.0
        self.count = 0

    def attach(self, stamp: str, most: int) -> None:
        """Open the file of what has this stamp, with at most so many rows; another one begins anew."""
        if self._stamp != stamp or self._is_torn():
            self.close()
            self._stamp = stamp
            try:
                self._open()
            except OSError as exc:
                self._go_loose(exc)
        elif self._fd < 0 and time.monotonic() >= self._retry_at:
            self._return_to_disk()
        if self.count > most:
            self._cut(most)

    def append(self, rows: Array) -> None:
        """Add rows behind the last one."""
        if self._fd >= 0:
            try:
                write_all(self._fd, np.ascontiguousarray(rows, np.float32).tobytes(), self._end)
                self._mapped = None
                self.count += len(rows)
                return
            except OSError as exc:
                self._go_loose(exc)
        self._loose.append(np.array(rows, np.float32))
        self._mapped = None
        self.count += len(rows)

    @property
    def rows(self) -> Array:
        """All rows, as they are on the disk."""
        if self._mapped is None:
            self._mapped = self._map()
        return self._mapped

    def close(self) -> None:
        """Let go of the file."""
        self._mapped = None
        self._loose.clear()
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._stamp, self.count = -1, "", 0

    # --- the file --------------------------------------------------------------------------------

    @property
    def _end(self) -> int:
        return (self.count + 1) * self._row_bytes

    @property
    def _head(self) -> bytes:
        text = _MAGIC + f"{self._stamp} {self._dimensions}\n".encode()
        return text.ljust(self._row_bytes, b"\0")

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        size = os.fstat(self._fd).st_size
        if os.pread(self._fd, self._row_bytes, 0) != self._head:
            os.ftruncate(self._fd, 0)
            write_all(self._fd, self._head, 0)
            size = self._row_bytes
        self._cut(size // self._row_bytes - 1)
        self._cut(self._first_bad())

    def _is_torn(self) -> bool:
        """Tell whether somebody has cut the file: to read a mapping beyond its end would kill the process."""
        return self._fd >= 0 and os.fstat(self._fd).st_size < self._end

    def _cut(self, count: int) -> None:
        """Keep the first rows alone."""
        self._mapped = None
        if self._fd >= 0:
            self.count = count
            # A mapping must never reach beyond the file.
            os.ftruncate(self._fd, self._end)
        else:
            self._loose = [self._map()[:count].copy()]
            self.count = count

    def _first_bad(self) -> int:
        """Return the first row that is no vector of length one: a power cut may leave nothing there."""
        rows = self.rows
        for start in range(0, len(rows), _CHECKED_AT_ONCE):
            block = rows[start : start + _CHECKED_AT_ONCE]
            with np.errstate(all="ignore"):
                is_good = np.abs(np.einsum("ij,ij->i", block, block) - 1) < _TOLERANCE
            if not is_good.all():
                return start + int(np.argmin(is_good))
        return len(rows)

    def _map(self) -> Array:
        shape = (self.count, self._dimensions)
        if self._fd < 0:
            return np.concatenate([np.empty((0, self._dimensions), np.float32), *self._loose])
        if not self.count:
            return np.empty(shape, np.float32)
        data = mmap.mmap(self._fd, self._end, access=mmap.ACCESS_READ)
        return np.frombuffer(data, np.float32, offset=self._row_bytes).reshape(shape)

    def _go_loose(self, exc: OSError) -> None:
        """Go on in memory with what there is."""
        log.warning("vectors kept in memory", extra={"path": str(self._path), "problem": str(exc)})
        if self._fd >= 0:
            kept = np.array(self._map()) if self.count else None
            os.close(self._fd)
            self._fd = -1
            self._loose = [] if kept is None else [kept]
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._mapped = None
        self._retry_at = time.monotonic() + RETRY_S

    def _return_to_disk(self) -> None:
        """Bring the rows that are in memory to the disk, if it takes them."""
        rows, self.count = self._map(), 0
        try:
            self._open()
            self._cut(0)
            if len(rows):
                write_all(self._fd, rows.tobytes(), self._end)
        except OSError as exc:
            self._go_loose(exc)
            self._loose = [rows]
        else:
            self._loose = []
        self.count = len(rows)
        self._mapped = None
