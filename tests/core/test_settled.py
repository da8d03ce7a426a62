import re

import pytest

from csp.core.settled import behind_echo, settled_text, without_last, without_scrollbar


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


def test_furniture_is_left_out() -> None:
    furniture = re.compile(r"^(?:─+|> .*)$")

    assert settled_text(["> "], ["> ask", "answer", "───", "> "], furniture) == "answer"


def test_a_scroll_bar_is_no_text() -> None:
    lines = ["hello".ljust(18) + "┃", " " * 19 + "█", "a█", "x" * 19 + "█", "┃"]

    assert without_scrollbar(lines, 20) == ["hello", "", "a█", "x" * 19 + "█", "┃"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[from a]\nhi\n[end #2]\n\nyes, [end #2]", "yes, [end #2]"),
        ("> hi [end #2]     05:57\n\n● ok", "● ok"),
        ("got [end #2], thanks", ", thanks"),
        ("no echo", "no echo"),
        ("hi [end #2]      ", ""),
    ],
)
def test_an_answer_stands_behind_the_echo(text: str, answer: str) -> None:
    assert behind_echo(text, "[end #2]") == answer


def test_a_sign_of_work_at_the_end_is_no_answer() -> None:
    sign = re.compile("esc to cancel")

    assert without_last("⠏ Thinking (10s, esc to cancel)\n  \n", [sign]) == ""
    assert without_last("press esc to cancel\nor wait\n\nBusy (esc to cancel)", [sign]) == (
        "press esc to cancel\nor wait"
    )
    assert without_last("press esc to cancel", []) == "press esc to cancel"
