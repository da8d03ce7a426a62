"""What the clock does to turns and sessions."""

import pytest

from csp.protocol.catalogue import why_held
from csp.protocol.enums import HUMAN, AgentState, DeliveryState, ParticipantKind, SessionAction
from csp.protocol.events import DeliveryMoved, NoticePosted, SystemReply, TurnMoved
from csp.protocol.session_parts import Limits, TurnState
from csp.room.commands import ExtendTurn, Leave, Rejoin, RoomRules, Send, SetState
from csp.room.sessions.session_views import mode_view
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import PROMPTS, Play

S = DeliveryState


@pytest.fixture
def play() -> Play:
    play = Play()
    play.start("round_robin")
    return play


def states(play: Play) -> list[str]:
    return [str(event.state) for event in play.all(TurnMoved)]


# --- delivered turns -----------------------------------------------------------------------------


def test_clock_runs_from_the_delivery(play: Play) -> None:
    play.wait(60)
    play.deliver(CLAUDE)

    assert play.deadline() == play.now + 90
    play.wait(90)
    assert "claude has been at its turn for 90 s." in play.notices
    assert play.deadline() == play.now + 30
    play.wait(30)
    assert play.waiting == (CODEX,)
    assert "claude: timed out, no reply in 120 s. The turn passes on." in play.notices


def test_tick_after_a_long_sleep_warns_then_ends(play: Play) -> None:
    play.deliver(CLAUDE)
    play.wait(500)

    assert states(play)[:3] == ["delivered", "delivered", "timed_out"]


@pytest.mark.parametrize("state", [S.SUBMITTED, S.CONFIRMED])
def test_submitted_is_delivered(play: Play, state: DeliveryState) -> None:
    play.deliver(CLAUDE, state)

    assert play.turn(CLAUDE).state is TurnState.DELIVERED


def test_message_that_answers_the_ask_proves_that_it_has_arrived(play: Play) -> None:
    play.wait(60)
    play.do(Send(sender=CLAUDE, to=CODEX, text="I am asked", reply_to=play.turn(CLAUDE).message))

    assert (play.waiting, play.turn(CLAUDE).state) == ((CLAUDE,), TurnState.DELIVERED)
    assert play.deadline() == play.now + 90


def test_proof_after_the_submission_starts_no_clock_anew(play: Play) -> None:
    play.deliver(CLAUDE, S.SUBMITTED)
    since = play.turn(CLAUDE).since
    play.wait(5)
    play.deliver(CLAUDE, S.CONFIRMED)

    assert play.turn(CLAUDE).since == since


def test_working_moves_the_deadline(play: Play) -> None:
    play.deliver(CLAUDE)
    for _ in range(10):
        play.wait(100)
        play.do(ExtendTurn(agent=CLAUDE, note="still"))

    assert (play.waiting, play.deadline()) == ((CLAUDE,), play.now + 90)


def test_signs_of_work_keep_a_turn_open_for_half_an_hour(play: Play) -> None:
    play.deliver(CLAUDE)
    for _ in range(17):
        play.wait(100)
        play.do(ExtendTurn(agent=CLAUDE))
    play.wait(100)

    assert play.do(ExtendTurn(agent=CLAUDE)) == []


def test_work_on_a_turn_that_was_not_reported_delivers_it(play: Play) -> None:
    play.do(ExtendTurn(agent=CLAUDE))

    assert play.turn(CLAUDE).delivered_at == play.now


def test_who_has_no_turn_keeps_none(play: Play) -> None:
    assert play.do(ExtendTurn(agent=CODEX)) == []


def test_api_agents_have_more_time() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.wait(90)

    assert play.deadline() == play.now + 210


def test_a_model_that_leaves_in_its_turn_is_not_waited_for() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.do(Leave(agent=CLAUDE, reason="no sign of life"))

    assert play.waiting == (CODEX,)
    assert "claude: its turn failed, it has left the room. The turn passes on." in play.notices


def test_a_model_that_leaves_before_it_is_reached_may_come_back_to_its_turn() -> None:
    play = Play(kind=ParticipantKind.API)
    play.start("round_robin")
    play.do(Leave(agent=CLAUDE, reason="closed"))

    assert play.waiting == (CLAUDE,)


def test_a_cli_that_leaves_in_its_turn_may_still_answer() -> None:
    play = Play()
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.do(Leave(agent=CLAUDE, reason="no sign of life"))

    assert play.waiting == (CLAUDE,)


def test_a_model_that_is_offline_is_passed_over_until_it_is_back() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("round_robin")
    play.do(Leave(agent=CODEX, reason="closed"))
    play.reply(CLAUDE, "one")
    passed = play.waiting
    play.do(Rejoin(agent=CODEX))
    play.reply(CLAUDE, "two")

    assert (passed, play.waiting) == ((CLAUDE,), (CODEX,))
    assert "codex was skipped: it is offline." in play.notices


def test_warning_that_would_come_too_late_is_left_out() -> None:
    play = Play(rules=RoomRules(warn_s=120, timeout_s=120, prompts=PROMPTS))
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.wait(120)

    assert (play.waiting, states(play)) == ((CODEX,), ["delivered", "timed_out"])


def test_two_timeouts_in_a_row_bench_an_agent(play: Play) -> None:
    for _ in range(2):
        play.deliver(CLAUDE)
        play.wait(120)
        play.reply(CODEX)
        play.reply(GEMINI)

    assert "claude is benched: it gets no turns until it posts something." in play.notices
    assert "claude was skipped: benched after two timeouts until it posts something." in play.notices
    assert play.waiting == (CODEX,)


def test_benched_agent_that_speaks_is_asked_again(play: Play) -> None:
    for _ in range(2):
        play.deliver(CLAUDE)
        play.wait(120)
        play.reply(CODEX)
        play.reply(GEMINI)
    play.say(CLAUDE, CODEX, "I am here")
    play.reply(CODEX)
    play.reply(GEMINI)

    assert play.waiting == (CLAUDE,)


# --- turns that do not arrive --------------------------------------------------------------------


def test_turn_that_is_not_delivered_fails_with_the_reason(play: Play) -> None:
    ask = play.turn(CLAUDE).message
    play.deliver(CLAUDE, S.HELD, "busy")
    play.wait(120)

    assert play.waiting == (CODEX,)
    assert any("undelivered: busy" in text for text in play.notices)
    assert play.shown(ask, CLAUDE) == "withdrawn"


def test_turn_of_one_who_is_away_fails_with_the_reason(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.OFFLINE))
    play.wait(120)

    assert any("undelivered: offline" in text for text in play.notices)


@pytest.mark.parametrize("reason", ["draft", "dialog"])
def test_what_is_in_the_way_calls_the_human_and_waits(play: Play, reason: str) -> None:
    play.deliver(CLAUDE, S.HELD, reason)
    play.wait(120)

    assert play.waiting == (CLAUDE,)
    held = why_held(reason)
    assert held is not None
    assert f"Cannot deliver claude's turn: {held.text}." in play.notices
    assert play.deadline() == play.now + 1680
    play.wait(1680)
    assert play.waiting == (CODEX,)


def test_failed_delivery_passes_the_turn_on(play: Play) -> None:
    play.deliver(CLAUDE, S.FAILED, "gone")

    assert play.waiting == (CODEX,)
    assert any("undelivered: gone" in text for text in play.notices)


def test_message_that_expires_as_the_turn_of_its_reader_comes_is_ended_once(play: Play) -> None:
    call = play.do(Send(sender=CLAUDE, to=CODEX, text="a hint", ttl_s=120))[0]
    assert play.shown(call.id, CODEX) == "held(turn)"
    play.wait(120)

    assert play.waiting == (CODEX,)
    assert play.shown(call.id, CODEX) == "expired"
    assert len([event for event in play.all(DeliveryMoved) if event.message == call.id]) == 1


# --- dialogs -------------------------------------------------------------------------------------


def test_dialog_stops_the_clock(play: Play) -> None:
    play.deliver(CLAUDE)
    play.wait(80)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, detail="Bash"))

    assert play.turn(CLAUDE).state is TurnState.BLOCKED
    assert "claude waits for a person: Bash" in play.notices
    play.wait(1000)
    play.do(SetState(agent=CLAUDE, state=AgentState.BUSY))
    assert (play.turn(CLAUDE).state, play.deadline()) == (TurnState.WORKING, play.now + 90)


def test_what_an_agent_asks_a_person_is_told_to_people_alone(play: Play) -> None:
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, detail="rm -r build"))
    (told,) = (event for event in play.all(NoticePosted) if "rm -r build" in event.text)

    assert told.target == HUMAN
    assert not any("rm -r build" in event.text for event in play.all(TurnMoved))


def test_note_of_work_is_shown_unless_it_is_sealed(play: Play) -> None:
    play.do(ExtendTurn(agent=CLAUDE, note="grep parser"))
    assert play.all(TurnMoved)[-1].reason == "grep parser"
    play.start("debate")
    play.do(ExtendTurn(agent=CLAUDE, note="my position"))
    assert play.all(TurnMoved)[-1].reason == ""


def test_dialog_that_nobody_answers_ends_the_turn(play: Play) -> None:
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_HUMAN))

    assert "claude waits for a person." in play.notices
    play.wait(1800)
    assert play.waiting == (CODEX,)


def test_dialog_before_the_prompt_blocks_nothing_yet(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_HUMAN))

    assert play.turn(CLAUDE).state is TurnState.ASKED


def test_state_without_a_dialog_changes_no_turn(play: Play) -> None:
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.BUSY))

    assert play.turn(CLAUDE).state is TurnState.DELIVERED


# --- limits of agents ----------------------------------------------------------------------------


def test_agent_at_its_limit_loses_its_turn(play: Play) -> None:
    ask = play.turn(CLAUDE).message
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED))

    assert (play.waiting, play.shown(ask, CLAUDE)) == ((CODEX,), "withdrawn")


def test_agent_that_reaches_its_limit_is_not_asked_in_the_next_phase() -> None:
    play = Play()
    play.start("consensus")
    play.reply(CLAUDE)
    play.reply(CODEX)
    play.do(SetState(agent=GEMINI, state=AgentState.LIMITED))

    assert (play.session.stage.name, play.waiting) == ("ballot", (CLAUDE, CODEX))
    assert "gemini was skipped: it has reached its limit." in play.notices


def test_agent_at_its_limit_is_passed_over_until_then(play: Play) -> None:
    play.do(SetState(agent=CODEX, state=AgentState.LIMITED, until=play.now + 50))
    play.reply(CLAUDE)

    assert play.waiting == (GEMINI,)
    play.wait(50)
    play.reply(GEMINI)
    play.reply(CLAUDE)
    assert play.waiting == (CODEX,)


def test_when_all_are_at_their_limits_the_session_ends(play: Play) -> None:
    for agent in (CODEX, GEMINI, CLAUDE):
        play.do(SetState(agent=agent, state=AgentState.LIMITED))

    assert play.ended == "all_failed"


# --- the orchestrator ----------------------------------------------------------------------------


def test_orchestrator_hears_of_what_went_wrong() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_HUMAN))
    play.wait(1800)
    play.deliver(CODEX)
    play.wait(120)

    blocked, timed_out = play.all(SystemReply)[:2]
    assert "claude is blocked: it waits for a person" in blocked.text
    assert "codex timed out" in timed_out.text


# --- what a person counts down to ----------------------------------------------------------------


def shown_deadline(play: Play) -> float | None:
    return mode_view(play.room, play.session, play.rules).deadline


def test_clock_that_is_shown_runs_to_the_end_of_the_turn_not_to_the_warning() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("round_robin")
    play.now += 10
    play.deliver(CLAUDE)
    over_at = play.now + 120

    assert shown_deadline(play) == over_at
    play.wait(90)
    assert shown_deadline(play) == over_at


def test_clock_that_is_shown_runs_to_the_end_of_the_session_if_that_is_sooner() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(minutes=1.0))
    assert shown_deadline(play) == play.now + 60
    play.steer(SessionAction.PAUSE)

    assert shown_deadline(play) is None
