"""The whiteboard of a running room: what stands on it, found in a thread beside the room's work."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from csp.core.board import note_of, seq_of
from csp.core.identifiers import identifiers
from csp.events import AnyEvent
from csp.journal.derived import is_full
from csp.journal.jsonl import JsonlJournal
from csp.journal.view import View
from csp.whiteboard.notes import Entry, Filter, NoteIndex, event_at
from csp.wire import AgentId, FoundBy, HitView, NoteView

log = logging.getLogger(__name__)

LINES: Final = 1000
#: How many notes each way of finding them brings forward; some may not be for whoever asks.
_CANDIDATES: Final = 200
_MOST_PAGED: Final = 100_000

Concerns = Callable[[AnyEvent, AgentId], bool]


class Meaning(Protocol):
    """Notes by what they mean."""

    def catch_up(self, index: NoteIndex, view: View, most: int) -> bool:
        """Take in notes that are new; tell whether none is left."""

    def nearest(self, q: str, rows: Sequence[int] | None, count: int) -> dict[int, float]:
        """Return the rows that mean most nearly what is asked, each with how nearly, from -1 to 1."""

    def among(self, q: str, rows: Sequence[int]) -> dict[int, float]:
        """Return how nearly each of these rows means what is asked."""

    def read(self, q: str, texts: dict[int, str]) -> dict[int, float]:
        """Return how nearly these texts mean what is asked, read with the larger model."""

    def close(self) -> None:
        """Let go of the files."""


class Page(NamedTuple):
    notes: list[NoteView]
    has_more: bool


class _Found(NamedTuple):
    entry: Entry
    score: float
    how: FoundBy


class Whiteboard:
    """The notes of one room. Everything here blocks; any thread may call it.

    `concerns` is the room's rule of what an agent may read. A file that is broken is made again; where there
    is no space for one the notes are indexed in memory.
    """

    def __init__(
        self,
        journal: JsonlJournal,
        concerns: Concerns,
        secrets: Sequence[str] = (),
        meaning: Callable[[Path], Meaning | None] = lambda folder: None,
    ) -> None:
        self._journal = journal
        self._concerns = concerns
        self._secrets = secrets
        self._index = NoteIndex(journal.folder, secrets)
        self._make_meaning = meaning
        self._meaning: Meaning | None = None
        self._lock = threading.RLock()

    @property
    def lag_bytes(self) -> int:
        """How much of the journal has not been looked at, as far as can be told without opening anything."""
        return self._journal.view.end - self._index.upto

    # --- taking in -------------------------------------------------------------------------------

    def catch_up(self, max_lines: int = LINES) -> bool:
        """Take in the next lines of the journal; tell whether nothing is left."""
        with self._lock:
            view = self._journal.view
            return self._try(lambda: self._extend(view, max_lines))

    def _extend(self, view: View, max_lines: int) -> bool:
        self._index.attach(view)
        return self._index.extend(view, max_lines)

    def _current(self, view: View) -> None:
        """Take in everything that was acknowledged when `view` was taken."""
        while not self._try(lambda: self._extend(view, LINES)):
            pass

    def _try(self, work: Callable[[], bool]) -> bool:
        try:
            return work()
        except sqlite3.Error as exc:
            self._give_up(exc)
            return work()

    def _give_up(self, exc: sqlite3.Error) -> None:
        log.warning("index of notes dropped", extra={"problem": str(exc)})
        self._index.drop()
        if is_full(exc) or isinstance(exc.__cause__, OSError):
            self._index = NoteIndex(self._journal.folder, self._secrets, in_memory=True)

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._index.close()
            if self._meaning is not None:
                self._meaning.close()

    # --- asking ----------------------------------------------------------------------------------

    def page(self, wanted: Filter, limit: int, audience: AgentId | None) -> Page:
        """Return the newest notes, or behind `after` the first ones, oldest first."""
        with self._lock:
            view = self._journal.view
            self._current(view)
            newest_first = wanted.after is None
            found: list[NoteView] = []
            for entry in self._index.page(wanted, newest_first=newest_first):
                note = self._read(view, entry, audience)
                if note is not None:
                    if len(found) == limit:
                        return Page(found[::-1] if newest_first else found, has_more=True)
                    found.append(note)
            return Page(found[::-1] if newest_first else found, has_more=False)

    def get(self, note_id: str, audience: AgentId | None) -> NoteView | None:
        """Return one note, if there is one that its reader may know of."""
        with self._lock:
            view = self._journal.view
            self._current(view)
            entry = self._index.entries([seq_of(note_id)]).get(seq_of(note_id))
            return None if entry is None else self._read(view, entry, audience)

    def search(
        self, q: str, wanted: Filter, limit: int, audience: AgentId | None, *, rerank: bool = False
    ) -> list[HitView]:
        """Return the notes that answer `q` best, the best first; names that it holds are found exactly."""
        with self._lock:
            view = self._journal.view
            self._current(view)
            found = self._ranked(q, wanted)
            return list(self._readable(view, found, limit, audience))

    def _ranked(self, q: str, wanted: Filter) -> list[_Found]:
        words = self._index.by_words(q, wanted, _CANDIDATES)
        names = self._index.by_names(list(identifiers(q)), wanted, _CANDIDATES)
        entries = self._index.entries([*words, *(seq for seq in names if seq not in words)])
        best = max(words.values(), default=0.0) or 1.0
        found = [
            _Found(
                entry,
                names.get(seq, 0) + words.get(seq, 0.0) / best,
                FoundBy.EXACT if seq in names else FoundBy.WORDS,
            )
            for seq, entry in entries.items()
        ]
        return sorted(found, key=lambda one: (-one.score, -one.entry.seq))

    def _readable(
        self, view: View, found: list[_Found], limit: int, audience: AgentId | None
    ) -> Iterator[HitView]:
        for one in found:
            note = self._read(view, one.entry, audience) if limit else None
            if note is not None:
                yield HitView(note=note, score=round(one.score, 4), how=one.how)
                limit -= 1

    def _read(self, view: View, entry: Entry, audience: AgentId | None) -> NoteView | None:
        event = event_at(view, entry.offset)
        if event is None or (audience is not None and not self._concerns(event, audience)):
            return None
        return note_of(event, self._secrets)


def elapsed_ms(started: float) -> float:
    """Return how long ago a monotonic time was."""
    return round((time.monotonic() - started) * 1000, 2)
