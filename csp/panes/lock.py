"""Let one `up`, `down` or `add` of a room work at a time."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from csp.errors import Refused
from csp.room_registry import make_private_dir

PATIENCE_S: Final = 150.0
_POLL_S: Final = 0.05


def lock_path(state_dir: Path, room: str) -> Path:
    """Return the lock file of a room."""
    return state_dir / f"{room}.up.lock"


@contextmanager
def locked(state_dir: Path, room: str, show: Callable[[str], None]) -> Iterator[None]:
    """Hold the room's lock; call `show` while another process has it."""
    path = lock_path(state_dir, room)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        # `down` may remove the whole folder.
        make_private_dir(state_dir)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), path.stat()):
                break
        except (BlockingIOError, FileNotFoundError):
            show(f"waiting for another csp that is at work on room {room}…")
        os.close(fd)
        if time.monotonic() >= deadline:
            problem = f"another csp has been at work on room {room!r} for {PATIENCE_S:g} s"
            raise Refused(problem, "end it, then try again")
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        os.close(fd)
