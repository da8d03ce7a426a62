import re

import pytest

from csp.core.settled import settled_text


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
