import re

import pytest

from csp.terminal.generic_screen import (
    SCROLLED,
    Surround,
    has_echo,
    settled_text,
    without_last,
    without_scrollbar,
)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ([], ["hello"], "hello"),
        (["$ ask"], ["$ ask", "one", "two"], "one\ntwo"),
        (["a", "b"], ["a", "b"], ""),
        (["a", "> "], ["a", "answer", "> "], "answer"),
        (["a", "> old"], ["a", "answer", "", "more", ""], "answer\n\nmore"),
        (["a", "b"], ["a"], ""),
        (["x"] * 1000 + ["> "], ["x"] * 1000 + ["x", "y", "> "], "x\ny"),
    ],
)
def test_the_lines_that_were_added(before: list[str], after: list[str], text: str) -> None:
    assert settled_text(before, after) == text


@pytest.mark.parametrize(
    ("after", "answer"),
    [
        (["old", "more of the old", "", "[from a #2] queued lin…"], ""),
        (["old", "", "[from a #2] a long pro…", "", "yes"], "yes"),
        (["old", "", "[from a #2]", "hi", "[end #2]", "as [from a #2] said"], "as [from a #2] said"),
    ],
)
def test_nothing_above_a_prompt_is_its_answer(after: list[str], answer: str) -> None:
    assert settled_text(["old"], after, "[end #2]", header="[from a #2]") == answer


def test_furniture_is_left_out() -> None:
    furniture = re.compile(r"^(?:─+|> .*)$")

    assert settled_text(["> "], ["> ask", "answer", "───", "> "], furniture=furniture) == "answer"


def test_a_scroll_bar_is_no_text() -> None:
    lines = ["hello".ljust(18) + "┃", " " * 19 + "█", "a█", "x" * 19 + "█", "┃"]

    assert without_scrollbar(lines, 20) == ["hello", "", "a█", "x" * 19 + "█", "┃"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[from a]\nhi\n[end #2]\n\nyes, [end #2]", "yes, [end #2]"),
        ("> hi [end #2]     05:57\n\nok", "ok"),
        ("got [end #2], thanks", ", thanks"),
        ("no echo", "no echo"),
        ("hi [end #2]      ", ""),
    ],
)
def test_an_answer_stands_behind_the_echo(text: str, answer: str) -> None:
    assert settled_text([], text.split("\n"), "[end #2]") == answer


def test_an_answer_may_be_the_same_as_one_that_has_scrolled_off() -> None:
    before = ["> hi [end #1]", "ok", "", "sure"]
    after = ["> a long", "prompt", "[end #2]", "ok", "", "sure"]

    assert settled_text(before, after, "[end #2]") == "ok\n\nsure"


def test_what_always_stands_below_is_no_answer() -> None:
    start = ["Welcome", "", "~/project", "───"]
    surround = Surround(above=tuple(start), below=tuple(start))
    first = ["[end #1]", "ok", "", "~/project", "───"]
    second = [*first[:3], "[end #2]", "ok", "", "~/project", "───"]

    assert settled_text(start, first, "[end #1]", surround=surround) == "ok"
    surround = surround.shared_with(first)
    assert surround == Surround(above=(), below=("", "~/project", "───"))
    assert settled_text(first, second, "[end #2]", surround=surround) == "ok"
    assert settled_text(first, ["[end #2]", "", "~/project", "───"], "[end #2]", surround=surround) == ""


def test_the_echo_is_the_first_new_footer() -> None:
    assert has_echo(["old [end #2]"], ["old [end #2]", "> ask [end #2]"], "[end #2]")
    assert not has_echo(["old [end #2]"], ["old [end #2]", "new"], "[end #2]")


def test_an_old_footer_is_no_echo() -> None:
    """A message may quote the line that another one will end in."""
    before = ["beware of [end #2]", "old"]

    assert settled_text(before, ["x [end #2]", "new"], "[end #2]") == "x [end #2]\nnew"
    assert settled_text(before, ["x [end #2]", "old", "> [end #2]", "new"], "[end #2]") == "new"


SURROUND = Surround(above=("tabs",), below=("path",))


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        (["tabs", "a", "b", "path"], ["tabs", "c", "d", "path"], "c\nd"),
        (["tabs", "c", "d", "path"], ["tabs", "c", "d", "path"], "c\nd"),
        (["tabs", "a", "b", "path"], ["tabs", "b", "[pasted]", "d", "path"], "[pasted]\nd"),
    ],
    ids=["new", "same", "collapsed"],
)
def test_an_answer_whose_echo_has_scrolled_off_is_the_screen(
    before: list[str], after: list[str], answer: str
) -> None:
    text = settled_text(before, after, "[end #2]", surround=SURROUND, is_cut=True)

    assert text == f"{SCROLLED}\n{answer}"
    assert settled_text(["tabs", "path"], ["tabs", "path"], "[end #2]", surround=SURROUND, is_cut=True) == ""


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (" ● ok", "ok"),
        ("  ✦ one\n\n    two\n      three", "one\n\ntwo\n  three"),
        ("     one\n       two", "one\n  two"),
        ("● one\n● two", "● one\n● two"),
        ("● one\ntwo", "● one\ntwo"),
        ("●", "●"),
    ],
)
def test_an_answer_has_neither_margin_nor_bullet(shown: str, text: str) -> None:
    assert settled_text([], shown.split("\n")) == text


def test_a_sign_of_work_at_the_end_is_no_answer() -> None:
    sign = re.compile("esc to cancel")

    assert without_last("⠏ Thinking (10s, esc to cancel)\n  \n", [sign]) == ""
    assert without_last("press esc to cancel\nor wait\n\nBusy (esc to cancel)", [sign]) == (
        "press esc to cancel\nor wait"
    )
    assert without_last("press esc to cancel", []) == "press esc to cancel"
