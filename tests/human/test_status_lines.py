"""What is said of agents, of what they have used, and of votes."""

import time
from typing import Any

import pytest

from csp.human.status_lines import agent_row, models_of, session_spending, spent_lines, vote_lines

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
        ({}, f"ada (opus): 1 reply, {TOKENS}, $0.2500"),
        ({"cost_usd": 0}, f"ada (opus): 1 reply, {TOKENS}, $0.0000"),
        (
            {"replies": 2},
            f"ada (opus): 2 replies, {TOKENS}, $0.2500",
        ),
        (
            {"estimated": 1},
            f"ada (opus): 1 reply, about {TOKENS}, $0.2500",
        ),
        (
            {"unpriced": 2},
            f"ada (opus): 1 reply, {TOKENS}, $0.2500 and 2 replies without a known price",
        ),
        (
            {"cost_usd": None, "unpriced": 1},
            f"ada (opus): 1 reply, {TOKENS}, price unknown",
        ),
        (
            {"model": "m" * 70},
            f"ada ({'m' * 59}…): 1 reply, {TOKENS}, $0.2500",
        ),
        (
            {"model": None},
            f"ada (a model it does not name): 1 reply, {TOKENS}, $0.2500",
        ),
    ],
)
def test_what_was_used_is_a_line_with_its_price(changes: dict[str, Any], line: str) -> None:
    assert spent_lines({"items": [ROW | changes], "prices": "list 3"}) == [line, "prices: list 3"]


def test_a_missing_list_of_prices_is_named() -> None:
    lines = spent_lines({"items": [ROW], "prices": None})

    assert lines[1:] == ["no price list installed; costs not shown"]


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


# --- agents ---------------------------------------------------------------------------------------


def test_a_limit_says_until_when_with_the_date_of_another_day() -> None:
    item: dict[str, Any] = {"id": "a", "kind": "cli", "role": "agent", "queued": 0}
    now = time.time()
    rows = [agent_row(item | {"until": until}, "idle", 9)[1] for until in (now, now + 30 * 86400)]

    assert rows[0] == time.strftime("idle until %H:%M", time.localtime(now))
    assert rows[1] == time.strftime("idle until %Y-%m-%d %H:%M", time.localtime(now + 30 * 86400))


def test_an_agent_is_shown_with_what_it_does() -> None:
    item: dict[str, Any] = {"id": "a", "kind": "cli", "role": "orchestrator", "queued": 0}
    told = item | {"capabilities": {"profile": "claude", "duty": "reviewer"}}

    assert agent_row(told, "idle", 9)[2] == "reviewer, orchestrator, claude"
    assert agent_row(told | {"role": "agent"}, "idle", 9)[2] == "reviewer, claude"
    assert agent_row(item | {"role": "agent", "capabilities": ["claude"]}, "idle", 9)[2] == "claude"
    assert agent_row(item | {"role": "agent"}, "idle", 9)[2] == "cli"
    claude = item | {"id": "claude", "role": "agent", "capabilities": ["claude"]}
    assert [agent_row(claude, "idle", 9, model)[2] for model in ("", "opus-5")] == ["claude", "opus-5"]
    api = {"capabilities": {"provider": "openai", "model": "gpt-6"}, "role": "agent", "kind": "api"}
    assert agent_row(item | api, "idle", 9)[2] == "openai, gpt-6"


@pytest.mark.parametrize(
    ("context", "window", "text"),
    [
        (0, 0, "cli"),
        (48_200, 0, "cli, 48k tokens in context"),
        (300, 0, "cli, 300 tokens in context"),
        (64_600, 258_400, "cli, 75% context left"),
        (300_000, 258_400, "cli, 0% context left"),
    ],
)
def test_the_context_is_shown_as_far_as_it_is_known(context: int, window: int, text: str) -> None:
    item: dict[str, Any] = {"id": "a", "kind": "cli", "role": "agent", "queued": 0}
    row = agent_row(item | {"context": context, "window": window, "work": "b: 1 changed file"}, "idle", 9)

    assert (row[2], row[-1]) == (text, "b: 1 changed file")


def test_an_agent_that_asks_is_shown_with_what_it_asks() -> None:
    item: dict[str, Any] = {"id": "a", "kind": "cli", "role": "agent", "queued": 0, "detail": "Go on?"}
    asks = {"tool": "Bash", "arguments": '{"command": "make"}', "runs": "make"}

    assert agent_row(item | {"dialog": asks}, "asks", 99)[-1] == "Bash: make"
    assert agent_row(item | {"dialog": {"question": "Go on?"}}, "asks", 99)[-1] == "Go on?"
    assert agent_row(item | {"dialog": asks, "online": False}, "asks", 99)[-1] == ""


def test_the_model_of_an_agent_is_that_of_its_last_replies() -> None:
    rows = [{"agent": "a", "model": "old"}, {"agent": "b", "model": ""}, {"agent": "a", "model": "new"}]

    assert models_of({"items": rows}) == {"a": "new"}


# --- votes ----------------------------------------------------------------------------------------

PROPOSALS = {
    "A": {"agent": "ada", "text": "a **rule**\nwith a test"},
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
