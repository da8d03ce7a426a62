"""The whiteboard of a running room, with paged access to notes and a search for them."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeVar

from csp.fast_start.garbage_collection import paused_collector
from csp.fast_start.process_environment import set_variable
from csp.journal.committed_journal import JournalView
from csp.journal.jsonl_journal import JsonlJournal
from csp.journal.rebuildable_files import is_full
from csp.protocol.enums import AgentId
from csp.protocol.events import AgentResponse, AnyEvent, NoteAdded
from csp.protocol.notes import FoundBy, HitView, NoteView
from csp.room.board_state import is_summary, note_of, seq_of, text_bytes
from csp.whiteboard.identifiers import identifiers
from csp.whiteboard.note_index import Entry, Filter, NoteIndex, event_at

log = logging.getLogger(__name__)

LINES: Final = 1000
#: The number of notes that each kind of search contributes; some may not be visible to the reader.
_CANDIDATES: Final = 200
#: The number of notes compared word by word.
COMPARED: Final = 30
#: The weight of a note's words relative to its meaning, tuned on a labelled set.
WORDS_SHARE: Final = 0.2
#: Notes whose meaning is less similar than this are unrelated to the query.
LEAST_MEANING: Final = 0.1
#: The number of meanings computed at a time.
AT_ONCE: Final = 200
#: A search does not wait for missing meanings if there are more than this.
_MOST_MISSING: Final = 5000
#: The time that the index stays in memory before the disk is tried again.
RETRY_S: Final = 30.0
_THREADS: Final = "OPENBLAS_NUM_THREADS"

#: Errors that indicate a damaged index: SQLite detects the damage, or a value has the wrong type.
_UNREADABLE: Final = (sqlite3.Error, TypeError, OSError)

T = TypeVar("T")
Concerns = Callable[[AnyEvent, AgentId], bool]


class MeaningSearch(Protocol):
    """The interface of a search for notes by meaning."""

    def missing(self, index: NoteIndex) -> int: ...
    def add(self, index: NoteIndex, text_of: Callable[[Entry], str], most: int) -> None: ...
    def nearest(self, q: str, rows: Sequence[int] | None, count: int) -> dict[int, float]: ...
    def compare(self, q: str, texts: Sequence[str]) -> list[float]: ...


def load_meaning_search() -> MeaningSearch | None:
    """Return the search by meaning if its optional dependencies are installed."""
    # On a busy machine numpy's threads wait for each other and are many times slower than one thread.
    before = set_variable(_THREADS, "1")
    # WordLlama configures the root logger on import, unless it already has a handler.
    no_output = logging.NullHandler()
    logging.getLogger().addHandler(no_output)
    try:
        with paused_collector():
            from csp.whiteboard.semantic_search import Meanings
            from csp.whiteboard.word_vectors import load_word_vectors

            model = load_word_vectors()
    except ImportError:
        return None
    finally:
        logging.getLogger().removeHandler(no_output)
        set_variable(_THREADS, before)
    return None if model is None else Meanings(model)


class NotePage(NamedTuple):
    notes: list[NoteView]
    has_more: bool


class _Found(NamedTuple):
    """A candidate, with the number of matching names, its score for words, and its similarity in meaning."""

    entry: Entry
    names: int
    words: float
    meaning: float

    @property
    def score(self) -> float:
        return self.names + (1 - WORDS_SHARE) * self.meaning + WORDS_SHARE * self.words

    @property
    def how(self) -> FoundBy:
        return FoundBy.EXACT if self.names else FoundBy.WORDS if self.words else FoundBy.MEANING


class Whiteboard:
    """The notes of one room; all methods block and may be called from any thread.

    `concerns` is the room's rule for what an agent may read. A damaged index is rebuilt. While the disk is
    full, the notes are indexed in memory.
    """

    def __init__(
        self,
        journal: JsonlJournal,
        concerns: Concerns,
        secrets: Sequence[str] = (),
        meaning: Callable[[], MeaningSearch | None] = load_meaning_search,
    ) -> None:
        self._journal = journal
        self._concerns = concerns
        self._secrets = secrets
        self._index = NoteIndex(journal.folder, secrets)
        #: The index that is being rebuilt on disk while the other one is in memory.
        self._spare: NoteIndex | None = None
        self._retry_at = 0.0
        self._load_meaning = meaning
        self._meaning: MeaningSearch | None = None
        self._is_loaded = False
        self._lock = threading.RLock()

    @property
    def lag_bytes(self) -> int:
        """The number of bytes not indexed yet, as far as is known without opening the index."""
        return self._journal.view.end - self._index.upto

    # --- indexing --------------------------------------------------------------------------------

    def catch_up(self, max_lines: int = LINES) -> bool:
        """Index the next lines of the journal or the next meanings; return whether nothing is left."""

        def step() -> bool:
            is_current = self._extend(view, max_lines)
            return is_current and self._return_to_disk(view, max_lines) and self._add_meanings(view)

        with self._lock:
            view = self._journal.view
            return self._try(step)

    def _return_to_disk(self, view: JournalView, max_lines: int) -> bool:
        """If the index is in memory, build the next part of one on disk; return whether it is complete."""
        if not self._index.in_memory or time.monotonic() < self._retry_at:
            return True
        self._spare = self._spare or NoteIndex(self._journal.folder, self._secrets)
        try:
            self._spare.attach(view)
            if not self._spare.extend(view, max_lines):
                return False
        except _UNREADABLE as exc:
            log.info("note index stays in memory", extra={"problem": str(exc)})
            self._spare.drop()
            self._retry_at = time.monotonic() + RETRY_S
        else:
            log.info("note index is on the disk again")
            self._index.close()
            self._index = self._spare
        self._spare = None
        return True

    def _add_meanings(self, view: JournalView) -> bool:
        """Compute the meanings of the next notes; return whether all are done."""

        def text_of(entry: Entry) -> str:
            note = self._read(view, entry, None)
            return note.text if note else ""

        if self._index.count and not self._is_loaded:
            # No earlier, because a room without notes does not need the model.
            self._meaning, self._is_loaded = self._load_meaning(), True
        if self._meaning is None:
            return True
        missing = self._meaning.missing(self._index)
        if missing:
            self._meaning.add(self._index, text_of, AT_ONCE)
        return missing <= AT_ONCE

    def _extend(self, view: JournalView, max_lines: int) -> bool:
        self._index.attach(view)
        return self._index.extend(view, max_lines)

    def _answer(self, work: Callable[[JournalView], T]) -> T:
        """Run `work` on an index that includes everything acknowledged before the call."""

        def current() -> T:
            while not self._extend(view, LINES):
                pass
            return work(view)

        with self._lock:
            view = self._journal.view
            return self._try(current)

    def _try(self, work: Callable[[], T]) -> T:
        """Run `work`; if the index is damaged, rebuild it and retry, and if that fails, retry in memory."""
        try:
            return work()
        except _UNREADABLE as exc:
            cannot_store = isinstance(exc, sqlite3.Error) and (
                is_full(exc) or isinstance(exc.__cause__, OSError)
            )
            self._give_up(exc, in_memory=cannot_store)
        try:
            return work()
        except _UNREADABLE as exc:
            self._give_up(exc, in_memory=True)
        return work()

    def _give_up(self, exc: Exception, *, in_memory: bool) -> None:
        log.warning("note index dropped", extra={"problem": str(exc)})
        self._index.drop()
        if in_memory:
            self._index = NoteIndex(self._journal.folder, self._secrets, in_memory=True)
            self._retry_at = time.monotonic() + RETRY_S

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._index.close()
            if self._spare is not None:
                self._spare.drop()

    # --- reading ---------------------------------------------------------------------------------

    def page(self, wanted: Filter, limit: int, audience: AgentId | None) -> NotePage:
        """Return the newest notes, or with `after` the first notes after it; oldest first in both cases."""
        newest_first = wanted.after is None

        def read(view: JournalView) -> list[NoteView]:
            entries = self._index.page(wanted, newest_first=newest_first)
            notes = (self._read(view, entry, audience) for entry in entries)
            return list(islice((note for note in notes if note is not None), limit + 1))

        found = self._answer(read)
        notes = found[:limit]
        return NotePage(notes[::-1] if newest_first else notes, has_more=len(found) > limit)

    def bytes_until(self, session: str, upto: int) -> int:
        """Return the total text size of a board's notes up to an event, excluding summaries."""
        wanted = Filter(session=session, before=upto + 1)

        def events(view: JournalView) -> list[AnyEvent | None]:
            return [event_at(view, entry.offset) for entry in self._index.page(wanted, newest_first=False)]

        notes = [event for event in self._answer(events) if isinstance(event, NoteAdded | AgentResponse)]
        return sum(text_bytes(event) for event in notes if not is_summary(event))

    def get(self, note_id: str, audience: AgentId | None) -> NoteView | None:
        """Return one note if it exists and the reader may see it, else None."""
        seq = seq_of(note_id)

        def read(view: JournalView) -> NoteView | None:
            entry = self._index.entries([seq]).get(seq)
            return None if entry is None else self._read(view, entry, audience)

        return self._answer(read)

    def search(
        self, q: str, wanted: Filter, limit: int, audience: AgentId | None, *, rerank: bool = False
    ) -> list[HitView]:
        """Return the notes that match `q` best, best first; names in `q` must match exactly.

        The best hits are compared with `q` word by word; `rerank` increases their number.
        """

        def ranked(view: JournalView) -> list[tuple[_Found, NoteView]]:
            words = self._index.by_words(q, wanted, _CANDIDATES)
            names = self._index.by_names(list(identifiers(q)), wanted, _CANDIDATES)
            near = self._nearest(view, q, wanted)
            entries = self._index.entries(list(dict.fromkeys([*names, *words, *near])))
            if self._meaning is not None:
                rest = [entry.row for seq, entry in entries.items() if seq not in near]
                rows = self._meaning.nearest(q, rest, len(rest))
                near |= {seq: rows[entry.row] for seq, entry in entries.items() if entry.row in rows}
            found = [
                _Found(entry, names.get(seq, 0), words.get(seq, 0.0), near.get(seq, 0.0))
                for seq, entry in entries.items()
            ]
            found.sort(key=lambda one: (-one.score, -one.entry.seq))
            pool = max(limit, _CANDIDATES if rerank else COMPARED) if self._meaning else limit
            notes = ((one, self._read(view, one.entry, audience)) for one in found)
            return list(islice(((one, note) for one, note in notes if note is not None), pool))

        hits = self._answer(ranked)
        if self._meaning is not None:
            # This takes a while, so it runs without the lock.
            scores = self._meaning.compare(q, [note.text for _, note in hits])
            hits = [
                (one._replace(meaning=score), note) for (one, note), score in zip(hits, scores, strict=True)
            ]
            hits.sort(key=lambda hit: (-hit[0].score, -hit[0].entry.seq))
        return [HitView(note=note, score=round(one.score, 4), how=one.how) for one, note in hits[:limit]]

    def _nearest(self, view: JournalView, q: str, wanted: Filter) -> dict[int, float]:
        """Return the notes nearest to `q` in meaning.

        Missing meanings are computed first, unless there are very many, such as after a rebuild.
        """
        while not self._add_meanings(view):
            if self._meaning is None or self._meaning.missing(self._index) > _MOST_MISSING:
                break
        if self._meaning is None:
            return {}
        rows = None if wanted.is_open else self._index.rows(wanted)
        near = self._meaning.nearest(q, rows, _CANDIDATES)
        seqs = self._index.seqs_of(list(near))
        return {seqs[row]: score for row, score in near.items() if row in seqs and score >= LEAST_MEANING}

    def _read(self, view: JournalView, entry: Entry, audience: AgentId | None) -> NoteView | None:
        event = event_at(view, entry.offset)
        if event is None or (audience is not None and not self._concerns(event, audience)):
            return None
        return note_of(event, self._secrets)


def elapsed_ms(started: float) -> float:
    """Return the milliseconds elapsed since the monotonic time `started`."""
    return round((time.monotonic() - started) * 1000, 2)
