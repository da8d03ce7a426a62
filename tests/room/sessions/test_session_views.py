"""A session in the names of the seeds."""

from csp.protocol.enums import Mode
from csp.protocol.requests import Handoff, Usage
from csp.protocol.responses import ModeView, TurnView
from csp.room.sessions.session_views import mode_view, session_view, turn_view
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import Play


def view(play: Play) -> ModeView:
    return mode_view(play.room, play.session, play.rules)


def test_without_a_session_the_mode_is_freeform() -> None:
    play = Play()

    assert mode_view(play.room, None, play.rules) == ModeView()
    assert turn_view(None) == TurnView(complete=True)


def test_debate_shows_its_rounds() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", topic="tabs", rounds=2)
    turns = {agent: play.turn(agent).id for agent in (CLAUDE, CODEX)}
    shown = view(play)

    assert (shown.mode, shown.topic, shown.round, shown.max_rounds) == (Mode.DEBATE, "tabs", 0, 2)
    assert (shown.turn_order, shown.current_turn_index) == ((CLAUDE, CODEX), 0)
    assert (shown.current_turn, shown.waiting_for, shown.turns) == (CLAUDE, (CLAUDE, CODEX), turns)
    assert (shown.turn, shown.phase, shown.status) == (turns[CLAUDE], "positions", "running")
    assert (shown.started_at, shown.deadline) == (play.now, play.now + 120)
    play.reply(CLAUDE, "my view")
    assert (view(play).completed_turns, view(play).round_outputs) == (("claude_round0",), {})
    assert (view(play).current_turn, view(play).current_turn_index) == (CODEX, 1)
    play.reply(CODEX, "mine")
    assert view(play).round_outputs == {"claude": {"round0": "my view"}, "codex": {"round0": "mine"}}
    assert (view(play).round, view(play).completed_turns) == (1, ())


def test_consensus_shows_proposals_without_names_until_the_votes_are_in() -> None:
    play = Play()
    play.start("consensus")
    assert (view(play).round, view(play).max_rounds, view(play).proposals) == (0, 2, {})
    play.reply_all("plan of {0}")
    open_ballot = view(play)
    assert open_ballot.round == 1
    assert {one["agent"] for one in open_ballot.proposals.values()} == {""}
    assert {one["text"] for one in open_ballot.proposals.values()} == {
        f"plan of {a}" for a in play.session.agents
    }
    play.reply(CLAUDE, "VOTE: [A]\nREASON: good")
    assert view(play).votes == {}
    play.reply(CODEX, "VOTE: [A]")
    play.reply(GEMINI, "VOTE: [A]")
    over = view(play)
    assert over.votes["claude"] == {"label": "A", "reason": "good"}
    assert {one["agent"] for one in over.proposals.values()} == set(play.session.agents)
    assert over.round_outputs["claude"] == {"round0": "plan of claude", "round1": "VOTE: [A]\nREASON: good"}


def test_after_the_end_the_mode_is_freeform_and_the_rest_stays() -> None:
    play = Play()
    play.start("collaborate", topic="")
    play.reply(CLAUDE, "one", handoff=Handoff(to="codex", task="go"))
    assert turn_view(play.session) == TurnView(success=True, current_turn=CODEX, round=1)
    play.reply(CODEX, "two")
    shown = view(play)

    assert (shown.mode, shown.status, shown.reason, shown.topic) == (
        Mode.FREEFORM,
        "ended",
        "no_handoff",
        None,
    )
    assert (shown.current_turn, shown.turn, shown.deadline) == (None, None, None)
    assert shown.round_outputs == {"claude": {"round0": "one"}, "codex": {"round1": "two"}}
    assert (shown.round, session_view(play.session).round) == (1, 1)
    assert turn_view(play.session).complete


def test_failed_turns_are_not_completed() -> None:
    play = Play()
    play.start("round_robin")
    play.wait(120)

    assert view(play).completed_turns == ()


def test_session_in_short() -> None:
    play = Play(CLAUDE)
    play.start("autopilot", topic="tabs")
    play.reply(CLAUDE, usage=Usage(input=5, output=6, cost_usd=0.25))
    short = session_view(play.session)

    assert (short.id, short.thread, short.mode, short.topic) == (
        play.session.id,
        "default",
        "autopilot",
        "tabs",
    )
    assert (short.turns, short.tokens, short.cost_usd, short.max_rounds) == (2, 11, 0.25, 0)
    assert (short.round, short.status, short.ended_at) == (1, "running", None)
