"""What a gateway in a cluster keeps beside its copy of the log."""

from pathlib import Path

import pytest

from csp.errors import Broken
from csp.gateway import journal_mirror
from csp.gateway.journal_mirror import PLACE_NAME, Overlap, PlaceFile
from csp.journal import JsonlJournal, Place
from tests.journal.making import lines_to


@pytest.fixture
def journal(tmp_path: Path) -> JsonlJournal:
    journal = JsonlJournal.open(tmp_path)
    journal.append(lines_to(5), 1)
    journal.commit()
    return journal


class Time:
    """A clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("csp.gateway.journal_mirror.time.monotonic", lambda: self.now)


def test_a_place_is_saved_when_it_is_old_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time, places = Time(monkeypatch), PlaceFile(tmp_path)
    due = []
    for number in range(1, 100):
        time.now += 1.5
        due.append(places.note(Place(number, 10 * number)))
        if due[-1]:
            places.save()
            saved = PlaceFile(tmp_path).read(1000)
            assert time.now - (1000.0 + 1.5 * saved.seq) > journal_mirror.BACK_S - 1.5
            assert saved.mark == 10 * saved.seq

    assert not any(due[:20])
    assert all(due[25:])


def test_a_place_beyond_the_journal_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time, places = Time(monkeypatch), PlaceFile(tmp_path)
    places.note(Place(7, 70))
    time.now += 100
    assert places.note(Place(8, 80))
    places.save()

    assert PlaceFile(tmp_path).read(7) == Place(7, 70)
    assert PlaceFile(tmp_path).read(6) == Place(0)


@pytest.mark.parametrize("raw", [b"", b"nonsense", b'{"seq":1}', b'["a",2]'])
def test_a_damaged_place_is_the_beginning(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / PLACE_NAME).write_bytes(raw)

    assert PlaceFile(tmp_path).read(10) == Place(0)


def test_the_same_lines_overlap(journal: JsonlJournal) -> None:
    lines = lines_to(5)
    overlap = Overlap(journal, 2)
    overlap.check(lines[2:4], 3)
    overlap.check(lines[4:], 5)
    journal.close()


@pytest.mark.parametrize("wrong", [b"{}", lines_to(5)[3]])
def test_another_line_is_found_with_its_seq(journal: JsonlJournal, wrong: bytes) -> None:
    with pytest.raises(Broken, match="at seq 2"):
        Overlap(journal, 0).check([lines_to(1)[0], wrong], 1)
    journal.close()


def test_a_redacted_line_may_differ(journal: JsonlJournal) -> None:
    Overlap(journal, 1).check([lines_to(5)[1].replace(b'"text":"', b'"text":"[redacted]')], 2)
    journal.close()
