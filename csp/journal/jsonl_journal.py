"""A journal in one file of JSON lines, written by one process."""

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from csp.errors import Broken, JournalLocked, StorageFailed, StorageFull
from csp.fast_start.atomic_files import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    create_private,
    sync_data,
    sync_folder,
    write_all,
)
from csp.journal.committed_journal import JournalFile, JournalView
from csp.journal.journal_repair import find_last_seq, repair_line_order, repair_tail
from csp.journal.room_id import find_room_id, new_room_id

log = logging.getLogger(__name__)

JOURNAL_NAME: Final = "journal.jsonl"
REWRITE_NAME: Final = "journal.jsonl.new"
_LOCK_NAME: Final = "journal.lock"
_PROBE_NAME: Final = "journal.probe"
_PROBE_BYTES: Final = 256 * 1024
#: The reason why nothing can be written, and the remedy.
MOVED: Final = (
    "the journal was deleted, moved or cut while the gateway was running; the room is read-only",
    "restore it, or restart the gateway to continue with what is there",
)
#: The system's error numbers for a full disk.
FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class JsonlJournal:
    """The journal of one room; the folder stays locked from `open` to `close`.

    One thread appends. `sync` and all reading methods may run in any thread.
    """

    def __init__(self, folder: Path, lock_fd: int, file: JournalFile, end: int, warnings: list[str]) -> None:
        self.folder = folder
        self.path = folder / JOURNAL_NAME
        self.warnings = warnings
        self.last_seq, damaged = find_last_seq(file.fd, end)
        if damaged:
            warnings.append(f"the last {damaged} journal lines are damaged; they are skipped")
        self._lock_fd = lock_fd
        self._end = end
        #: The part of the journal that readers may see.
        self.view = JournalView(file, end, self.last_seq, 0)
        known_id = find_room_id(self.view)
        #: The id of the room, and the event whose line has to state it; 0 if a line does already.
        self.room_id = known_id or new_room_id()
        self.stating_seq = 0 if known_id else self.last_seq + 1

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Lock the room's folder and repair the journal; raise JournalLocked if another gateway uses it.

        The journal itself is locked as well, because people delete lock files.
        """
        path, lock_fd = folder / JOURNAL_NAME, -1
        try:
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            lock_fd = _lock(folder)
            file = _locked(path)
            for leftover in (REWRITE_NAME, _PROBE_NAME):
                (folder / leftover).unlink(missing_ok=True)
            end, warnings = repair_tail(file.fd, folder)
            if done := repair_line_order(path, folder / REWRITE_NAME, file.fd, end):
                file = _locked(path)
                end = os.fstat(file.fd).st_size
                warnings.append(done)
            # The last lines may have been written just before a kill; callers that retry rely on them.
            sync_data(file.fd)
            journal = cls(folder, lock_fd, file, end, warnings)
        except (OSError, JournalLocked) as exc:
            if lock_fd >= 0:
                os.close(lock_fd)
            if isinstance(exc, JournalLocked):
                raise
            raise storage_error("open the journal", exc) from exc
        for warning in journal.warnings:
            log.warning("journal repaired", extra={"folder": str(folder), "problem": warning})
        return journal

    @property
    def is_settled(self) -> bool:
        """Return whether everything appended is committed."""
        return self._end == self.view.end

    # --- writing ---------------------------------------------------------------------------------

    def append(self, lines: Sequence[bytes], first_seq: int) -> None:
        """Write the lines of one batch; after StorageFull or StorageFailed, none of them is in the file."""
        if first_seq != self.last_seq + 1:
            raise Broken(f"journal is at seq {self.last_seq}, got a batch that starts at {first_seq}")
        if not lines:
            return
        if not self.is_in_place():
            raise StorageFull(*MOVED)
        data = b"\n".join(lines) + b"\n"
        try:
            write_all(self.view.file.fd, data, self._end)
        except OSError as exc:
            self._truncate(self._end)
            raise storage_error("write the journal", exc) from exc
        self._end += len(data)
        self.last_seq += len(lines)

    def sync(self) -> None:
        """Block until everything appended is on disk; call it in a thread."""
        try:
            sync_data(self.view.file.fd)
        except OSError as exc:
            raise storage_error("sync the journal", exc) from exc

    def commit(self) -> None:
        """Make everything appended so far visible to readers."""
        self.view = self.view._replace(end=self._end, seq=self.last_seq)

    def rollback(self) -> None:
        """Remove everything appended since the last commit."""
        self._truncate(self.view.end)
        self._end = self.view.end
        self.last_seq = self.view.seq

    def is_in_place(self) -> bool:
        """Return whether the file is still whole and at its path; a user may delete, move or cut it."""
        try:
            found = os.stat(self.path)
            is_same = os.path.samestat(found, os.fstat(self.view.file.fd))
            return is_same and found.st_size >= self.view.end
        except OSError:
            return False

    def can_grow(self) -> bool:
        """Return whether the disk has space again, by writing and deleting a probe file."""
        if not self.is_in_place():
            return False
        path = self.folder / _PROBE_NAME
        try:
            path.unlink(missing_ok=True)
            fd = create_private(path)
            try:
                write_all(fd, bytes(_PROBE_BYTES), 0)
                os.fsync(fd)
            finally:
                os.close(fd)
                path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def adopt(self, file: JournalFile, end: int) -> None:
        """Switch to a rewritten file that contains everything committed; only for csp.journal.rewrite."""
        self._end = end
        self.view = JournalView(file, end, self.last_seq, self.view.generation + 1)

    def close(self) -> None:
        """Release the locks; readers in other threads may still finish."""
        if self._lock_fd >= 0:
            fcntl.flock(self.view.file.fd, fcntl.LOCK_UN)
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _truncate(self, end: int) -> None:
        try:
            # Another program may have cut the file, and a longer one would end in null bytes.
            if os.fstat(self.view.file.fd).st_size > end:
                os.ftruncate(self.view.file.fd, end)
        except OSError as exc:
            raise StorageFailed(f"cannot truncate the journal: {exc.strerror}") from exc


def _locked(path: Path) -> JournalFile:
    try:
        file = JournalFile(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except FileNotFoundError:
        file = JournalFile(create_private(path))
        sync_folder(path.parent)
    if not stat.S_ISREG(os.fstat(file.fd).st_mode):
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file")
    try:
        fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        raise JournalLocked(
            f"room '{path.parent.name}' is already served by another process",
            "stop that gateway, or choose another room with --room",
        ) from exc
    return file


def _lock(folder: Path) -> int:
    fd = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    except BlockingIOError as exc:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        raise JournalLocked(
            f"room '{folder.name}' is already served by process {holder}",
            "stop that gateway, or choose another room with --room",
        ) from exc
    except OSError:
        os.close(fd)
        raise
    return fd


def storage_error(act: str, exc: OSError) -> StorageFull | StorageFailed:
    """Return the error to raise for `exc`: a full disk may be temporary, anything else stops the gateway."""
    if exc.errno in FULL_ERRNOS:
        return StorageFull(f"cannot {act}: {exc.strerror}", "free some space; the room resumes by itself")
    return StorageFailed(f"cannot {act}: {exc.strerror}", "check the disk and the folder's permissions")
