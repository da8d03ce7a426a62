"""Store copies of the room's state next to the journal, so that a start need not read all of it."""

import contextlib
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from csp.errors import Broken
from csp.fast_start.atomic_files import read_plain, replace_file, sync_folder
from csp.journal.committed_journal import JournalView
from csp.journal.line_reader import intact_seq

log = logging.getLogger(__name__)

_VERSION: Final = 1
_KEPT: Final = 2
_NAME: Final = re.compile(r"snapshot-(\d{1,19})\.json\Z")


class Snapshot(NamedTuple):
    """The room's encoded state after event `seq`."""

    seq: int
    state: bytes


class _Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """The head of a snapshot; `line` is the checksum of journal line `seq`, empty in older snapshots."""

    v: int
    seq: int
    crc: str
    line: str = ""


def save(
    folder: Path,
    seq: int,
    state: bytes,
    *,
    sync: Callable[[], None] | None = None,
    view: JournalView | None = None,
) -> None:
    """Write a snapshot atomically and delete all but the newest two; a failure is only logged.

    `sync` first flushes the journal to disk, because a snapshot must not outlive the lines it was made from.
    With `view`, the snapshot is valid only for that journal.
    """
    try:
        line = "" if view is None else _line_checksum(view, seq)
        head = msgspec.json.encode(_Head(_VERSION, seq, _checksum(state), line))
        if sync is not None:
            sync()
        replace_file(folder / _name(seq), head + b"\n" + state + b"\n")
        for path in snapshot_files(folder)[_KEPT:]:
            path.unlink(missing_ok=True)
    except (OSError, Broken) as exc:
        log.warning("snapshot not saved", extra={"folder": str(folder), "problem": str(exc)})
    with contextlib.suppress(OSError):
        for path in folder.glob("snapshot-*.tmp"):
            path.unlink(missing_ok=True)


def load(folder: Path, last_seq: int, view: JournalView | None = None) -> Snapshot | None:
    """Return the newest intact snapshot of this journal; delete snapshots that are ahead of the journal.

    A snapshot that was made from another journal than `view` is skipped.
    """
    ahead = [path for path in snapshot_files(folder) if _seq(path) > last_seq]
    if ahead:
        # They belong to lines that the journal has lost; their seqs will be reused by other lines.
        extra = {"path": str(ahead[0]), "last_seq": last_seq}
        log.warning("snapshot ahead of the journal deleted", extra=extra)
        try:
            for path in ahead:
                path.unlink(missing_ok=True)
            sync_folder(folder)
        except OSError as exc:
            log.warning("snapshot not deleted", extra={"folder": str(folder), "problem": str(exc)})
    for path in snapshot_files(folder):
        if _seq(path) > last_seq:
            continue
        try:
            return read_snapshot(path, view)
        except (OSError, ValueError) as exc:
            log.warning("snapshot skipped", extra={"path": str(path), "problem": str(exc)})
    return None


def read_snapshot(path: Path, view: JournalView | None = None) -> Snapshot:
    """Read one snapshot file; raise ValueError if it is damaged."""
    head_line, _, rest = read_plain(path).partition(b"\n")
    try:
        head = msgspec.json.decode(head_line, type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise ValueError(f"snapshot head is damaged: {exc}") from exc
    if head.v != _VERSION:
        raise ValueError(f"snapshot has version {head.v}, expected {_VERSION}")
    if path.name != _name(head.seq) or head_line != msgspec.json.encode(head):
        raise ValueError("snapshot head is damaged: it does not match its name")
    state = rest[:-1]
    if rest[-1:] != b"\n" or head.crc != _checksum(state):
        raise ValueError("snapshot does not match its checksum")
    # A damaged or missing line proves nothing: the snapshot may be the only remaining copy of its content.
    if view is not None and head.line and _line_checksum(view, head.seq) not in ("", head.line):
        raise ValueError("snapshot was made from another journal")
    return Snapshot(seq=head.seq, state=state)


def delete_all(folder: Path) -> None:
    """Delete all snapshots, including incomplete ones."""
    for path in (*snapshot_files(folder), *folder.glob("snapshot-*.tmp")):
        path.unlink(missing_ok=True)


def snapshot_files(folder: Path) -> list[Path]:
    """Return the snapshot files of a room, newest first."""
    return sorted((path for path in folder.glob("snapshot-*.json") if _NAME.match(path.name)), reverse=True)


def _checksum(data: bytes) -> str:
    return f"{crc32(data):08x}"


def _line_checksum(view: JournalView, seq: int) -> str:
    """Return the checksum of the line with this seq, or "" if there is no such intact line."""
    line = view.line_at(view.offset_after(seq - 1))
    return _checksum(line) if intact_seq(line) == seq else ""


def _name(seq: int) -> str:
    return f"snapshot-{seq:016d}.json"


def _seq(path: Path) -> int:
    return int(path.stem.removeprefix("snapshot-"))
