"""Permanently remove text from a journal while its room keeps running.

`prepare` copies everything committed into a new file; `finish` adds later commits and replaces the
journal with the new file. A crash leaves one of the files complete, because the rename is atomic.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from csp.errors import Broken
from csp.fast_start.atomic_files import create_private, sync_data, sync_folder, write_all
from csp.journal import snapshots
from csp.journal.committed_journal import JournalFile, JournalView
from csp.journal.history_query import facets_of
from csp.journal.journal_repair import TORN_NAME
from csp.journal.jsonl_journal import REWRITE_NAME, JsonlJournal, storage_error
from csp.journal.line_reader import blocks_forward, intact_seq, seqs_lost, split
from csp.journal.rebuildable_files import delete_files
from csp.protocol.enums import MessageId

REDACTED: Final = "[redacted]"
# The content of a damaged line is unknown, so only its position in the sequence is kept.
_DAMAGED: Final = b"damaged"


class Transform(NamedTuple):
    """A function that changes or drops (None) a line, given its seq, and an optional new first line."""

    change: Callable[[int, bytes], bytes | None]
    first: bytes | None = None


@dataclass(slots=True, kw_only=True)
class Rewrite:
    """A new file with the content of the old one, up to `copied` bytes."""

    journal: JsonlJournal
    transform: Transform
    file: JournalFile
    source: JournalView
    copied: int = 0
    size: int = 0
    last_seq: int = 0


def redaction(ids: Iterable[MessageId]) -> Transform:
    """Return a transform that redacts these messages, including handoff tasks and note tags."""
    wanted = frozenset(ids)
    needles = tuple(b'"%b"' % message_id.encode() for message_id in wanted)

    def change(_seq: int, line: bytes) -> bytes:
        if not any(needle in line for needle in needles):
            return line
        facets = facets_of(line)
        if facets is None or facets.id not in wanted:
            return line
        # As fields rather than as an event, so that events from a newer CSP version keep all their fields.
        fields: dict[str, object] = msgspec.json.decode(line)
        if fields.get("text"):
            fields["text"] = REDACTED
        for name in ("handoff", "tags", "params", "crc"):
            fields.pop(name, None)
        body = msgspec.json.encode(fields)[:-1]
        return b'%b,"crc":"%08x"}' % (body, crc32(body))

    return Transform(change=change)


def pruning(before_seq: int, base_line: bytes) -> Transform:
    """Return a transform that drops all lines before `before_seq` and starts with `base_line`, encoded."""
    if intact_seq(base_line) != before_seq - 1:
        raise Broken(f"base line of a journal pruned before {before_seq} must have seq {before_seq - 1}")

    def change(seq: int, line: bytes) -> bytes | None:
        return line if seq >= before_seq else None

    return Transform(change=change, first=base_line)


def prepare(journal: JsonlJournal, transform: Transform) -> Rewrite:
    """Copy everything committed so far; this is slow, so call it in a thread while the room keeps running."""
    if transform.first is not None and (intact_seq(transform.first) or 0) > journal.view.seq:
        raise Broken(f"journal ends at {journal.view.seq}, cannot be pruned beyond it")
    return _prepare(journal, transform)


def start_again(journal: JsonlJournal, base_line: bytes) -> None:
    """Replace the whole journal by a base that lies behind its end; no append may run meanwhile."""
    seq = intact_seq(base_line)
    if seq is None or seq <= journal.view.seq:
        raise Broken(f"journal ends at {journal.view.seq}, cannot start again after {seq}")
    rewrite = _prepare(journal, Transform(change=lambda *_: None, first=base_line))
    journal.last_seq = seq
    finish(rewrite)


def _prepare(journal: JsonlJournal, transform: Transform) -> Rewrite:
    view = journal.view
    path = journal.folder / REWRITE_NAME
    try:
        path.unlink(missing_ok=True)
        file = JournalFile(create_private(path))
        # Lock it before the rename, so that the journal is never unlocked.
        fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        raise storage_error("rewrite the journal", exc) from exc
    rewrite = Rewrite(journal=journal, transform=transform, file=file, source=view)
    with _storage_errors(rewrite):
        if transform.first is not None:
            _put(rewrite, transform.first + b"\n")
        _copy(rewrite, view)
        sync_data(file.fd)
    return rewrite


def finish(rewrite: Rewrite) -> None:
    """Replace the journal with the new file; this is quick, but no append may run meanwhile.

    On StorageFull, the old journal remains. Afterwards, no file in the folder contains removed text; all
    snapshots are deleted.
    """
    journal = rewrite.journal
    if journal.view.generation != rewrite.source.generation or not journal.is_settled:
        discard(rewrite)
        raise Broken("journal changed under its rewrite")
    with _storage_errors(rewrite):
        _copy(rewrite, journal.view)
        sync_data(rewrite.file.fd)
        # Before the rename: a crash may make the next start slow, but it leaves no copy of the removed text.
        snapshots.delete_all(journal.folder)
        delete_files(journal.folder)
        (journal.folder / TORN_NAME).unlink(missing_ok=True)
        os.replace(journal.folder / REWRITE_NAME, journal.path)
        journal.adopt(rewrite.file, rewrite.size)
        sync_folder(journal.folder)


def discard(rewrite: Rewrite) -> None:
    """Abandon a prepared rewrite; the journal is unchanged."""
    with contextlib.suppress(OSError):
        (rewrite.journal.folder / REWRITE_NAME).unlink(missing_ok=True)


@contextlib.contextmanager
def _storage_errors(rewrite: Rewrite) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        discard(rewrite)
        raise storage_error("rewrite the journal", exc) from exc


def _copy(rewrite: Rewrite, view: JournalView) -> None:
    """Copy the lines from `copied` to the end of `view`, transformed, into the new file."""
    for offset, data in blocks_forward(view.file.fd, rewrite.copied, view.end):
        kept: list[bytes] = []
        for _, line in split(offset, data):
            known = intact_seq(line)
            if known is not None:
                numbered = [(known, line)]
            else:
                # A damaged line becomes as many lines as it contained events.
                first = rewrite.last_seq + 1
                numbered = [(seq, _DAMAGED) for seq in range(first, first + seqs_lost(line))]
            for seq, content in numbered:
                rewrite.last_seq = seq
                changed = rewrite.transform.change(seq, content)
                if changed is not None:
                    kept.append(changed + b"\n")
        _put(rewrite, b"".join(kept))
        rewrite.copied = offset + len(data)


def _put(rewrite: Rewrite, data: bytes) -> None:
    write_all(rewrite.file.fd, data, rewrite.size)
    rewrite.size += len(data)
