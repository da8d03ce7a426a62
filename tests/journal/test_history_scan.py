"""Looking for lines by reading the journal."""

from pathlib import Path

import pytest

from csp.journal.history import Scanner
from csp.journal.history_query import HistoryQuery
from csp.protocol.events import HISTORY_TYPES
from tests.journal.making import commit, concerns, delivered, encoded, noticed, opened, said


def found(folder: Path, lines: list[bytes], **query: object) -> tuple[list[int], list[int]]:
    """Return the seqs of the hits as they are found from the end, and from the start."""
    scanner = Scanner(HistoryQuery(**query), concerns)  # type: ignore[arg-type]  # each test gives what it needs
    with opened(folder) as journal:
        commit(journal, lines)
        view = journal.view
        back = [hit.seq for _, hits in scanner.newest_first(view, view.end) for hit in hits]
        on = [hit.seq for _, hits in scanner.oldest_first(view, 0, view.end) for hit in hits]
    return back, on


TEXTS = (
    'say "hi" now',
    "in C:\\temp it is",
    "a\ttab",
    "\u212aelvin and K",
    "STRASSE",
    "Straße",
    "naïve",
    "plain words",
)


@pytest.mark.parametrize(
    ("q", "seqs"),
    [
        ('"hi"', [1]),
        ('say "hi"', [1]),
        ("c:\\temp", [2]),
        ("kelvin", [4]),
        ("strasse", [5, 6]),
        ("straße", [5, 6]),
        ("NAÏVE", [7]),
        ("words PLAIN", [8]),
        ("word", [8]),
        ("ords", []),
        ("", [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_a_text_is_found_however_it_is_written_in_the_file(tmp_path: Path, q: str, seqs: list[int]) -> None:
    lines = encoded(said(seq, text) for seq, text in enumerate(TEXTS, start=1))

    assert found(tmp_path, lines, q=q) == (seqs[::-1], seqs)


def test_blocks_are_read_without_losing_what_lies_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.journal.history._SCAN_BYTES", 300)
    lines = encoded(said(seq, f"number {seq}") for seq in range(1, 30))

    assert found(tmp_path, lines) == (list(range(29, 0, -1)), list(range(1, 30)))


def test_machinery_and_damage_are_no_hits(tmp_path: Path) -> None:
    lines = encoded([said(1), delivered(2, "m-1"), noticed(3, "a notice"), said(4)])
    lines[3] = lines[3].replace(b"message number", b"massage number")

    assert found(tmp_path, lines, types=HISTORY_TYPES | {"delivery"}) == ([3, 1], [1, 3])
