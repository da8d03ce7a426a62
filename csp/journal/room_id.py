"""The id by which a room is recognised, wherever it is served: a UUID in the first line of its journal."""

from typing import Final
from uuid import UUID, uuid4, uuid5

import msgspec

from csp.journal.committed_journal import JournalView
from csp.protocol.events import room_id_in

#: For journals of earlier versions, whose first line has no id.
_DERIVED: Final = UUID("0f6e5f0c-6f0f-5a3e-9d0b-3a6e2f6f1c77")
_FIRST_BYTES: Final = 4096


class _Head(msgspec.Struct):
    """The fields of a line that a redaction does not change."""

    seq: int
    ts: float = 0.0
    id: str = ""
    sender: str = ""


def new_room_id() -> str:
    """Return the id of a new room."""
    return str(uuid4())


def find_room_id(view: JournalView) -> str:
    """Return the id of the room of a journal, or "" if no line can be read.

    Without an id in the first line, it is derived from that line.
    """
    # The line may be damaged elsewhere.
    if given := room_id_in(view.line_at(0)):
        return given
    for line in view.read_after(0, _FIRST_BYTES).lines[:1]:
        return _derived(line)
    return ""


def _derived(line: bytes) -> str:
    try:
        head = msgspec.json.decode(line, type=_Head)
        return str(uuid5(_DERIVED, f"{head.seq} {head.ts!r} {head.sender} {head.id}"))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # Not one of our lines, but the journal begins with it.
        return str(uuid5(_DERIVED, line.hex()))
