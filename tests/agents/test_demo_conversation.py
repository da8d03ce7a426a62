"""What a demo agent's pane shows, row for row."""

import re
from collections.abc import Sequence

import pytest

from csp.agents.demo.composer import Composer
from csp.agents.demo.conversation import MAX_ECHO_ROWS, MAX_ITEMS, Busy, Conversation
from csp.agents.demo.demo_screen import Screen
from csp.agents.demo.key_decoder import Text
from csp.agents.demo.personas import PERSONAS
from csp.agents.demo.text_rows import Place

ADA = PERSONAS["ada"]


class Drawn(Screen):
    """Keeps what is drawn instead of writing it."""

    def __init__(self) -> None:
        self.stayed: list[str] = []
        self.changing: list[str] = []
        self.cursor = Place(0, 0)
        self.cleared = 0

    def draw(self, staying: Sequence[str], changing: Sequence[str], cursor: Place) -> None:
        self.stayed += staying
        self.changing, self.cursor = list(changing), cursor

    def clear(self) -> None:
        self.stayed = []
        self.cleared += 1


class Pane:
    def __init__(self, rows: int = 24, cols: int = 40, *, has_colour: bool = False) -> None:
        self.screen = Drawn()
        self.composer = Composer()
        self.talk = Conversation(ADA, "ada", self.screen, has_colour=has_colour)
        self.talk.fit(rows, cols)

    def draw(self, busy: Busy | None = None) -> list[str]:
        """Draw it; return the rows at the bottom without their colours."""
        self.talk.draw(self.composer, busy, "the hint")
        return [plain(row) for row in self.screen.changing]

    @property
    def stayed(self) -> list[str]:
        return [plain(row) for row in self.screen.stayed]


def plain(row: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", row)


def test_an_empty_pane_has_a_composer_between_two_lines() -> None:
    pane = Pane()

    assert pane.draw() == ["", "─" * 40, "❯ Say something to ada", "─" * 40, "  the hint"]
    assert pane.screen.cursor == Place(2, 2)


def test_an_answer_that_comes_goes_up_row_by_row_and_only_once() -> None:
    pane = Pane(cols=12)
    pane.talk.stream("one two three")
    assert pane.draw()[:2] == ["  three", ""]
    pane.talk.stream("one two three four five")
    assert pane.draw()[0] == "  five"
    pane.talk.finish()
    pane.draw()

    assert pane.stayed == ["", "● one two", "  three four", "  five"]
    pane.talk.stream("six")
    pane.talk.finish()
    pane.draw()
    assert pane.stayed[4:] == ["", "● six"]


def test_a_long_prompt_is_echoed_in_part() -> None:
    pane = Pane()
    pane.talk.ask("\n".join(str(number) for number in range(MAX_ECHO_ROWS + 1)))
    pane.talk.ask("\n".join(str(number) for number in range(MAX_ECHO_ROWS + 2)))
    pane.draw()

    assert pane.stayed[:8] == ["", *(f"> {number}" for number in range(7))]
    assert pane.stayed[8:] == ["", *(f"> {number}" for number in range(6)), "> … 2 more rows"]


def test_notes_and_strong_words_are_marked() -> None:
    pane = Pane()
    pane.talk.note("stopped")
    pane.talk.stream("a **strong** word")
    pane.talk.finish()
    pane.draw()

    assert pane.stayed == ["  ⎿ stopped", "", "● a strong word"]
    assert "\x1b[1mstrong\x1b[0m" in pane.screen.stayed[-1]


@pytest.mark.parametrize(("has_colour", "mark"), [(True, f"\x1b[{ADA.colour}m●"), (False, "●")])
def test_an_answer_is_marked_in_the_agents_colour(has_colour: bool, mark: str) -> None:
    pane = Pane(has_colour=has_colour)
    pane.talk.stream("yes")
    pane.talk.finish()
    pane.draw()

    assert pane.screen.stayed[-1].startswith(mark)


def test_a_new_size_shows_again_what_fits() -> None:
    pane = Pane(rows=6, cols=30)
    pane.talk.ask("a prompt")
    pane.talk.stream("a first answer")
    pane.talk.finish()
    pane.talk.stream("and this one is still coming in")
    pane.draw()
    pane.talk.fit(6, 12)
    pane.talk.show_again()
    bottom = pane.draw()
    pane.talk.finish()
    pane.draw()

    assert pane.screen.cleared == 1
    assert bottom[0] == "  coming in"
    assert pane.stayed[:6] == ["● a first", "  answer", "", "● and this", "  one is", "  still"]
    assert pane.stayed[6:] == ["  coming in"]


def test_as_much_is_remembered_as_a_screen_may_need() -> None:
    pane = Pane(rows=1000)
    for number in range(MAX_ITEMS + 3):
        pane.talk.note(str(number))
    pane.talk.show_again()
    pane.draw()

    assert (MAX_ITEMS, pane.stayed[0], len(pane.stayed)) == (100, "  ⎿ 3", 100)


def test_a_busy_agent_says_for_how_long_it_has_been() -> None:
    pane = Pane()
    rows = pane.draw(Busy(what="Thinking", elapsed_s=61.9))

    assert rows[1][1:] == " Thinking… (61s · esc to interrupt)"
    marks = {plain(Busy(what="x", elapsed_s=at / 8).row(80))[0] for at in range(8)}
    assert len(marks) > 3


def test_of_a_long_draft_the_part_with_the_cursor_is_shown() -> None:
    pane = Pane(rows=24)
    pane.composer.take(Text("\n".join(f"line {number}" for number in range(30))))
    assert [row for row in pane.draw() if "line" in row][-1] == "  line 29"
    assert len([row for row in pane.draw() if "line" in row]) == 10
    pane.composer.cursor = 0
    rows = [row for row in pane.draw() if "line" in row]

    assert (rows[0], rows[-1]) == ("❯ line 0", "  line 9")
    assert pane.screen.cursor == Place(2, 2)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_low_terminal_shows_the_composer_first(rows: int) -> None:
    pane = Pane(rows=rows)
    pane.composer.take(Text("hello"))
    bottom = pane.draw(Busy(what="Thinking", elapsed_s=1))

    assert "❯ hello" in bottom and len(bottom) <= rows
    assert bottom[pane.screen.cursor.row] == "❯ hello"
    assert pane.screen.cursor.column == 7


def test_a_terminal_without_a_size_is_taken_for_a_small_one() -> None:
    pane = Pane(rows=0, cols=0)

    assert pane.draw() == ["❯ Sa"]
