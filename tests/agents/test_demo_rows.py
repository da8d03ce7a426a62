"""How text is laid out in the rows of a terminal."""

import pytest

from csp.agents.demo.text_rows import Place, cut_in_rows, place_in, width_of, wrapped


@pytest.mark.parametrize(
    ("text", "cells"), [("abc", 3), ("日本", 4), ("Ａ", 2), ("e\u0301", 1), ("\u200b", 0), ("a日\u0301", 3)]
)
def test_the_width_of_a_text_is_in_cells(text: str, cells: int) -> None:
    assert width_of(text) == cells


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("abcd", 4, ["abcd"]),
        ("abcde", 4, ["abcd", "e"]),
        ("ab cd", 5, ["ab cd"]),
        ("abcd ef", 4, ["abcd", "ef"]),
        ("ab   cd", 4, ["ab  ", "cd"]),
        ("  abcdef", 4, ["  ab", "cdef"]),
        ("a\n\nb", 9, ["a", "", "b"]),
        ("日本語", 4, ["日本", "語"]),
        ("日本", 1, ["日", "本"]),
        ("", 4, [""]),
    ],
)
def test_a_text_is_broken_at_its_blanks(text: str, width: int, rows: list[str]) -> None:
    assert wrapped(text, width) == rows


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [("ab cd", 4, ["ab c", "d"]), ("a日本", 2, ["a", "日", "本"]), ("abc", 0, ["ab", "c"])],
)
def test_a_draft_is_broken_anywhere_and_loses_no_character(text: str, width: int, rows: list[str]) -> None:
    assert cut_in_rows(text, width) == rows
    assert "".join(rows) == text


@pytest.mark.parametrize(
    ("text", "cursor", "place"),
    [
        ("abcdef", 0, Place(0, 0)),
        ("abcdef", 3, Place(0, 3)),
        ("abcdef", 4, Place(1, 0)),
        ("abcdef", 6, Place(1, 2)),
        ("abcd", 4, Place(0, 4)),
        ("abcd\nx", 4, Place(0, 4)),
        ("abcd\nx", 5, Place(1, 0)),
        ("日本語", 2, Place(1, 0)),
    ],
)
def test_the_cursor_stands_before_its_character(text: str, cursor: int, place: Place) -> None:
    assert place_in(text, cursor, 4) == place
