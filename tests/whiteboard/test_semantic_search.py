"""Notes by what they mean, with a model that knows a few words."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from csp.journal.jsonl_journal import JsonlJournal
from csp.whiteboard import semantic_search as module
from csp.whiteboard.note_index import NoteIndex
from csp.whiteboard.semantic_search import Meanings
from csp.whiteboard.word_vectors import DIMENSIONS, Array, WordVectors
from tests.whiteboard.making import add, board_journal, noted


class Model:
    """Each text is a number: the nearer two numbers are, the nearer the meanings."""

    def embed(self, text: str) -> Array:
        angle = float(text.split()[-1]) / 100
        found: Array = np.zeros(DIMENSIONS, np.float32)
        found[:2] = np.cos(angle), np.sin(angle)
        return found

    def compare(self, q: str, texts: Sequence[str]) -> list[float]:
        return [float(self.embed(text) @ self.embed(q)) for text in texts]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JsonlJournal]:
    notes = [noted(seq, f"note {10 * seq}") for seq in range(1, 6)]
    with closing(board_journal(tmp_path, notes)) as made:
        yield made


@pytest.fixture
def index(journal: JsonlJournal) -> Iterator[NoteIndex]:
    with closing(NoteIndex(journal.folder)) as made:
        made.attach(journal.view)
        made.extend(journal.view, 99)
        yield made


def meanings() -> Meanings:
    return Meanings(cast(WordVectors, Model()))


def text_of(entry: Any) -> str:
    return f"note {10 * entry.seq}"


def test_vectors_are_made_in_the_order_of_the_notes(index: NoteIndex) -> None:
    found = meanings()
    assert found.missing(index) == 5
    found.add(index, text_of, 2)
    assert found.missing(index) == 3
    found.add(index, text_of, 99)
    assert found.missing(index) == 0
    found.add(index, text_of, 99)

    assert set(found.nearest("x 31", None, 2)) == {2, 3}
    assert found.nearest("x 30", None, 1)[2] == pytest.approx(1.0, abs=1e-3)
    assert list(found.nearest("x 0", None, 99)) == [0, 1, 2, 3, 4]
    assert list(found.nearest("x 90", None, 2)) == [4, 3]


def test_vectors_are_there_after_a_start_and_new_ones_are_added(
    journal: JsonlJournal, index: NoteIndex
) -> None:
    meanings().add(index, text_of, 99)
    add(journal, [noted(6, "note 60")])
    index.close()
    index.attach(journal.view)
    index.extend(journal.view, 99)
    after = meanings()

    assert after.missing(index) == 1
    after.add(index, text_of, 99)
    assert list(after.nearest("x 60", None, 1)) == [5]


def test_a_new_index_has_no_vectors(journal: JsonlJournal, index: NoteIndex) -> None:
    found = meanings()
    found.add(index, text_of, 99)
    index.drop()
    index.attach(journal.view)
    index.extend(journal.view, 99)

    assert found.missing(index) == 5
    found.add(index, text_of, 2)
    assert list(found.nearest("x 0", None, 99)) == [0, 1]


@pytest.mark.parametrize("lost", [1, 3])
def test_a_vector_of_the_wrong_size_makes_the_index_unreadable(index: NoteIndex, lost: int) -> None:
    meanings().add(index, text_of, 99)
    size = 2 * DIMENSIONS - lost
    index._opened.execute("UPDATE vectors SET vector = substr(vector, 1, ?) WHERE row = 3", (size,))

    with pytest.raises(sqlite3.DatabaseError):
        meanings().missing(index)


def test_a_vector_that_is_not_a_number_is_far_from_everything(index: NoteIndex) -> None:
    index.add_vectors(0, [b"\xff" * 2 * DIMENSIONS])
    found = meanings()
    found.add(index, text_of, 99)

    assert list(found.nearest("x 10", None, 99)) == [1, 2, 3, 4, 0]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_of_given_rows_alone_the_nearest_are_returned(
    index: NoteIndex, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(module, "_MOST_PICKED", share)
    found = meanings()
    found.add(index, text_of, 4)

    # The last row has no vector yet.
    assert list(found.nearest("x 0", [4, 3, 1], 9)) == [1, 3]
    assert list(found.nearest("x 99", [0, 3, 1], 1)) == [3]
    assert found.nearest("x 0", [], 9) == {}


def test_texts_are_compared_by_the_model() -> None:
    assert meanings().compare("x 0", ["a 0", "b 100"]) == pytest.approx([1.0, np.cos(1)], abs=1e-5)
