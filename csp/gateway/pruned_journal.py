"""The line that replaces the beginning of a pruned journal."""

import logging
from collections.abc import Iterator

import msgspec

from csp.journal import JsonlJournal
from csp.journal.history_query import event_of
from csp.protocol import events
from csp.protocol.enums import ALL, DEFAULT_THREAD, SYSTEM, MessageId
from csp.room.room_reducer import apply
from csp.room.room_state import Room, dump, without_texts

log = logging.getLogger(__name__)


def base_line(journal: JsonlJournal, before: int) -> bytes:
    """Return the base line, which contains the room's state and replaces everything before an event."""
    room = without_texts(room_before(journal, before))
    seq = before - 1
    event_id = MessageId(f"e-{seq}")
    text = "the history before this was removed"
    state = msgspec.Raw(dump(room))
    base = events.PrunedBase(seq, room.ts, event_id, SYSTEM, ALL, DEFAULT_THREAD, text, state)
    return events.encode_event(base, journal.room_id)


def room_before(journal: JsonlJournal, before: int) -> Room:
    """Return the room as it was before an event."""
    room = Room()
    for event in events_after(journal, 0):
        if event.seq >= before:
            break
        try:
            room = apply(room, event)
        except msgspec.MsgspecError as exc:
            log.warning("journal line skipped", extra={"seq": event.seq, "problem": str(exc)})
    return room


def events_after(journal: JsonlJournal, seq: int) -> Iterator[events.AnyEvent]:
    """Yield the readable events of the journal after `seq`."""
    yield from filter(None, map(event_of, journal.view.lines_after(seq)))
