"""A reply moves its turn, once, or nothing at all."""

import pytest

from csp.protocol.enums import ALL, HUMAN, Ending, MessageId, ParticipantKind, SessionAction
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    ControlSent,
    DeliveryMoved,
    HumanMessage,
    LateReply,
    LogRequested,
    MessageEvent,
    NoticePosted,
    SystemReply,
    TurnMoved,
    Voted,
)
from csp.protocol.requests import Handoff, Usage
from csp.protocol.session_parts import Limits, TurnState
from csp.room.agent_text import parse_commands
from csp.room.commands import AnswerQuery, PostReply, Send, Stop
from tests.room.live import CLAUDE, CODEX, GEMINI, one
from tests.room.playing import BOSS, Play


@pytest.fixture
def play() -> Play:
    play = Play()
    play.start("collaborate")
    return play


# --- whose turn it is ----------------------------------------------------------------------------


def test_reply_is_bound_by_the_message_as_well_as_by_the_turn(play: Play) -> None:
    ask = play.asks(CLAUDE)[0]
    play.reply(CLAUDE, "@handoff.codex go", turn=None, reply_to=ask.id)

    assert play.waiting == (CODEX,)
    assert play.shown(ask.id, CLAUDE) == "confirmed"


def test_only_the_first_of_two_quick_replies_moves(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    play.reply(CLAUDE, "one\n@handoff.codex go", turn=turn)
    play.reply(CLAUDE, "two\n@handoff.gemini go", turn=turn)

    assert play.waiting == (CODEX,)
    assert [event.late for event in play.all(AgentResponse)] == [False, True]
    assert play.all(AgentResponse)[1].handoff is None


def test_reply_sent_twice_is_one(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    for _ in range(2):
        play.reply(CLAUDE, "one\n@handoff.codex go", turn=turn, id=MessageId("mine"))

    assert len(play.all(AgentResponse)) == 1


def test_turn_of_another_is_none_of_mine(play: Play) -> None:
    late = one(play.reply(CODEX, turn=play.turn(CLAUDE).id), LateReply)

    assert (late.turn, late.session_id, play.waiting) == (play.turn(CLAUDE).id, None, (CLAUDE,))


@pytest.mark.parametrize("turn", ["t-999", "nonsense", ""])
def test_turn_that_never_was_is_late(play: Play, turn: str) -> None:
    assert one(play.reply(CLAUDE, turn=turn), LateReply).turn == turn


def test_reply_after_a_timeout_is_shown_with_a_mark(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    play.wait(120)
    reply = one(play.reply(CLAUDE, "sorry\n@handoff.gemini go\n@all psst", turn=turn), AgentResponse)

    assert (reply.late, reply.session_id, reply.target) == (True, play.session.id, ALL)
    assert play.waiting == (CODEX,)
    assert "sorry" in play.session.items[-1].text


def test_activity_after_a_timeout_is_shown_with_a_mark(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    play.wait(120)

    assert one(play.reply(CLAUDE, turn=turn, activity=True), Activity).late


def test_reply_after_the_end_is_kept_out_of_sight(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    play.do(Stop(sender=HUMAN))
    late = one(play.reply(CLAUDE, "@all psst", turn=turn), LateReply)

    assert (late.turn, late.session_id) == (turn, play.session.id)
    assert play.all(AgentCall) == []


def test_words_out_of_turn_are_marked_and_move_nothing(play: Play) -> None:
    reply = one(play.do(PostReply(sender=CODEX, text="me first\n@final")), AgentResponse)

    assert (reply.out_of_turn, reply.session_id, play.waiting) == (True, play.session.id, (CLAUDE,))
    assert play.session.items[-1].sender == CODEX


def test_words_out_of_turn_may_use_up_a_limit() -> None:
    play = Play()
    play.start("autopilot", limits=Limits(cost=0.5))
    play.do(PostReply(sender=CODEX, text="me first", usage=Usage(input=1, output=1, cost_usd=0.6)))

    assert play.ended == "emergency_cost"


@pytest.mark.parametrize("by", ["turn", "message"])
def test_turn_outlives_the_memory_of_its_ask(play: Play, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    monkeypatch.setattr("csp.room.room_reducer.WINDOW", 2)
    turn = play.turn(CLAUDE)
    play.deliver(CLAUDE)
    for _ in range(4):
        play.say(HUMAN, GEMINI)
    assert play.room.message(turn.message) is None
    bound = {"turn": turn.id} if by == "turn" else {"turn": None, "reply_to": turn.message}
    play.reply(CLAUDE, "@handoff.codex go", **bound)

    assert play.waiting == (CODEX,)


def test_turn_whose_ask_is_forgotten_is_not_taken_back(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.room_reducer.WINDOW", 2)
    play.deliver(CLAUDE)
    for _ in range(4):
        play.say(HUMAN, GEMINI)
    events = play.do(Stop(sender=HUMAN))

    assert not any(isinstance(event, DeliveryMoved) for event in events)
    assert one(events, ControlSent).target == CLAUDE


# --- what keeps a turn open ----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["@working on it", "WORKING on it"])
def test_working_alone_keeps_the_turn_open(play: Play, text: str) -> None:
    play.deliver(CLAUDE)
    play.wait(100)
    play.reply(CLAUDE, text)

    assert (play.turn(CLAUDE).state, play.turn(CLAUDE).since) == (TurnState.WORKING, play.now)
    assert not play.turn(CLAUDE).warned


def test_activity_shows_that_the_prompt_has_arrived(play: Play) -> None:
    play.reply(CLAUDE, "reading files", activity=True)

    assert play.turn(CLAUDE).state is TurnState.DELIVERED
    assert play.all(Activity)[0].turn == play.turn(CLAUDE).id


def test_activity_in_the_midst_of_work_moves_the_deadline(play: Play) -> None:
    play.deliver(CLAUDE)
    play.wait(100)
    play.reply(CLAUDE, "now I write the tests", activity=True)

    assert (play.waiting, play.deadline()) == ((CLAUDE,), play.now + 90)


@pytest.mark.parametrize("text", ["@working for ever", "reading on"])
def test_nothing_keeps_a_turn_open_for_more_than_half_an_hour(play: Play, text: str) -> None:
    play.deliver(CLAUDE)
    for _ in range(18):
        play.wait(100)
        play.reply(CLAUDE, text, activity=True)
    play.wait(100)

    assert play.waiting == (CODEX,)


@pytest.mark.parametrize("local", [False, True])
def test_working_said_to_somebody_else_keeps_the_turn_open(play: Play, *, local: bool) -> None:
    play.deliver(CLAUDE)
    play.wait(80)
    asked = play.say(HUMAN, CLAUDE, "how is it going?")
    play.do(PostReply(sender=CLAUDE, text="@working nearly there", reply_to=asked.id, local=local))
    play.do(PostReply(sender=CODEX, text="@working too"))

    assert (play.waiting, play.deadline()) == ((CLAUDE,), play.now + 90)


def test_working_sent_as_a_message_keeps_the_turn_open(play: Play) -> None:
    play.deliver(CLAUDE)
    play.wait(80)
    play.do(Send(sender=CODEX, to=CLAUDE, text="WORKING on mine"))
    assert play.deadline() == play.now + 10
    again = Send(sender=CLAUDE, to=ALL, text="WORKING on it", id=MessageId("mine"))
    play.do(again)

    assert play.deadline() == play.now + 90
    assert play.do(again) == []


def test_noop_in_the_midst_of_work_ends_nothing(play: Play) -> None:
    play.reply(CLAUDE, "NOOP", activity=True)

    assert play.waiting == (CLAUDE,)


def test_noop_is_a_reply_without_words(play: Play) -> None:
    play.reply(CLAUDE, "NOOP")

    assert (play.ended, play.all(AgentResponse)) == ("no_handoff", [])


def test_question_in_a_turn_leads_back_to_it(play: Play) -> None:
    play.reply(CLAUDE, "@query.log 3")
    query = play.all(LogRequested)[0]
    told = one(play.do(AnswerQuery(query=query.id, text="[CSP: nothing]")), SystemReply)
    play.reply(CLAUDE, "now I know\n@handoff.codex go", turn=None, reply_to=told.id)

    assert play.waiting == (CODEX,)


# --- what a reply may be -------------------------------------------------------------------------


def test_answer_that_broke_off_says_why(play: Play) -> None:
    play.reply(CLAUDE, "", ending=Ending.FAILED, reason="the provider answered 500")

    told = "claude: its turn failed, its answer was failed: the provider answered 500. The turn passes on."
    assert told in play.notices


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.INTERRUPTED, Ending.LIMITED])
def test_answer_that_broke_off_passes_the_turn_on(play: Play, ending: Ending) -> None:
    play.reply(CLAUDE, "half a", ending=ending)

    assert play.waiting == (CODEX,)
    assert play.session.done[-1].state is TurnState.FAILED
    assert [event.text for event in play.all(Activity)] == ["half a"]


def test_answer_that_broke_off_may_be_empty(play: Play) -> None:
    play.reply(CLAUDE, "", ending=Ending.FAILED)

    assert (play.waiting, play.all(Activity)) == ((CODEX,), [])


def test_answer_that_broke_off_is_paid_for_though_it_says_nothing(play: Play) -> None:
    usage = Usage(input=100, output=7, cost_usd=0.5, model="m")
    play.reply(CLAUDE, "", ending=Ending.FAILED, usage=usage)

    assert (play.session.tokens, play.session.cost_usd) == (107, 0.5)
    assert [(spent.agent, spent.model, spent.output) for spent in play.session.spent] == [(CLAUDE, "m", 7)]
    assert play.all(AgentResponse) == []


def test_late_reply_of_an_agent_in_another_sealed_phase_waits_for_that_too() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("debate", agents=(CLAUDE, CODEX))
    play.start("debate", agents=(CLAUDE, GEMINI), thread="other")
    other = play.room.sessions.live_in("other")
    assert other is not None
    turn = play.turn(CLAUDE).id
    first = one(play.reply(CLAUDE, "for the first debate"), AgentResponse)
    late = one(play.reply(CLAUDE, "for one of them", turn=turn), AgentResponse)

    assert (first.late, first.seals) == (False, {})
    assert (late.late, late.sealed, late.seals) == (True, play.session.seal, {other.id: other.seal})


def test_late_failure_says_nothing_in_the_room(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    play.steer(SessionAction.SKIP)
    before = len(play.journal)
    play.reply(CLAUDE, "", turn=turn, ending=Ending.FAILED, reason="too late")

    said = [event for event in play.journal[before:] if isinstance(event, MessageEvent)]
    assert said == []


def test_late_failure_is_paid_for(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    play.steer(SessionAction.SKIP)
    play.reply(CLAUDE, "", turn=turn, ending=Ending.FAILED, usage=Usage(input=3, output=4))

    assert (play.session.tokens, play.all(AgentResponse)) == (7, [])


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_reply_is_a_failure(play: Play, text: str) -> None:
    play.reply(CLAUDE, text)

    assert play.session.done[-1].state is TurnState.FAILED


def test_unknown_name_in_a_handoff_is_ignored_aloud(play: Play) -> None:
    play.reply(CLAUDE, '{"message": "x", "handoff": {"to": "mallory", "task": "t"}}')

    assert play.ended == "no_handoff"
    assert any(text.startswith("claude named 'mallory', who is not a member.") for text in play.notices)


@pytest.mark.parametrize("name", ["mallory", "human"])
def test_line_that_hands_over_to_nobody_costs_one_notice(play: Play, name: str) -> None:
    events = play.reply(CLAUDE, f"x\n@handoff.{name} go")
    first, *others = [event.text for event in events if isinstance(event, NoticePosted)]

    assert first == f"claude named {name!r}, who is not a member. Members: claude, codex, gemini."
    assert others[0].startswith("COLLABORATE ended")


def test_envelope_is_posted_as_what_it_says(play: Play) -> None:
    play.reply(CLAUDE, '{"message": "hello\\n@all hear me", "handoff": {"to": "codex", "task": "go"}}')

    assert play.all(AgentResponse)[0].text == "hello\n@all hear me"
    assert play.all(AgentCall)[0].text == "hear me"
    assert play.waiting == (CODEX,)


def test_final_beside_the_text_wins_over_a_handoff(play: Play) -> None:
    play.reply(CLAUDE, final=True, handoff=Handoff(to="codex", task="go"))

    assert (play.ended, play.all(AgentResponse)[0].handoff) == ("final", None)


# --- second chances ------------------------------------------------------------------------------


def test_api_agent_may_repair_its_envelope_once() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("collaborate")
    play.reply(CLAUDE, "plain words")

    assert play.prompt(CLAUDE).startswith("<repair_envelope>")
    assert (play.turn(CLAUDE).is_repair, play.turn(CLAUDE).round, play.session.asked) == (True, 1, 1)
    assert play.all(AgentResponse) == []
    play.reply(CLAUDE, "plain words again")
    assert play.ended == "malformed"
    assert [event.text for event in play.all(AgentResponse)] == ["plain words again"]


@pytest.mark.parametrize("mode", ["single", "autopilot", "round_robin", "debate", "consensus"])
def test_plain_words_of_an_api_agent_are_enough_where_nobody_has_to_be_named(mode: str) -> None:
    play = Play(kind=ParticipantKind.API)
    play.start(mode)
    play.reply(CLAUDE, "plain words")

    assert [event.text for event in play.all(AgentResponse)] == ["plain words"]


def test_envelope_that_broke_is_repaired_in_every_mode() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("autopilot")
    play.reply(CLAUDE, '{"message": 5}')

    assert play.prompt(CLAUDE).startswith("<repair_envelope>")


def test_synthesis_needs_no_envelope() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("orchestrator", synth="codex", limits=Limits(turns=1))
    play.reply(CLAUDE, '{"message": "go", "handoff": {"to": "codex", "task": "t"}}')
    play.reply(CODEX, "all in all")

    assert (play.ended, play.session.synthesis) == ("emergency_turns", "all in all")


def test_orchestrator_that_sets_a_mode_in_the_midst_of_its_turn_is_done_with_it() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("orchestrator")
    before = play.session.id
    play.reply(BOSS, '@mode.set single "next" --agents codex', activity=True)

    assert play.room.sessions.by_id[before].reason == "superseded"
    assert play.waiting == (CODEX,)
    assert [event.session_id for event in play.all(TurnMoved)] == [before]


def test_repaired_envelope_counts() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("collaborate")
    play.reply(CLAUDE, "plain words")
    play.reply(CLAUDE, '{"message": "x", "handoff": {"to": "codex", "task": "t"}}')

    assert play.waiting == (CODEX,)


def test_what_came_too_late_for_its_session_was_paid_for() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("collaborate")
    turn = play.turn(CLAUDE).id
    play.do(Stop(sender=HUMAN, thread="default"))
    late = one(play.reply(CLAUDE, "", turn=turn, usage=Usage(input=7, output=2, model="m")), LateReply)

    assert late.usage is not None
    assert [(row.agent, row.model, row.tokens) for row in play.room.spent] == [(CLAUDE, "m", 9)]


def test_first_answer_is_late_once_a_second_is_asked_for() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("collaborate")
    first = play.turn(CLAUDE).id
    play.reply(CLAUDE, "plain words")

    assert one(play.reply(CLAUDE, '{"message": "x"}', turn=first), AgentResponse).late


@pytest.fixture
def voting() -> Play:
    play = Play()
    play.start("consensus")
    play.reply_all("plan of {0}")
    return play


def test_voter_without_a_vote_is_asked_once_more(voting: Play) -> None:
    voting.reply(CLAUDE, "I like all of them")

    assert voting.prompt(CLAUDE).startswith("<repair_vote>")
    voting.reply(CLAUDE, "really all")
    assert (CLAUDE in voting.waiting, voting.all(Voted)) == (False, [])


def test_vote_that_uses_up_a_limit_is_not_asked_for_again() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("consensus", synth="codex", limits=Limits(cost=0.5))
    play.reply_all()
    play.reply(CODEX, "I cannot say", usage=Usage(input=1, output=1, cost_usd=0.6))

    assert play.session.stage.name == "synthesis"
    assert "<synthesise>" in play.prompt(CODEX)
    assert not play.turn(CODEX).is_repair


def test_vote_in_the_midst_of_work_counts(voting: Play) -> None:
    voting.reply(CLAUDE, "VOTE: [A]", activity=True)
    voting.reply(CLAUDE, "as I said")

    assert CLAUDE not in voting.waiting
    assert voting.session.votes[CLAUDE].label == "A"


def test_later_vote_takes_the_place_of_the_first(voting: Play) -> None:
    voting.reply(CLAUDE, "VOTE: [A]", activity=True)
    voting.reply(CLAUDE, "VOTE: [B]\nREASON: better")

    assert (voting.session.votes[CLAUDE].label, voting.session.votes[CLAUDE].reason) == ("B", "better")


def test_api_agent_votes_in_words_or_in_an_envelope() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("consensus", agents=("claude", "codex"))
    for agent in (CLAUDE, CODEX):
        play.reply(agent, f'{{"message": "plan of {agent}"}}')
    play.reply(CLAUDE, '{"message": "VOTE: [A]\\nREASON: good"}')
    play.reply(CODEX, "VOTE: [A]")

    assert [event.label for event in play.all(Voted)] == ["A", "A"]


def test_votes_are_nobodys_business_in_a_debate() -> None:
    play = Play()
    play.start("debate")
    play.reply(CLAUDE, "VOTE: [A]")

    assert play.all(Voted) == []


# --- commands in a reply -------------------------------------------------------------------------


def test_message_in_a_reply_waits_for_the_turn_of_its_reader(play: Play) -> None:
    events = play.reply(CLAUDE, "done\n@send.gemini have a look\n\n@handoff.codex go")
    call = one(events, AgentCall)

    assert play.shown(call.id, GEMINI) == "held(turn)"
    assert play.due(GEMINI) == []
    play.reply(CODEX, "@handoff.gemini go")
    assert "claude -> gemini: have a look" in play.prompt(GEMINI)
    assert play.shown(call.id, GEMINI).startswith("withdrawn(it was delivered with t-")


def test_message_to_the_next_speaker_comes_with_its_turn(play: Play) -> None:
    events = play.reply(CLAUDE, "done\n@send.codex have a look\n\n@all and you\n\n@handoff.codex go")
    calls = [event for event in events if isinstance(event, AgentCall)]

    assert "claude -> codex: have a look" in play.prompt(CODEX)
    assert [play.shown(call.id, CODEX)[:9] for call in calls] == ["withdrawn", "withdrawn"]
    assert play.shown(calls[1].id, GEMINI) == "held(turn)"


def test_message_that_the_loop_guard_holds_comes_with_no_turn(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_HOPS", 0)
    events = play.reply(CLAUDE, "done\n@send.codex have a look\n\n@handoff.codex go")

    assert play.shown(one(events, AgentCall).id, CODEX) == "held(loop)"


def test_orchestrator_sets_a_mode_with_its_last_word() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("orchestrator")
    play.reply(BOSS, 'that was it\n@mode.set single "next" --agents codex\n@final')

    assert (play.session.setup.mode, play.waiting) == ("single", (CODEX,))
    reasons = [session.reason for session in play.room.sessions.by_id.values()]
    assert reasons == ["final", None]


def test_agent_that_says_allstop_stops_nothing(play: Play) -> None:
    play.reply(CLAUDE, "Allstop")

    assert play.ended == "no_handoff"
    play.start("autopilot")
    play.say(CODEX, CLAUDE, "allstop")
    assert play.ended is None


def test_orchestrator_that_says_allstop_stops_its_session() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("autopilot")
    play.do(PostReply(sender=BOSS, text="ALL-STOP!"))

    assert play.ended == "stopped_by_user"


def test_orchestrator_stops_the_session_of_its_own_turn() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("orchestrator")
    events = play.reply(BOSS, "allstop", turn=None, reply_to=play.turn(BOSS).message)

    assert play.ended == "stopped_by_user"
    assert one(events, LateReply).sender == BOSS


def test_commands_are_read_from_what_an_envelope_says() -> None:
    assert parse_commands('{"message": "@all hi"}') == ()


def test_send_by_an_outsider_to_one_in_a_session_waits(play: Play) -> None:
    play.join_boss()
    sent = play.say(BOSS, CODEX, "a hint")

    assert play.shown(sent.id, CODEX) == "held(turn)"


def test_soft_turns_type_at_once() -> None:
    play = Play()
    play.start("autopilot", soft_turns=True)
    sent = play.say(CLAUDE, CODEX, "a hint")

    assert play.shown(sent.id, CODEX) == "queued"


def test_soft_turns_type_nothing_twice_that_a_seal_has_held() -> None:
    play = Play()
    play.start("debate", soft_turns=True)
    sent = play.say(CODEX, CLAUDE, "a hint")
    assert play.shown(sent.id, CLAUDE) == "held(turn)"
    for agent in (CODEX, GEMINI, CLAUDE):
        play.reply(agent, f"the position of {agent}")

    assert "codex -> claude: a hint" in play.prompt(CLAUDE)
    assert play.shown(sent.id, CLAUDE).startswith("withdrawn(it was delivered with t-")


def test_human_is_typed_at_once(play: Play) -> None:
    sent = play.say(HUMAN, CODEX, "a hint")

    assert play.shown(sent.id, CODEX) == "queued"
    assert sent.session_id == play.session.id
    elsewhere = one(play.do(Send(sender=HUMAN, to=CLAUDE, text="x", thread="dev")), HumanMessage)
    assert elsewhere.session_id is None


def test_word_in_a_sentence_gives_no_more_time(play: Play) -> None:
    play.start("round_robin")
    before = play.turn(CLAUDE)
    play.now += 10
    play.do(Send(sender=CLAUDE, to="human", text="I am still working on it"))

    assert play.turn(CLAUDE) == before
