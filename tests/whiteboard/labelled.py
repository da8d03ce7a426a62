"""Notes with questions whose answers are known, written before anything was tuned; a part is held out."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from csp.journal.jsonl_journal import JsonlJournal
from csp.protocol.enums import ALL, AgentId
from csp.protocol.events import NoteAdded, encode_event
from csp.room.board_state import note_id
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import MeaningSearch, Whiteboard, load_meaning_search

FOLDER: Final = Path(__file__).resolve().parent.parent / "testdata" / "board"
BEST: Final = 10


class Labelled(NamedTuple):
    """A question; `grades` says of notes by their names how well each answers it, 2 or 1."""

    is_held_out: bool
    q: str
    grades: dict[str, int]


def read_notes() -> list[tuple[str, AgentId, str]]:
    """Return (name, author, text) of every note."""
    rows = [line.split("\t") for line in (FOLDER / "notes.tsv").read_text("utf-8").splitlines()]
    return [(name, AgentId(author), text) for name, author, text in rows]


def read_queries() -> list[Labelled]:
    found = []
    for line in (FOLDER / "queries.tsv").read_text("utf-8").splitlines():
        part, q, grades = line.split("\t")
        pairs = [grade.split(":") for grade in grades.split(",")]
        found.append(Labelled(part == "held", q, {name: int(grade) for name, grade in pairs}))
    return found


def write_notes(folder: Path, texts: Sequence[tuple[AgentId, str]], first: int = 1) -> JsonlJournal:
    """Return a journal in which these notes stand."""
    journal = JsonlJournal.open(folder)
    lines = [
        encode_event(NoteAdded(seq, 1000.0 + seq, note_id(seq), author, ALL, "default", text, seq - 1))
        for seq, (author, text) in enumerate(texts, start=first)
    ]
    journal.append(lines, first)
    journal.commit()
    return journal


class Room:
    """The labelled notes on a board."""

    def __init__(
        self,
        folder: Path,
        meaning: Callable[[], MeaningSearch | None] = load_meaning_search,
        *,
        rerank: bool = False,
    ) -> None:
        notes = read_notes()
        self.names = {note_id(seq): name for seq, (name, _, _) in enumerate(notes, start=1)}
        self._journal = write_notes(folder, [(author, text) for _, author, text in notes])
        self.board = Whiteboard(self._journal, lambda event, agent: True, meaning=meaning)
        self.rerank = rerank

    def ask(self, q: str, limit: int = BEST) -> list[str]:
        """Return the names of the best notes."""
        hits = self.board.search(q, Filter(), limit, None, rerank=self.rerank)
        return [self.names[hit.note.id] for hit in hits]

    def quality(self, *, is_held_out: bool | None = None) -> float:
        """Return the mean nDCG@10 of all questions, or of one part of them."""
        asked = [one for one in read_queries() if is_held_out in (None, one.is_held_out)]
        return sum(ndcg(self.ask(one.q), one.grades) for one in asked) / len(asked)

    def close(self) -> None:
        self.board.close()
        self._journal.close()


def ndcg(found: Sequence[str], grades: dict[str, int]) -> float:
    """Return how good an order is: 1 if no other would be better."""
    gains = [grades.get(name, 0) for name in found[:BEST]]
    return _gain(gains) / _gain(sorted(grades.values(), reverse=True)[:BEST])


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))
