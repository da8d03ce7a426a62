"""Notes by what they mean, with a model that knows a few words."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from csp.errors import Broken
from csp.journal.jsonl_journal import JsonlJournal
from csp.whiteboard import semantic_search as module
from csp.whiteboard.minilm import DIMENSIONS, Array, MiniLM
from csp.whiteboard.note_index import NoteIndex
from csp.whiteboard.semantic_search import Meanings
from tests.whiteboard.making import add, board_journal, noted


class Model:
    """Each text is a number: the nearer two are, the more alike they mean."""

    def __init__(self) -> None:
        self.was_read: list[list[str]] = []

    def static(self, text: str) -> Array:
        angle = float(text.split()[-1]) / 100
        found: Array = np.zeros(DIMENSIONS, np.float32)
        found[:2] = np.cos(angle), np.sin(angle)
        return found

    def read(self, texts: Sequence[str]) -> Array:
        self.was_read.append(list(texts))
        return np.stack([self.static(text) for text in texts])


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


def meanings(journal: JsonlJournal, model: Model | None = None) -> Meanings:
    return Meanings(journal.folder, cast(MiniLM, model or Model()))


def text_of(entry: Any) -> str:
    return f"note {10 * entry.seq}"


def test_vectors_are_made_in_the_order_of_the_notes(journal: JsonlJournal, index: NoteIndex) -> None:
    with closing(meanings(journal)) as found:
        assert found.missing(index) == 5
        found.take(index, text_of, 2)
        assert found.missing(index) == 3
        found.take(index, text_of, 99)
        assert found.missing(index) == 0
        found.take(index, text_of, 99)

        assert list(found.nearest("x 30", None, 2)) == [2, 1] or list(found.nearest("x 30", None, 2)) == [
            2,
            3,
        ]
        assert found.nearest("x 30", None, 1)[2] == pytest.approx(1.0, abs=1e-5)
        assert list(found.nearest("x 0", None, 99)) == [0, 1, 2, 3, 4]
        assert list(found.nearest("x 90", None, 2)) == [4, 3]


def test_vectors_are_there_after_a_start_and_new_ones_are_added(
    journal: JsonlJournal, index: NoteIndex
) -> None:
    with closing(meanings(journal)) as before:
        before.take(index, text_of, 99)
    add(journal, [noted(6, "note 60")])
    index.extend(journal.view, 99)
    with closing(meanings(journal)) as after:
        assert after.missing(index) == 1
        after.take(index, text_of, 99)
        assert list(after.nearest("x 60", None, 1)) == [5]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_of_given_rows_alone_the_nearest_are_returned(
    journal: JsonlJournal, index: NoteIndex, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(module, "_MOST_PICKED", share)
    with closing(meanings(journal)) as found:
        found.take(index, text_of, 4)

        # The last row has no vector yet.
        assert list(found.nearest("x 0", [4, 3, 1], 9)) == [1, 3]
        assert list(found.nearest("x 99", [0, 3, 1], 1)) == [3]
        assert found.nearest("x 0", [], 9) == {}
        assert set(found.among("x 0", [2, 3])) == {2, 3}


def test_a_text_is_read_once_by_the_larger_model(journal: JsonlJournal) -> None:
    model = Model()
    with closing(meanings(journal, model)) as found:
        first = found.read("x 0", ["a 0", "b 100", "a 0"])
        second = found.read("x 0", ["b 100", "c 50"])

    assert first == pytest.approx([1.0, np.cos(1), 1.0], abs=1e-5)
    assert second == pytest.approx([np.cos(1), np.cos(0.5)], abs=1e-5)
    assert model.was_read == [["x 0", "a 0", "b 100"], ["c 50"]]


def test_of_what_was_read_the_oldest_is_forgotten(
    journal: JsonlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    model = Model()
    with closing(meanings(journal, model)) as found:
        found.read("x 0", ["a 0", "b 100"])
        found.read("a 0", ["b 100"])
        found.read("x 0", ["b 100"])

    assert model.was_read == [["x 0", "a 0", "b 100"], ["x 0"]]


def test_files_that_are_not_what_they_should_be_turn_the_search_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(files: object) -> object:
        raise Broken("the checksum is wrong")

    monkeypatch.setattr(module, "load", broken)

    assert module._load_model.__wrapped__() is None
    assert "search by meaning is off" in caplog.text
