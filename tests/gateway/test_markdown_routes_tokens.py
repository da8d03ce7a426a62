"""The stream of tokens that a page draws."""

import time

import pytest

from csp.gateway.markdown_routes import MAX_CHARS, MAX_DEPTH, MAX_LINES, markdown_tokens
from csp.protocol.responses import MarkdownToken
from tests.web.texts import PIECES


def spelt(text: str) -> str:
    """Return the tokens of a text in short."""
    return " ".join(map(_short, markdown_tokens(text).tokens))


def _short(token: MarkdownToken) -> str:
    return "/" if token is None else token if isinstance(token, str) else f"<{','.join(map(str, token))}>"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a\n## b\n---", "<p> a / <h,2> b / <hr>"),
        ("> a\nb", "<blockquote> <p> a / / <p> b /"),
        ("3. a\n4. b", "<ol,3> <li> a / <li> b / /"),
        ("- a\n\n- b", "<ul> <li> <p> a / / <li> <p> b / / /"),
        ("- [ ] a\n- [X] b\n- [x]\n- [y] c", "<ul> <li,0> a / <li,1> b / <li,1> / <li> [y] c / /"),
        ("- # [ ] a", "<ul> <li> <h,1> [ ] a / / /"),
        ("1. a\n  - b\n    c\n2. d", "<ol,1> <li> a <ul> <li> b <br> c / / / <li> d / /"),
        ("1. a\n  - b\n3) d", "<ol,1> <li> a <ul> <li> b / / / / <ol,3> <li> d / /"),
        ("1. a\n- b\n2. c", "<ol,1> <li> a / / <ul> <li> b / / <ol,2> <li> c / /"),
        ("> 1. a\n>   - b", "<blockquote> <ol,1> <li> a <ul> <li> b / / / / /"),
        (
            "a|b\n:-|-:\n1|",
            "<table> <thead> <tr> <th,left> a / <th,right> b / / / <tbody> <tr> <td,left> 1 /"
            " <td,right> / / / /",
        ),
        ("```js x\na\n\n b\n```", "<pre,js x,a\n\n b>"),
        ("```\r\na\r\nb\r\n```\r\nc", "<pre,,a\r\nb> <p> c /"),
        ("    a\n\n    b", "<pre,,a\n\nb>"),
        ("```", "<pre,,>"),
        ("*a **b** ~~c~~ `d`*\ne", "<p> <em> a  <strong> b /   <del> c /   <code,d> / <br> e /"),
        (r"\*a\* [b](https://h.i)", "<p> *a*  <a,https://h.i> b / /"),
        ("\x00\r\n😀", "<p> \x00 <br> 😀 /"),
    ],
)
def test_tokens(text: str, tokens: str) -> None:
    assert spelt(text) == tokens


def test_length_counts_as_a_browser_does() -> None:
    assert markdown_tokens("😀a\r\n").length == 5


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("x" * (MAX_CHARS + 5), MAX_CHARS),
        ("x" * (MAX_CHARS - 5) + "\n" + "y" * 99, MAX_CHARS - 4),
        ("a\n" * (MAX_LINES + 5), 2 * MAX_LINES),
        ("a\n" * MAX_LINES, 2 * MAX_LINES),
    ],
)
def test_a_long_text_is_cut_after_a_line_where_there_is_one(text: str, length: int) -> None:
    assert markdown_tokens(text).length == length


@pytest.mark.parametrize(
    ("start", "indent", "fence"), [("~~~~ py\n", 0, "~~~~"), ("- a\n\n  ```\n", 2, "```")]
)
def test_code_that_was_cut_says_where_it_ends(start: str, indent: int, fence: str) -> None:
    tokens = markdown_tokens(start + f"{' ' * indent}x\n" * 2000).tokens
    code = next(one for one in tokens if isinstance(one, tuple) and one[0] == "pre")

    assert code[3:] == (fence, indent)
    assert set(str(code[2]).split("\n")) == {"x"}


def test_code_before_the_cut_is_whole() -> None:
    tokens = markdown_tokens("```\na\n```\n" + "b\n" * 2000).tokens

    assert tokens[0] == ("pre", "", "a")


def test_emphasis_that_lies_too_deep_is_shown_as_its_signs() -> None:
    tokens = markdown_tokens("*a " * 40 + "b" + " c*" * 40).tokens
    depth = deepest = 0
    for token in tokens:
        depth += -1 if token is None else 0 if isinstance(token, str) else 1
        deepest = max(deepest, depth)

    assert (depth, deepest) == (0, MAX_DEPTH + 1)
    assert "".join(token for token in tokens if isinstance(token, str)).count("*") == 2 * (40 - MAX_DEPTH)


def test_time_grows_with_the_text_and_no_faster() -> None:
    # A collection of garbage may fall into a try.
    steep = {piece: costs for piece in PIECES if _is_steep(costs := _costs(piece))}

    assert {piece: again for piece in steep if _is_steep(again := _costs(piece, tries=3))} == {}


def _is_steep(costs: list[float]) -> bool:
    """The longer text is twenty times as long; with the square of the length it would take 400 times."""
    return costs[1] > 100 * max(costs[0], 0.001)


def _costs(piece: str, tries: int = 1) -> list[float]:
    """Return the least CPU time that a short text and a long one take."""
    return [min(_seconds(piece * (size // len(piece))) for _ in range(tries)) for size in (1_000, MAX_CHARS)]


def _seconds(text: str) -> float:
    began = time.thread_time()
    markdown_tokens(text)
    return time.thread_time() - began
