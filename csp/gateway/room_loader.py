"""Bring a room back from its folder."""

import logging
from pathlib import Path

import msgspec

from csp.errors import BadInput
from csp.journal import snapshots
from csp.journal.jsonl_journal import JsonlJournal
from csp.protocol.events import decode_event
from csp.room.room_reducer import apply
from csp.room.room_state import Room, load

log = logging.getLogger(__name__)


def load_room(folder: Path, journal: JsonlJournal) -> tuple[Room, int]:
    """Return the room as of the last line on disk, and how many events its newest snapshot lacked."""
    room = _from_snapshot(folder, journal)
    known = room.seq
    cursor = None
    while True:
        chunk = journal.read_after(room.seq, 1 << 20, cursor)
        for line in chunk.lines:
            try:
                room = apply(room, decode_event(line))
            except (BadInput, msgspec.MsgspecError) as exc:
                log.warning("journal line skipped", extra={"after_seq": room.seq, "problem": str(exc)})
        cursor = chunk.cursor
        if chunk.end:
            break
    # A damaged line uses up its number although it cannot be read.
    room.seq = journal.last_seq
    return room, room.seq - known


def _from_snapshot(folder: Path, journal: JsonlJournal) -> Room:
    snapshot = snapshots.load(folder, journal.last_seq, journal.view)
    if snapshot is None:
        return Room()
    try:
        return load(snapshot.state)
    except (ValueError, RecursionError) as exc:
        log.warning("snapshot skipped", extra={"seq": snapshot.seq, "problem": str(exc)})
        return Room()
