"""The course of each mode, from its first turn to its end."""

from collections import Counter

import pytest

from csp.protocol.enums import HUMAN, AgentId, ParticipantKind
from csp.protocol.events import (
    AgentResponse,
    ControlSent,
    ModeChanged,
    SystemReply,
    TurnSignal,
    Voted,
    type_of,
)
from csp.protocol.requests import Handoff, Usage
from csp.protocol.session_parts import Change, Limits
from csp.room.commands import Leave, NextTurn, SetMode
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import BOSS, Play

TO_CODEX = Handoff(to="codex", task="look at it")


def next_in(play: Play) -> list[str]:
    """Press next until the mode is over; return what each press answers."""
    found = []
    while not play.session.is_over:
        play.do(NextTurn())
        session = play.session
        turn = session.turns.get(session.current) if session.current else None
        found.append(f"{turn.agent}/{turn.round - 1}" if turn else "complete")
    return found


# --- the seeds' own walk -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["debate", "consensus"])
def test_next_four_times_walks_through_two_rounds(mode: str) -> None:
    play = Play(CLAUDE, CODEX)
    play.start(mode, rounds=2)

    assert play.waiting == (CLAUDE, CODEX)
    assert next_in(play) == ["codex/0", "claude/1", "codex/1", "complete"]


def test_debate_is_announced_in_the_words_of_the_seed() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", topic="tabs or spaces", rounds=2)
    next_in(play)

    assert play.notices[:4] == [
        *("Mode: DEBATE", "Topic: tabs or spaces", "@claude - Your turn.", "@codex - Your turn."),
    ]
    assert play.notices[4:8] == ["Round 2", "@claude - Your turn.", "@codex - Your turn.", "DEBATE complete."]


# --- single --------------------------------------------------------------------------------------


def test_single_ends_with_a_reply_without_handoff() -> None:
    play = Play()
    play.start("single")
    play.reply(CLAUDE)

    assert (play.ended, len(play.all(TurnSignal))) == ("done", 1)


def test_single_knows_one_handoff_at_most() -> None:
    play = Play()
    play.start("single")
    play.reply(CLAUDE, handoff=TO_CODEX)
    play.reply(CODEX, handoff=Handoff(to="claude", task="and back"))

    assert (play.ended, len(play.all(TurnSignal))) == ("cap_reached", 2)


# --- collaborate ---------------------------------------------------------------------------------


def test_collaborate_goes_where_the_handoff_points() -> None:
    play = Play()
    play.start("collaborate", first="gemini")
    play.reply(GEMINI, "I drafted it", handoff=TO_CODEX)

    assert play.waiting == (CODEX,)
    assert "goal=tabs" in play.prompt(CODEX)
    assert "gemini: I drafted it" in play.prompt(CODEX)
    assert "router -> codex: look at it" in play.prompt(CODEX)
    assert "Round 2 of 6" in play.prompt(CODEX)


def test_collaborate_ends_after_exactly_its_rounds() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("collaborate", rounds=2)
    play.reply(CLAUDE, handoff=TO_CODEX)
    play.reply(CODEX, handoff=Handoff(to="claude", task="once more"))

    assert (play.ended, len(play.all(TurnSignal))) == ("cap_reached", 2)


def test_final_ends_a_collaboration_even_with_a_handoff() -> None:
    play = Play()
    play.start("collaborate")
    play.reply(CLAUDE, handoff=TO_CODEX, final=True)

    assert play.ended == "final"
    assert "COLLABORATE complete." in play.notices


def test_collaboration_without_handoff_ends() -> None:
    play = Play()
    play.start("collaborate")
    play.reply(CLAUDE)

    assert play.ended == "no_handoff"


def test_malformed_envelope_ends_a_collaboration() -> None:
    play = Play()
    play.start("collaborate")
    play.reply(CLAUDE, '{"message": "x", "handoff": {"to": "codex"}}')

    assert play.ended == "malformed"
    assert "claude's reply was malformed, so it counts as plain text." in play.notices
    assert play.all(AgentResponse)[0].text == '{"message": "x", "handoff": {"to": "codex"}}'


def test_turn_that_fails_is_passed_on_in_a_collaboration() -> None:
    play = Play()
    play.start("collaborate")
    play.deliver(CLAUDE)
    play.wait(90)
    play.wait(30)

    assert play.waiting == (CODEX,)


# --- autopilot -----------------------------------------------------------------------------------


def test_autopilot_alternates_without_a_handoff() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot")
    order = []
    for _ in range(12):
        order.append(play.waiting[0])
        play.reply_all()

    assert order == [CLAUDE, CODEX] * 6
    assert "Round: 13 (Autopilot)" in play.prompt(CLAUDE)


def test_autopilot_follows_a_handoff() -> None:
    play = Play()
    play.start("autopilot")
    play.reply(CLAUDE, handoff=Handoff(to="gemini", task="paint"))

    assert play.waiting == (GEMINI,)


def test_autopilot_only_notes_a_final() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot")
    play.reply(CLAUDE, final=True)

    assert play.waiting == (CODEX,)
    assert "Agent suggests finish: press ALLSTOP to end or let them continue. (claude)" in play.notices


def test_autopilot_heeds_a_final_if_told_so() -> None:
    play = Play()
    play.start("autopilot", respect_final=True)
    play.reply(CLAUDE, final=True)

    assert play.ended == "final"
    assert not any("suggests" in text for text in play.notices)


def test_autopilot_ignores_rounds_aloud() -> None:
    play = Play()
    play.start("autopilot", rounds=3)

    assert play.session.setup.rounds is None
    assert any("ignores --rounds" in text for text in play.notices)


def test_autopilot_runs_past_two_hundred_turns_with_a_raised_cap() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(turns=260, tokens=10**9))
    while not play.session.is_over:
        play.reply_all()

    assert (play.ended, len(play.all(AgentResponse)), play.session.asked) == ("emergency_turns", 260, 260)
    assert play.notices.count("Autopilot running. Say 'Allstop' to end.") == 10


@pytest.mark.parametrize(
    ("limits", "reason", "words"),
    [
        (Limits(turns=3), "emergency_turns", "3 turns"),
        (Limits(tokens=25), "emergency_tokens", "25 new tokens"),
        (Limits(cost=0.25), "emergency_cost", "0.25 US dollars"),
    ],
)
def test_each_limit_names_itself(limits: Limits, reason: str, words: str) -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=limits)
    while not play.session.is_over:
        play.reply(play.waiting[0], usage=Usage(input=5, output=5, cost_usd=0.1))

    assert (play.ended, len(play.all(AgentResponse))) == (reason, 3)
    assert any(words in text and text.startswith("Emergency cap") for text in play.notices)


def test_limit_of_minutes_needs_no_reply() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(minutes=1))

    assert play.deadline() == play.now + 60
    play.wait(60)
    assert play.ended == "emergency_minutes"
    assert play.all(ControlSent) == []


def test_limit_interrupts_whoever_is_at_its_turn() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", limits=Limits(minutes=1))
    play.deliver(CLAUDE)
    turn = play.turn(CLAUDE)
    play.wait(60)
    (control,) = play.all(ControlSent)

    assert (control.target, control.control, control.turn) == (CLAUDE, "interrupt", turn.id)


# --- round robin ---------------------------------------------------------------------------------


def test_round_robin_goes_round_for_its_steps() -> None:
    play = Play()
    play.start("round_robin", steps=4)
    while not play.session.is_over:
        play.reply_all()

    assert [event.sender for event in play.all(AgentResponse)] == [CLAUDE, CODEX, GEMINI, CLAUDE]
    assert play.ended == "done"


def test_round_robin_skips_those_who_fail() -> None:
    play = Play()
    play.start("round_robin")
    play.wait(120)

    assert play.waiting == (CODEX,)
    assert any(text.startswith("claude: its turn failed, undelivered: queued") for text in play.notices)


def test_round_robin_ends_with_a_synthesis_by_the_one_named() -> None:
    play = Play()
    play.start("round_robin", steps=1, synth="gemini")
    play.reply(CLAUDE, "a thought")

    assert (play.waiting, play.session.stage.name) == ((GEMINI,), "synthesis")
    play.reply(GEMINI, "all in all")
    assert (play.ended, play.session.synthesis) == ("done", "all in all")


def test_final_in_a_round_robin_leads_to_the_synthesis() -> None:
    play = Play()
    play.start("round_robin", synth="gemini")
    play.reply(CLAUDE, final=True)
    play.reply(GEMINI)

    assert play.ended == "final"


def test_failed_synthesis_ends_all_the_same() -> None:
    play = Play()
    play.start("round_robin", steps=1, synth="gemini")
    play.reply(CLAUDE)
    play.wait(120)

    assert (play.ended, play.session.synthesis) == ("done", "")


# --- orchestrator --------------------------------------------------------------------------------


@pytest.fixture
def led() -> Play:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("orchestrator")
    return play


def test_orchestrator_speaks_first_then_whom_it_names(led: Play) -> None:
    assert led.session.setup.agents == (BOSS, CLAUDE, CODEX)
    assert led.prompt(BOSS).startswith("<orchestrate>")
    led.reply(BOSS, handoff=TO_CODEX)

    assert led.waiting == (CODEX,)
    assert led.prompt(CODEX).startswith("<assist>")
    led.reply(CODEX, handoff=Handoff(to="claude", task="not mine to give"))
    assert led.waiting == (BOSS,)


def test_final_of_the_orchestrator_is_the_end(led: Play) -> None:
    led.reply(BOSS, handoff=TO_CODEX)
    led.reply(CODEX, final=True)

    assert led.ended is None
    led.reply(BOSS, final=True)
    assert led.ended == "final"


def test_three_turns_without_a_handoff_lead_to_the_synthesis(led: Play) -> None:
    for number in range(3):
        led.reply(BOSS, f"hm {number}")

    assert led.session.stage.name == "synthesis"
    led.reply(BOSS, "that is all")
    assert (led.ended, led.session.synthesis) == ("no_handoff", "that is all")


def test_same_words_again_are_no_new_handoff(led: Play) -> None:
    for _ in range(4):
        led.reply(BOSS, "do it", handoff=TO_CODEX)
        if CODEX in led.waiting:
            led.reply(CODEX)

    assert led.session.stage.name == "synthesis"


def test_limit_leaves_the_orchestrator_one_turn() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("orchestrator", limits=Limits(turns=1))
    play.reply(BOSS, handoff=TO_CODEX)

    assert (play.waiting, play.session.stage.name) == ((BOSS,), "synthesis")
    play.reply(BOSS)
    assert play.ended == "emergency_turns"


def test_without_an_orchestrator_the_first_agent_leads() -> None:
    play = Play()
    play.start("orchestrator", first="codex")

    assert (play.session.setup.lead, play.waiting) == (CODEX, (CODEX,))


# --- debate --------------------------------------------------------------------------------------


def test_debate_asks_each_once_a_round() -> None:
    play = Play()
    play.start("debate", rounds=2)
    play.reply_all("{0} thinks so")

    assert play.waiting == (CLAUDE,)
    assert "codex said:\ncodex thinks so" in play.prompt(CLAUDE)
    assert "gemini said:\ngemini thinks so" in play.prompt(CLAUDE)
    assert "claude said:" not in play.prompt(CLAUDE)
    play.reply(CLAUDE, "no, I differ")
    assert "claude said:\nno, I differ" in play.prompt(CODEX)
    play.reply_all()
    play.reply_all()
    assert (play.ended, {agent: len(play.asks(agent)) for agent in play.session.agents}) == (
        "done",
        {CLAUDE: 2, CODEX: 2, GEMINI: 2},
    )


def test_debate_ends_early_when_all_agree() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", rounds=5)
    play.reply_all()
    play.reply_all("AGREE\nso be it")
    play.reply_all("fine\nAGREE.")

    assert (play.ended, len(play.all(AgentResponse))) == ("done", 4)


def test_one_who_does_not_agree_keeps_a_debate_going() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", rounds=3)
    play.reply_all("AGREE")
    play.reply(CLAUDE, "AGREE")
    play.reply(CODEX, "I AGREE with nothing\n```\nAGREE\n```")

    assert (play.ended, play.session.stage.round) == (None, 3)


def test_agreement_before_anybody_was_heard_is_none() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", rounds=2)
    play.reply_all("AGREE")

    assert play.session.stage.name == "responses"


def test_debate_may_end_with_a_ballot() -> None:
    play = Play()
    play.start("debate", rounds=1, ballot=True)
    play.reply_all("position of {0}")
    labels = {one.agent: one.label for one in play.session.stage.candidates}
    play.reply(CLAUDE, f"VOTE: [{labels[CODEX]}]\nREASON: short")
    play.reply(CODEX, f"VOTE: [{labels[GEMINI]}]")
    play.reply(GEMINI, f"VOTE: [{labels[CODEX]}]")

    assert play.ended == "done"
    assert any(f"Winner: {labels[CODEX]} (codex)." in text for text in play.notices)


def test_tied_ballot_does_not_undo_a_debate() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", rounds=1, ballot=True)
    play.reply_all()
    for _ in range(2):
        labels = {one.agent: one.label for one in play.session.stage.candidates}
        play.reply(CLAUDE, f"VOTE: [{labels[CODEX]}]")
        play.reply(CODEX, f"VOTE: [{labels[CLAUDE]}]")

    assert play.ended == "done"


def test_debate_in_which_nobody_answers_ends() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate")
    play.wait(120)

    assert play.ended == "all_failed"


def test_round_in_which_nobody_answers_ends_a_debate() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", rounds=9)
    play.reply_all()
    play.wait(120)
    play.wait(120)

    assert (play.ended, play.session.stage.round) == ("all_failed", 2)


def test_orchestrator_is_woken_at_the_end_of_a_round() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("debate", rounds=2)
    play.reply_all("I am {0}")
    told = play.all(SystemReply)

    assert [event.recipients for event in told] == [(BOSS,)]
    assert "round 1 is over" in told[0].text


def test_orchestrator_writes_the_synthesis() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("debate", rounds=1)
    play.reply_all("I am {0}")

    assert play.waiting == (BOSS,)
    assert "codex said:\nI am codex" in play.prompt(BOSS)
    play.reply(BOSS, "both are right")
    assert (play.ended, play.session.synthesis) == ("done", "both are right")
    assert "Synthesis: both are right" in play.notices[-1]


# --- consensus -----------------------------------------------------------------------------------


@pytest.fixture
def voting() -> Play:
    play = Play()
    play.start("consensus")
    play.reply_all("plan of {0}")
    return play


def labels_of(play: Play) -> dict[str, str]:
    return {str(one.agent): one.label for one in play.session.stage.candidates}


def test_ballot_shows_the_proposals_without_names(voting: Play) -> None:
    prompt = voting.prompt(CLAUDE)
    labels = labels_of(voting)

    assert sorted(labels.values()) == ["A", "B", "C"]
    assert all(f"Proposal {label}:\nplan of {agent}" in prompt for agent, label in labels.items())
    assert "labels=A, B, C" in prompt


def test_two_to_one_names_the_winner_with_reasons(voting: Play) -> None:
    labels = labels_of(voting)
    voting.reply(CLAUDE, f"VOTE: [{labels['codex']}]\nREASON: it is short")
    voting.reply(GEMINI, f"VOTE: [{labels['codex']}]")
    voting.reply(CODEX, f"VOTE: [{labels['claude']}]\nREASON: it is safe")
    summary = voting.notices[-1]

    assert voting.ended == "done"
    assert f"Votes: {labels['codex']} (codex) 2, {labels['claude']} (claude) 1." in summary
    assert f"Winner: {labels['codex']} (codex)." in summary
    assert "Dissent: codex." in summary
    assert f"- claude voted {labels['codex']}: it is short" in summary
    assert [event.label for event in voting.all(Voted)] == [
        labels["codex"],
        labels["codex"],
        labels["claude"],
    ]


def test_tie_leads_to_a_second_ballot_among_the_tied(voting: Play) -> None:
    labels = labels_of(voting)
    voting.reply(CLAUDE, f"VOTE: [{labels['codex']}]")
    voting.reply(CODEX, f"VOTE: [{labels['claude']}]")
    voting.reply(GEMINI, "VOTE: [Z]")
    voting.reply(GEMINI, "I cannot decide")

    assert voting.session.stage.is_again
    assert labels_of(voting) == {agent: labels[agent] for agent in ("claude", "codex")}
    assert "plan of gemini" not in voting.prompt(CLAUDE)
    assert "plan of codex" in voting.prompt(CLAUDE)
    assert not any("(claude)" in text for text in voting.notices)


def test_second_tie_is_left_to_people(voting: Play) -> None:
    for _ in range(2):
        labels = labels_of(voting)
        voting.reply(CLAUDE, f"VOTE: [{labels['codex']}]")
        voting.reply(CODEX, f"VOTE: [{labels['claude']}]")
        voting.reply(GEMINI, "NOOP")

    assert voting.ended == "tie"
    assert not any("repeated itself" in text for text in voting.notices)
    assert "The vote is tied: a person or the orchestrator decides." in voting.notices


def test_tie_is_put_to_the_orchestrator() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("consensus")
    play.reply_all()
    for _ in range(2):
        labels = labels_of(play)
        play.reply(CLAUDE, f"VOTE: [{labels['codex']}]")
        play.reply(CODEX, f"VOTE: [{labels['claude']}]")

    assert play.waiting == (BOSS,)
    play.reply(BOSS, "codex has it")
    assert play.ended == "tie"


def test_voter_who_never_answers_leaves_a_quorum(voting: Play) -> None:
    labels = labels_of(voting)
    voting.reply(CLAUDE, f"VOTE: [{labels['codex']}]")
    voting.reply(GEMINI, f"VOTE: [{labels['codex']}]")
    voting.wait(120)

    assert voting.ended == "done"


def test_too_few_votes_decide_nothing(voting: Play) -> None:
    voting.reply(CLAUDE, f"VOTE: [{labels_of(voting)['codex']}]")
    voting.wait(120)

    assert voting.ended == "no_quorum"


def test_agents_that_are_passed_over_have_no_proposal() -> None:
    play = Play()
    play.start("consensus")
    play.reply(CLAUDE)
    play.reply(CODEX)
    play.wait(120)

    assert set(labels_of(play)) == {"claude", "codex"}


def test_who_is_who_in_a_ballot_is_sealed(voting: Play) -> None:
    changes = [event for event in voting.all(ModeChanged) if event.change is Change.PHASE]

    assert [event.sealed for event in changes] == [0, 2]


# --- any mode ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["single", "collaborate", "autopilot", "round_robin", "debate", "consensus"])
def test_every_mode_begins_with_its_topic_and_a_turn(mode: str) -> None:
    play = Play(kind=ParticipantKind.API)
    types = [type_of(event) for event in play.start(mode)]

    assert types[:5] == ["mode", "system", "system", "mode", "turn_signal"]
    assert "format=JSON" in play.prompt(CLAUDE)


def test_reply_carries_its_session_round_and_turn() -> None:
    play = Play()
    play.start("collaborate")
    asked = play.asks(CLAUDE)[0]
    play.reply(CLAUDE, handoff=TO_CODEX)
    reply = play.all(AgentResponse)[0]

    assert (reply.session_id, reply.round, reply.max_rounds, reply.turn) == (
        play.session.id,
        1,
        6,
        asked.turn,
    )
    assert (asked.session_id, asked.round, asked.max_rounds) == (play.session.id, 1, 6)
    assert (asked.current_agent, asked.waiting_for) == (CLAUDE, (CLAUDE,))
    assert asked.turn == f"t-{asked.seq}"


def test_hundred_agents_miss_no_turn_and_double_none() -> None:
    agents = [AgentId(f"agent-{number}") for number in range(100)]
    play = Play(*agents)
    play.start("debate", rounds=3)
    while not play.session.is_over:
        play.reply_all()
    asked = Counter((event.target, event.round) for event in play.all(TurnSignal))

    assert asked == Counter((agent, round) for agent in agents for round in (1, 2, 3))
    assert len(play.all(AgentResponse)) == 300


def test_round_of_more_than_is_remembered_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.sessions.turn_reducer.KEPT_DONE", 2)
    play = Play()
    play.start("debate", rounds=2)
    for _ in range(2):
        for agent in (CLAUDE, CODEX, GEMINI):
            play.reply(agent)

    assert play.ended == "done"


def test_session_in_another_thread_goes_its_own_way() -> None:
    play = Play()
    play.start("collaborate", agents=("claude",))
    play.do(SetMode(sender=HUMAN, mode="collaborate", agents=("codex",), thread=None))
    play.reply(CLAUDE)

    assert play.ended == "no_handoff"
    (other,) = play.room.sessions.live()
    assert (other.thread, other.waiting_for) == (other.id, (CODEX,))


def test_turn_that_nobody_could_take_counts_as_a_round() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.do(Leave(agent=CLAUDE, reason="closed"))
    play.start("round_robin", steps=4, agents=("claude", "codex"))
    play.reply(CODEX, "one")
    play.reply(CODEX, "two")

    assert (play.ended, len(play.all(TurnSignal))) == ("done", 2)
