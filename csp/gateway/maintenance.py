"""Care for the journal beside the room's work: search index, scrub, removal of text.

A removal is journalled first and carried out then. A note of it lies beside the journal meanwhile,
so that a crash between the two is made good at the next start.
"""

import asyncio
import logging
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from csp.core.commands import Notice, Prune, Redact
from csp.core.room import Room, apply, dump, without_texts
from csp.errors import BadInput, Broken, CspError, NotFound
from csp.events import Base, Said, decode_event, encode_event
from csp.gateway.gateway import Gateway
from csp.journal import rewrite
from csp.journal.files import replace_file
from csp.journal.jsonl import storage_error
from csp.wire import ALL, DEFAULT_THREAD, HUMAN, SYSTEM, JournalHealth, MessageId

log = logging.getLogger(__name__)

QUIET_S: Final = 0.3
INDEX_LINES: Final = 1000
_NOTE_NAME: Final = "rewrite.json"


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """A removal that may not have been carried out yet."""

    redact: str = ""
    prune: int = 0


class _Damage(msgspec.Struct, frozen=True):
    line_number: int
    problem: str


class _ScrubReport(msgspec.Struct, frozen=True):
    checked: int
    damaged: list[_Damage]


# --- removal -------------------------------------------------------------------------------------


async def redact(gateway: Gateway, message_id: str) -> None:
    """Take the text of a message out of the room, its journal and its index."""
    async with gateway.removal:
        found = await gateway.history.find(MessageId(message_id))
        if found is None or not isinstance(found.event, Said):
            raise NotFound(f"unknown message {message_id!r}", "see: csp history")
        await _remove(gateway, _Note(redact=message_id))


async def prune(gateway: Gateway, before: int) -> int:
    """Take everything before an event out of the journal and its index."""
    async with gateway.removal:
        if before > _first_seq(gateway):
            await _remove(gateway, _Note(prune=before))
    return gateway.writer.safe_seq


async def finish_rewrites(gateway: Gateway) -> None:
    """Carry out a removal that a crash interrupted."""
    try:
        note = msgspec.json.decode((gateway.folder / _NOTE_NAME).read_bytes(), type=_Note)
    except FileNotFoundError:
        return
    except msgspec.MsgspecError:
        log.warning("removal note unreadable", extra={"folder": str(gateway.folder)})
        return
    log.warning("removal taken up after a crash", extra={"redact": note.redact, "prune": note.prune})
    try:
        await _remove(gateway, note)
    except CspError as exc:
        log.warning("removal given up", extra={"problem": exc.message})


async def _remove(gateway: Gateway, note: _Note) -> None:
    path = gateway.folder / _NOTE_NAME
    try:
        replace_file(path, msgspec.json.encode(note))
    except OSError as exc:
        raise storage_error("note the removal", exc) from exc
    command = Redact(message=note.redact) if note.redact else Prune(before=note.prune)
    try:
        await gateway.submit(command)
    except CspError:
        path.unlink(missing_ok=True)
        raise
    await _carry_out(gateway, note)
    path.unlink(missing_ok=True)


def _first_seq(gateway: Gateway) -> int:
    """Return the seq the journal begins with; that of a base line stands for everything up to it."""
    lines = gateway.writer.journal.read_after(0, 1).lines
    return decode_event(lines[0]).seq if lines else 0


async def _carry_out(gateway: Gateway, note: _Note) -> None:
    journal = gateway.writer.journal
    if note.redact:
        transform = rewrite.redaction([MessageId(note.redact)])
    else:
        base = await asyncio.to_thread(_base_line, gateway, note.prune)
        transform = rewrite.pruning(note.prune, base)
    prepared = await asyncio.to_thread(rewrite.prepare, journal, transform)
    await gateway.writer.alone(lambda: rewrite.finish(prepared))
    gateway.history.load_recent()


def _base_line(gateway: Gateway, before: int) -> bytes:
    """Return the line that stands for everything before an event: the room as it was then."""
    room = without_texts(_room_before(gateway, before))
    seq = before - 1
    event_id = MessageId(f"e-{seq}")
    text = "the history before this was removed"
    state = msgspec.Raw(dump(room))
    return encode_event(Base(seq, room.ts, event_id, SYSTEM, ALL, DEFAULT_THREAD, text, state))


def _room_before(gateway: Gateway, before: int) -> Room:
    room = Room()
    cursor = None
    while True:
        chunk = gateway.writer.journal.read_after(room.seq, 1 << 20, cursor)
        for line in chunk.lines:
            event = decode_event(line)
            if event.seq >= before:
                return room
            room = apply(room, event)
        cursor = chunk.cursor
        if chunk.end:
            return room


# --- beside the room's work ----------------------------------------------------------------------


async def index_when_quiet(gateway: Gateway) -> None:
    """Bring the search index up to date whenever the room has nothing else to do, for ever."""
    while True:
        await asyncio.sleep(QUIET_S)
        while time.monotonic() - gateway.last_commit > QUIET_S:
            if not await asyncio.to_thread(gateway.index.catch_up, INDEX_LINES):
                break


async def scrub_journal(gateway: Gateway) -> None:
    """Read the whole journal once, in a process of its own, and report what is damaged."""
    try:
        report = await _scrub_process(gateway.writer.journal.path)
    except (OSError, msgspec.MsgspecError, BadInput) as exc:
        gateway.scrub = JournalHealth(writable=True, scrub="failed")
        log.warning("scrub failed", extra={"problem": str(exc)})
        return
    lines = tuple(damage.line_number for damage in report.damaged)
    gateway.scrub = JournalHealth(writable=True, scrub="done", checked=report.checked, damaged=lines[:1000])
    if not lines:
        return
    log.error("journal damaged", extra={"lines": lines[:20], "count": len(lines)})
    where = ", ".join(map(str, lines[:5])) + (", ..." if len(lines) > 5 else "")
    text = f"The journal is damaged in {len(lines)} places (line {where}). See: csp doctor --journal"
    await _tell(gateway, text)


async def report_mending(gateway: Gateway) -> None:
    """Tell the room what had to be mended at the end of its journal when it was opened."""
    for warning in gateway.writer.journal.warnings:
        await _tell(gateway, f"The journal was mended: {warning}.")


async def _tell(gateway: Gateway, text: str) -> None:
    try:
        await gateway.submit(Notice(text=text, target=HUMAN))
    except Broken as exc:
        log.warning("notice not posted", extra={"problem": exc.message})


async def _scrub_process(journal: Path) -> _ScrubReport:
    folder = journal.parent
    doctor = [sys.executable, "-m", "csp.cli", "doctor", "--journal", "--json"]
    where = ["--history", str(folder.parent), "--room", folder.name]
    process = await asyncio.create_subprocess_exec(
        *("nice", *doctor, *where),
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
    return msgspec.json.decode(out, type=_ScrubReport)
