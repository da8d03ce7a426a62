"""The mailbox of a room: messages of runs as files, one folder for each role.

Whoever writes into `mailbox/<role>/` speaks as that role: the folder is the identity. A file is taken when it
is whole JSON; it is moved to `handled/` or, with the reason beside it, to `refused/`. What the other role
says lies in `inbox/`, in the order of its number.
"""

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from csp.errors import BadInput, CspError
from csp.journal.files import replace_file
from csp.wire import AnyMessage, RunMessageBody, RunRole, encode, is_run_id, parse, read_body, write_message

MAX_FILE_BYTES: Final = 1024 * 1024
#: For so long a file that is not whole may still be being written.
GRACE_S: Final = 1.0
POLL_S: Final = 1.0
_FOLDERS: Final = ("inbox", "handled", "refused")


class Letter(NamedTuple):
    """A file that holds a message; `key` is the same for the same words in the same folder."""

    path: Path
    role: RunRole
    key: str
    run: str
    sender: RunRole
    body: AnyMessage


class BadLetter(NamedTuple):
    """A file that holds none."""

    path: Path
    role: RunRole
    error: CspError


class Mailbox:
    """The files below `root`; nothing here knows of the gateway."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self) -> None:
        """Make the folders."""
        for role in RunRole:
            for name in _FOLDERS:
                (self.root / role / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def letters(self) -> Iterator[Letter | BadLetter]:
        """Yield what lies in the folders of the roles, oldest name first; what is being written is left."""
        for role in RunRole:
            for path in sorted((self.root / role).glob("*.json")):
                if path.name.startswith(".") or not path.is_file():
                    continue
                found = _read(path, role)
                if found is not None:
                    yield found

    def handled(self, letter: Letter) -> None:
        """Put a file away that was taken."""
        _move(letter.path, letter.path.parent / "handled" / f"{letter.key[:8]}-{letter.path.name}")

    def refused(self, path: Path, why: str) -> None:
        """Put a file away that was not, with the reason beside it."""
        target = path.parent / "refused" / f"{time.time_ns()}-{path.name}"
        replace_file(target.with_name(f"{target.name}.reason.txt"), f"{why}\n".encode())
        _move(path, target)

    # --- what the roles are told -------------------------------------------------------------------

    def post(self, seq: int, run_id: str, sender: RunRole, ts: float, body: AnyMessage) -> None:
        """Put a message into the inbox of the other role."""
        to = RunRole.REVIEWER if sender is RunRole.BUILDER else RunRole.BUILDER
        message = write_message(run_id, sender, ts, body)
        name = f"{seq:08d}-{run_id}-{message.message_type}.json"
        replace_file(self.root / to / "inbox" / name, encode(message) + b"\n")

    # --- news --------------------------------------------------------------------------------------

    async def news(self) -> AsyncIterator[None]:
        """Yield when something may lie there: the kernel says so, and every second anyway."""
        watcher = _watcher([self.root / role for role in RunRole])
        try:
            while True:
                yield
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await (asyncio.Event().wait() if watcher is None else watcher.get())
        finally:
            if watcher is not None:
                watcher.close()


def _watcher(folders: list[Path]):  # type: ignore[no-untyped-def]  # asyncinotify is there on Linux alone
    try:
        from asyncinotify import Inotify, Mask

        watcher = Inotify()
        for folder in folders:
            watcher.add_watch(folder, Mask.MOVED_TO | Mask.CLOSE_WRITE)
    except (ImportError, OSError):
        return None
    return watcher


def _read(path: Path, role: RunRole) -> Letter | BadLetter | None:
    try:
        # A link could lead anywhere.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
            age_s = time.time() - os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return None
    except OSError as exc:
        return BadLetter(path, role, BadInput(f"it cannot be read: {exc.strerror}"))
    if len(data) > MAX_FILE_BYTES:
        return BadLetter(path, role, BadInput(f"it has more than {MAX_FILE_BYTES} bytes"))
    try:
        message = parse(RunMessageBody, data)
        body = read_body(message.message_type, message.body)
    except BadInput as exc:
        is_young = not data.rstrip().endswith(b"}") and age_s < GRACE_S
        return None if is_young else BadLetter(path, role, exc)
    if not is_run_id(message.run_id):
        return BadLetter(path, role, BadInput(f"run_id {message.run_id[:80]!r} is none"))
    key = hashlib.sha256(role.encode() + b"\0" + encode(message)).hexdigest()[:32]
    return Letter(path, role, key, message.run_id, message.sender, body)


def _move(path: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, target)
