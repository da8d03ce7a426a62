import contextlib
import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from csp.journal import JsonlJournal, rewrite
from csp.journal.history import History
from csp.journal.history_query import HistoryQuery, facets_of
from csp.journal.search_index import SearchIndex
from csp.journal.search_tokens import Clause, tokens_of_line
from tests.journal.making import commit, concerns, encoded, lines_to, opened, said

WORD = Clause(prefix="message")


def finish(index: SearchIndex, max_lines: int = 100) -> None:
    while index.catch_up(max_lines):
        pass


def indexed_seqs(journal: JsonlJournal, index: SearchIndex, clause: Clause = WORD) -> list[int]:
    """Return what the index alone knows, newest first."""
    view = journal.view
    plan = index.plan(view, [clause])
    assert plan is not None
    found = index.offsets(view, plan, 0, plan.covered, 10_000, newest_first=True)
    assert found is not None
    facets = [facets_of(view.line_at(offset)) for offset in found]
    return [each.seq for each in facets if each is not None]


def all_seqs(journal: JsonlJournal, index: SearchIndex) -> list[int]:
    """Return what a search finds, be it indexed or not."""
    history = History(journal, index, 1, concerns)
    hits, _ = history._from_disk(HistoryQuery(q="message", limit=1000))
    return [hit.seq for hit in hits]


def test_lines_are_taken_in_step_by_step(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(10))
        index = SearchIndex(journal)
        left = index.catch_up(4)

        assert 0 < left < journal.view.end
        assert indexed_seqs(journal, index) == [4, 3, 2, 1]
        assert all_seqs(journal, index) == list(range(10, 0, -1))
        finish(index)
        assert indexed_seqs(journal, index) == list(range(10, 0, -1))
        index.close()


def test_the_index_goes_on_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(10))
        index = SearchIndex(journal)
        for lines in (3, 4):
            index.catch_up(lines)
        index.close()
    with opened(tmp_path) as journal:
        index = SearchIndex(journal)
        assert indexed_seqs(journal, index) == list(range(7, 0, -1))
        index.close()


def test_only_the_owner_may_read_the_index(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(3))
        index = SearchIndex(journal)
        finish(index)

        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("search*")}
        assert set(modes.values()) == {0o600}
        index.close()


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    lines = lines_to(4)
    lines[1] = lines[1].replace(b"number", b"nimber")
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with opened(tmp_path) as journal:
        index = SearchIndex(journal)
        finish(index)

        assert indexed_seqs(journal, index) == [4, 3, 1]
        index.close()


def damage_nothing(path: Path) -> None:
    path.unlink()


def damage_head(path: Path) -> None:
    path.write_bytes(b"this is no database" * 100)


def damage_inside(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)


def damage_size(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def damage_version(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 77")
    db.close()


def damage_to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [damage_nothing, damage_head, damage_inside, damage_size, damage_version, damage_to_folder],
)
def test_a_search_is_right_whatever_became_of_the_index(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(200))
        index = SearchIndex(journal)
        finish(index)
        index.close()
        damage(tmp_path / "search.sqlite")
        for _ in range(4):
            assert all_seqs(journal, index) == list(range(200, 0, -1))
            finish(index)
        index.close()


def test_an_index_damaged_while_it_is_open_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(2000))
        index = SearchIndex(journal)
        finish(index, 2000)
        index.close()
        index.catch_up()
        with (tmp_path / "search.sqlite").open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (os.path.getsize(file.name) - 4096))

        assert all_seqs(journal, index) == list(range(2000, 1000, -1))
        assert "search index dropped" in caplog.text
        finish(index, 2000)
        assert len(indexed_seqs(journal, index)) == 2000
        index.close()


def test_the_index_of_another_journal_is_made_again(tmp_path: Path) -> None:
    for name, text in (("one", "message alpha"), ("two", "message beta")):
        with opened(tmp_path / name) as journal:
            commit(journal, encoded(said(seq, text) for seq in range(1, 20)))
            index = SearchIndex(journal)
            finish(index)
            index.close()
    shutil.copy(tmp_path / "one" / "search.sqlite", tmp_path / "two" / "search.sqlite")
    with opened(tmp_path / "two") as journal:
        index = SearchIndex(journal)

        assert indexed_seqs(journal, index, Clause(prefix="alpha")) == []
        assert len(all_seqs(journal, index)) == 19
        index.close()


def test_a_journal_cut_and_grown_again_is_indexed_again(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(10))
        index = SearchIndex(journal)
        finish(index)
        index.close()
    path = tmp_path / "journal.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)[:5]
    with path.open("r+b") as file:
        file.truncate(len(b"".join(kept)))
    with opened(tmp_path) as journal:
        commit(journal, encoded(said(seq, "other message") for seq in range(6, 30)))
        index = SearchIndex(journal)
        finish(index)

        assert indexed_seqs(journal, index) == list(range(29, 0, -1))
        index.close()


def test_a_journal_that_differs_only_inside_is_indexed_again(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(9))
        index = SearchIndex(journal)
        finish(index)
        index.close()
    lines = lines_to(9)
    lines[4] = encoded([said(5, "massage number 5")])[0]
    (tmp_path / "other").write_bytes(b"\n".join(lines) + b"\n")
    (tmp_path / "other").replace(tmp_path / "journal.jsonl")
    with opened(tmp_path) as journal:
        index = SearchIndex(journal)
        finish(index)

        assert indexed_seqs(journal, index, Clause(prefix="massage")) == [5]
        index.close()


def limit_pages(index: SearchIndex, count: int) -> None:
    """Let the index file have this many pages; SQLite says of more that the disk is full."""
    assert index._db is not None
    index._db.execute(f"PRAGMA max_page_count = {count}")


def test_an_index_on_a_full_disk_answers_for_what_it_has(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(100))
        index = SearchIndex(journal)
        finish(index)
        limit_pages(index, 1)
        commit(journal, encoded(said(seq, f"message {'x' * 200} {seq}") for seq in range(101, 401)))
        left = [index.catch_up() for _ in range(9)]

        assert left == [0] * 9
        assert indexed_seqs(journal, index) == list(range(100, 0, -1))
        assert all_seqs(journal, index) == list(range(400, 0, -1))
        assert caplog.text.count("no space for the search index") == 1
        assert "dropped" not in caplog.text
        index.close()


def test_an_index_goes_on_by_itself_when_the_disk_has_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.journal.search_index._PAUSE_S", 0.0)
    with opened(tmp_path) as journal:
        commit(journal, lines_to(100))
        index = SearchIndex(journal)
        finish(index)
        limit_pages(index, 1)
        commit(journal, encoded(said(seq, f"message {'x' * 200} {seq}") for seq in range(101, 401)))
        for _ in range(9):
            index.catch_up()
        limit_pages(index, 1_000_000)
        finish(index)

        assert indexed_seqs(journal, index) == list(range(400, 0, -1))
        index.close()


def test_an_index_that_was_spoilt_again_and_again_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        index = SearchIndex(journal)
        (tmp_path / "search.sqlite").mkdir()
        left = [index.catch_up() for _ in range(9)]
        (tmp_path / "search.sqlite").rmdir()
        waiting = index.plan(journal.view, [WORD])
        index._paused_until = 0.0
        finish(index)

        assert (left, waiting) == ([0] * 9, None)
        assert caplog.text.count("search index dropped") == 3
        assert indexed_seqs(journal, index) == [5, 4, 3, 2, 1]
        index.close()


def test_a_full_disk_costs_only_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        index = SearchIndex(journal)
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", full)
            left = [index.catch_up() for _ in range(5)]

        assert left == [0] * 5
        assert all_seqs(journal, index) == [5, 4, 3, 2, 1]
        assert caplog.text.count("no space for the search index") == 1


def test_a_beginning_that_many_words_share_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.journal.search_index._MAX_WORDS", 5)
    with opened(tmp_path) as journal:
        commit(journal, encoded(said(seq, f"w{seq} other") for seq in range(1, 40)))
        index = SearchIndex(journal)
        finish(index)

        assert indexed_seqs(journal, index, Clause(prefix="w")) == list(range(39, 0, -1))
        assert indexed_seqs(journal, index, Clause(prefix="w3")) == [*range(39, 29, -1), 3]
        index.close()


def test_a_beginning_finds_every_word_that_has_it(tmp_path: Path) -> None:
    words = ["foo", "foo_", "foo0", "fooa", "fooz", "foozzz", "fo", "fop", "xfoo"]
    with opened(tmp_path) as journal:
        commit(journal, encoded(said(seq, word) for seq, word in enumerate(words, 1)))
        index = SearchIndex(journal)
        finish(index)

        assert indexed_seqs(journal, index, Clause(prefix="foo")) == [6, 5, 4, 3, 2, 1]
        index.close()


def test_threads_may_search_while_it_grows(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(500))
        index = SearchIndex(journal)
        answers: list[list[int]] = []
        searchers = [
            threading.Thread(target=lambda: answers.append(all_seqs(journal, index))) for _ in range(8)
        ]
        for searcher in searchers:
            searcher.start()
            index.catch_up(60)
        for searcher in searchers:
            searcher.join()

        assert answers == [list(range(500, 0, -1))] * 8
        index.close()


def test_a_very_long_word_is_one_token(tmp_path: Path) -> None:
    (line,) = encoded([said(1, "x" * 100_000)])

    assert max(map(len, tokens_of_line(line))) <= 64


@pytest.mark.parametrize(("name", "value"), [("_BATCH_TOKENS", 1), ("_BATCH_BYTES", 1)])
def test_a_batch_ends_where_it_grows_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    monkeypatch.setattr(f"csp.journal.search_index.{name}", value)
    with opened(tmp_path) as journal:
        commit(journal, lines_to(3))
        index = SearchIndex(journal)
        index.catch_up()

        assert indexed_seqs(journal, index) == [1]
        finish(index)
        assert indexed_seqs(journal, index) == [3, 2, 1]
        index.close()


def test_the_lag_is_what_the_index_has_not_seen(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(4))
        index = SearchIndex(journal)
        assert index.lag_bytes == journal.view.end
        left = index.catch_up(3)
        assert index.lag_bytes == left == len(lines_to(4)[3]) + 1
        index.catch_up()
        assert index.lag_bytes == 0
        index.close()
        assert index.lag_bytes == journal.view.end


def test_offsets_are_bounded_and_counted_either_way(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        index = SearchIndex(journal)
        index.catch_up()
        view = journal.view
        plan = index.plan(view, [WORD])
        assert plan is not None and not plan.is_broad
        starts = [journal.view.offset_after(seq) for seq in range(5)]

        assert index.offsets(view, plan, starts[1], starts[4], 9, newest_first=False) == starts[1:4]
        assert index.offsets(view, plan, 0, view.end, 2, newest_first=True) == [starts[4], starts[3]]
        assert index.offsets(view, plan, 0, view.end, 2, newest_first=False) == starts[:2]
        nothing = index.plan(view, [Clause(prefix="zebra")])
        assert nothing is not None and nothing.expression == ""
        assert index.offsets(view, nothing, 0, view.end, 9, newest_first=True) == []
        index.close()


def test_an_index_of_the_file_before_a_rewrite_is_worth_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        index = SearchIndex(journal)
        finish(index)
        plan = index.plan(journal.view, [WORD])
        before = index._db
        assert plan is not None and before is not None
        rewrite.finish(rewrite.prepare(journal, rewrite.redaction([])))

        assert index.offsets(journal.view, plan, 0, plan.covered, 9, newest_first=True) is None
        assert index.lag_bytes == journal.view.end
        finish(index)
        assert indexed_seqs(journal, index) == [5, 4, 3, 2, 1]
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            before.execute("SELECT 1")
        index.close()


def test_failures_are_counted_again_after_a_pause(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        index = SearchIndex(journal)
        (tmp_path / "search.sqlite").mkdir()
        for _ in range(3):
            assert index._paused_until == 0.0
            index.catch_up()
        assert index._paused_until > 0.0
        index._paused_until = 0.0
        index.catch_up()

        assert index._paused_until == 0.0


def no_space(*where: object) -> sqlite3.Connection:
    raise sqlite3.OperationalError("unable to open database file") from OSError(errno.ENOSPC, "full")


def test_an_index_that_cannot_be_opened_for_want_of_space_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        index = SearchIndex(journal)
        finish(index)
        index.close()
        with monkeypatch.context() as patched:
            patched.setattr("csp.journal.rebuildable_files.connect", no_space)
            plans = [index.plan(journal.view, [WORD]) for _ in range(3)]
        index._paused_until = 0.0

        assert plans == [None] * 3
        assert caplog.text.count("no space for the search index") == 1
        assert indexed_seqs(journal, index) == [5, 4, 3, 2, 1]
        index.close()


def test_an_index_of_another_version_is_made_again(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        index = SearchIndex(journal)
        finish(index)
        index.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "search.sqlite")) as db:
            db.execute("PRAGMA user_version = 99")

        assert indexed_seqs(journal, index) == []
        finish(index)
        assert indexed_seqs(journal, index) == [5, 4, 3, 2, 1]
        index.close()


def test_only_a_beginning_that_many_words_share_is_broad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.journal.search_index._MAX_WORDS", 5)
    with opened(tmp_path) as journal:
        commit(journal, encoded(said(seq, f"w{seq} other") for seq in range(1, 10)))
        index = SearchIndex(journal)
        finish(index)
        clauses = ([Clause(prefix="w")], [Clause(prefix="oth")], [Clause(prefix="w"), Clause(prefix="oth")])
        plans = [index.plan(journal.view, clause) for clause in clauses]

        assert [plan and plan.is_broad for plan in plans] == [True, False, False]
        half = index.plan(journal.view, [Clause(tokens=("\ud800",))])
        assert half is not None and half.expression == ""
        index.close()
