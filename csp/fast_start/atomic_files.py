"""Write small files atomically: a crash leaves either the old file or the new one, never a partial file.

This module imports only modules that every Python process has loaded, because a starting sidecar also
writes files.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    AnyPath = str | os.PathLike[str]

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def sync_data(fd: int) -> None:
    """Wait until the bytes of `fd` are on the disk, not only in its cache."""
    if sys.platform == "darwin":
        import fcntl

        # On macOS fsync leaves the bytes in the drive's own cache.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def sync_folder(folder: "AnyPath") -> None:
    """Ensure that renames and new names in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, offset: int) -> None:
    """Write all of `data` at `offset`, with as many calls as the kernel needs."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        rest, offset = rest[written:], offset + written


def create_private(path: "AnyPath", mode: int = PRIVATE_FILE) -> int:
    """Create a file that only its owner may read; raise FileExistsError if the path is a file or a link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def read_plain(path: "AnyPath", max_bytes: int = -1) -> bytes:
    """Return the content of a file, or its first bytes; raise OSError for a pipe, because it would block."""
    import errno
    import stat

    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with open(fd, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(fd)


def replace_file(path: "AnyPath", data: bytes, *, mode: int = PRIVATE_FILE, is_durable: bool = True) -> None:
    """Atomically replace the file at `path`; on OSError the old file remains and nothing else is left.

    A link at `path` is replaced, never followed. Processes that write at the same time use separate drafts,
    and the last one wins. Without `is_durable`, a power cut may lose the file; use this for files that matter
    only while a process runs, or that a person can do without.
    """
    draft = draft_of(path)
    remove(draft)
    try:
        fd = create_private(draft, mode)
        try:
            write_all(fd, data, 0)
            if is_durable:
                sync_data(fd)
        finally:
            os.close(fd)
        os.replace(draft, path)
    except OSError:
        remove(draft)
        raise
    if is_durable:
        sync_folder(os.path.dirname(path) or ".")


def draft_of(path: "AnyPath") -> str:
    """Return the path at which this process writes a file before renaming it."""
    return f"{os.fspath(path)}.{os.getpid()}.tmp"


def remove(path: str) -> None:
    """Remove a file if it exists and can be removed."""
    try:
        os.unlink(path)
    except OSError:
        return
