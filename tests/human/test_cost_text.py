"""What the agents have used, in words."""

from typing import Any

import pytest

from csp.human.cost_text import session_spending, spent_lines

ROW: dict[str, Any] = {
    "agent": "ada",
    "model": "opus",
    "replies": 1,
    "input": 1000,
    "output": 20,
    "cost_usd": 0.25,
    "unpriced": 0,
    "estimated": 0,
    "cached": 500,
    "new": 520,
}


TOKENS = "520 new tokens (20 output), 500 cached"
USED = {"tokens": 12345, "new": 2345, "output": 45, "cached": 10_000}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, f"spent by ada with opus: 1 reply, {TOKENS}, $0.2500"),
        ({"cost_usd": 0}, f"spent by ada with opus: 1 reply, {TOKENS}, $0.0000"),
        (
            {"replies": 2},
            f"spent by ada with opus: 2 replies, {TOKENS}, $0.2500",
        ),
        (
            {"estimated": 1},
            f"spent by ada with opus: 1 reply, about {TOKENS}, $0.2500",
        ),
        (
            {"unpriced": 2},
            f"spent by ada with opus: 1 reply, {TOKENS}, $0.2500 and 2 replies without a known price",
        ),
        (
            {"cost_usd": None, "unpriced": 1},
            f"spent by ada with opus: 1 reply, {TOKENS}, no price is known for it",
        ),
        (
            {"model": "m" * 70},
            f"spent by ada with {'m' * 59}…: 1 reply, {TOKENS}, $0.2500",
        ),
        (
            {"model": None},
            f"spent by ada with a model it does not name: 1 reply, {TOKENS}, $0.2500",
        ),
    ],
)
def test_what_was_used_is_a_line_with_its_price(changes: dict[str, Any], line: str) -> None:
    assert spent_lines({"items": [ROW | changes], "prices": "list 3"}) == [line, "prices: list 3"]


def test_a_missing_list_of_prices_is_named() -> None:
    lines = spent_lines({"items": [ROW], "prices": None})

    assert lines[1:] == ["prices: none, no list of prices is installed"]


def test_where_nothing_was_used_nothing_is_said() -> None:
    assert spent_lines({"items": [], "prices": "list 3"}) == []


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"tokens": 0, "cost_usd": None}, ""),
        ({**USED, "cost_usd": None}, "2,345 new tokens (45 output), 10,000 cached"),
        ({**USED, "cost_usd": 0.5}, "2,345 new tokens (45 output), 10,000 cached, $0.5000"),
        ({**USED, "cost_usd": 0}, "2,345 new tokens (45 output), 10,000 cached"),
    ],
)
def test_a_session_says_what_it_has_used(item: dict[str, Any], text: str) -> None:
    assert session_spending(item) == text
