"""The index of notes over a journal of a few lines."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.journal import rewrite
from csp.journal.jsonl_journal import JsonlJournal
from csp.protocol.enums import ALL, SYSTEM, MessageId, SessionId
from csp.protocol.events import BoardChanged, encode_event
from csp.protocol.notes import BoardChange, NoteKind, NoteView
from csp.whiteboard import note_index as module
from csp.whiteboard.note_index import Filter, NoteIndex, event_at
from tests.journal.making import commit, encoded, said
from tests.whiteboard.making import add, board_journal, noted

NOTES = [
    noted(1, "the parser drops tokens", author="ada"),
    noted(3, "the lexer is slow", author="bob", session_id=SessionId("s-1"), tags=("speed", "lexer")),
    noted(4, "a summary of all", author="ada", kind=NoteKind.SUMMARY, tags=("sum",)),
    noted(6, "commit 9f8e7d6c1a2b3c4d5e6f broke parse_tokens in grammar.py", author="bob"),
]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JsonlJournal]:
    with closing(board_journal(tmp_path / "room", NOTES)) as made:
        yield made


@pytest.fixture
def index(journal: JsonlJournal) -> Iterator[NoteIndex]:
    made = NoteIndex(journal.folder)
    finish(made, journal)
    with closing(made):
        yield made


def finish(index: NoteIndex, journal: JsonlJournal, max_lines: int = 1000) -> None:
    index.attach(journal.view)
    while not index.extend(journal.view, max_lines):
        pass


def seqs(index: NoteIndex, **wanted: Any) -> list[int]:
    return [entry.seq for entry in index.page(Filter(**wanted), newest_first=False)]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [1, 3, 4, 6]),
        ({"session": "s-1"}, [3]),
        ({"session": "room"}, [1, 4, 6]),
        ({"author": "bob"}, [3, 6]),
        ({"kind": "summary"}, [4]),
        ({"tag": "speed"}, [3]),
        ({"tag": "spee"}, []),
        ({"tag": "lexer"}, [3]),
        ({"since": 1003.0}, [3, 4, 6]),
        ({"until": 1003.0}, [1, 3]),
        ({"after": 3}, [4, 6]),
        ({"before": 4}, [1, 3]),
        ({"author": "ada", "after": 1}, [4]),
    ],
)
def test_a_filter_leaves_what_is_wanted(index: NoteIndex, wanted: dict[str, Any], found: list[int]) -> None:
    assert seqs(index, **wanted) == found
    assert index.rows(Filter(**wanted)) == [[1, 3, 4, 6].index(seq) for seq in found]
    assert Filter(**wanted).is_open == (not wanted)


def test_a_page_goes_either_way(index: NoteIndex) -> None:
    assert [entry.seq for entry in index.page(Filter(), newest_first=True)] == [6, 4, 3, 1]


def test_rows_number_the_notes_alone(index: NoteIndex, journal: JsonlJournal) -> None:
    entries = index.entries([3, 6, 99])

    assert {seq: entry.row for seq, entry in entries.items()} == {3: 1, 6: 3}
    assert index.seqs_of([0, 3, 9]) == {0: 1, 3: 6}
    assert [(entry.seq, entry.row) for entry in index.from_row(1, 2)] == [(3, 1), (4, 2)]
    event = event_at(journal.view, entries[6].offset)
    assert event is not None and event.seq == 6
    assert (index.count, index.upto) == (4, journal.view.end)


def test_a_line_that_was_damaged_is_no_event(index: NoteIndex, journal: JsonlJournal) -> None:
    assert event_at(journal.view, index.entries([6])[6].offset + 1) is None


# --- by words, by names --------------------------------------------------------------------------


def test_words_weigh_by_how_rare_they_are(index: NoteIndex) -> None:
    found = index.by_words("does the parser have a slow lexer", Filter(), 9)

    assert list(found) == [3, 1]
    assert 0 < found[1] < found[3] <= 1.5


def test_all_of_a_question_is_about_one_and_a_part_of_it_is_less(index: NoteIndex) -> None:
    whole = index.by_words("parser", Filter(), 9)[1]
    part = index.by_words("parser zebra giraffe", Filter(), 9)[1]

    assert part < whole / 2


def test_a_note_that_says_nothing_else_is_not_endlessly_better(tmp_path: Path) -> None:
    texts = ["parser " * 50, *("other words of some length " * 9 for _ in range(9))]
    with closing(board_journal(tmp_path, [noted(seq, text) for seq, text in enumerate(texts, 1)])) as journal:
        index = NoteIndex(tmp_path)
        finish(index, journal)

        assert index.by_words("parser", Filter(), 9) == {1: 1.5}
        index.close()


def test_common_words_are_looked_for_only_where_there_is_no_other(index: NoteIndex) -> None:
    assert list(index.by_words("is the zebra", Filter(), 9)) == []
    assert sorted(index.by_words("the", Filter(), 9)) == [1, 3]


def test_words_keep_to_the_filter_and_the_count(index: NoteIndex) -> None:
    assert sorted(index.by_words("parser lexer", Filter(author="ada"), 9)) == [1]
    assert len(index.by_words("parser lexer summary", Filter(), 2)) == 2


def test_the_rarest_words_come_first_as_long_as_they_do_not_match_too_much(
    index: NoteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_ENTRIES", 1)

    # Both stand in one note; after the first there is no budget left.
    assert list(index.by_words("summary slow", Filter(), 9)) == [3]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["parse_tokens"], {6: 1}),
        (["parse_token"], {}),
        (["grammar.py", "parse_tokens"], {6: 2}),
        (["9f8e7d6"], {6: 1}),
        (["lexer"], {}),
    ],
)
def test_names_are_found_whole_but_a_hash_by_its_beginning(
    index: NoteIndex, names: list[str], found: dict[int, int]
) -> None:
    assert index.by_names(names, Filter(), 9) == found
    assert index.by_names(names, Filter(author="ada"), 9) == {}


def test_of_many_notes_with_a_name_the_newest_are_taken(tmp_path: Path) -> None:
    notes = [noted(seq, f"see grammar.py {seq}") for seq in range(1, 6)]
    with closing(board_journal(tmp_path, notes)) as journal:
        index = NoteIndex(tmp_path)
        finish(index, journal)

        assert list(index.by_names(["grammar.py"], Filter(), 2)) == [5, 4]
        index.close()


def test_tags_are_found_as_words_and_as_names(tmp_path: Path) -> None:
    with closing(board_journal(tmp_path, [noted(1, "x", tags=("zebra", "zoo_keeper"))])) as journal:
        index = NoteIndex(tmp_path)
        finish(index, journal)

        assert list(index.by_words("zebra", Filter(), 9)) == [1]
        assert index.by_names(["zoo_keeper"], Filter(), 9) == {1: 1}
        index.close()


# --- growing -------------------------------------------------------------------------------------


def test_lines_are_taken_in_step_by_step(journal: JsonlJournal) -> None:
    index = NoteIndex(journal.folder)
    index.attach(journal.view)

    assert index.extend(journal.view, 3) is False
    assert (index.count, seqs(index)) == (2, [1, 3])
    assert index.extend(journal.view, 3) is True
    assert seqs(index) == [1, 3, 4, 6]
    assert index.extend(journal.view, 3) is True
    index.close()


def test_a_batch_ends_where_it_grows_too_large(
    journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH_BYTES", 1)
    index = NoteIndex(journal.folder)
    index.attach(journal.view)

    assert index.extend(journal.view, 99) is False
    assert index.count == 1
    index.close()


def test_after_a_start_the_index_goes_on_with_its_stamp(index: NoteIndex, journal: JsonlJournal) -> None:
    stamp = index.stamp
    index.close()
    add(journal, [noted(7, "one more")])
    again = NoteIndex(journal.folder)
    again.attach(journal.view)

    assert (again.stamp, again.count) == (stamp, 4)
    finish(again, journal)
    assert (seqs(again), again.count) == ([1, 3, 4, 6, 7], 5)
    assert [entry.row for entry in again.page(Filter(after=6), newest_first=False)] == [4]
    again.close()


@pytest.mark.parametrize("harm", ["junk", "version", "place", "notes", "none"])
def test_a_file_that_does_not_fit_is_made_again_with_another_stamp(
    index: NoteIndex, journal: JsonlJournal, harm: str
) -> None:
    stamp, path = index.stamp, journal.folder / "board.sqlite"
    index.close()
    if harm == "junk":
        path.write_bytes(b"junk" * 5000)
    elif harm == "none":
        path.unlink()
    else:
        with closing(sqlite3.connect(path)) as db, db:
            statements = {
                "version": "PRAGMA user_version = 99",
                "place": "UPDATE place SET last = x'00'",
                "notes": "DROP TABLE notes",
            }
            db.execute(statements[harm])
    again = NoteIndex(journal.folder)
    again.attach(journal.view)

    assert again.stamp not in ("", stamp) and (again.upto, again.count) == (0, 0)
    finish(again, journal)
    assert seqs(again) == [1, 3, 4, 6]
    again.close()


def test_the_file_of_vectors_of_earlier_versions_is_deleted(journal: JsonlJournal) -> None:
    former = journal.folder / "board.vectors"
    former.write_bytes(b"csp vectors 1")
    with closing(NoteIndex(journal.folder)) as index:
        index.attach(journal.view)

    assert not former.exists()


def test_in_memory_nothing_is_left_on_the_disk(journal: JsonlJournal) -> None:
    index = NoteIndex(journal.folder, in_memory=True)
    finish(index, journal)

    assert seqs(index) == [1, 3, 4, 6]
    assert not (journal.folder / "board.sqlite").exists()
    index.drop()


def test_a_dropped_index_is_gone_from_the_disk(index: NoteIndex, journal: JsonlJournal) -> None:
    index.drop()

    assert [path.name for path in journal.folder.glob("board*")] == []
    assert (index.count, index.upto) == (0, 0)
    with pytest.raises(sqlite3.ProgrammingError):
        seqs(index)


def test_an_error_in_a_batch_leaves_none_of_it(
    index: NoteIndex, journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(journal, [noted(7, "good"), noted(8, "bad")])
    insert = module._insert

    def failing(db: sqlite3.Connection, seq: int, *rest: Any) -> None:
        if seq == 8:
            raise sqlite3.OperationalError("disk I/O error")
        insert(db, seq, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_insert", failing)
        with pytest.raises(sqlite3.OperationalError):
            index.extend(journal.view, 99)
    assert (seqs(index), index.count) == ([1, 3, 4, 6], 4)
    finish(index, journal)
    assert seqs(index) == [1, 3, 4, 6, 7, 8]


def test_the_secrets_of_a_reply_are_not_indexed(tmp_path: Path) -> None:
    journal = JsonlJournal.open(tmp_path)
    reply = msgspec.structs.replace(said(1, "the zebra word is xylophone"), idx=0)
    commit(journal, encoded([reply]))
    index = NoteIndex(tmp_path, ["xylophone"])
    finish(index, journal)

    assert list(index.by_words("zebra", Filter(), 9)) == [1]
    assert list(index.by_words("xylophone", Filter(), 9)) == []
    index.close()
    journal.close()


# --- boards that were compacted ------------------------------------------------------------------


def compacted(seq: int, upto: int, session: str | None = None) -> bytes:
    return encode_event(
        BoardChanged(
            seq,
            1.0,
            MessageId(f"e-{seq}"),
            SYSTEM,
            ALL,
            "default",
            "",
            change=BoardChange.COMPACTED,
            session_id=SessionId(session) if session else None,
            upto=upto,
        )
    )


@pytest.mark.parametrize(
    ("session", "upto", "left"),
    [(None, 6, [3, 4]), (None, 5, [3, 4, 6]), ("s-1", 6, [1, 4, 6]), ("s-2", 6, [1, 3, 4, 6])],
)
def test_notes_that_a_summary_stands_for_are_found_no_more(
    index: NoteIndex, journal: JsonlJournal, session: str | None, upto: int, left: list[int]
) -> None:
    commit(journal, [compacted(7, upto, session)])
    finish(index, journal)
    gone = sorted({1, 3, 4, 6} - set(left))

    assert seqs(index) == left
    assert sorted(index.by_words("parser lexer summary commit", Filter(), 9)) == left
    assert sorted(index.seqs_of(range(4)).values()) == left
    assert len(index.rows(Filter())) == len(left)
    # They keep their rows: what notes mean is kept by those.
    assert [entry.seq for entry in index.from_row(0, 9)] == [1, 3, 4, 6]
    assert sorted(index.entries(gone)) == gone


def test_a_damaged_change_of_the_board_takes_nothing_off(index: NoteIndex, journal: JsonlJournal) -> None:
    commit(journal, [compacted(7, 6).replace(b'"upto":6', b'"upto":5')])
    finish(index, journal)

    assert seqs(index) == [1, 3, 4, 6]


def test_the_parts_of_a_compound_name_are_found_as_words(tmp_path: Path) -> None:
    with closing(board_journal(tmp_path, [noted(1, "rename TokenReader")])) as journal:
        with closing(NoteIndex(tmp_path)) as index:
            finish(index, journal)

            assert list(index.by_words("reader", Filter(), 9)) == [1]


def test_half_a_character_in_a_note_harms_nobody(tmp_path: Path) -> None:
    note = noted(1, "half")
    line = encode_event(note)
    with closing(board_journal(tmp_path, [note])) as journal, closing(NoteIndex(tmp_path)) as index:
        finish(index, journal)
        view = NoteView(
            id=note.id,
            idx=1,
            session="room",
            thread="default",
            author=note.sender,
            text="half \ud800 a character",
            tags=(),
            kind=NoteKind.NOTE,
            source=None,
            ts=1.0,
        )
        module._insert(index._opened, 9, 9, len(line), view)

        assert list(index.by_words("character", Filter(), 9)) == [9]
        assert list(index.by_words("\ud800 half", Filter(), 9)) != []


def test_another_journal_is_read_with_the_old_file_closed(tmp_path: Path, journal: JsonlJournal) -> None:
    index = NoteIndex(journal.folder)
    finish(index, journal)
    before = index._opened
    rewrite.finish(rewrite.prepare(journal, rewrite.redaction([])))
    finish(index, journal)

    assert (seqs(index), index.count) == ([1, 3, 4, 6], 4)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        before.execute("SELECT 1")
    index.close()


def test_an_index_in_memory_leaves_the_file_of_another_alone(journal: JsonlJournal) -> None:
    with closing(NoteIndex(journal.folder)) as index:
        finish(index, journal)
    NoteIndex(journal.folder, in_memory=True).drop()

    assert list(journal.folder.glob("board*"))
