"""Everything that people read is in plain English: a short list of phrases that we do not use."""

import re
from collections.abc import Iterator

import pytest

from csp.protocol import catalogue
from csp.protocol.notices import NoticeCode
from tests.compatibility.interfaces import help_texts
from tests.docs.pages import prose, written_pages

#: A phrase, and what to write instead.
BANNED = {
    r"whoever|whomever|whence|thereby|upon|anew": "a plain word",
    r"for good\b(?! reason)": "permanently",
    r"\bbe it\b|\bbe they\b": "whether it is",
    r"stdout is data|stderr is talk|misused": "results go to stdout, messages to stderr; 2: usage",
    r"\bstands? (?:on|in) (?!for)": "is",
    r"\bgo(?:es|ing)? on (?:with|without)\b": "continue",
    r"\bso many\b": "this many, N",
    r"\balone:": "without arguments",
    r"\bsa(?:id|y) aloud\b": "explicit",
    r"\bbehind an API\b": "API model",
    r"\bhas no hands\b": "cannot edit files",
    r"\bhas been let in\b|\blets? (?:one|a browser|a page) in\b": "signs in",
    r"\btakes? (?:it )?back\b|\btaken back\b": "withdraws",
    r"\bput away\b|\btake out whole\b": "remove",
    r"\bwhat waits for whom\b": "which messages wait",
    r"\b(?:come|comes|came) to nothing\b": "has no effect",
    r"\bwho (?:fails|reads|asks|names|comes) (?:is|are|gets)\b": "agents that ...",
    r"(?<!there )\bis no (?!longer\b|more\b|such\b|other\b|one\b)[a-z]+\b": "is not a ...",
    r"\bas it came\b": "with its original timing",
    r"\bno way back from\b": "final",
    r"\bbe a scripted\b": "run a scripted",
    r"\bhave models work\b": "let models work",
    r"\b(?:begin|begins|began) (?:a|an|or see a) (?:mode|run|session)\b": "start",
    r"\bit is good once\b": "it works once",
}


def found_in(text: str) -> Iterator[str]:
    for banned, instead in BANNED.items():
        for match in re.finditer(banned, text, re.IGNORECASE):
            start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            yield f"{match[0]!r} ({instead}) in {text[start : end if end > 0 else None].strip()[:100]!r}"


@pytest.mark.parametrize("page", written_pages())
def test_a_page_is_in_plain_english(page: str) -> None:
    assert list(found_in(prose(page))) == []


def test_what_the_program_says_is_in_plain_english() -> None:
    texts = {
        "help": help_texts(),
        "notices": "\n".join(code.template for code in NoticeCode),
        "commands": "\n".join(row.help for row in catalogue.COMMANDS),
        "modes": "\n".join(text.about for text in catalogue.MODE_TEXTS.values()),
        "reasons": "\n".join(
            row.text for row in (*catalogue.HELD_REASONS, *catalogue.END_REASONS, *catalogue.AGENT_STATES)
        ),
    }

    assert [f"{name}: {phrase}" for name, text in texts.items() for phrase in found_in(text)] == []
