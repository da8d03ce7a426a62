"""The tokens of lines, with the conditions that queries make of them."""

import pytest

from csp.journal.history_query import HistoryQuery
from csp.journal.search_tokens import (
    MAX_WORD,
    Clause,
    clauses_of,
    clauses_of_message,
    clauses_of_types,
    is_vocabulary,
    tokens_of_line,
    tokens_of_text,
)
from csp.protocol.enums import AgentId, MessageId
from csp.protocol.events import HISTORY_TYPES
from tests.journal.making import delivered, encoded, noticed, said


def meets(line: bytes, query: HistoryQuery) -> bool:
    """Tell whether the index would find a line for a query."""
    return all(holds(tokens_of_line(line), clause) for clause in clauses_of(query))


def holds(tokens: frozenset[str], clause: Clause) -> bool:
    if clause.prefix:
        return any(token.startswith(clause.prefix) for token in tokens if is_vocabulary(token))
    return not tokens.isdisjoint(clause.tokens)


LINE = encoded([said(7, "Fix foo->bar", sender="ada", target="bob", recipients=("bob", "eve"))])[0]


@pytest.mark.parametrize(
    ("query", "is_met"),
    [
        (HistoryQuery(agent=AgentId("ada")), True),
        (HistoryQuery(agent=AgentId("bob")), True),
        (HistoryQuery(agent=AgentId("eve")), True),
        (HistoryQuery(agent=AgentId("mia")), False),
        (HistoryQuery(audience=AgentId("eve")), True),
        (HistoryQuery(audience=AgentId("mia")), False),
        (HistoryQuery(session="s-1"), False),
        (HistoryQuery(types=frozenset({"agent_response"})), True),
        (HistoryQuery(types=frozenset({"system", "late"})), False),
        (HistoryQuery(q="fix"), True),
        (HistoryQuery(q="fi FOO->b"), True),
        (HistoryQuery(q="oo->ba"), True),
        (HistoryQuery(q="fix->"), False),
        (HistoryQuery(q="foo->baz"), False),
    ],
)
def test_a_line_has_the_tokens_that_a_query_asks_for(query: HistoryQuery, is_met: bool) -> None:
    assert meets(LINE, query) is is_met


def test_what_was_said_to_all_is_found_for_everybody() -> None:
    assert meets(encoded([said(1)])[0], HistoryQuery(audience=AgentId("mia")))


def test_a_delivery_is_found_by_its_message_alone() -> None:
    (clause,) = clauses_of_message(MessageId("m-3"))
    line = encoded([delivered(9, "m-3")])[0]

    assert holds(tokens_of_line(line), clause)
    assert len(tokens_of_line(line)) == 1
    assert holds(tokens_of_line(encoded([said(3)])[0]), clause)
    assert not holds(tokens_of_line(encoded([said(4)])[0]), clause)
    assert tokens_of_line(b"no line") == frozenset()


def test_a_notice_has_its_type() -> None:
    (clause,) = clauses_of_types(frozenset({"system"}))

    assert holds(tokens_of_line(encoded([noticed(1, "x")])[0]), clause)
    assert not holds(tokens_of_line(LINE), clause)


def test_the_usual_types_are_no_condition() -> None:
    assert clauses_of(HistoryQuery()) == ()
    assert clauses_of(HistoryQuery(types=HISTORY_TYPES | {"late"})) == ()
    assert len(clauses_of(HistoryQuery(types=HISTORY_TYPES - {"system"}))) == 1


def test_a_page_of_text_makes_no_more_conditions_than_can_be_joined() -> None:
    assert len(clauses_of(HistoryQuery(q=" ".join(f"w{number}" for number in range(99))))) == 24


def test_a_long_word_is_cut_where_a_query_cuts_it() -> None:
    long = "x" * (MAX_WORD + 9)

    assert tokens_of_text(long) == {"x" * MAX_WORD}
    assert clauses_of(HistoryQuery(q=long)) == (Clause(prefix="x" * MAX_WORD),)


def test_marks_stand_alone_and_with_either_neighbour() -> None:
    assert tokens_of_text("a+b") == {"a", "b", "+", "a+", "+b"}
    assert tokens_of_text("snake_case x1.") == {"snake_case", "x1", ".", "1."}
