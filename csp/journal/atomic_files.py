"""Write small files atomically: after a crash there is the old file or the new one, never a part."""

import contextlib
import errno
import os
import secrets
import stat
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

from csp.errors import Broken

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
_SECRET_BYTES: Final = 32
_CHECKSUM_BYTES: Final = 8
_RESTORE: Final = "restore it from a backup, or delete it; agents and pages must then join again"
_TEMPORARY: Final = ".tmp"


def sync_data(fd: int) -> None:
    """Return when the bytes of `fd` are on the disk and not only in a cache."""
    if sys.platform == "darwin":
        import fcntl

        # On macOS fsync leaves the bytes in the drive's own cache.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def sync_folder(folder: Path) -> None:
    """Make renames and new files in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, offset: int) -> None:
    """Write all of `data` at `offset`, in as many calls as the kernel needs."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, offset)
        rest, offset = rest[written:], offset + written


def create_private(path: Path) -> int:
    """Create a file that only its owner may read; FileExistsError if it exists."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.open(path, flags, PRIVATE_FILE)


def read_plain(path: Path, max_bytes: int = -1) -> bytes:
    """Return the content of a regular file, or its first bytes; OSError for a pipe, which would block."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data` atomically; on OSError the old file stays and nothing else is left."""
    temporary = path.with_name(path.name + _TEMPORARY)
    temporary.unlink(missing_ok=True)
    try:
        fd = create_private(temporary)
        try:
            write_all(fd, data, 0)
            sync_data(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def load_secret(folder: Path) -> bytes:
    """Return the room's 32 secret bytes, created by the first call and stable from then on.

    Raise Broken if the file is damaged: a new secret would silently lock out every agent and page.
    """
    path = folder / "secret"
    try:
        kept = read_plain(path, 2 * _SECRET_BYTES)
    except FileNotFoundError:
        made = secrets.token_bytes(_SECRET_BYTES)
        try:
            path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            replace_file(path, _with_checksum(made))
        except OSError as exc:
            hint = "look at the disk and the folder's permissions"
            raise Broken(f"the room's secret {str(path)!r} cannot be written: {exc.strerror}", hint) from exc
        return made
    except OSError as exc:
        raise Broken(f"the room's secret {str(path)!r} cannot be read: {exc.strerror}", _RESTORE) from exc
    secret = kept[:_SECRET_BYTES]
    # Secrets of older rooms have no checksum.
    if len(kept) != _SECRET_BYTES and kept != _with_checksum(secret):
        raise Broken(f"the room's secret {str(path)!r} is damaged", _RESTORE)
    return secret


def _with_checksum(secret: bytes) -> bytes:
    return secret + sha256(secret).digest()[:_CHECKSUM_BYTES]
