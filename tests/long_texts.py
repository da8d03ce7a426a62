"""Long texts of every kind: one sign, patterns of our own grammar, shapes of the real world."""

import base64
import random
import string
from collections.abc import Iterator
from typing import Final

SIGNS: Final = string.punctuation + string.whitespace + "abZ09é—…\u200b\u2028\u202e😀日\x00\x1b\x7f"
# fmt: off
REPEATED: Final = (
    "a-", "-a", "a_", "aA", "Aa", "AB", "a1", "A1-", "1-", "1:", "a.", "a/", "/a", "::", "0x", "a=", "a='",
    "://:@", "a://b:c@", "http://", "a@b.", "sk-", "sk-a", "AKIA", "eyJ.", "ghp_", "`a", "a`", "*a", "**a",
    "[a](", "](", "[[", "((", '{"', '\\"', "</", "<a>", "<!--", "&lt;", "${a}", "%s", "--", "-- ",
    "@claude ", "@send.a x\n", "\n@", "@mode.debate x\n", "NOOP\n", "WORKING x\n", "VOTE: [A]\n",
    "DECISION: accept\n", "RESOLVED: f-1\n", "```\n", "~~~\n", "- ```\n", "> ", "\n> ", "\n- ", "\n1. ",
    "| a ", "|-", " \n", "\t\n", "\r\n", "a b ", "token: ", "password=", "Bearer ", "Bearer a",
    "-----BEGIN ", "-----BEGIN PRIVATE KEY-----\n", "\x1b[", "\x1b]0;", "e\u0301", "don't ", "1 ", "at 9:",
    "[end #1]\n", "[from human #1]\n", "```\n{\n", "```\n{}x\n", "````\n{}\n```\n", "```json\n{ }\n ```\n",
    "VOTE: [A] x\n", "@x\n", "[a](b", "![", "<a ", "`a``", "~~", "a@b.c ", "http://a.b/", '{"a":', "[",
    "\u200d👩", "\u05d0", "e\u0301\u0302", "reset at ", "try again in ", '@"', "@\\", "{x.last}", "“", "─",
)
# fmt: on


def texts(size: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every kind."""
    for part in (*SIGNS, *REPEATED):
        yield f"many {part!r}", repeated(part, size)
    for first in (
        "token ",
        "token: ",
        "bearer ",
        "https://",
        "@send.a ",
        "VOTE: [",
        "```",
        "/debate ",
        "1",
        "{",
    ):
        for part in (" ", "a", "-", "\n", "=", "9", "a:"):
            yield f"{first!r}, then {part!r}", (first + repeated(part, size))[:size]
    yield from _shapes(size)


def repeated(part: str, size: int) -> str:
    """Return a part again and again, up to a size."""
    return (part * (size // len(part) + 1))[:size]


def _shapes(size: int) -> Iterator[tuple[str, str]]:
    draw = random.Random(7)
    data = base64.b64encode(draw.randbytes(size)).decode()[:size]
    yield "base64", data
    yield "base64 in lines", "\n".join(data[at : at + 76] for at in range(0, size, 77))
    yield "hex", draw.randbytes(size // 2).hex()
    yield "minified code", repeated("function a(b,c){return b?c.d(e=>e.f):{g:1,h:'i'}}var j=k||[];", size)
    yield "a table", repeated("| name | figure |\n|------|--------|\n| a_b  | 1.5    |\n", size)
    yield "rules", repeated("-" * 80 + "\n", size)
    yield "prose", repeated("The quick brown fox jumps over the lazy dog, again. ", size)
    yield "nested brackets", "([{" * (size // 6) + "}])" * (size // 6)
    yield "longer and longer fences", "".join("`" * count + "\n" for count in range(3, 700))[:size]
    yield "shorter and shorter ticks", " ".join("`" * count for count in range(700, 0, -1))[:size]
    yield "a gap", "x" + " " * (size - 2) + "x"
    yield "random signs", "".join(draw.choices(string.printable, k=size))
