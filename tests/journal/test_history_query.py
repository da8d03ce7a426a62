from typing import Any

import pytest

from csp.journal.history_query import (
    HIDDEN_TYPES,
    HistoryQuery,
    admits,
    facets_of,
    facets_of_event,
    matches,
    text_of,
)
from csp.protocol.enums import AgentId, SessionId
from csp.protocol.events import HISTORY_TYPES, KnownEvent, decode_event
from tests.journal.making import delivered, encoded, late, noticed, said
from tests.whiteboard.making import noted


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("Fix the parser", "parser"),
        ("Fix the parser", "PARS"),
        ("Fix the parser", "the  fix"),
        ("Fix the parser", ""),
        ("snake_case here", "snake_c"),
        ("call foo->bar() now", "foo->bar"),
        ("call foo->bar() now", "oo->ba"),
        ("C++ is fine", "c++"),
        ("今日は漢字です", "漢字"),
        ("今日は漢字です", "字"),
        ("see漢字foo漢字", "foo"),
        ("well done 👍🏽", "👍"),
        ("Müller sagt", "MÜLL"),
        ("in der Straße", "STRASSE"),
        ("ΟΔΟΣ", "οδος"),
        ("#418 done", "#418"),
        ("a\tb\nc", "c a"),
    ],
)
def test_a_text_matches(text: str, q: str) -> None:
    assert matches(text, q)


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("Fix the parser", "arser"),
        ("Fix the parser", "parser lexer"),
        ("snake_case here", "case"),
        ("call foo -> bar", "foo->bar"),
        ("今日は漢字です", "漢日"),
        ("", "x"),
    ],
)
def test_a_text_does_not_match(text: str, q: str) -> None:
    assert not matches(text, q)


EVENTS: list[KnownEvent] = [
    said(5, "the text", sender="ada", target="bob", recipients=("bob", "eve")),
    noticed(6, "a notice"),
    late(7, "too late"),
    noted(8, "a note", session_id=SessionId("s-1")),
]


@pytest.mark.parametrize("event", EVENTS)
def test_the_facets_of_an_event_are_those_of_its_line(event: KnownEvent) -> None:
    (line,) = encoded([event])

    assert facets_of(line) == facets_of_event(event) == facets_of_event(decode_event(line))
    assert text_of(line) == event.text


@pytest.mark.parametrize("line", [b"", b"{", b'{"seq": "x"}', b"\xff", b'{"type": "system"}'])
def test_what_is_no_event_has_no_facets(line: bytes) -> None:
    assert (facets_of(line), text_of(line)) == (None, "")


def admitted(event: KnownEvent, **fields: Any) -> bool:
    (line,) = encoded([event])
    query = HistoryQuery(types=HISTORY_TYPES | {"note", "delivery"})._replace(**fields)
    return admits(query, line, facets_of_event(event), lambda event, agent: agent != "stranger")


@pytest.mark.parametrize(
    ("fields", "is_so"),
    [
        ({}, True),
        ({"after": 4}, True),
        ({"after": 5}, False),
        ({"before": 6}, True),
        ({"before": 5}, False),
        ({"agent": AgentId("ada")}, True),
        ({"agent": AgentId("bob")}, True),
        ({"agent": AgentId("eve")}, True),
        ({"agent": AgentId("mia")}, False),
        ({"session": "s-1"}, False),
        ({"audience": AgentId("mia")}, True),
        ({"audience": AgentId("stranger")}, False),
        ({"q": "text"}, True),
        ({"q": "other"}, False),
        ({"types": frozenset({"system"})}, False),
    ],
)
def test_every_condition_of_a_query_counts(fields: dict[str, object], is_so: bool) -> None:
    assert admitted(EVENTS[0], **fields) is is_so


def test_a_session_is_found_by_its_id() -> None:
    assert admitted(EVENTS[3], session="s-1") and not admitted(EVENTS[3], session="s-2")


def test_machinery_is_no_history_even_when_it_is_asked_for() -> None:
    assert not admitted(delivered(1, "m-1"))
    assert "delivery" in HIDDEN_TYPES and not HIDDEN_TYPES & HISTORY_TYPES


def test_a_page_has_fifty_items_by_default() -> None:
    assert HistoryQuery().limit == 50
