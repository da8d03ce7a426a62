"""Sessions are steered from outside."""

import pytest

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL, HUMAN, AgentState, ControlVerb, DeliveryState, SessionAction
from csp.protocol.events import AgentResponse, ControlSent, DeliveryMoved, TurnSignal
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import Limits, Status, TurnState
from csp.room.commands import (
    CancelMessage,
    ExtendTurn,
    Leave,
    NextTurn,
    Remove,
    ReportDelivery,
    SetState,
    Steer,
    Stop,
)
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import BOSS, Play

A = SessionAction


@pytest.fixture
def play() -> Play:
    play = Play()
    play.start("autopilot")
    return play


# --- stop ----------------------------------------------------------------------------------------


def test_stop_ends_the_session_and_takes_back_what_was_asked(play: Play) -> None:
    ask = play.turn(CLAUDE).message
    play.do(Stop(sender=HUMAN))

    assert (play.ended, play.session.turns) == ("stopped_by_user", {})
    assert play.shown(ask, CLAUDE) == "withdrawn"
    assert "Collaboration stopped by user (Allstop)." in play.notices
    assert play.all(ControlSent) == []


def test_stop_interrupts_who_is_at_work_on_its_turn(play: Play) -> None:
    turn = play.turn(CLAUDE).id
    play.deliver(CLAUDE)
    play.do(Stop(sender=HUMAN))
    (control,) = play.all(ControlSent)

    assert (control.target, control.control, control.turn) == (CLAUDE, ControlVerb.INTERRUPT, turn)
    assert control.expires == play.now + 30


def test_stop_interrupts_nobody_who_is_away(play: Play) -> None:
    play.deliver(CLAUDE)
    play.do(Leave(agent=CLAUDE, reason="closed"))
    play.do(Stop(sender=HUMAN))

    assert play.all(ControlSent) == []


def test_stop_without_a_session_is_nothing() -> None:
    assert Play().do(Stop(sender=HUMAN)) == []


def test_stop_is_for_one_thread_or_for_all(play: Play) -> None:
    assert play.do(Stop(sender=HUMAN, thread="dev")) == []
    play.do(Stop(sender=HUMAN, thread=None))
    assert play.ended == "stopped_by_user"


def test_messages_held_for_a_turn_go_with_a_stop(play: Play) -> None:
    sent = play.say(CLAUDE, CODEX, "thanks")
    play.do(Stop(sender=HUMAN))

    assert play.shown(sent.id, CODEX) == "withdrawn"


def test_messages_held_for_a_turn_are_delivered_after_an_ordinary_end() -> None:
    play = Play()
    play.start("collaborate")
    sent = play.say(GEMINI, CODEX, "by the way")
    play.reply(CLAUDE)

    assert play.shown(sent.id, CODEX) == "queued"


# --- next ----------------------------------------------------------------------------------------


def test_next_in_freeform_is_refused_in_the_words_of_the_seed() -> None:
    error = Play().refuse(NextTurn(), BadInput)

    assert error.message == "Not in structured mode"


def test_next_takes_the_turn_for_done(play: Play) -> None:
    play.do(NextTurn())

    assert (play.waiting, play.session.done[-1].state) == ((CODEX,), TurnState.CANCELLED)


def test_next_without_an_open_turn_is_refused(play: Play) -> None:
    play.steer(A.PAUSE)
    play.reply(CLAUDE)

    refused = play.refuse(NextTurn(), Refused)
    assert refused.message == f"no turn is open in {play.session.id} because it is paused"
    assert refused.hint == "resume it first"


# --- pause, resume -------------------------------------------------------------------------------


def test_reply_during_a_pause_is_posted_and_its_consequence_waits(play: Play) -> None:
    play.steer(A.PAUSE)
    play.reply(CLAUDE, "there", handoff=Handoff(to="gemini", task="go"))

    assert (play.session.status, play.waiting, len(play.all(AgentResponse))) == (Status.PAUSED, (), 1)
    play.steer(A.RESUME)
    assert play.waiting == (GEMINI,)


def test_pause_stops_all_clocks(play: Play) -> None:
    play.deliver(CLAUDE)
    play.wait(50)
    play.steer(A.PAUSE)

    assert play.deadline() is None
    play.wait(5000)
    play.steer(A.RESUME)
    assert (play.waiting, play.deadline()) == ((CLAUDE,), play.now + 40)
    assert play.session.idle_s == 5000


def test_turn_that_began_in_a_pause_begins_anew_with_its_end(play: Play) -> None:
    play.steer(A.PAUSE)
    play.wait(100)
    play.deliver(CLAUDE)
    play.wait(100)
    play.steer(A.RESUME)

    assert play.turn(CLAUDE).since == play.now


def test_pause_and_resume_twice_is_once(play: Play) -> None:
    play.steer(A.PAUSE)

    assert play.steer(A.PAUSE) == []
    play.steer(A.RESUME)
    assert play.steer(A.RESUME) == []


def test_task_of_a_handoff_outlives_all_that_is_said_in_a_pause() -> None:
    play = Play()
    play.start("collaborate")
    play.steer(A.PAUSE)
    play.reply(CLAUDE, "@handoff.codex write the parser")
    for number in range(40):
        play.say(HUMAN, GEMINI, f"remark {number}")
        play.say(HUMAN, ALL, f"word {number}")
    play.steer(A.RESUME)
    assert "router -> codex: write the parser" in play.prompt(CODEX)
    assert len(play.session.items) == 25
    play.reply(CODEX, "done")

    assert len(play.session.items) == 24


# --- extend --------------------------------------------------------------------------------------


def test_extend_gives_the_open_turns_more_time(play: Play) -> None:
    play.deliver(CLAUDE)
    play.wait(95)
    play.steer(A.EXTEND)

    assert play.deadline() == play.now + 90
    assert "The open turns got more time." in play.notices


def test_extend_gives_a_turn_on_its_way_more_time(play: Play) -> None:
    play.wait(100)
    play.steer(A.EXTEND)

    assert play.deadline() == play.now + 120
    assert play.turn(CLAUDE).delivered_at is None


def test_extend_adds_rounds_and_minutes(play: Play) -> None:
    play.steer(A.EXTEND, minutes=5.0, rounds=3)

    assert (play.session.setup.limits.minutes, play.session.setup.rounds) == (25.0, None)
    play.start("debate", rounds=2)
    play.steer(A.EXTEND, rounds=3, minutes=1.0)
    assert (play.session.setup.rounds, play.session.setup.limits.minutes) == (5, None)
    assert [text for text in play.notices if "Extended" in text] == [
        *("Extended by 5 minutes.", "Extended by 3 rounds."),
    ]
    play.start("debate", rounds=2, limits=Limits(minutes=2.0))
    play.steer(A.EXTEND, rounds=3, minutes=1.0)
    assert play.notices[-1] == "Extended by 3 rounds and 1 minutes."


@pytest.mark.parametrize("mode", ["single", "consensus"])
def test_extend_adds_no_rounds_to_a_mode_that_has_its_own(mode: str) -> None:
    play = Play()
    play.start(mode)
    play.steer(A.EXTEND, rounds=3)

    assert play.session.setup.rounds == 2
    assert play.notices[-1] == "The open turns got more time."


# --- skip, kick ----------------------------------------------------------------------------------


def test_skip_passes_over_the_current_agent(play: Play) -> None:
    play.steer(A.SKIP)

    assert play.waiting == (CODEX,)
    assert "claude was skipped." in play.notices


def test_skip_names_one_of_those_who_owe_a_reply() -> None:
    play = Play()
    play.start("debate")
    play.steer(A.SKIP, agent="codex")

    assert play.waiting == (CLAUDE, GEMINI)


def test_skip_of_one_without_a_turn_is_refused(play: Play) -> None:
    command = Steer(sender=HUMAN, session=play.session.id, action=A.SKIP, agent="codex")

    assert play.refuse(command, Refused).hint == "open turns: claude"


def test_kicked_agent_is_asked_no_more(play: Play) -> None:
    play.steer(A.KICK, agent="claude")

    assert (play.waiting, play.session.agents) == ((CODEX,), (CODEX, GEMINI))
    for agent in (CODEX, GEMINI, CODEX, GEMINI):
        play.reply(agent)
    assert len(play.asks(CLAUDE)) == 1


def test_kick_of_one_who_waits_leaves_the_turn_alone(play: Play) -> None:
    play.steer(A.KICK, agent="gemini")

    assert play.waiting == (CLAUDE,)


@pytest.mark.parametrize("agent", [None, "mallory"])
def test_kick_of_one_who_takes_no_part_is_refused(play: Play, agent: str | None) -> None:
    command = Steer(sender=HUMAN, session=play.session.id, action=A.KICK, agent=agent)

    assert "is not in session" in play.refuse(command, BadInput).message


def test_too_few_end_a_session() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate")
    play.steer(A.KICK, agent="claude")

    assert play.ended == "too_few"


def test_session_without_its_lead_ends() -> None:
    play = Play()
    play.join_boss()
    play.start("orchestrator")
    play.steer(A.KICK, agent="orchestrator")

    assert play.ended == "too_few"


def test_removed_agent_leaves_its_session(play: Play) -> None:
    play.do(Remove(agent=CLAUDE))

    assert (play.waiting, play.session.agents) == ((CODEX,), (CODEX, GEMINI))


def test_removed_agent_is_not_asked_in_the_next_phase() -> None:
    play = Play()
    play.start("consensus")
    play.reply(CLAUDE)
    play.reply(CODEX)
    play.do(Remove(agent=GEMINI))

    assert (play.session.stage.name, play.waiting) == ("ballot", (CLAUDE, CODEX))
    assert len(play.asks(GEMINI)) == 1


def test_removed_agent_is_not_asked_for_the_synthesis() -> None:
    play = Play()
    play.start("consensus", synth="gemini")
    play.reply_all()
    for agent in (CLAUDE, CODEX):
        play.reply(agent, "VOTE: [A]")
    play.do(Remove(agent=GEMINI))

    assert (play.ended, len(play.asks(GEMINI))) == ("done", 2)


def test_removed_synthesiser_leaves_no_turn_behind() -> None:
    play = Play()
    play.start("round_robin", agents=("claude",), steps=1, synth="gemini")
    play.reply(CLAUDE)
    play.do(Remove(agent=GEMINI))

    assert play.ended == "done"


def test_synthesiser_removed_in_the_midst_of_its_work_leaves_no_turn_behind() -> None:
    play = Play()
    play.start("round_robin", agents=("claude",), steps=1, synth="gemini")
    play.reply(CLAUDE)
    play.deliver(GEMINI)
    play.do(Remove(agent=GEMINI))

    assert play.ended == "done"


def test_synthesiser_that_was_removed_before_is_done_without() -> None:
    play = Play()
    play.start("round_robin", agents=("claude",), steps=1, synth="gemini")
    play.do(Remove(agent=GEMINI))
    play.reply(CLAUDE)

    assert play.ended == "done"


def test_withdrawn_ask_passes_the_turn_on(play: Play) -> None:
    ask = play.turn(CLAUDE).message
    play.do(CancelMessage(message=ask))

    assert (play.waiting, play.shown(ask, CLAUDE)) == ((CODEX,), "withdrawn")


def test_report_on_another_message_moves_no_turn(play: Play) -> None:
    sent = play.say(HUMAN, CLAUDE)
    play.report(CLAUDE, sent.id, DeliveryState.CONFIRMED)

    assert play.turn(CLAUDE).state is TurnState.ASKED


def test_what_is_held_for_a_turn_cannot_be_reported_on(play: Play) -> None:
    sent = play.say(CLAUDE, CODEX)
    command = ReportDelivery(agent=CODEX, message=sent.id, state=DeliveryState.CONFIRMED)

    assert play.refuse(command, Refused).message == f"{sent.id} is held for codex's turn"


def test_agent_whose_coming_stood_in_a_lost_line_is_passed_over(play: Play) -> None:
    del play.room.participants[CODEX]
    play.reply(CLAUDE)

    assert play.waiting == (GEMINI,)
    assert "codex was skipped: it has left the room." in play.notices


def test_ask_that_is_not_remembered_cannot_be_withdrawn(play: Play) -> None:
    message = play.turn(CLAUDE).message
    del play.room.messages[message], play.room.participants[CLAUDE].queue[message]
    events = play.do(Stop(sender=HUMAN))

    assert [event for event in events if isinstance(event, DeliveryMoved)] == []
    assert play.ended == "stopped_by_user"


def test_typed_ask_is_not_delivered_yet(play: Play) -> None:
    play.deliver(CLAUDE, DeliveryState.TYPED)

    assert play.turn(CLAUDE).state is TurnState.ASKED


# --- which session -------------------------------------------------------------------------------


def test_end_by_hand_says_so(play: Play) -> None:
    play.steer(A.STOP)

    assert play.ended == "canceled"
    assert "Collaboration canceled by user." in play.notices


def test_session_that_is_over_cannot_be_steered(play: Play) -> None:
    play.steer(A.STOP)
    command = Steer(sender=HUMAN, session=play.session.id, action=A.PAUSE)

    assert play.refuse(command, Refused).message == f"session {play.session.id} has ended: canceled"


def test_session_that_never_was_cannot_be_steered(play: Play) -> None:
    command = Steer(sender=HUMAN, session="s-0", action=A.PAUSE)
    assert play.refuse(command, NotFound).hint == f"did you mean '{play.session.id}'?"
    play.do(Stop(sender=HUMAN))
    assert play.refuse(command, NotFound).hint == "no session is running"


def test_orchestrator_is_not_woken_by_what_a_person_ends() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("autopilot")
    play.do(Stop(sender=HUMAN))

    assert play.due(BOSS) == []
    assert play.all(TurnSignal)[0].target == CLAUDE


# --- more time -----------------------------------------------------------------------------------


def test_word_of_work_does_not_answer_a_dialog(play: Play) -> None:
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL))

    assert play.do(ExtendTurn(agent=CLAUDE, note="Bash")) == []
    assert play.turn(CLAUDE).state is TurnState.BLOCKED
