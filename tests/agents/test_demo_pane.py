"""What the pane of a demo agent shows, row for row."""

import io
import re
from typing import Any

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.key_binding import KeyBindings

from csp.agents.demo.demo_pane import MAX_ECHO_ROWS, MAX_ITEMS, DemoPane, wrapped


class Drawn:
    """A pane whose application does not run yet, so that it only writes what scrolls by."""

    def __init__(self, rows: int = 24, columns: int = 40, colour: int | None = None) -> None:
        self._file = io.StringIO()
        self.pane = DemoPane(
            "ada", colour, KeyBindings(), lambda: "", lambda: "", None, self._file, DummyInput()
        )
        self.fit(rows, columns)

    def fit(self, rows: int, columns: int) -> None:
        pane: Any = self.pane
        pane._size = lambda: Size(rows=rows, columns=columns)

    @property
    def raw(self) -> str:
        """All that was written since the screen was cleared."""
        return self._file.getvalue().rpartition("\x1b[H\x1b[J")[2]

    @property
    def rows(self) -> list[str]:
        return re.sub(r"\x1b\[[?\d]+[a-z]", "", self.raw).split("\r\n")[:-1]


def test_an_answer_that_comes_goes_up_row_by_row_and_only_once() -> None:
    drawn = Drawn(columns=12)
    drawn.pane.stream("one two three")
    assert drawn.rows == ["", "● one two"]
    drawn.pane.stream("one two three four five")
    drawn.pane.finish()

    assert drawn.rows == ["", "● one two", "  three four", "  five"]
    drawn.pane.stream("six")
    drawn.pane.finish()
    assert drawn.rows[4:] == ["", "● six"]


def test_a_long_prompt_is_echoed_in_part() -> None:
    drawn = Drawn()
    drawn.pane.add("prompt", "\n".join(str(number) for number in range(MAX_ECHO_ROWS + 1)))
    drawn.pane.add("prompt", "\n".join(str(number) for number in range(MAX_ECHO_ROWS + 2)))

    assert drawn.rows[:8] == ["", *(f"> {number}" for number in range(7))]
    assert drawn.rows[8:] == ["", *(f"> {number}" for number in range(6)), "> … 2 more rows"]


def test_notes_and_strong_words_are_marked() -> None:
    drawn = Drawn()
    drawn.pane.add("note", "stopped")
    drawn.pane.stream("a **strong** word")
    drawn.pane.finish()

    assert drawn.rows == ["  ⎿ stopped", "", "● a strong word"]
    assert "\x1b[1mstrong\x1b[0m" in drawn.raw


@pytest.mark.parametrize(("colour", "mark"), [(36, "\x1b[36m●"), (None, "\n●")])
def test_an_answer_is_marked_in_the_agents_colour(colour: int | None, mark: str) -> None:
    drawn = Drawn(colour=colour)
    drawn.pane.stream("yes")
    drawn.pane.finish()

    assert mark in drawn.raw


def test_a_new_size_shows_again_what_fits() -> None:
    drawn = Drawn(rows=6, columns=30)
    drawn.pane.add("prompt", "a prompt")
    drawn.pane.stream("a first answer")
    drawn.pane.finish()
    drawn.pane.stream("and this one is still coming in")
    drawn.fit(6, 12)
    drawn.pane.show_again()
    drawn.pane.finish()

    assert drawn.rows[:6] == ["● a first", "  answer", "", "● and this", "  one is", "  still"]
    assert drawn.rows[6:] == ["  coming in"]


def test_as_much_is_remembered_as_a_screen_may_need() -> None:
    drawn = Drawn(rows=1000)
    for number in range(MAX_ITEMS + 3):
        drawn.pane.add("note", str(number))
    drawn.pane.show_again()

    assert (MAX_ITEMS, drawn.rows[0], len(drawn.rows)) == (100, "  ⎿ 3", 100)


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("  indented text", 10, ["  indented", "text"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("日本語の文", 4, ["日本", "語の", "文"]),
        ("a\n\nb", 4, ["a", "", "b"]),
        ("日本", 1, ["日", "本"]),
    ],
)
def test_a_text_is_broken_at_its_blanks(text: str, width: int, rows: list[str]) -> None:
    assert wrapped(text, width) == rows
