"""Write small files so that a crash leaves the old one or the new one, never half of one.

It loads nothing but what every Python has loaded: the start of a sidecar writes files too.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    AnyPath = str | os.PathLike[str]

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def sync_data(fd: int) -> None:
    """Return when the bytes of `fd` are on the disk, not only in its cache."""
    if sys.platform == "darwin":
        import fcntl

        # On macOS fsync leaves the bytes in the drive's own cache.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def sync_folder(folder: "AnyPath") -> None:
    """Make renames and new names in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, offset: int) -> None:
    """Write `data` at `offset`, however many calls the kernel makes of it."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        rest, offset = rest[written:], offset + written


def create_private(path: "AnyPath", mode: int = PRIVATE_FILE) -> int:
    """Open a new file that only its owner may read; FileExistsError if there is one, or a link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def read_plain(path: "AnyPath", max_bytes: int = -1) -> bytes:
    """Return the content of a file, or its first bytes; a pipe is an OSError, because it would block."""
    import errno
    import stat

    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(fd)


def replace_file(path: "AnyPath", data: bytes, *, mode: int = PRIVATE_FILE, is_durable: bool = True) -> None:
    """Put `data` in the place of `path` at once; on OSError the old file stands, nothing else is left.

    A link at `path` is replaced, never followed. Processes that write at the same time have drafts of their
    own, and the last one wins. Without `is_durable` a power cut may lose the file: for what only lasts as
    long as a process, or what a person can do without.
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
    """Return where this process writes a file before it gets its name."""
    return f"{os.fspath(path)}.{os.getpid()}.tmp"


def remove(path: str) -> None:
    """Remove a file, if it is there and can be removed."""
    try:
        os.unlink(path)
    except OSError:
        return
