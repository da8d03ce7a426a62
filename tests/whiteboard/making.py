"""Notes in a journal, for the tests of the index and of the board."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from csp.journal.jsonl_journal import JsonlJournal
from csp.protocol.enums import ALL, AgentId
from csp.protocol.events import NoteAdded, encode_event
from csp.room.board_state import note_id
from tests.journal.making import commit, delivered


def noted(seq: int, text: str = "", **fields: Any) -> NoteAdded:
    author = AgentId(fields.pop("author", "ada"))
    given = {"idx": seq - 1, **fields}
    return NoteAdded(seq, 1000.0 + seq, note_id(seq), author, ALL, "default", text or f"note {seq}", **given)


def board_journal(folder: Path, notes: Sequence[NoteAdded]) -> JsonlJournal:
    """Return a journal with these notes; where their numbers leave a gap, something else happened."""
    journal = JsonlJournal.open(folder)
    add(journal, notes)
    return journal


def add(journal: JsonlJournal, notes: Sequence[NoteAdded]) -> None:
    for note in notes:
        while journal.last_seq + 1 < note.seq:
            commit(journal, [encode_event(delivered(journal.last_seq + 1, "m-1"))])
        commit(journal, [encode_event(note)])
