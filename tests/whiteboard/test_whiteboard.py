"""The board of a room over a journal of a few lines; what notes mean is told by a table."""

import errno
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.fast_start.process_environment import set_variable
from csp.journal.jsonl_journal import JsonlJournal
from csp.protocol.enums import AgentId
from csp.protocol.events import AnyEvent
from csp.protocol.notes import FoundBy, NoteKind
from csp.whiteboard import whiteboard as module
from csp.whiteboard import word_vectors
from csp.whiteboard.note_index import Entry, Filter, NoteIndex
from csp.whiteboard.whiteboard import AT_ONCE, Whiteboard, elapsed_ms, load_meaning_search
from tests.journal.making import commit, encoded, said
from tests.whiteboard.making import add, board_journal, noted

TEXTS = ["red apples", "green grass", "blue skies", "red roses"]
NOTES = [noted(seq, text, author="bob" if seq == 3 else "ada") for seq, text in enumerate(TEXTS, 1)]


class Table:
    """How near each row is to every question; `again` is the closer comparison, if it differs."""

    def __init__(self, near: dict[int, float] | None = None, again: dict[str, float] | None = None) -> None:
        self.near = near or {}
        self.again = again or {}
        self.added: list[str] = []
        self.asked_rows: list[list[int] | None] = []
        self.counts: list[int] = []
        self.compared: list[str] = []

    def missing(self, index: NoteIndex) -> int:
        return index.count - len(self.added)

    def add(self, index: NoteIndex, text_of: Callable[[Entry], str], most: int) -> None:
        self.counts.append(most)
        self.added += [text_of(entry) for entry in index.from_row(len(self.added), most)]

    def nearest(self, q: str, rows: Sequence[int] | None, count: int) -> dict[int, float]:
        self.asked_rows.append(None if rows is None else list(rows))
        kept = {row: self.near.get(row, 0.0) for row in (self.near if rows is None else rows)}
        return dict(sorted(kept.items(), key=lambda one: -one[1])[:count])

    def compare(self, q: str, texts: Sequence[str]) -> list[float]:
        self.compared = list(texts)
        return [self.again.get(text, self.near.get(self.added.index(text), 0.0)) for text in texts]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JsonlJournal]:
    with closing(board_journal(tmp_path / "room", NOTES)) as made:
        yield made


def all_may_read(event: AnyEvent, agent: AgentId) -> bool:
    return True


def board_on(journal: JsonlJournal, table: Table | None = None) -> Whiteboard:
    return Whiteboard(journal, all_may_read, meaning=lambda: table)


def seqs(hits: Sequence[object]) -> list[int]:
    return [int(str(getattr(hit, "note", hit).id)[2:]) for hit in hits]  # type: ignore[attr-defined]  # either kind


def found(board: Whiteboard, q: str, limit: int = 9, *, rerank: bool = False, **wanted: Any) -> list[int]:
    return seqs(board.search(q, Filter(**wanted), limit, None, rerank=rerank))


# --- pages ---------------------------------------------------------------------------------------


def test_a_page_has_the_newest_oldest_first_and_says_if_there_are_more(journal: JsonlJournal) -> None:
    with closing(board_on(journal)) as board:
        newest = board.page(Filter(), 2, None)
        first = board.page(Filter(after=0), 2, None)
        whole = board.page(Filter(), 4, None)

    assert (seqs(newest.notes), newest.has_more) == ([3, 4], True)
    assert (seqs(first.notes), first.has_more) == ([1, 2], True)
    assert (seqs(whole.notes), whole.has_more) == ([1, 2, 3, 4], False)


def test_a_page_has_what_was_acknowledged_just_now(journal: JsonlJournal) -> None:
    with closing(board_on(journal)) as board:
        board.page(Filter(), 9, None)
        add(journal, [noted(5)])

        assert board.lag_bytes > 0
        assert seqs(board.page(Filter(), 9, None).notes) == [1, 2, 3, 4, 5]
        assert board.lag_bytes == 0


def test_notes_that_do_not_concern_a_reader_are_not_there_for_it(journal: JsonlJournal) -> None:
    def only_own(event: AnyEvent, agent: AgentId) -> bool:
        return event.sender == agent

    bob = AgentId("bob")
    with closing(Whiteboard(journal, only_own, meaning=lambda: None)) as board:
        assert seqs(board.page(Filter(), 1, bob).notes) == [3]
        assert seqs(board.search("red apples blue skies", Filter(), 9, bob)) == [3]
        assert (board.get("n-3", bob) is None, board.get("n-1", bob) is None) == (False, True)
        assert board.get("n-1", None) is not None
        assert board.get("n-99", None) is None


# --- searching -----------------------------------------------------------------------------------


def test_words_and_meaning_weigh_one_to_four(journal: JsonlJournal) -> None:
    # Row 1 means most of what is asked; row 0 holds its word.
    with closing(board_on(journal, Table({0: 0.3, 1: 0.9}))) as board:
        hits = board.search("apples", Filter(), 9, None)
        words = board._index.by_words("apples", Filter(), 9)[1]

    assert [hit.how for hit in hits] == [FoundBy.MEANING, FoundBy.WORDS] and seqs(hits) == [2, 1]
    assert hits[0].score == pytest.approx(0.72)
    assert words > 0 and hits[1].score == pytest.approx(0.8 * 0.3 + 0.2 * words, abs=1e-3)


def test_a_name_counts_more_than_any_meaning(journal: JsonlJournal) -> None:
    add(journal, [noted(5, "see close_all in grammar.py"), noted(6, "see close_all")])
    with closing(board_on(journal, Table({1: 0.99}))) as board:
        hits = board.search("close_all grammar.py", Filter(), 9, None)

    assert seqs(hits)[:2] == [5, 6]
    assert [hit.how for hit in hits[:2]] == [FoundBy.EXACT, FoundBy.EXACT]


def test_what_means_something_else_is_not_found(journal: JsonlJournal) -> None:
    with closing(board_on(journal, Table({0: 0.1, 1: 0.099}))) as board:
        assert found(board, "zebra") == [1]


def test_of_equals_the_newest_comes_first(journal: JsonlJournal) -> None:
    with closing(board_on(journal, Table({0: 0.5, 1: 0.5, 2: 0.5}))) as board:
        assert found(board, "zebra") == [3, 2, 1]
        assert found(board, "zebra", rerank=True) == [3, 2, 1]
        assert found(board, "zebra", 2) == [3, 2]


def test_a_filter_holds_for_meaning_too(journal: JsonlJournal) -> None:
    table = Table({0: 0.5, 2: 0.4})
    with closing(board_on(journal, table)) as board:
        assert found(board, "zebra", author="bob") == [3]
        assert found(board, "zebra") == [1, 3]

    assert [rows for rows in table.asked_rows if rows != []] == [[2], None]


def test_without_the_extra_words_are_found(journal: JsonlJournal) -> None:
    with closing(board_on(journal)) as board:
        assert found(board, "green", rerank=True) == [2]


def test_the_best_hits_are_compared_word_by_word(
    journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table({0: 0.9, 1: 0.8, 2: 0.7, 3: 0.6}, {"red roses": 0.99, "red apples": 0.1})
    monkeypatch.setattr(module, "COMPARED", 3)
    with closing(board_on(journal, table)) as board:
        first = found(board, "zebra", 1)
        assert table.compared == ["red apples", "green grass", "blue skies"]
        # Rerank compares more hits than that, and so does a search for more hits.
        deeper = found(board, "zebra", 1, rerank=True)
        more = found(board, "zebra", 4)

    assert (first, deeper, more) == ([2], [4], [4, 2, 3, 1])
    assert len(table.compared) == 4


# --- taking in -----------------------------------------------------------------------------------


def test_meanings_are_taken_in_piece_by_piece(journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    table = Table()
    with closing(board_on(journal, table)) as board:
        assert board.catch_up() is False
        assert table.added == TEXTS[:3]
        assert board.catch_up() is True
        assert table.added == TEXTS
        assert board.catch_up() is True

    assert table.counts == [3, 3]
    assert AT_ONCE == 200


def test_lines_are_taken_in_before_meanings(journal: JsonlJournal) -> None:
    table = Table()
    with closing(board_on(journal, table)) as board:
        assert board.catch_up(1) is False
        assert table.added == []
        while not board.catch_up(1):
            pass

    assert table.added == TEXTS


def test_the_model_is_loaded_with_the_first_note_and_once(tmp_path: Path) -> None:
    made: list[Table] = []

    def make() -> Table:
        made.append(Table())
        return made[-1]

    with (
        closing(board_journal(tmp_path, [])) as journal,
        closing(Whiteboard(journal, all_may_read, meaning=make)) as board,
    ):
        assert board.catch_up() is True
        assert (board.search("x", Filter(), 9, None), made) == ([], [])
        add(journal, [noted(1), noted(2)])
        board.catch_up()
        board.catch_up()

        assert len(made) == 1


def test_a_search_waits_for_meanings_unless_far_too_many_are_missing(
    journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "_MOST_MISSING", 2)
    many, few = Table(), Table()
    with closing(board_on(journal, many)) as board:
        board.search("zebra", Filter(), 9, None)
    monkeypatch.setattr(module, "_MOST_MISSING", 3)
    with closing(board_on(journal, few)) as board:
        board.search("zebra", Filter(), 9, None)

    assert (many.added, few.added) == (TEXTS[:1], TEXTS)


# --- what breaks ---------------------------------------------------------------------------------


def test_an_index_that_breaks_is_made_again(journal: JsonlJournal, caplog: pytest.LogCaptureFixture) -> None:
    with closing(board_on(journal)) as board, caplog.at_level(logging.WARNING):
        board.catch_up()
        stamp = board._index.stamp
        db = board._index._opened
        db.execute("DROP TABLE notes")
        add(journal, [noted(5)])

        assert seqs(board.page(Filter(), 9, None).notes) == [1, 2, 3, 4, 5]
        assert board._index.stamp != stamp
        assert (journal.folder / "board.sqlite").exists()
    assert "note index dropped" in caplog.text


def test_on_a_full_disk_the_notes_are_indexed_in_memory(
    journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(index: NoteIndex, view: object, max_lines: int) -> bool:
        if not index.in_memory:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return real(index, view, max_lines)  # type: ignore[arg-type]  # passed on as it came

    real = NoteIndex.extend
    monkeypatch.setattr(NoteIndex, "extend", full)
    with closing(board_on(journal)) as board:
        assert seqs(board.page(Filter(), 9, None).notes) == [1, 2, 3, 4]
        assert not (journal.folder / "board.sqlite").exists()


def test_an_index_in_memory_returns_to_the_disk_when_there_is_space(
    journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("csp.whiteboard.whiteboard.time.monotonic", lambda: now[0])
    path = journal.folder / "board.sqlite"
    with closing(board_on(journal)) as board:
        full = sqlite3.OperationalError("database or disk is full")
        board._give_up(full, in_memory=True)
        board.catch_up()
        assert board._index.in_memory and not path.exists()
        path.mkdir()
        now[0] += module.RETRY_S
        board.catch_up()
        assert board._index.in_memory and found(board, "green") == [2]
        path.rmdir()
        now[0] += module.RETRY_S - 1
        board.catch_up()
        assert board._index.in_memory
        now[0] += 1

        assert [board.catch_up(2), board.catch_up(2)] == [False, True]
        assert not board._index.in_memory and found(board, "green") == [2]
        assert (board._spare, path.exists()) == (None, True)


def test_an_index_that_is_half_on_the_disk_is_gone_with_its_board(journal: JsonlJournal) -> None:
    board = board_on(journal)
    board._give_up(sqlite3.OperationalError("database or disk is full"), in_memory=True)
    board._retry_at = 0.0
    board.catch_up(2)
    board.catch_up(2)
    assert board._spare is not None
    board.close()

    assert not (journal.folder / "board.sqlite").exists()


@pytest.mark.word_vectors
def test_numpy_is_loaded_with_one_thread_and_the_setting_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    said: list[tuple[str, str | None]] = []
    real = set_variable

    def noting(name: str, value: str | None) -> str | None:
        said.append((name, value))
        return real(name, value)

    monkeypatch.setattr(module, "set_variable", noting)
    root = logging.getLogger()
    before = root.handlers[:]
    meaning = load_meaning_search()

    assert meaning is not None
    assert root.handlers == before
    assert said == [("OPENBLAS_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "7")]
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"


def test_without_its_package_search_by_meaning_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> None:
        assert name == "wordllama"

    monkeypatch.setattr(word_vectors, "load_word_vectors", word_vectors.load_word_vectors.__wrapped__)
    monkeypatch.setattr("importlib.util.find_spec", find_spec)

    assert load_meaning_search() is None


def test_time_is_told_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.whiteboard.whiteboard.time.monotonic", lambda: 11.5)

    assert elapsed_ms(10.0) == 1500.0


def test_the_bytes_of_a_board_are_those_of_its_notes_up_to_an_event(tmp_path: Path) -> None:
    notes = [
        noted(1, "héllo"),
        noted(2, "a summary", kind=NoteKind.SUMMARY),
        noted(3, "four"),
        noted(4, "later"),
    ]
    with closing(board_journal(tmp_path, notes)) as journal, closing(board_on(journal)) as board:
        assert [board.bytes_until("room", upto) for upto in (0, 1, 2, 3)] == [0, 6, 6, 10]
        assert board.bytes_until("s-1", 9) == 0


def test_the_secrets_of_the_room_are_neither_shown_nor_indexed(tmp_path: Path) -> None:
    secret = "hunter-of-secrets-1234567"
    reply = said(1, f"the key is {secret} indeed")
    placed = msgspec.structs.replace(reply, idx=0)
    with closing(JsonlJournal.open(tmp_path)) as journal:
        commit(journal, encoded([placed]))
        board = Whiteboard(journal, all_may_read, [secret], meaning=lambda: None)
        with closing(board):
            (note,) = board.page(Filter(), 9, None).notes
            assert secret not in note.text and "indeed" in note.text
            assert found(board, secret) == found(board, "hunter") == []
            board._give_up(sqlite3.OperationalError("disk I/O error"), in_memory=False)
            assert found(board, "hunter") == [] and found(board, "indeed") == [1]
            full = sqlite3.OperationalError("no file")
            full.__cause__ = OSError(errno.EACCES, "not allowed")
            errors = iter([full])

            def fails_once() -> bool:
                for exc in errors:
                    raise exc
                return board._index.in_memory

            assert board._try(fails_once)
            assert board._index.in_memory
            assert found(board, "hunter") == [] and found(board, "indeed") == [1]


def test_closing_the_board_closes_its_index(journal: JsonlJournal) -> None:
    board = board_on(journal)
    board.catch_up()
    db = board._index._opened
    board.close()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_a_note_found_by_its_words_has_its_meaning_counted_too(journal: JsonlJournal) -> None:
    scores = []
    for near in (0.0, 0.05):
        # Too little to be found by it.
        with closing(board_on(journal, Table({0: near}))) as board:
            (hit,) = board.search("apples", Filter(), 9, None)
            scores.append(hit.score)

    assert scores[1] - scores[0] == pytest.approx(0.8 * 0.05, abs=1e-3)
