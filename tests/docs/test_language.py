"""Everything that people read is in plain English: a short list of phrases that we do not use."""

import ast
import re
from collections.abc import Iterator, Mapping

import pytest

from csp.protocol import catalogue
from csp.protocol.notices import NoticeCode
from tests.compatibility.interfaces import help_texts
from tests.docs.pages import ROOT, prose, written_pages

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
    r"\bstands? (?:above|below|behind|before|beside)\b": "is above, below, after, before, next to",
    r"\bl(?:ies?|ay) (?:in|on|beside|there)\b": "is stored in",
    r"\bmade again\b": "rebuilt",
    r"\ball the same\b": "nevertheless",
    r"\bby night\b": "in dark mode",
    r"\bfor some \d": "for about",
    r"\btold apart\b|\btells? apart\b": "distinguish",
    r"\bcomes? to rest\b": "stops changing",
    r"\bkeeps? back\b|\bkept back\b": "delay",
    r"\bwhose are\b": "who owns",
}
#: Words that are right on a page may be quoted by the code: a pattern, or a text of the plans.
ON_PAGES = BANNED | {r"\bshall\b": "should, must"}


def found_in(text: str, banned_phrases: Mapping[str, str] = BANNED) -> Iterator[str]:
    for banned, instead in banned_phrases.items():
        for match in re.finditer(banned, text, re.IGNORECASE):
            start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            yield f"{match[0]!r} ({instead}) in {text[start : end if end > 0 else None].strip()[:100]!r}"


@pytest.mark.parametrize("page", written_pages())
def test_a_page_is_in_plain_english(page: str) -> None:
    assert list(found_in(prose(page), ON_PAGES)) == []


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


@pytest.mark.parametrize(
    "folder", [".", *sorted(path.parent.name for path in ROOT.glob("csp/*/__init__.py"))]
)
def test_messages_and_docstrings_are_in_plain_english(folder: str) -> None:
    """Errors, notices, help and docstrings: every text of the code that has more than one word."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {phrase}"
        for path in sorted((ROOT / "csp" / folder).glob("*.py" if folder == "." else "**/*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for phrase in found_in(node.value)
    ]

    assert found == []


def test_prompts_are_in_plain_english() -> None:
    texts = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "prompts").glob("*.md"))}

    assert [f"{name}: {phrase}" for name, text in texts.items() for phrase in found_in(text)] == []


def test_a_banned_phrase_is_found() -> None:
    assert len(list(found_in("It stands behind the door, so many times, and is no door."))) == 3
