"""How well notes are found, on the labelled set; what is held out has decided no weight."""

import socket
from pathlib import Path

import pytest

from tests.whiteboard.labelled import Room, ndcg, read_notes, read_queries


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


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The figures of the held out part: words alone, with static vectors, read by the larger model."""
    rooms = {
        "words": Room(tmp_path_factory.mktemp("words"), lambda folder: None),
        "static": Room(tmp_path_factory.mktemp("static")),
        "rerank": Room(tmp_path_factory.mktemp("rerank"), rerank=True),
    }
    figures = {name: room.quality(is_held_out=True) for name, room in rooms.items()}
    for room in rooms.values():
        room.close()
    return figures


def test_meaning_finds_more_than_words(found: dict[str, float]) -> None:
    assert found["static"] > found["words"] + 0.12
    assert found["static"] > 0.56


def test_the_larger_model_finds_most(found: dict[str, float]) -> None:
    assert found["rerank"] > found["static"] + 0.12
    assert found["rerank"] > 0.73


def test_names_come_first_whatever_else_is_like_them(tmp_path: Path) -> None:
    room = Room(tmp_path / "room", rerank=True)
    asked = {
        "where is verify_signature": "auth8",
        "0042_add_index.sql": "db2",
        "9f8e7d6": "git5",
        "what about CVE-2024-3094": "sec3",
        "csp/core/grammar.py": "add17",
        "grammar.py": "add17",
        "UserManager": "add2",
    }
    found = {q: room.ask(q, 1) for q in asked}
    room.close()

    assert found == {q: [name] for q, name in asked.items()}


def test_nothing_of_a_search_asks_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a search opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    room = Room(tmp_path / "room", rerank=True)
    found = room.ask("why do users get logged out")
    room.close()

    assert len(found) == 10
