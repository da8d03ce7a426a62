"""Objects in fences: found as a pattern that backtracks would find them, at the cost of reading once."""

import random
import re

import pytest

from csp.room.chat_markdown import fenced_objects

#: What is meant; it takes a time that grows with the square of the length.
MEANT = re.compile(r"^(`{3,})(?:json)?[ \t]*\n(\{.*?\})\s*\n\1[ \t]*$", re.DOTALL | re.MULTILINE)
PARTS = (
    "```",
    "````",
    "json",
    "{",
    "}",
    "\n",
    "\n",
    "\n",
    " ",
    "\t",
    "a",
    "`",
    "\r",
    "{}",
    "```\n{",
    "}\n```",
)


@pytest.mark.parametrize("seed", range(4))
def test_every_text_is_read_as_it_is_meant(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4000):
        text = "".join(draw.choices(PARTS, k=draw.randrange(16)))

        assert fenced_objects(text) == tuple(found[2] for found in MEANT.finditer(text)), repr(text)


def test_objects_are_found_in_their_order() -> None:
    text = 'see\n```json\n{"a": 1}\n```\nand\n````\n{\n```\n}\n\n````\n'

    assert fenced_objects(text) == ('{"a": 1}', "{\n```\n}")
