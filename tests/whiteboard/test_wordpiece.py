"""The tests of cutting text into pieces of words."""

import pytest

from csp.whiteboard.wordpiece import WordPieces, words_of

PIECES = WordPieces.of(
    "\n".join(["[UNK]", "[CLS]", "[SEP]", "un", "##able", "able", "##s", ".", "中", "cafe"])
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("Café\u0301 naïve", ["cafe", "naive"]),
        ("csp/core.py_x", ["csp", "/", "core", ".", "py", "_", "x"]),
        ("中文ok", ["中", "文", "ok"]),
        ("a\u200bb\x00c — d", ["abc", "—", "d"]),
        (" \t\n", []),
    ],
)
def test_text_is_cut_into_words(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("unable", [3, 4]),
        ("Unables.", [3, 4, 6, 7]),
        ("unfit", [0]),
        ("x" * 101, [0]),
        ("un" + "s" * 98, [3, *[6] * 98]),
        ("un" + "s" * 99, [0]),
        ("中 café", [8, 9]),
        ("", []),
    ],
)
def test_words_are_cut_into_the_longest_known_pieces(text: str, ids: list[int]) -> None:
    assert PIECES.ids(text, 120) == ids


def test_no_more_pieces_than_asked_for() -> None:
    assert PIECES.ids("able able able", 2) == [5, 5]
    assert len(PIECES) == 10
