"""How well notes are found, on the labelled set; what is held out has decided no weight."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.whiteboard.labelled import Room, ndcg, read_notes, read_queries

#: The quality of the few questions asked by default: by words alone, by meaning, with a deeper comparison.
FEW = [0.589, 0.682, 0.682]


def test_labelled_set_is_what_it_says() -> None:
    names = [name for name, _, _ in read_notes()]
    queries = read_queries()

    assert len(names) == len(set(names)) == 200
    assert len(queries) == 38
    assert sum(one.is_held_out for one in queries) == 20
    assert all(set(one.grades) <= set(names) for one in queries)


def test_measure_is_one_for_the_best_order() -> None:
    grades = {"a": 2, "b": 1}

    assert ndcg(["a", "b", "c"], grades) == 1.0
    assert ndcg(["b", "a"], grades) == pytest.approx(0.797, abs=0.001)
    assert ndcg(["c"], grades) == 0.0


class Rooms(NamedTuple):
    """The labelled notes, searched by words alone, by meaning, and by comparing more of them word by word."""

    words: Room
    meaning: Room
    rerank: Room


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rooms]:
    made = Rooms(
        words=Room(tmp_path_factory.mktemp("words"), lambda: None),
        meaning=Room(tmp_path_factory.mktemp("meaning")),
        rerank=Room(tmp_path_factory.mktemp("rerank"), rerank=True),
    )
    yield made
    for room in made:
        room.close()


@pytest.mark.word_vectors
def test_a_few_questions_are_answered_as_well_as_was_measured(rooms: Rooms) -> None:
    few = [one for one in read_queries() if one.is_held_out][::5]
    found = [sum(ndcg(room.ask(one.q), one.grades) for one in few) / len(few) for room in rooms]

    assert found == pytest.approx(FEW, abs=0.02)


@pytest.mark.full
@pytest.mark.word_vectors
def test_meaning_finds_more_than_words(rooms: Rooms) -> None:
    words, meaning, rerank = (room.quality(is_held_out=True) for room in rooms)

    assert meaning > words + 0.16
    assert meaning > 0.59
    assert rerank > 0.59


def test_names_come_first_whatever_else_is_like_them(rooms: Rooms) -> None:
    asked = {
        "where is verify_signature": "auth8",
        "0042_add_index.sql": "db2",
        "9f8e7d6": "git5",
        "what about CVE-2024-3094": "sec3",
        "csp/core/grammar.py": "add17",
        "grammar.py": "add17",
        "UserManager": "add2",
    }
    found = {q: rooms.meaning.ask(q, 1) for q in asked}
    few = dict(list(asked.items())[:2])

    assert found == {q: [name] for q, name in asked.items()}
    assert {q: rooms.rerank.ask(q, 1) for q in few} == {q: [name] for q, name in few.items()}


def test_nothing_of_a_search_asks_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a search opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    room = Room(tmp_path / "room", rerank=True)
    found = room.ask("why do users get logged out")
    room.close()

    assert len(found) == 10
