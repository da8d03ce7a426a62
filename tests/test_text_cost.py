"""No text is expensive: what is read of others costs as much as it is long, whatever stands in it.

A long text takes at most `LIMIT` times as long as looking once at each of its characters, on the same
machine in the same moment; both are counted in the time that the thread ran, so a busy one changes nothing.
What grows with the square of the length takes hundreds of times as long.
"""

import importlib
import pkgutil
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

import csp
from csp.agents.api import call_errors, reply_stream
from csp.clis.codex.wiring import toml_string
from csp.clis.gemini import gemini_home
from csp.clis.transcript_reader import until as until_words
from csp.errors import CspError
from csp.human import completion, event_lines
from csp.human import safe_text as pane_text
from csp.journal import history_query
from csp.journal import search_tokens as words
from csp.protocol.enums import HUMAN, DeliverKind, MessageId
from csp.protocol.responses import Deliver
from csp.protocol.review_messages import RunRole
from csp.room import agent_names, agent_text, chat_markdown, human_input, room_state, secrets
from csp.room.runs import run_commands
from csp.room.sessions import session_state, turn_prompt
from csp.sidecar.brain import state_reporter
from csp.terminal import prompt_builder
from csp.whiteboard import identifiers, word_vectors
from tests.long_texts import texts

SIZE: Final = 8 * 1024
LONGEST: Final = 256 * 1024
LIMIT: Final = 100.0
_EACH: Final = re.compile(r".", re.DOTALL)

Reader = Callable[[str], Any]


def embed(text: str) -> Any:
    model = word_vectors.load_word_vectors()
    assert model is not None
    return model.embed(text)


def _lenient(read: Reader) -> Reader:
    def read_or_refuse(text: str) -> None:
        with suppress(CspError):
            read(text)

    return read_or_refuse


def _delivery(text: str) -> Deliver:
    return Deliver(
        id=MessageId("m-1"), seq=1, kind=DeliverKind.MESSAGE, sender=HUMAN, urgent=False, text=text
    )


#: Its reader needs the word vectors, which not every system has.
_WORD_VECTORS: Final = "meaning of a note"
READERS: Final[dict[str, Reader]] = {
    "names": identifiers.identifiers,
    "names spelt out": identifiers.spelt_out,
    "one name": identifiers.is_identifier,
    "a hash": identifiers.is_hash,
    "secrets": lambda text: secrets.redact(text, ["room-token-1234", "-" * 16]),
    "tokens": session_state.tokens_in,
    "a cut": lambda text: session_state.cut(text, 1000),
    "a typed line": _lenient(human_input.read_line),
    "a typed message": _lenient(lambda text: human_input.read_line(f"@claude {text}")),
    "a typed command": _lenient(lambda text: human_input.read_line(f"/{text}")),
    "a typed topic": _lenient(lambda text: human_input.read_line(f"/debate {text}")),
    "an ALLSTOP": human_input.is_allstop,
    "quoted agents": human_input.quoted_agents,
    "a text to fill in": lambda text: human_input.insert_last_messages(text, {"claude": "said"}),
    "marks": room_state.fingerprints,
    "markdown": chat_markdown.read_lines.__wrapped__,
    "a misspelt command": lambda text: agent_text.misspelt(text, "a hint"),
    "a tag": prompt_builder.tag_in,
    "controls": prompt_builder.without_controls,
    "a prompt": lambda text: prompt_builder.prompt_for(_delivery(text), after_at="\u2060"),
    "commands": agent_text.read_agent_text,
    "a builder's message": _lenient(lambda text: run_commands.read_message(text, RunRole.BUILDER, "r-1")),
    "a reviewer's message": _lenient(lambda text: run_commands.read_message(text, RunRole.REVIEWER, "r-1")),
    "an alert": _lenient(run_commands.read_alert),
    "an envelope": agent_text.Envelope.parse,
    "agreement": turn_prompt.agrees,
    "a template": lambda text: turn_prompt.render({"x": "a {a} b"}, "x", {"a": text}),
    "a line to the router": lambda text: human_input.read_line(f"@router {text}"),
    "a mode that is typed": lambda text: human_input.read_line(f"/mode debate {text}"),
    "the nearest name": lambda text: agent_names.nearest(text, ["claude", "codex"]),
    "words of the history": words.tokens_of_text,
    "a match": lambda text: history_query.matches(text, "zebra quagga"),
    _WORD_VECTORS: embed,
    "a terminal's text": pane_text.visible,
    "one line": lambda text: pane_text.one_line(text, 80),
    "a folded text": lambda text: pane_text.folded(text, "how to see it"),
    "a wrapped text": lambda text: pane_text.wrapped(text, 4, 80),
    "an indented text": event_lines.indented,
    "completions": lambda text: completion.completions(text, ["claude", "codex"]),
    "a provider's error": lambda text: call_errors.scrubbed(text, "sk-secret"),
    "nulls": reply_stream.without_nulls,
    "a blank reply": reply_stream.is_blank,
    "the end of a limit": lambda text: state_reporter.until_time(text, 0.0),
    "words of a limit": until_words,
    "a TOML string": toml_string,
    "JSON with comments": gemini_home.without_comments,
}


def _seconds(read: Reader, text: str) -> float:
    chat_markdown.read_lines.cache_clear()
    chat_markdown.fenced_objects.cache_clear()
    began = time.thread_time()
    read(text)
    return time.thread_time() - began


def _expensive(read: Reader, size: int) -> dict[str, float]:
    """Return the texts that cost too much, each with how many looks at all of its characters."""
    found = dict(texts(size))
    one_look = min(_seconds(_EACH.findall, found["base64"]) for _ in range(5))
    costs = {kind: _seconds(read, text) / one_look for kind, text in found.items()}
    # The collector may have come in between.
    dear = [kind for kind, cost in costs.items() if cost > LIMIT]
    again = {kind: min(_seconds(read, found[kind]) / one_look for _ in range(3)) for kind in dear}
    return {kind: round(cost) for kind, cost in again.items() if cost > LIMIT}


NAMES: Final = [
    pytest.param(name, marks=pytest.mark.word_vectors) if name == _WORD_VECTORS else name for name in READERS
]


@pytest.mark.parametrize("name", NAMES)
def test_text_costs_as_much_as_it_is_long(name: str) -> None:
    assert _expensive(READERS[name], SIZE) == {}


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_longest_text_costs_as_much_as_it_is_long(name: str) -> None:
    assert _expensive(READERS[name], LONGEST) == {}


# --- every pattern -------------------------------------------------------------------------------


def _patterns() -> dict[str, re.Pattern[Any]]:
    """Return every pattern that a module of csp keeps, by where it stands."""
    found: dict[str, re.Pattern[Any]] = {}
    for module in pkgutil.walk_packages(csp.__path__, "csp."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                _collect(f"{module.name}.{name}", value, found)
    return found


def _collect(name: str, value: object, found: dict[str, re.Pattern[Any]]) -> None:
    if isinstance(value, re.Pattern):
        found[name] = value
    elif isinstance(value, dict):
        for key, part in value.items():
            _collect(f"{name}[{key!r}]", part, found)
    elif isinstance(value, tuple | list):
        for number, part in enumerate(value):
            _collect(f"{name}[{number}]", part, found)


#: A loop matches these at the beginning of a name.
_MATCHED_IN_TURN: Final = tuple(f"csp.whiteboard.identifiers.{name}" for name in ("_CODE", "_ERRNO", "_FILE"))


def _reader(name: str, pattern: re.Pattern[Any]) -> Reader:
    """Return what the module does with a pattern: look for it everywhere, or at the beginning alone."""
    module, _, variable = name.partition("[")[0].rpartition(".")
    source = Path(str(importlib.import_module(module).__file__)).read_text("utf-8")
    calls = set(re.findall(rf"\b{re.escape(variable)}\.(\w+)\(", source))
    used: Callable[[Any], object] = (
        pattern.match
        if name in _MATCHED_IN_TURN or (calls and calls <= {"match", "fullmatch"})
        else pattern.findall
    )
    if isinstance(pattern.pattern, bytes):
        return lambda text: used(text.encode(errors="replace"))
    return used


def test_there_are_as_many_patterns_as_are_known() -> None:
    assert len(_patterns()) > 150


#: Parts of one long test, for several workers.
_PARTS: Final = 16


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_pattern_costs_as_much_as_its_text_is_long(part: int) -> None:
    patterns = dict(sorted(_patterns().items())[part::_PARTS])
    dear = {name: _expensive(_reader(name, pattern), SIZE // 4) for name, pattern in patterns.items()}

    assert {name: texts for name, texts in dear.items() if texts} == {}
