"""Background work on the journal: index it for searches, scrub it, and remove text from it.

A removal has three steps. It writes a copy of the journal without the text, which may fail. It records the
removal as an event, which is the promise. Then the copy replaces the journal. Meanwhile, a note file is kept
next to the journal, so that an unfinished promise is completed at the next removal or start.
"""

import asyncio
import contextlib
import logging
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from csp.errors import BadInput, Broken, CspError, NotFound, Refused
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.fast_start.child_environment import HELPER, child_environment
from csp.fast_start.process_environment import process_environment
from csp.gateway.gateway import Gateway
from csp.gateway.pruned_journal import base_line, events_after
from csp.journal import rewrite
from csp.journal.history_query import HistoryQuery
from csp.journal.jsonl_journal import JsonlJournal, storage_error
from csp.journal.line_reader import intact_seq
from csp.journal.scrub import ScrubReport, scrub
from csp.journal.snapshots import snapshot_files
from csp.protocol import events
from csp.protocol.enums import HUMAN, MessageId
from csp.protocol.notes import NoteKind, is_note_id
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.responses import JournalHealth
from csp.room.commands import Notice, Prune, RedactMessage
from csp.room.decide import decide

log = logging.getLogger(__name__)

QUIET_S: Final = 0.3
INDEX_LINES: Final = 1000
# A search reads the part that is not indexed; reading this much takes a few milliseconds.
MOST_LAG_BYTES: Final = 1024 * 1024
# A scrub in this process blocks all other threads; scrubbing this much takes a few milliseconds.
MOST_SCRUBBED_HERE_BYTES: Final = 256 * 1024
BUSY_LINES: Final = 200
BUSY_SHARE: Final = 0.1
_NOTE_NAME: Final = "rewrite.json"


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """A removal in progress, of one message or everything before a seq; its event follows `after`."""

    redact: str = ""
    prune: int = 0
    after: int = 0

    def is_promised_by(self, event: events.AnyEvent) -> bool:
        """Return whether `event` promises this removal."""
        match event:
            case events.Redacted():
                return event.message == self.redact
            case events.Pruned():
                return event.before == self.prune
            case _:
                return False


# --- removal -------------------------------------------------------------------------------------


async def redact(gateway: Gateway, message_id: str) -> None:
    """Remove a message's text from the room, its journal and its index."""
    async with gateway.rewrite_lock:
        for one in await messages_of(gateway, message_id):
            found = await gateway.history.find(MessageId(one))
            if found is None or not isinstance(
                found.event, events.MessageEvent | events.RunEvent | events.NoteAdded
            ):
                raise NotFound(f"unknown message {one!r}", "see: csp history")
            await check_no_run(gateway, found.event)
            await _remove(gateway, _Note(redact=one, after=gateway.writer.safe_seq))


async def messages_of(gateway: Gateway, message_id: str) -> tuple[str, ...]:
    """Return the message itself and, for a note, the message it was made from, which has the same text."""
    if not is_note_id(message_id):
        return (message_id,)
    await gateway.writer.settle()
    note = await asyncio.to_thread(gateway.board.get, message_id, None)
    if note is None or note.source is None:
        return (message_id,)
    return (note.source.id,) if note.kind is NoteKind.REPLY else (note.source.id, message_id)


async def check_no_run(
    gateway: Gateway, event: events.MessageEvent | events.RunEvent | events.NoteAdded
) -> None:
    """Refuse to redact a message of a run, because the run's other events and files repeat its text."""
    if event.session_id is None or event.sender == HUMAN:
        return
    query = HistoryQuery(limit=1, session=event.session_id, types=frozenset({"run.started"}))
    for line in (await gateway.history.page(query)).lines:
        started = events.decode_event(line)
        assert isinstance(started, events.RunStarted)
        run = gateway.writer.room.runs.by_id.get(started.run)
        last = run.seq if run is not None else event.seq
        what = f"{event.id} is part of run {started.run}, which repeats its text in other events and files"
        raise Refused(what, f"remove the whole run when it has ended: csp history prune --before {last + 1}")


async def prune(gateway: Gateway, before: int) -> int:
    """Remove everything before an event from the journal and its index."""
    async with gateway.rewrite_lock:
        # A base line represents everything up to its seq.
        first = next(gateway.writer.journal.view.lines_after(0), b"")
        if before > (intact_seq(first) or 0):
            await _remove(gateway, _Note(prune=before, after=gateway.writer.safe_seq))
    return gateway.writer.safe_seq


async def finish_rewrites(gateway: Gateway) -> None:
    """Finish a removal that was promised before a crash or a full disk; discard one that was not promised."""
    async with gateway.rewrite_lock:
        try:
            await _keep_promise(gateway)
        except CspError as exc:
            log.warning("removal postponed", extra={"problem": exc.message})


async def _remove(gateway: Gateway, note: _Note) -> None:
    command = RedactMessage(message=note.redact) if note.redact else Prune(before=note.prune)
    if gateway.removals is not None:
        await gateway.submit(command)
        await gateway.removals.remove()
        return
    kept = await _keep_promise(gateway)
    if kept is not None and (kept.redact, kept.prune) == (note.redact, note.prune):
        return
    # Check with the room before the work; it may still refuse afterwards.
    decide(gateway.writer.room, command, gateway.clock())
    await gateway.writer.settle()
    # Without durability `settle` does not wait for the write, which the event loop does next.
    await asyncio.sleep(0)
    leave_note(gateway.folder, note)
    try:
        prepared = await asyncio.to_thread(_prepare, gateway.writer.journal, note)
        try:
            # The event in the journal is the promise.
            await gateway.submit(command)
        except CspError:
            rewrite.discard(prepared)
            raise
    except CspError:
        _drop_note(gateway.folder)
        raise
    await _finish(gateway, prepared, note)
    _drop_note(gateway.folder)


async def _keep_promise(gateway: Gateway) -> _Note | None:
    """Finish the removal described in the note file and return it, if it was promised."""
    note = read_note(gateway.folder)
    if note is None:
        return None
    journal = gateway.writer.journal
    is_due = await asyncio.to_thread(is_promised, journal, note)
    if is_due:
        log.warning("removal resumed", extra={"redact": note.redact, "prune": note.prune})
        await _finish(gateway, await asyncio.to_thread(_prepare, journal, note), note)
    _drop_note(gateway.folder)
    return note if is_due else None


async def _finish(gateway: Gateway, prepared: rewrite.Rewrite, note: _Note) -> None:
    await gateway.replace_journal(prepared, note.prune)


def _prepare(journal: JsonlJournal, note: _Note) -> rewrite.Rewrite:
    if note.redact:
        transform = rewrite.redaction([MessageId(note.redact)])
    else:
        transform = rewrite.pruning(note.prune, base_line(journal, note.prune))
    return rewrite.prepare(journal, transform)


def leave_note(folder: Path, note: _Note) -> None:
    """Write the note file for a removal before the removal begins."""
    try:
        replace_file(folder / _NOTE_NAME, msgspec.json.encode(note))
    except OSError as exc:
        raise storage_error("note the removal", exc) from exc


def read_note(folder: Path) -> _Note | None:
    """Return the note about an unfinished removal, if there is one."""
    try:
        return msgspec.json.decode(read_plain(folder / _NOTE_NAME), type=_Note)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        log.warning("removal note unreadable", extra={"folder": str(folder), "problem": str(exc)})
        return None


def _drop_note(folder: Path) -> None:
    # If the note cannot be deleted, it only causes a second rewrite, which changes nothing.
    with contextlib.suppress(OSError):
        (folder / _NOTE_NAME).unlink(missing_ok=True)


def is_promised(journal: JsonlJournal, note: _Note) -> bool:
    """Return whether the journal contains the event that promises the removal."""
    return any(note.is_promised_by(event) for event in events_after(journal, note.after))


# --- work in the background ----------------------------------------------------------------------


async def index_when_quiet(gateway: Gateway) -> None:
    """Update the search index whenever the room is idle, until cancelled.

    In a room that is never idle, indexing gets a small share of the time once it lags behind.
    """
    while True:
        await asyncio.sleep(QUIET_S)
        while (is_quiet := _is_quiet(gateway)) or gateway.index.lag_bytes > MOST_LAG_BYTES:
            started = time.monotonic()
            lines = INDEX_LINES if is_quiet else BUSY_LINES
            if not await asyncio.to_thread(gateway.index.catch_up, lines):
                break
            if not is_quiet:
                await asyncio.sleep((time.monotonic() - started) * (1 / BUSY_SHARE - 1))


async def index_notes(gateway: Gateway) -> None:
    """Index new notes on the board soon after they are posted, until cancelled."""
    while True:
        await asyncio.sleep(QUIET_S)
        while _is_quiet(gateway) or gateway.board.lag_bytes > MOST_LAG_BYTES:
            if await asyncio.to_thread(gateway.board.catch_up, INDEX_LINES):
                break


def _is_quiet(gateway: Gateway) -> bool:
    return time.monotonic() - gateway.last_commit > QUIET_S


async def scrub_journal(gateway: Gateway) -> None:
    """Read the whole journal once in the background and report damaged lines."""
    try:
        report = await _scrub(gateway.writer.journal.path)
    except (OSError, msgspec.MsgspecError, BadInput) as exc:
        gateway.journal_health = JournalHealth(writable=True, scrub="failed")
        log.warning("scrub failed", extra={"problem": str(exc)})
        return
    lines = tuple(damage.line_number for damage in report.damaged)
    gateway.journal_health = JournalHealth(
        writable=True, scrub="done", checked=report.checked, damaged=lines[:1000]
    )
    if not lines:
        return
    log.error("journal damaged", extra={"lines": lines[:20], "count": len(lines)})
    where = ", ".join(map(str, lines[:5])) + (", ..." if len(lines) > 5 else "")
    await _tell(gateway, NoticeCode.JOURNAL_DAMAGED(count=len(lines), lines=where))


async def report_mending(gateway: Gateway) -> None:
    """Post a notice about the repairs made when the journal was opened."""
    for warning in gateway.writer.journal.warnings:
        await _tell(gateway, NoticeCode.JOURNAL_REPAIRED(warning=warning))


async def _tell(gateway: Gateway, words: NoticeWords) -> None:
    try:
        await gateway.submit(Notice(words=words, target=HUMAN))
    except Broken as exc:
        log.warning("notice not posted", extra={"problem": exc.message})


async def _scrub(journal: Path) -> ScrubReport:
    """Scrub the journal: a small one in a thread, because starting a process would take longer."""
    files = (journal, *snapshot_files(journal.parent))
    if sum(file.stat().st_size for file in files) > MOST_SCRUBBED_HERE_BYTES:
        return await _scrub_process(journal)
    return await asyncio.to_thread(scrub, journal)


async def _scrub_process(journal: Path) -> ScrubReport:
    folder = journal.parent
    # -P, because a folder named csp in the gateway's working directory must not shadow our package.
    doctor = [sys.executable, "-P", "-m", "csp.cli", "doctor", "--journal", "--json"]
    where = ["--history", str(folder.parent), "--room", folder.name]
    process = await asyncio.create_subprocess_exec(
        *("nice", *doctor, *where),
        env=child_environment(HELPER, process_environment()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return msgspec.json.decode(out, type=ScrubReport)
