"""What is done by tool in a turn counts as what is said in its reply does, once."""

import pytest

from csp.errors import BadInput, Refused
from csp.protocol.enums import AgentId, ParticipantKind, SessionAction
from csp.protocol.events import AgentResponse, TurnMoved, Voted
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import EndReason, PhaseKind, TurnState
from csp.room.commands import CastVote, HandOffTurn
from csp.room.room_state import dump, load
from csp.room.sessions.votes import tally_of
from tests.room.live import CLAUDE, CODEX, GEMINI, one
from tests.room.playing import BOSS, Play


@pytest.fixture
def ballot() -> Play:
    """A debate whose three agents are asked to vote."""
    play = Play()
    play.start("debate", rounds=1, ballot=True)
    play.reply_all()
    assert play.session.stage.kind is PhaseKind.BALLOT
    return play


@pytest.fixture
def relay() -> Play:
    play = Play()
    play.start("collaborate")
    return play


def vote(agent: AgentId, label: str, reason: str = "", session: str | None = None) -> CastVote:
    return CastVote(agent=agent, label=label, reason=reason, session=session)


def hand(agent: AgentId, to: str, task: str = "go on", session: str | None = None) -> HandOffTurn:
    return HandOffTurn(agent=agent, to=to, task=task, session=session)


# --- votes ---------------------------------------------------------------------------------------


def test_votes_by_tool_are_tallied_though_the_replies_say_nothing_of_them(ballot: Play) -> None:
    session = ballot.session.id
    label = {candidate.agent: candidate.label for candidate in ballot.session.stage.candidates}
    for agent, choice in ((CLAUDE, label[CODEX]), (CODEX, label[CLAUDE]), (GEMINI, label[CLAUDE].lower())):
        ballot.do(vote(agent, choice, f"{agent} thinks so"))
        ballot.reply(agent, "I have voted.")
    found = ballot.room.sessions.by_id[session]

    assert found.reason is EndReason.DONE and len(ballot.all(Voted)) == 3
    assert tally_of(found).counts == {label[CLAUDE]: 2, label[CODEX]: 1}
    assert found.votes[CODEX].reason == "codex thinks so"


def test_a_vote_keeps_the_turn_open_until_its_reply(ballot: Play) -> None:
    ballot.deliver(CLAUDE)
    ballot.now += 60
    voted, moved = ballot.do(vote(CLAUDE, "A"))

    assert isinstance(voted, Voted) and (voted.turn, voted.sealed) == (
        ballot.turn(CLAUDE).id,
        ballot.session.seal,
    )
    assert isinstance(moved, TurnMoved) and moved.state is TurnState.WORKING
    assert ballot.turn(CLAUDE).since == ballot.now


def test_the_same_vote_in_the_reply_is_counted_once(ballot: Play) -> None:
    ballot.do(vote(CLAUDE, "A", "shorter"))
    ballot.do(vote(CLAUDE, "A", "shorter"))
    events = ballot.reply(CLAUDE, "VOTE: [A]\nREASON: shorter")

    assert not [event for event in events if isinstance(event, Voted)]
    assert len(ballot.all(Voted)) == 1
    assert CLAUDE not in ballot.waiting


def test_the_last_vote_counts_however_it_was_cast(ballot: Play) -> None:
    ballot.do(vote(CLAUDE, "A"))
    ballot.reply(CLAUDE, "VOTE: [B]")
    ballot.do(vote(CODEX, "B"))
    ballot.do(vote(CODEX, "C"))

    assert (ballot.session.votes[CLAUDE].label, ballot.session.votes[CODEX].label) == ("B", "C")


def test_a_reply_without_any_vote_is_still_asked_for_again(ballot: Play) -> None:
    ballot.reply(CLAUDE, "no idea")

    assert ballot.turn(CLAUDE).is_repair
    ballot.do(vote(CLAUDE, "A"))
    ballot.reply(CLAUDE, "there")
    assert CLAUDE not in ballot.waiting and ballot.session.votes[CLAUDE].label == "A"


def test_a_vote_nobody_waits_for_or_nobody_knows_is_refused(ballot: Play, relay: Play) -> None:
    assert ballot.refuse(vote(CLAUDE, "Z"), BadInput).message == "unknown label 'Z'"
    assert (
        ballot.refuse(vote(CLAUDE, "A", session="s-99"), Refused).message
        == "no ballot is waiting for your vote"
    )
    assert ballot.refuse(vote(AgentId("human"), "A"), Refused)
    assert relay.refuse(vote(CLAUDE, "A"), Refused)
    ballot.do(vote(CLAUDE, "A", session=ballot.session.id))
    ballot.reply(CLAUDE, "done")
    assert ballot.refuse(vote(CLAUDE, "B"), Refused)


# --- handoffs ------------------------------------------------------------------------------------


def test_a_handoff_by_tool_acts_with_the_reply(relay: Play) -> None:
    relay.do(hand(CLAUDE, "Gemini", "review it"))
    assert relay.waiting == (CLAUDE,)

    said = one(relay.reply(CLAUDE, "done with my part"), AgentResponse)

    assert said.handoff == Handoff(to="gemini", task="review it")
    assert relay.waiting == (GEMINI,) and "review it" in relay.prompt(GEMINI)


def test_what_the_reply_says_itself_wins_over_the_tool(relay: Play) -> None:
    relay.do(hand(CLAUDE, "gemini"))
    relay.reply(CLAUDE, "words\n@handoff.codex take it")
    assert relay.waiting == (CODEX,)

    relay.do(hand(CODEX, "gemini"))
    relay.reply(CODEX, "words\n@final")
    assert relay.ended == EndReason.FINAL


def test_a_malformed_reply_hands_nothing_over(relay: Play) -> None:
    relay.do(hand(CLAUDE, "codex"))
    relay.reply(CLAUDE, '{"mesage": "x"}')

    assert relay.ended == EndReason.MALFORMED


def test_the_last_handoff_counts_and_survives_a_restart(relay: Play) -> None:
    relay.do(hand(CLAUDE, "codex"))
    relay.do(hand(CLAUDE, "gemini", session=relay.session.id))
    relay.room = load(dump(relay.room))
    relay.reply(CLAUDE, "words")

    assert relay.waiting == (GEMINI,)


def test_the_next_turn_of_an_agent_begins_without_a_handoff(relay: Play) -> None:
    relay.do(hand(CLAUDE, "codex"))
    relay.reply(CLAUDE, "one")
    relay.reply(CODEX, "two\n@handoff.claude back to you")
    relay.reply(CLAUDE, "three")

    assert relay.ended == EndReason.NO_HANDOFF


def test_a_handoff_that_cannot_be_is_refused(relay: Play, ballot: Play) -> None:
    assert ballot.refuse(hand(CLAUDE, "codex"), Refused)
    assert relay.refuse(hand(CLAUDE, "nobody"), BadInput).message == "'nobody' is not in s-4"
    assert relay.refuse(hand(CODEX, "claude"), Refused)
    relay.steer(SessionAction.STOP)
    assert relay.refuse(hand(CLAUDE, "codex"), Refused)


def test_only_the_lead_hands_over_in_its_mode() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("orchestrator", agents=("claude", "codex"))
    play.do(hand(BOSS, "codex", "do it"))
    play.reply(BOSS, "go")

    assert play.waiting == (CODEX,)
    assert play.refuse(hand(CODEX, "claude"), Refused)


def test_a_handoff_stays_with_a_turn_that_is_asked_for_again() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("collaborate")
    play.do(hand(CLAUDE, "codex"))
    play.reply(CLAUDE, "no envelope")
    assert play.turn(CLAUDE).is_repair

    play.reply(CLAUDE, '{"message": "better"}')

    assert play.waiting == (CODEX,)
