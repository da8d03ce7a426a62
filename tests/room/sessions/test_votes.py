"""Ballots are counted by code."""

import pytest

from csp.protocol.enums import AgentId, SessionId
from csp.protocol.session_parts import Candidate
from csp.room.agent_text import parse_commands
from csp.room.sessions.session_state import BallotVote
from csp.room.sessions.votes import candidates, label_of, read_vote, tally
from tests.room.live import CLAUDE, CODEX, GEMINI

NAMED = (
    Candidate(label="A", agent=CLAUDE),
    Candidate(label="B", agent=CODEX),
    Candidate(label="C", agent=GEMINI),
)


def votes(**cast: str) -> dict[AgentId, BallotVote]:
    return {AgentId(agent): BallotVote(label) for agent, label in cast.items()}


@pytest.mark.parametrize(("number", "label"), [(0, "A"), (25, "Z"), (26, "AA"), (27, "AB"), (52, "BA")])
def test_labels_go_on_after_z(number: int, label: str) -> None:
    assert label_of(number) == label


def test_order_of_a_ballot_is_its_own_but_always_the_same() -> None:
    agents = [AgentId(f"agent-{number}") for number in range(20)]
    first = candidates(SessionId("s-1"), 2, agents)

    assert first == candidates(SessionId("s-1"), 2, agents[::-1])
    assert [one.label for one in first] == [label_of(number) for number in range(20)]
    assert [one.agent for one in first] != agents
    assert [one.agent for one in first] != [one.agent for one in candidates(SessionId("s-1"), 3, agents)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VOTE: [B]\nREASON: short", BallotVote("B", "short")),
        ("VOTE: [A]\n\nno, rather\n\nVOTE: [B]", BallotVote("B")),
        ("VOTE: [B]\n\nVOTE: [Z]", BallotVote("B")),
        ("VOTE: [A/B/C]", None),
        ("`VOTE: [A]`", None),
        ("```\nVOTE: [A]\n```", None),
        ("> VOTE: [A]", None),
        ("I vote for A", None),
    ],
)
def test_last_vote_with_a_label_of_the_ballot_counts(text: str, expected: BallotVote | None) -> None:
    assert read_vote(parse_commands(text), ["A", "B", "C"]) == expected


def test_most_votes_win() -> None:
    result = tally(votes(claude="B", codex="A", gemini="B"), NAMED, 3)

    assert (result.counts, result.winner) == ({"B": 2, "A": 1}, NAMED[1])


def test_vote_for_oneself_counts_only_among_its_like() -> None:
    assert tally(votes(claude="A", codex="A", gemini="C"), NAMED, 3).counts == {"A": 1}
    assert tally(votes(claude="A", gemini="C"), NAMED, 3).counts == {"A": 1, "C": 1}


def test_tie_has_several_leaders_but_no_winner() -> None:
    result = tally(votes(claude="B", codex="A"), NAMED, 3)

    assert (result.leaders, result.winner) == (NAMED[:2], None)


@pytest.mark.parametrize(("voters", "is_quorate"), [(3, False), (2, True), (1, True)])
def test_half_of_the_voters_are_a_quorum(voters: int, is_quorate: bool) -> None:
    result = tally(votes(claude="B"), NAMED, voters)

    assert (result.is_quorate, result.winner is not None) == (is_quorate, is_quorate)


def test_no_votes_lead_nowhere() -> None:
    result = tally({}, NAMED, 0)

    assert (result.counts, result.leaders, result.winner, result.is_quorate) == ({}, (), None, False)


def test_vote_for_a_label_that_is_gone_is_none() -> None:
    assert not tally(votes(claude="Z"), NAMED, 1).is_quorate
