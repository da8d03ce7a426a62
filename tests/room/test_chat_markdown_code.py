"""Which lines are code: by CommonMark, but for the rules of a chat."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from csp.room.chat_markdown import (
    MAX_LINES,
    _code_lines,
    _code_seen,
    first_lines,
    read_blocks,
    read_lines,
)

PIECES = [
    *(
        "```",
        "```\n",
        "~~~\n",
        "````\n",
        "`",
        "``",
        "`a`",
        "\n",
        "\n\n",
        "@all hi\n",
        "- ",
        "1. ",
        "  ",
        "    ",
    ),
    *(
        "> ",
        "text ",
        "# h\n",
        "---\n",
        "===\n",
        "|a|b|\n",
        "|-|-|\n",
        "\\",
        "\\\\",
        "<b>",
        "[x](https://h.i)",
    ),
    *("\t", "\r\n", "https://h.i/", "<https://h.i>", "[ ] ", "*"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
FENCED = st.lists(
    st.sampled_from(
        ["```\n", "```py\n", "````\n", "  ```\n", "    ```\n", "``` \r\n", "`a`\n", "\n", "a\n", "- b\n"]
    )
).map("".join)
#: Lines that cost much each: every one of them is looked at once for each level.
NESTED = [
    "- " * 8 + "`\n",
    "> " * 16 + "`\n",
    "> - " * 5 + "`\n",
    "- " * 8 + "`\n" + " " * 16 + "b\n",
    "a|`\n-|-\n",
]


CONTAINERS = ("- ", "1. ", "> ")
COMMONMARK = MarkdownIt("commonmark").disable(["html_block"])


def fences(tokens: list[Token]) -> list[list[int] | None]:
    return [token.map for token in tokens if token.type == "fence"]


def code_of(text: str) -> list[int]:
    return [number for number, line in enumerate(read_lines(text)) if line.is_code]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```\nb\n\n```\nc", [1, 2, 3, 4]),
        ("a\r\n```\r\nb\r\n```\r\nc", [1, 2, 3]),
        ("- a\n  ```\n  b\n  ```\nc", [1, 2, 3]),
        ("- a\n  ```\nb\n  ```\nc", [1, 3, 4]),
        ("> ```\n> a\nb", [0, 1]),
        ("a `b\nc` d `e\nf\ng` h", [1, 2, 3]),
        ("a `b\nc\n\nd` e", []),
        ("a `b\n===\nc`", []),
        ("a `b\n= =\nc`", [1, 2]),
        ("> a `b\nc`", []),
        ("`a` b\n`c`", []),
        ("[`a\n@b`](https://h.i)", [1]),
        ("[a](https://h.i/`x) `b\nc` `", [1]),
        ("<https://h.i/`> `b\nc`", [1]),
        ("    a\n\n    b `\nc`", []),
    ],
)
def test_lines_that_begin_in_code(text: str, code: list[int]) -> None:
    assert code_of(text) == code


def test_a_line_has_its_place_in_the_text() -> None:
    text = "a\r\n \n`b`"

    assert [text[line.start : line.end] for line in read_lines(text)] == ["a", " ", "`b`"]
    assert [line.is_blank for line in read_lines(text)] == [False, True, False]


def test_the_first_lines_leave_the_rest() -> None:
    assert first_lines("a\nb\nc", 2) == ("a\nb", "c")
    assert first_lines("a\nb", 2) == ("a\nb", "")


@given(st.lists(st.sampled_from([piece for piece in PIECES if piece not in CONTAINERS])).map("".join))
def test_fences_outside_quotes_and_lists_are_those_of_commonmark(text: str) -> None:
    plain = text.replace("\r\n", "\n")

    assert fences(read_blocks(plain)) == fences(COMMONMARK.parse(plain))


@given(st.one_of(TEXTS, FENCED))
def test_a_quick_look_sees_what_the_parser_sees(text: str) -> None:
    seen = _code_seen(text)

    assert seen is None or seen == list(_code_lines(text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a `b`\n```py\nc\n\n  ```\n- d\n```\ne", [1, 2, 3, 4, 6, 7]),
        ("a\n````\n```\n`\n````\n\n[x](https://h.i)\n\n`d`\n", [1, 2, 3, 4]),
        ("a `b`\n\nc <d>\n", []),
        ("[a](https://h.i) `b` ![c](d)\ne `f`", []),
        ("a `b` < c\n`d<e>` <f> g", []),
    ],
)
def test_most_code_is_seen_without_the_parser(text: str, code: list[int]) -> None:
    assert _code_seen(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "a `b\nc`",
        "- a\n  ```\n",
        "> ```\n",
        "~~~\n",
        "a `` ` ``",
        "`<a`>",
        "[a](`) `",
        "[a](b `) `",
        "[a](b\n`) `",
    ],
)
def test_other_code_is_left_to_the_parser(text: str) -> None:
    assert _code_seen(text) is None


@pytest.mark.parametrize("piece", NESTED)
def test_cost_grows_with_nested_lines_and_no_faster(piece: str) -> None:
    read_lines(piece)
    costs = []
    for size in (4_000, 64_000):
        began = time.thread_time()
        read_lines(piece * (size // len(piece)))
        costs.append(time.thread_time() - began)

    # Sixteen times as long; with the square of the length it would be 256 times.
    assert costs[1] < 64 * costs[0]


def test_as_many_lines_as_are_read_take_no_second() -> None:
    for piece in NESTED:
        began = time.thread_time()
        read_lines(first_lines(piece * MAX_LINES)[0])

        assert time.thread_time() - began < 2, piece
