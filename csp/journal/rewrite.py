"""Take text out of a journal for good, while its room goes on.

`prepare` copies what is committed into a new file; `finish` adds what came meanwhile and puts the
new file in the old one's place. A crash leaves one of them whole: the rename is the one step that counts.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import msgspec

from csp.errors import Broken
from csp.fast_start.atomic_files import create_private, sync_data, sync_folder, write_all
from csp.journal import snapshots
from csp.journal.history_query import facets_of
from csp.journal.journal_view import JournalFile, JournalView
from csp.journal.jsonl_journal import REWRITE_NAME, JsonlJournal, storage_error
from csp.journal.line_reader import blocks_forward, intact_seq, seqs_lost, split
from csp.journal.rebuildable_files import delete_files
from csp.journal.tail_repair import TORN_NAME
from csp.protocol.enums import MessageId

REDACTED: Final = "[redacted]"
# Nobody can tell what a damaged line says, so only its place in the count is carried over.
_DAMAGED: Final = b"damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """What becomes of the line with a given seq (None: it is dropped), with a line to begin with."""

    change: Callable[[int, bytes], bytes | None]
    first: bytes | None = None


@dataclass(slots=True, kw_only=True)
class Rewrite:
    """A new file that holds the old one up to `copied` bytes."""

    journal: JsonlJournal
    transform: Transform
    file: JournalFile
    source: JournalView
    copied: int = 0
    size: int = 0
    last_seq: int = 0


def redaction(ids: Iterable[MessageId]) -> Transform:
    """Replace the text of these messages, and drop the task of a handoff, the tags of a note."""
    wanted = frozenset(ids)
    needles = tuple(b'"%b"' % message_id.encode() for message_id in wanted)

    def change(_seq: int, line: bytes) -> bytes:
        if not any(needle in line for needle in needles):
            return line
        facets = facets_of(line)
        return line if facets is None or facets.id not in wanted else _redacted(line)

    return Transform(change=change)


def pruning(before_seq: int, base_line: bytes) -> Transform:
    """Drop every line before `before_seq` and begin with `base_line`, an encoded Base of the seq before."""
    if intact_seq(base_line) != before_seq - 1:
        raise Broken(f"base line of a journal pruned before {before_seq} must have seq {before_seq - 1}")

    def change(seq: int, line: bytes) -> bytes | None:
        return line if seq >= before_seq else None

    return Transform(change=change, first=base_line)


def prepare(journal: JsonlJournal, transform: Transform) -> Rewrite:
    """Copy everything committed so far; slow, so call it in a thread while the room goes on."""
    view = journal.view
    path = journal.folder / REWRITE_NAME
    if transform.first is not None and (intact_seq(transform.first) or 0) > view.seq:
        raise Broken(f"journal ends at {view.seq}, cannot be pruned beyond it")
    try:
        path.unlink(missing_ok=True)
        file = JournalFile(create_private(path))
        # Before the rename, so that the journal is never without its lock.
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
    """Put the new file in the old one's place; short, and no append may run meanwhile.

    On StorageFull the old journal stands. Afterwards neither the folder nor its snapshots, which are
    all gone, hold anything of what was taken out.
    """
    journal = rewrite.journal
    if journal.generation != rewrite.source.generation or not journal.is_settled:
        discard(rewrite)
        raise Broken("journal changed under its rewrite")
    with _storage_errors(rewrite):
        _copy(rewrite, journal.view)
        sync_data(rewrite.file.fd)
        # Before the rename: a crash may cost a slow start, but leaves no copy of what was taken out.
        snapshots.delete_all(journal.folder)
        delete_files(journal.folder)
        (journal.folder / TORN_NAME).unlink(missing_ok=True)
        os.replace(journal.folder / REWRITE_NAME, journal.path)
        journal.adopt(rewrite.file, rewrite.size)
        sync_folder(journal.folder)


def discard(rewrite: Rewrite) -> None:
    """Give a prepared rewrite up; the journal stays as it is."""
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
    """Take the lines from `copied` to the end of `view` through the transform into the new file."""
    for offset, data in blocks_forward(view.file.fd, rewrite.copied, view.end):
        kept: list[bytes] = []
        for _, line in split(offset, data):
            for seq, whole in _seqs(line, rewrite.last_seq):
                rewrite.last_seq = seq
                changed = rewrite.transform.change(seq, whole)
                if changed is not None:
                    kept.append(changed + b"\n")
        _put(rewrite, b"".join(kept))
        rewrite.copied = offset + len(data)


def _seqs(line: bytes, last_seq: int) -> Iterator[tuple[int, bytes]]:
    seq = intact_seq(line)
    if seq is not None:
        yield seq, line
        return
    for lost in range(seqs_lost(line)):
        yield last_seq + 1 + lost, _DAMAGED


def _put(rewrite: Rewrite, data: bytes) -> None:
    write_all(rewrite.file.fd, data, rewrite.size)
    rewrite.size += len(data)


def _redacted(line: bytes) -> bytes:
    # Field by field rather than as an event, so that an event of a newer CSP keeps all it has.
    fields: dict[str, object] = msgspec.json.decode(line)
    if fields.get("text"):
        fields["text"] = REDACTED
    fields.pop("handoff", None)
    fields.pop("tags", None)
    fields.pop("crc")
    body = msgspec.json.encode(fields)[:-1]
    return b'%b,"crc":"%08x"}' % (body, crc32(body))
