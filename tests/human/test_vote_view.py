"""How a vote is shown."""

from typing import Any

import pytest

from csp.human.vote_view import vote_lines

PROPOSALS = {
    "A": {"agent": "ada", "text": "a rule\nwith a test"},
    "B": {"agent": "bob", "text": "ship it"},
}


def cast(**votes: str) -> dict[str, Any]:
    return {agent: {"label": label, "reason": f"{agent} says so"} for agent, label in votes.items()}


@pytest.mark.parametrize(
    ("votes", "head"),
    [
        (cast(ada="B", bob="A", cy="A"), "votes: A (ada) 2, B (bob) 1; winner: A (ada)"),
        (cast(ada="B", bob="A"), "votes: B (bob) 1, A (ada) 1; a tie"),
        (cast(ada="A", cy="B"), "votes: B (bob) 1; winner: B (bob)"),
        (cast(ada="A", bob="B"), "votes: A (ada) 1, B (bob) 1; a tie"),
    ],
)
def test_votes_for_oneself_count_only_among_themselves(votes: dict[str, Any], head: str) -> None:
    assert vote_lines({"proposals": PROPOSALS, "votes": votes})[0] == head


def test_proposals_and_reasons_are_one_line_each() -> None:
    assert vote_lines({"proposals": PROPOSALS, "votes": cast(ada="A", cy="A")})[1:] == [
        "  A by ada: a rule with a test",
        "  B by bob: ship it",
        "  ada voted A (its own): ada says so",
        "  cy voted A: cy says so",
    ]


def test_an_open_vote_names_who_has_not_voted() -> None:
    hidden = {"A": {"agent": "", "text": "a rule"}}

    assert vote_lines({"proposals": hidden, "votes": {}, "waitingFor": ["cy", "bob"]}) == [
        "the vote on 1 proposal is open, waiting for cy, bob",
        "  A: a rule",
    ]


def test_without_a_vote_there_is_nothing_to_show() -> None:
    assert vote_lines({}) == ["there are no votes to show"]


def test_votes_without_their_proposals_are_still_counted() -> None:
    assert vote_lines({"proposals": None, "votes": cast(ada="B", bob="A", cy="A")})[:2] == [
        "votes: A 2, B 1; winner: A",
        "  ada voted B: ada says so",
    ]


def test_long_and_wild_words_are_tamed() -> None:
    proposals = {"A": {"agent": "ada", "text": "\x1b" + "x" * 300}}
    lines = vote_lines({"proposals": proposals, "votes": {"bob": {"label": "A", "reason": ""}}})

    assert lines[1] == f"  A by ada: ␛{'x' * 198}…"
    assert lines[2] == "  bob voted A"


def test_an_open_vote_that_waits_for_nobody_says_no_more() -> None:
    assert vote_lines({"proposals": PROPOSALS})[0] == "the vote on 2 proposals is open"
