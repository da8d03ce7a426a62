"""CommonMark with the rules of a chat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.token import Token

from csp.room.chat_markdown import (
    DEEPEST,
    MAX_ADDRESS,
    MAX_CONTAINERS,
    MAX_RUN,
    read_blocks,
    read_inline,
)


def outline(text: str) -> str:
    """Return the blocks of a text: what opens, what closes, the content of the rest."""
    return "".join(map(_block, read_blocks(text)))


def _block(token: Token) -> str:
    if token.nesting:
        return f"<{'/' * (token.nesting < 0)}{token.tag}>"
    return token.content if token.type == "inline" else f"<{token.type}>"


def spelt(content: str) -> str:
    """Return the inline tokens of a content, in the same way."""
    return "".join(map(_inline, read_inline(content)))


def _inline(token: Token) -> str:
    if token.type == "link_open":
        return f"<{token.attrs['href']}>"
    if token.nesting:
        return f"<{'/' * (token.nesting < 0)}{token.tag}>"
    if token.type == "code_inline":
        return f"<{token.content}>"
    return "<br>" if token.type == "softbreak" else token.content


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("a\r\nb", "<p>a\nb</p>"),
        ("a\n---\nb", "<p>a</p><hr><p>b</p>"),
        ("a\nb\n===\nc", "<h1>a\nb</h1><p>c</p>"),
        ("a\n    ===", "<p>a\n    ===</p>"),
        ("<b>\n\n&lt;\n\n[a]: https://h.i", "<p><b></p><p>&lt;</p><p>[a]: https://h.i</p>"),
        ("> a\nb", "<blockquote><p>a</p></blockquote><p>b</p>"),
        ("- a\nb", "<ul><li><p>a</p></li></ul><p>b</p>"),
        ("a\n    - b", "<p>a\n    - b</p>"),
        ("a\n\n    b", "<p>a</p><code_block>"),
        ("- [ ] ```\n  a", "<ul><li><p>[ ] ```\na</p></li></ul>"),
        ("a|b\n-|-\nc\nd|e", "<table><thead><tr><th>a</th><th>b</th></tr></thead></table><p>c\nd|e</p>"),
        (
            "a|b\n-|-\n1|2\nc",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead>"
            "<tbody><tr><td>1</td><td>2</td></tr></tbody></table><p>c</p>",
        ),
        ("x\na|b\n-|-", "<p>x</p><table><thead><tr><th>a</th><th>b</th></tr></thead></table>"),
    ],
)
def test_blocks(text: str, blocks: str) -> None:
    assert outline(text) == blocks


def test_two_tables_are_ended_by_their_own_lines() -> None:
    assert outline("a|b\n-|-\n\na|b\n-|-\nc").count("<table>") == 2
    assert outline("a|b\n-|-\nc").endswith("<p>c</p>")


@pytest.mark.parametrize(("columns", "is_table"), [(64, True), (65, False)])
def test_a_table_has_no_more_than_64_columns(columns: int, is_table: bool) -> None:
    assert outline("|a" * columns + "|\n" + "|-" * columns + "|").startswith("<table>") is is_table


@pytest.mark.parametrize("piece", ["> ", "- ", "> - "])
def test_what_is_nested_too_deep_is_text(piece: str) -> None:
    blocks = read_blocks(piece * 40 + "x")

    assert max(token.level for token in blocks) <= DEEPEST + 2
    assert next(token.content for token in blocks if token.type == "inline").endswith(f"{piece}x")


def test_after_very_many_quotes_and_lists_all_is_text() -> None:
    blocks = outline("> a\n\n" * (MAX_CONTAINERS + 2))

    assert (blocks.count("<blockquote>"), blocks.count("<p>> a</p>")) == (MAX_CONTAINERS, 2)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        ("a\nb", "a<br>b"),
        (r"\*a\* C:\new \. \`b\`", r"*a* C:\new \. `b`"),
        (r"\\server \\`a`", r"\\server \\<a>"),
        ("`a` ``b`c`` `d", "<a> <b`c> `d"),
        ("*a* **b** ~~c~~ ~d~", "<em>a</em> <strong>b</strong> <s>c</s> ~d~"),
        ("**注意：**请看", "<strong>注意：</strong>请看"),
        ("请看**：注意**", "请看<strong>：注意</strong>"),
        ("好*", "好*"),
        ("* 好", "* 好"),
        ("a**: b**", "a**: b**"),
        ("*" * (MAX_RUN + 1) + "a*", "*" * (MAX_RUN + 1) + "a*"),
        ("[a](https://h.i/b_(c))", "<https://h.i/b_(c)>a</a>"),
        ('[a](<https://h.i> "t")', "<https://h.i>a</a>"),
        ("![a](https://h.i)", "<https://h.i>a</a>"),
        ("!a ![b] [c", "!a ![b] [c"),
        ("![b](x) [c](d)", "![b](x) [c](d)"),
        (r"[a](https://h\.i)", r"[a](<https://h>https://h</a>\.i)"),
        ("[a](https&colon;//h.i)", "[a](https&colon;//h.i)"),
        ("[a](mailto:b@h.i)", "<mailto:b@h.i>a</a>"),
        ("[a](javascript:b) <javascript:b>", "[a](javascript:b) <javascript:b>"),
        ("<https://h.i> <b@h.i>", "<https://h.i>https://h.i</a> <mailto:b@h.i>b@h.i</a>"),
        (
            "see https://h.i/a?b (http://h.i).",
            "see <https://h.i/a?b>https://h.i/a?b</a> (<http://h.i>http://h.i</a>).",
        ),
        ("HTTPS://h.i", "<HTTPS://h.i>HTTPS://h.i</a>"),
        ("http://[::1]:80/a [b]", "<http://[::1]:80/a>http://[::1]:80/a</a> [b]"),
        ("xhttp://h.i ://a ftp://h.i", "xhttp://h.i ://a ftp://h.i"),
        ("https://a@h.i/ http:// b", "https://a@h.i/ http:// b"),
        (r"[\\ https://a@h.i/ b](https://h.i)", r"<https://h.i>\\ https://a@h.i/ b</a>"),
        ("(see https://h.i/(a)).)", "(see <https://h.i/(a)>https://h.i/(a)</a>).)"),
        ("[see http://a](https://h.i)", "<https://h.i>see http://a</a>"),
        ("[a](https://h.i http://b", "[a](<https://h.i>https://h.i</a> <http://b>http://b</a>"),
        (f"https://{'a' * MAX_ADDRESS}", f"https://{'a' * MAX_ADDRESS}"),
    ],
)
def test_the_inside_of_blocks(content: str, tokens: str) -> None:
    assert spelt(content) == tokens


@pytest.mark.parametrize("hidden", "\u202e\u200b\u00ad\t\x01\ufe0f\ufffe\U000e0041\ud800")
def test_an_address_with_what_nobody_sees_is_no_link(hidden: str) -> None:
    for address in (f"https://h{hidden}.i", f"mailto:a@h{hidden}.i"):
        assert ">x</a>" not in spelt(f"[x](<{address}>)")


@given(st.lists(st.sampled_from([*"*_~`[]()!<>\\\n :/|#-", "a", "https://h.i", "](", "中"])).map("".join))
def test_no_character_of_a_text_is_lost_but_signs(text: str) -> None:
    kept = "".join(token.content for token in read_inline(text) if not token.nesting)

    assert kept.count("中") == text.count("中")
