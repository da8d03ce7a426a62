"""Everything that people read is in plain English: a short list of phrases that we do not use."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

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
    r"\bis in none\b": "is not in one",
    r"\bat work on\b": "working on",
    r"\bfor want of\b": "for lack of",
    r"\bdearest\b": "most expensive",
    r"\bby (?:\d+|several|many) ways in\b": "through N interfaces",
    r"\bhalf as much again\b": "1.5 times",
    r"\bgave? no answer\b": "did not answer",
    r"\bspace goes on\b": "space scrolls",
    r"\bof a terminal of its own\b|\bin a terminal of its own\b": "in its own terminal",
}
#: A docstring or a comment that names a thing by a clause, such as `What is read of a result`.
CLAUSE = re.compile(r"(?:What|Where|Who|Whose)\b[^?]*\Z", re.DOTALL)
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
        for path in sources(folder)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for phrase in found_in(node.value)
    ]

    assert found == []


@pytest.mark.parametrize(
    "folder", [".", *sorted(path.parent.name for path in ROOT.glob("csp/*/__init__.py"))]
)
def test_comments_are_in_plain_english(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase}"
        for path in sources(folder)
        for line, text in comments(path.read_text("utf-8"))
        for phrase in found_in(text)
    ]

    assert found == []


@pytest.mark.parametrize(
    "folder", [".", *sorted(path.parent.name for path in ROOT.glob("csp/*/__init__.py"))]
)
def test_no_docstring_or_comment_names_a_thing_by_a_clause(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:80]!r}"
        for path in sources(folder)
        for line, text in (*docstrings(path.read_text("utf-8")), *comments(path.read_text("utf-8")))
        if CLAUSE.match(text)
    ]

    assert found == []


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / "csp" / folder).glob("*.py" if folder == "." else "**/*.py"))


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the first sentence of each docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        if text:
            yield getattr(node, "lineno", 1), text.partition("\n")[0]


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment; comments on consecutive lines are one."""
    found: list[tuple[int, list[str]]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string.lstrip("#: ")
            if found and line == found[-1][0] + len(found[-1][1]):
                found[-1][1].append(text)
            else:
                found.append((line, [text]))
    for line, words in found:
        yield line, " ".join(words)


def test_what_the_page_says_is_in_plain_english() -> None:
    texts = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "csp/web/page").glob("*.js"))}
    said = {name: "\n".join(re.findall(r'"([^"\n]* [^"\n]*)"', text)) for name, text in texts.items()}

    assert [f"{name}: {phrase}" for name, text in said.items() for phrase in found_in(text)] == []


def test_prompts_are_in_plain_english() -> None:
    texts = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "prompts").glob("*.md"))}

    assert [f"{name}: {phrase}" for name, text in texts.items() for phrase in found_in(text)] == []


def test_a_banned_phrase_is_found() -> None:
    assert len(list(found_in("It stands behind the door, so many times, and is no door."))) == 3
    assert CLAUSE.match("What is read of a result.") and not CLAUSE.match("What is it? A result.")
    assert [*comments("x = 1  # one\n# two\n# three\n\n#: four\n")] == [(1, "one two three"), (5, "four")]
