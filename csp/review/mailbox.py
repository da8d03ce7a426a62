"""The mailbox of a room: run messages as files, with one folder per role.

A writer to `mailbox/<role>/` acts as that role: the folder is the identity. A file is read when it is
complete JSON; it is moved to `handled/` or, with the reason in a second file, to `refused/`. Messages from
the other role are in `inbox/`, in numerical order.
"""

import asyncio
import contextlib
import errno
import hashlib
import importlib
import os
import stat
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from csp.errors import BadInput, CspError
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.protocol.codec import encode, parse_request
from csp.protocol.review_messages import (
    AnyMessage,
    MessageType,
    Plan,
    RunMessageBody,
    RunRole,
    SessionStart,
    is_run_id,
    read_body,
    write_message,
)

MAX_FILE_BYTES: Final = 1024 * 1024
#: The time for which a file may be incomplete because it is still being written.
GRACE_S: Final = 1.0
POLL_S: Final = 1.0
_FOLDERS: Final = ("inbox", "handled", "refused")
#: A file name has at most 255 bytes, including our prefix and suffix.
_MAX_NAME_BYTES: Final = 150
_HINT: Final = "a message is an object with schema_version, timestamp, sender, run_id, message_type, body"

#: Identifies a file and its content: inode, modification time and size.
Mark = tuple[int, int, int]


class MailboxMessage(NamedTuple):
    """A message read from a mailbox file; equal content in the same folder has an equal `key`."""

    path: Path
    mark: Mark
    role: RunRole
    key: str
    run: str
    sender: RunRole
    body: AnyMessage


class InvalidMailboxFile(NamedTuple):
    """A mailbox file that is not a valid message."""

    path: Path
    mark: Mark
    role: RunRole
    error: CspError


class Mailbox:
    """The mailbox in the folder `root`; independent of the gateway."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self._clock = clock
        #: Incomplete files and the times when they were first seen.
        self._halves: dict[tuple[Path, Mark], float] = {}
        #: Files that could not be archived, which are not read again.
        self._stuck: set[tuple[Path, Mark]] = set()

    def make(self) -> None:
        """Create missing folders."""
        for role in RunRole:
            for name in _FOLDERS:
                (self.root / role / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def letters(self) -> Iterator[MailboxMessage | InvalidMailboxFile]:
        """Yield the files in the roles' folders, lowest name first; skip incomplete ones."""
        before, self._halves = self._halves, {}
        for role in RunRole:
            for path in sorted((self.root / role).glob("*.json")):
                found = None if path.name.startswith(".") else self._read(path, role, before)
                if found is not None and (path, found.mark) not in self._stuck:
                    yield found

    def _read(
        self, path: Path, role: RunRole, before: dict[tuple[Path, Mark], float]
    ) -> MailboxMessage | InvalidMailboxFile | None:
        try:
            mark, data = _content(path)
        except FileNotFoundError:
            return None
        except OSError as exc:
            why = "it is a link" if exc.errno == errno.ELOOP else exc.strerror
            return InvalidMailboxFile(path, _mark_of(path), role, BadInput(f"it cannot be read: {why}"))
        except BadInput as exc:
            return InvalidMailboxFile(path, _mark_of(path), role, exc)
        try:
            message, body = _message(data, self.root.parent)
        except BadInput as exc:
            since = before.get((path, mark), self._clock())
            if not _is_json(data) and self._clock() - since < GRACE_S:
                self._halves[path, mark] = since
                return None
            return InvalidMailboxFile(path, mark, role, exc)
        key = hashlib.sha256(role.encode() + b"\0" + encode(message)).hexdigest()[:32]
        return MailboxMessage(path, mark, role, key, message.run_id, message.sender, body)

    # --- archiving ---------------------------------------------------------------------------------

    def is_copy(self, letter: MailboxMessage) -> bool:
        """Return whether a file with the same content has already been archived."""
        return any((letter.path.parent / "handled").glob(f"{letter.key[:8]}-*"))

    def handled(self, letter: MailboxMessage) -> None:
        """Archive an accepted file."""
        self._put_away(letter, "handled", f"{letter.key[:8]}-{_short(letter.path.name)}")

    def refused(self, letter: MailboxMessage | InvalidMailboxFile, why: str) -> None:
        """Archive a refused file, with the reason in a file next to it."""
        name = f"{time.time_ns()}-{_short(letter.path.name)}"
        if self._put_away(letter, "refused", name):
            replace_file(letter.path.parent / "refused" / f"{name}.reason.txt", f"{why}\n".encode())

    def _put_away(self, letter: MailboxMessage | InvalidMailboxFile, folder: str, name: str) -> bool:
        """Move the file that was read; leave a newer one with the same name in place."""
        target = letter.path.parent / folder / name
        try:
            self.make()
            os.rename(letter.path, target)
        except FileNotFoundError:
            return False
        except OSError:
            self._stuck.add((letter.path, letter.mark))
            raise
        if _mark_of(target) != letter.mark:
            give_back(target, letter.path)
            return False
        return True

    def forget(self, runs: list[str]) -> None:
        """Delete the files that belong to the runs, with their reason files."""
        marks = [f'"{run}"'.encode() for run in runs]
        for path in [
            path for role in RunRole for name in _FOLDERS for path in (self.root / role / name).glob("*")
        ]:
            if path.is_symlink() or not path.is_file() or path.name.endswith(".reason.txt"):
                continue
            data = path.read_bytes()
            if any(mark in data for mark in marks):
                reason = path.with_name(os.fsdecode(os.fsencode(path.name) + b".reason.txt"))
                path.unlink(missing_ok=True)
                reason.unlink(missing_ok=True)

    # --- messages to the roles ---------------------------------------------------------------------

    def post(self, seq: int, run_id: str, sender: RunRole, ts: float, body: AnyMessage) -> None:
        """Put a message into the other role's inbox; put the first one into both.

        Only the room sends the first one, so the builder gets it here. A message that is posted again after
        a crash has the same name and bytes.
        """
        message = write_message(run_id, sender, ts, body)
        data = encode(message) + b"\n"
        for role in RunRole:
            if role is not sender or isinstance(body, SessionStart):
                write_changed(
                    self.root / role / "inbox" / f"{seq:08d}-{run_id}-{message.message_type}.json", data
                )

    # --- news --------------------------------------------------------------------------------------

    async def news(self) -> AsyncGenerator[None]:
        """Yield when there may be new files: when the kernel reports any, and every second."""
        # Imported in a thread, because it takes a while.
        with contextlib.suppress(ImportError):
            await asyncio.to_thread(importlib.import_module, "asyncinotify")
        watcher = folder_watcher([self.root / role for role in RunRole])
        try:
            while True:
                yield
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await (asyncio.Event().wait() if watcher is None else watcher.get())
        finally:
            if watcher is not None:
                watcher.close()


def folder_watcher(folders: list[Path]):  # type: ignore[no-untyped-def]  # asyncinotify exists only on Linux
    """Return a watcher for files moved or written into the folders; None if the system supports none."""
    try:
        from asyncinotify import Inotify, Mask

        watcher = Inotify()
        for folder in folders:
            watcher.add_watch(folder, Mask.MOVED_TO | Mask.CLOSE_WRITE)
    except (ImportError, OSError):
        return None
    return watcher


def shown(path: Path) -> str:
    """Return a short, printable form of a file name, which may contain any bytes."""
    name = os.fsencode(path.name).decode(errors="replace")
    readable = "".join(one if one.isprintable() else "?" for one in name)
    return readable if len(readable) <= 80 else f"{readable[:77]}..."


# --- files -----------------------------------------------------------------------------------------


def write_changed(path: Path, data: bytes) -> None:
    """Write a file unless it already has this content."""
    with contextlib.suppress(OSError):
        if read_plain(path) == data:
            return
    replace_file(path, data)


def _content(path: Path) -> tuple[Mark, bytes]:
    # A link could point anywhere, and a pipe would block.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Get the mark before reading, so that a later write results in a different mark.
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise BadInput("it is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(fd)
    return _mark(found), data


def _mark(found: os.stat_result) -> Mark:
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _mark_of(path: Path) -> Mark:
    try:
        return _mark(os.lstat(path))
    except OSError:
        return (0, 0, 0)


def _message(data: bytes, room: Path) -> tuple[RunMessageBody, AnyMessage]:
    if len(data) > MAX_FILE_BYTES:
        raise BadInput(f"it has more than {MAX_FILE_BYTES} bytes")
    try:
        message = parse_request(RunMessageBody, data)
    except BadInput as exc:
        raise BadInput(exc.message, _HINT) from exc
    if not is_run_id(message.run_id):
        raise BadInput(f"run_id {message.run_id[:80]!r} is not a valid run id")
    fields = message.body
    if message.message_type is MessageType.PLAN_PROPOSED and "steps" not in fields and "plan_path" in fields:
        # The plan is a file in runs/ or in the mailbox.
        name = str(fields["plan_path"])
        places = [os.path.realpath(room / folder) for folder in ("runs", "mailbox")]
        try:
            path = os.path.realpath(room / name)
            if not any(os.path.commonpath((place, path)) == place for place in places):
                hint = "expected a file in runs/ or mailbox/"
                raise BadInput(f"plan_path {name[:80]!r} points elsewhere", hint)
            _, data = _content(Path(path))
        except (OSError, ValueError) as exc:
            raise BadInput(f"plan_path {name[:80]!r} cannot be read", "name a file or add steps") from exc
        fields = msgspec.to_builtins(parse_request(Plan, data)) | fields
    return message, read_body(message.message_type, fields)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _short(name: str) -> str:
    """Return a name shortened to leave room for our prefix and suffix."""
    data = os.fsencode(name)
    if len(data) <= _MAX_NAME_BYTES:
        return name
    return os.fsdecode(data[:_MAX_NAME_BYTES]) + hashlib.sha256(data).hexdigest()[:8] + ".json"


def give_back(moved: Path, path: Path) -> None:
    """Put an unread file back, without replacing a newer one with its name."""
    for place in (path, path.with_name(f"{_short(path.stem)}-{time.time_ns()}.json")):
        with contextlib.suppress(FileExistsError):
            # A link, because a rename would overwrite a newer one.
            os.link(moved, place)
            moved.unlink()
            return
