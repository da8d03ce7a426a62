"""Follow growing files line by line.

A `Tail` reads the new lines of one file; a `FileWatcher` reports when to read again.
"""

import asyncio
import contextlib
import errno
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

log = logging.getLogger(__name__)

#: Maximum length of a line; longer ones are skipped, such as images in a transcript.
MAX_LINE_BYTES: Final = 32 << 20
POLL_S: Final = 0.05
_CHUNK_BYTES: Final = 1 << 16
#: The errors raised by add_watch when the kernel has no watches left.
_NONE_LEFT: Final = (errno.ENOSPC, errno.ENOMEM)


class Tail:
    """A reader that yields each complete line of one file once, even if the file is replaced.

    The file need not exist yet. A file that was truncated or replaced is read from its start.
    """

    def __init__(
        self, path: Path, offset: int = 0, inode: int = 0, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        """Continue after `offset` if the file still has this `inode` (0: any inode)."""
        self.path = path
        self._offset, self._inode = offset, inode
        self._max = max_line_bytes
        self._fd = -1
        self._rest = bytearray()
        self._is_skipping = False

    @property
    def position(self) -> tuple[int, int]:
        """Return the offset of the next line, and the file's inode."""
        return self._offset, self._inode

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._rest.clear()
        self._is_skipping = False

    def read(self) -> Iterator[bytes]:
        """Yield the lines completed since the last call, without their line ends."""
        while self._is_ready():
            while chunk := os.pread(self._fd, _CHUNK_BYTES, self._offset + len(self._rest)):
                yield from self._lines(chunk)
            try:
                if os.stat(self.path).st_ino == self._inode:
                    return
            except OSError:
                # A file that was deleted may still be written to.
                return
            # The rest of the old file has been read; its last, incomplete line will never be completed.
            self.close()
            self._offset = self._inode = 0

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = bytes(self._rest) + chunk[start:end]
            was_skipping, self._is_skipping = self._is_skipping, False
            self._offset += len(line) + 1
            self._rest.clear()
            start = end + 1
            if not was_skipping and line:
                yield line
        self._rest += chunk[start:]
        if len(self._rest) > self._max:
            log.warning("line skipped", extra={"path": str(self.path), "bytes": len(self._rest)})
            self._is_skipping = True
        if self._is_skipping:
            self._offset += len(self._rest)
            self._rest.clear()

    def _is_ready(self) -> bool:
        if self._fd < 0:
            try:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            inode = os.fstat(self._fd).st_ino
            if self._inode not in (0, inode):
                self._offset = 0
            self._inode = inode
        if os.fstat(self._fd).st_size < self._offset + len(self._rest):
            self._offset = 0
            self._rest.clear()
            self._is_skipping = False
        return True


class FileWatcher:
    """A watcher that reports writes to its paths.

    It uses kernel notifications; for a path that does not exist yet, the nearest existing parent directory is
    watched. If the kernel has no watches left, or the system does not support notifications, the path is
    polled every 50 ms.
    """

    def __init__(self, *, notifies: bool = sys.platform == "linux") -> None:
        """Create a watcher; this requires a running event loop."""
        self._news = asyncio.Event()
        self._paths: dict[Path, tuple[Path, int]] = {}
        self._watches: dict[tuple[Path, int], object] = {}
        #: Paths without a watch, and their last known state.
        self._polled: dict[Path, tuple[int, ...]] = {}
        self._poll_timer: asyncio.TimerHandle | None = None
        self._is_warned = False
        #: An asyncinotify.Inotify, which is only available on Linux.
        self._inotify: Any = None
        if notifies:
            from asyncinotify import Inotify, Mask

            self._directory_mask = Mask.CREATE | Mask.MOVED_TO | Mask.DELETE_SELF | Mask.MOVE_SELF
            self._file_mask = Mask.MODIFY | Mask.ATTRIB | Mask.MOVE_SELF | Mask.DELETE_SELF
            try:
                self._inotify = Inotify()
            except OSError as exc:
                self._warn(exc)
            else:
                os.set_blocking(self._inotify.fd, False)
                asyncio.get_running_loop().add_reader(self._inotify.fd, self._drain, self._inotify.fd)

    def watch(self, path: Path) -> None:
        """Watch a file's content or a directory's entries, as soon as it exists."""
        if path not in self._paths and path not in self._polled:
            self._arm(path)
            # Changes made before the watch was set are not reported, so wake once.
            self._news.set()

    def unwatch(self, path: Path) -> None:
        self._polled.pop(path, None)
        target = self._paths.pop(path, None)
        if target is not None and target not in self._paths.values():
            self._forget(target)

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a change since the last call; return whether one occurred before the timeout."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        was_news = self._news.is_set()
        self._news.clear()
        for path in [*self._paths, *self._polled] if was_news else []:
            self._arm(path)
        return was_news

    def wake(self) -> None:
        """Make `wait` return as if a change had occurred."""
        self._news.set()

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fd)
            self._inotify.close()
        self._paths.clear()
        self._watches.clear()
        self._polled.clear()
        if self._poll_timer is not None:
            self._poll_timer.cancel()

    def _drain(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(fd, _CHUNK_BYTES):
                pass
        self._news.set()

    def _arm(self, path: Path) -> None:
        """Watch the path or its nearest existing parent; renew the watch if the file was replaced."""
        for target in (path, *path.parents) if self._inotify is not None else ():
            try:
                key = (target, os.stat(target).st_ino)
                if key not in self._watches:
                    mask = self._directory_mask if target.is_dir() else self._file_mask
                    self._watches[key] = self._inotify.add_watch(target, mask)
                    self._news.set()
            except OSError as exc:
                if exc.errno in _NONE_LEFT:
                    self._warn(exc)
                    break
                # If the path has just vanished, watch its parent.
                continue
            self._move(path, key)
            return
        self._move(path, None)
        self._polled.setdefault(path, ())
        if self._poll_timer is None:
            self._poll_timer = asyncio.get_running_loop().call_later(POLL_S, self._poll)

    def _warn(self, exc: OSError) -> None:
        if not self._is_warned:
            self._is_warned = True
            log.warning("file notification failed, polling instead", extra={"reason": str(exc)})

    def _move(self, path: Path, target: tuple[Path, int] | None) -> None:
        """Record the watched target of a path, and stop watching its previous target."""
        old = self._paths.pop(path, None)
        if target is not None:
            self._paths[path] = target
            self._polled.pop(path, None)
        if old is not None and old not in self._paths.values():
            self._forget(old)

    def _poll(self) -> None:
        now: dict[Path, tuple[int, ...]] = {}
        for path in self._polled:
            try:
                found = os.stat(path)
                now[path] = found.st_ino, found.st_size, found.st_mtime_ns
            except OSError:
                now[path] = ()
        if now != self._polled:
            self._polled = now
            self._news.set()
        self._poll_timer = asyncio.get_running_loop().call_later(POLL_S, self._poll) if now else None

    def _forget(self, target: tuple[Path, int]) -> None:
        watch = self._watches.pop(target, None)
        # The kernel has already dropped the watch of a deleted file.
        with contextlib.suppress(OSError):
            if watch is not None and self._inotify is not None:
                self._inotify.rm_watch(watch)
