"""What a session does at an agent's usage limit, at a login or a dialog, after a crash and in a sleep."""

import pytest

from csp.protocol.enums import (
    HUMAN,
    AgentId,
    AgentState,
    ControlVerb,
    DeliveryState,
    Ending,
    HeldReason,
    ParticipantKind,
    SessionAction,
)
from csp.protocol.events import Activity, ControlSent, TurnMoved
from csp.protocol.requests import Usage
from csp.protocol.review_messages import RunContext, RunTerms
from csp.protocol.session_parts import (
    EndReason,
    Limits,
    OnHardLimit,
    OnLimit,
    Status,
    TurnState,
    Wait,
)
from csp.room.attention import attention
from csp.room.commands import (
    ControlAgent,
    ExtendTurn,
    HandOffTurn,
    Join,
    Leave,
    PrepareRun,
    Rejoin,
    Remove,
    RoomRules,
    Send,
    SetState,
    Slept,
    Steer,
    Tick,
)
from csp.room.room_reducer import replay
from csp.room.room_state import dump, load
from csp.room.sessions import turns
from csp.room.sessions.session_limits import minutes_used
from csp.room.sessions.steering import ends
from csp.room.sessions.waits import duration
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import BOSS, PROMPTS, Play

S = DeliveryState
HOUR = 3600.0
RESET = HOUR


def autopilot(**options: object) -> Play:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", **{"limits": Limits(minutes=60.0), **options})
    return play


def limited(play: Play, agent: AgentId = CLAUDE, in_s: float | None = RESET) -> None:
    """Let an agent report a usage limit that resets in a while, or nobody knows when."""
    until = None if in_s is None else play.now + in_s
    play.do(SetState(agent=agent, state=AgentState.LIMITED, detail="limit reached", until=until))


def wait_of(play: Play, agent: AgentId = CLAUDE) -> Wait:
    wait = play.turn(agent).wait
    assert wait is not None
    return wait


def number_of_asks(play: Play, agent: AgentId = CLAUDE) -> int:
    return len(play.asks(agent))


def items(play: Play) -> dict[str, list[str]]:
    return {item.id: [answer.key for answer in item.answers] for item in attention(play.room, play.now)}


@pytest.fixture
def play() -> Play:
    """A session in which claude works on its turn."""
    play = autopilot()
    play.deliver(CLAUDE)
    return play


# --- an agent's usage limit --------------------------------------------------------------------------


def test_agent_at_its_limit_is_asked_once_more_after_the_reset(play: Play) -> None:
    limited(play)

    assert play.turn(CLAUDE).state is TurnState.WAITING
    at = play.deadline()
    assert at is not None
    assert play.now + RESET < at <= play.now + RESET + 60
    play.now = at - 1
    assert play.do(Tick()) == []
    play.now = at
    play.do(Tick())
    assert (number_of_asks(play), number_of_asks(play, CODEX)) == (2, 0)
    assert play.turn(CLAUDE).state is TurnState.ASKED


def test_repeated_request_counts_as_one_turn(play: Play) -> None:
    limited(play)
    play.wait(2 * HOUR)

    assert (play.session.asked, play.session.steps) == (1, 1)
    assert play.asks(CLAUDE)[-1].is_again
    assert play.asks(CLAUDE)[-1].round == play.asks(CLAUDE)[0].round == 1


def test_wait_is_no_failure(play: Play) -> None:
    limited(play)
    play.wait(2 * HOUR)

    assert (play.session.fails, play.session.strikes, play.session.failed) == (0, {}, {})


def test_people_are_told_how_long_it_takes(play: Play) -> None:
    limited(play, in_s=2 * HOUR + 300)
    play.wait(3 * HOUR)

    words = (
        "claude has reached a usage limit that resets in 2 h 5 min. The session waits, then asks it again."
    )
    assert words in play.notices
    assert "claude is asked again after a wait of 3 h 0 min." in play.notices


def test_limit_before_the_turn_is_waited_for_without_a_prompt() -> None:
    play = Play(CLAUDE, CODEX)
    limited(play)
    play.start("autopilot")

    assert (play.waiting, number_of_asks(play)) == ((CLAUDE,), 0)
    play.wait(RESET + 60)
    assert (number_of_asks(play), play.session.asked) == (1, 1)


def test_prompt_that_was_not_typed_is_taken_back() -> None:
    play = autopilot()
    limited(play)

    assert play.due(CLAUDE) == []
    play.wait(RESET + 60)
    assert play.due(CLAUDE) == [play.turn(CLAUDE).message]


def test_prompt_that_is_just_typed_is_not_sent_twice() -> None:
    play = autopilot()
    play.deliver(CLAUDE, S.TYPED)
    limited(play)

    assert play.turn(CLAUDE).state is TurnState.ASKED
    play.deliver(CLAUDE)
    play.reply(CLAUDE, "", ending=Ending.LIMITED)
    assert play.turn(CLAUDE).state is TurnState.WAITING
    play.wait(RESET + 60)
    assert number_of_asks(play) == 2


def test_reply_that_ran_into_the_limit_is_waited_for(play: Play) -> None:
    play.reply(CLAUDE, "half", ending=Ending.LIMITED, reason="limit")

    assert play.turn(CLAUDE).state is TurnState.WAITING
    assert [event.text for event in play.all(Activity)] == ["half"]
    limited(play)
    assert wait_of(play).until == play.now + RESET


def test_reply_after_the_reported_limit_does_not_end_the_wait(play: Play) -> None:
    limited(play)
    play.reply(CLAUDE, "", ending=Ending.LIMITED, usage=Usage(input=5, output=1))

    assert play.turn(CLAUDE).state is TurnState.WAITING
    assert play.session.used.new == 6


def test_limit_that_is_never_reported_is_tried_after_a_pause(play: Play) -> None:
    play.reply(CLAUDE, "", ending=Ending.LIMITED)

    assert play.deadline() == play.now + 60
    play.wait(60)
    assert number_of_asks(play) == 2


@pytest.mark.parametrize("reset_s", [0.0, -100.0, None])
def test_limit_that_returns_at_once_never_loops(play: Play, reset_s: float | None) -> None:
    began = play.now
    pauses = []
    for _ in range(8):
        play.deliver(CLAUDE)
        play.reply(CLAUDE, "", ending=Ending.LIMITED)
        if reset_s is not None:
            limited(play, in_s=reset_s)
        at = play.deadline()
        assert at is not None
        pauses.append(at - play.now)
        play.now = at
        play.do(Tick())

    assert number_of_asks(play) == 9
    assert min(pauses[1:]) >= 60
    assert pauses[-1] == 3600
    assert play.now - began > 2 * HOUR


def test_new_reset_moves_the_wait(play: Play) -> None:
    limited(play)
    limited(play, in_s=3 * HOUR)

    assert wait_of(play).until == play.now + 3 * HOUR
    play.wait(RESET + 60)
    assert number_of_asks(play) == 1


def test_same_reset_does_not_move_the_wait(play: Play) -> None:
    limited(play)
    before = wait_of(play)
    play.now += 100
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, detail="other words", until=before.until))

    assert wait_of(play) == before


def test_limit_that_is_still_there_after_the_reset_is_waited_for_again(play: Play) -> None:
    limited(play)
    play.now += RESET + 1
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, until=play.now + HOUR))
    play.wait(100)

    assert number_of_asks(play) == 1
    play.wait(HOUR)
    assert number_of_asks(play) == 2


def test_agent_that_recovers_early_is_asked_at_once(play: Play) -> None:
    limited(play)
    play.now += 100
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))

    assert number_of_asks(play) == 2


@pytest.mark.parametrize("state", [AgentState.BUSY, AgentState.STARTING, AgentState.NEEDS_APPROVAL])
def test_only_a_free_agent_has_recovered(play: Play, state: AgentState) -> None:
    limited(play)
    play.now += 100
    play.do(SetState(agent=CLAUDE, state=state))

    assert number_of_asks(play) == 1


def test_agent_that_is_free_at_its_reset_is_asked_a_little_later(play: Play) -> None:
    limited(play)
    play.now += RESET
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))

    assert number_of_asks(play) == 1
    play.wait(60)
    assert number_of_asks(play) == 2


def test_sessions_do_not_all_ask_at_the_same_moment() -> None:
    times = set()
    for number in range(20):
        play = Play(CLAUDE, CODEX)
        play.now += number / 8
        play.start("autopilot")
        play.deliver(CLAUDE)
        limited(play, in_s=RESET)
        times.add(round((play.deadline() or 0.0) - play.now - RESET, 3))

    assert len(times) == 20
    assert 30 <= min(times) <= max(times) <= 60


def test_short_limits_have_a_short_spread(play: Play) -> None:
    limited(play, in_s=5.0)

    assert play.now + 6 <= (play.deadline() or 0.0) <= play.now + 7


def test_late_answer_to_the_first_prompt_ends_the_wait(play: Play) -> None:
    limited(play)
    play.reply(CLAUDE, "I could finish it")

    assert play.waiting == (CODEX,)
    assert play.wait(2 * HOUR)
    assert number_of_asks(play) == 1


def test_words_during_the_wait_do_not_end_it(play: Play) -> None:
    limited(play)
    play.reply(CLAUDE, "hm", activity=True)
    play.do(ExtendTurn(agent=CLAUDE, note="on it"))

    assert play.turn(CLAUDE).state is TurnState.WAITING


def test_others_are_asked_meanwhile() -> None:
    play = Play()
    play.start("debate", rounds=1, on_limit=OnLimit.WAIT)
    play.deliver(CLAUDE)
    limited(play)
    play.reply(CODEX)
    play.reply(GEMINI)

    assert (play.waiting, play.session.stage.name) == ((CLAUDE,), "positions")
    play.wait(RESET + 60)
    play.reply(CLAUDE)
    assert play.ended == EndReason.DONE
    assert len(play.session.outputs) == 3


def test_allstop_ends_a_wait_and_nothing_is_sent_after_it(play: Play) -> None:
    limited(play)
    play.do(Send(sender=HUMAN, to="all", text="Allstop"))

    assert play.ended == EndReason.STOPPED_BY_USER
    asked = number_of_asks(play)
    play.wait(2 * RESET)
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))
    assert (number_of_asks(play), play.due(CLAUDE)) == (asked, [])


def test_restart_of_the_gateway_changes_nothing(play: Play) -> None:
    limited(play)
    before, at = dump(play.room), play.deadline()
    play.room = replay(list(play.journal))
    assert dump(play.room) == before
    play.room = load(dump(play.room))

    assert play.deadline() == at
    play.wait(RESET + 60)
    play.do(Tick())
    assert number_of_asks(play) == 2


def test_tick_long_after_the_reset_asks_once(play: Play) -> None:
    limited(play)
    play.wait(100 * HOUR)
    play.do(Tick())

    assert number_of_asks(play) == 2


@pytest.mark.parametrize("action", [SessionAction.SKIP, SessionAction.KICK])
def test_person_can_skip_or_remove_who_is_waited_for(action: SessionAction) -> None:
    play = Play()
    play.start("autopilot")
    play.deliver(CLAUDE)
    limited(play)
    play.steer(action, agent=CLAUDE)

    assert play.waiting == (CODEX,)


def test_agent_that_is_removed_is_not_waited_for(play: Play) -> None:
    limited(play)
    play.do(Remove(agent=CLAUDE))

    assert play.waiting == (CODEX,)


def test_turn_of_a_wait_is_closed_once(play: Play) -> None:
    limited(play)
    play.wait(RESET + 60)
    play.reply(CLAUDE)

    closed = [event for event in play.all(TurnMoved) if event.state is TurnState.REPLIED]
    assert (len(closed), play.waiting) == (1, (CODEX,))


def test_handoff_by_tool_survives_the_wait(play: Play) -> None:
    play.do(HandOffTurn(agent=CLAUDE, to="codex", task="go on"))
    limited(play)
    play.wait(RESET + 60)

    handoff = play.turn(CLAUDE).handoff
    assert handoff is not None
    assert handoff.to == "codex"


# --- an unknown reset --------------------------------------------------------------------------------


def test_unknown_reset_asks_a_person(play: Play) -> None:
    limited(play, in_s=None)

    assert items(play) == {"limited:s-3": ["y", "s", "e", "f"]}
    (item,) = attention(play.room, play.now)
    assert (item.level, item.title) == (
        "action",
        "claude is at a usage limit with an unknown reset: ask it now?",
    )
    assert play.deadline() is None


def test_known_reset_only_informs(play: Play) -> None:
    limited(play)

    (item,) = attention(play.room, play.now)
    assert (item.id, item.level) == ("limited:s-3", "info")
    assert item.title == "s-3 (autopilot) waits for the reset of claude's usage limit"


def test_person_continues_an_unknown_reset_with_one_prompt(play: Play) -> None:
    limited(play, in_s=None)
    play.steer(SessionAction.DECIDE, choice="continue")

    assert (number_of_asks(play), play.turn(CLAUDE).state) == (2, TurnState.ASKED)
    assert items(play) == {"limited:claude": ["f"]}
    assert "is not waiting" in play.refused(_decide(play, "continue"))


def test_person_skips_an_unknown_reset(play: Play) -> None:
    limited(play, in_s=None)
    play.steer(SessionAction.DECIDE, choice="skip")

    assert play.waiting == (CODEX,)


def test_person_ends_the_session_at_an_unknown_reset(play: Play) -> None:
    limited(play, in_s=None)
    play.steer(SessionAction.DECIDE, choice="end")

    assert play.ended == EndReason.CANCELED


def test_recovery_continues_an_unknown_reset(play: Play) -> None:
    limited(play, in_s=None)
    play.wait(5 * HOUR)
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))

    assert number_of_asks(play) == 2


def test_limit_that_becomes_unknown_waits_for_a_person(play: Play) -> None:
    play.reply(CLAUDE, "", ending=Ending.LIMITED)
    assert play.deadline() is not None
    limited(play, in_s=None)

    assert play.deadline() is None


def _decide(play: Play, choice: str) -> Steer:
    return Steer(sender=HUMAN, session=play.session.id, action=SessionAction.DECIDE, choice=choice)


# --- the other ways to handle a usage limit ----------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "on_limit"),
    [("autopilot", "wait"), ("round_robin", "skip"), ("orchestrator", "skip"), ("debate", "skip")],
)
def test_modes_without_supervision_wait_by_default(mode: str, on_limit: str) -> None:
    play = Play()
    play.start(mode)

    assert play.session.setup.on_limit == on_limit


def test_settings_replace_the_default_of_the_mode() -> None:
    play = Play(rules=RoomRules(prompts=PROMPTS, on_limit=OnLimit.STOP, on_hard_limit=OnHardLimit.ASK))
    play.start("debate")
    assert (play.session.setup.on_limit, play.session.setup.on_hard_limit) == ("stop", "ask")
    play.start("debate", on_limit=OnLimit.SKIP, on_hard_limit=OnHardLimit.STOP)

    assert (play.session.setup.on_limit, play.session.setup.on_hard_limit) == ("skip", "stop")


def test_skip_gives_the_turn_to_the_next_agent() -> None:
    play = autopilot(on_limit=OnLimit.SKIP)
    play.deliver(CLAUDE)
    limited(play)

    assert play.waiting == (CODEX,)
    assert "claude: its turn failed, it has reached its limit. The turn passes on." in play.notices


@pytest.mark.parametrize("is_asked", [True, False])
def test_stop_ends_the_session_at_the_limit(is_asked: bool) -> None:
    play = Play()
    if not is_asked:
        limited(play)
    play.start("debate", on_limit=OnLimit.STOP)
    if is_asked:
        limited(play)

    assert play.ended == EndReason.AGENT_LIMITED
    assert "claude has reached a usage limit." in play.notices
    assert "DEBATE stopped: an agent has reached a usage limit." in play.notices
    assert items(play)["budget:s-4" if is_asked else "budget:s-5"] == ["o"]


def test_stop_at_a_reply_that_ran_into_the_limit() -> None:
    play = autopilot(on_limit=OnLimit.STOP)
    play.deliver(CLAUDE)
    play.reply(CLAUDE, "", ending=Ending.LIMITED)

    assert play.ended == EndReason.AGENT_LIMITED


# --- people in the way -------------------------------------------------------------------------------


def test_dialog_at_night_is_waited_for(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, asks="permission"))
    play.wait(8 * HOUR)

    assert (play.waiting, play.turn(CLAUDE).state) == ((CLAUDE,), TurnState.BLOCKED)
    play.do(SetState(agent=CLAUDE, state=AgentState.BUSY))
    assert play.turn(CLAUDE).state is TurnState.WORKING
    assert number_of_asks(play) == 1


def test_agent_may_work_as_long_as_ever_after_a_dialog(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL))
    play.wait(8 * HOUR)
    play.do(SetState(agent=CLAUDE, state=AgentState.BUSY))
    play.wait(60)

    assert play.do(ExtendTurn(agent=CLAUDE))


@pytest.mark.parametrize("asks", ["login", "trust"])
def test_login_before_the_prompt_is_waited_for(asks: str) -> None:
    play = autopilot()
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_HUMAN, asks=asks))
    play.wait(8 * HOUR)

    assert (play.waiting, play.turn(CLAUDE).state, wait_of(play).kind) == ((CLAUDE,), "asked", "person")
    said = [one for one in play.notices if "Cannot deliver claude's turn: it asks" in one]
    assert len(said) == 1
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))
    assert play.turn(CLAUDE).wait is None
    play.deliver(CLAUDE)
    assert number_of_asks(play) == 1


@pytest.mark.parametrize("reason", [HeldReason.DRAFT, HeldReason.STUCK, HeldReason.COVERED])
def test_prompt_that_cannot_be_typed_waits(reason: HeldReason) -> None:
    play = autopilot()
    play.deliver(CLAUDE, S.HELD, reason)
    play.wait(8 * HOUR)
    assert play.waiting == (CLAUDE,)
    if reason is HeldReason.DRAFT:
        assert items(play) == {f"stuck:claude:{play.turn(CLAUDE).id}": ["f"]}

    play.deliver(CLAUDE, S.TYPED)
    assert play.turn(CLAUDE).wait is None
    assert play.deadline() == play.now + 120


def test_agent_that_a_person_has_paused_is_waited_for() -> None:
    play = autopilot()
    play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.PAUSE))
    play.wait(8 * HOUR)
    assert wait_of(play).detail == "paused"
    assert items(play) == {f"stuck:claude:{play.turn(CLAUDE).id}": ["y", "f"]}

    play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.RESUME))
    assert play.turn(CLAUDE).wait is None


def test_busy_agent_is_not_waited_for_without_end() -> None:
    play = autopilot()
    play.deliver(CLAUDE, S.HELD, HeldReason.BUSY)
    play.wait(120)

    assert play.waiting == (CODEX,)


def test_other_modes_give_up_after_half_an_hour() -> None:
    play = Play()
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL))
    play.wait(1800)

    assert play.waiting == (CODEX,)


# --- crashes -----------------------------------------------------------------------------------------


def test_agent_that_ends_in_its_turn_is_asked_again_when_it_is_back(play: Play) -> None:
    play.do(Leave(agent=CLAUDE, reason="exited with 1"))
    play.wait(3 * HOUR)
    assert (play.turn(CLAUDE).state, wait_of(play).kind) == (TurnState.WAITING, "offline")
    assert "claude is offline. The session waits, then asks it again." in play.notices
    assert items(play)["ended:claude"] == ["x"]
    (item,) = attention(play.room, play.now)
    assert item.level == "action"

    play.do(Rejoin(agent=CLAUDE, launch="second"))
    assert (number_of_asks(play), play.due(CLAUDE)) == (2, [play.turn(CLAUDE).message])


def test_agent_that_was_only_out_of_reach_works_on(play: Play) -> None:
    play.do(Leave(agent=CLAUDE, reason="no sign of life"))
    play.do(Rejoin(agent=CLAUDE))

    assert (number_of_asks(play), play.turn(CLAUDE).state) == (1, TurnState.WORKING)
    play.reply(CLAUDE)
    assert play.waiting == (CODEX,)


def test_reply_from_out_of_reach_counts(play: Play) -> None:
    play.do(Leave(agent=CLAUDE, reason="no sign of life"))
    play.reply(CLAUDE, "done in time")

    assert play.waiting == (CODEX,)


def test_agent_whose_process_is_replaced_is_asked_again(play: Play) -> None:
    play.do(Rejoin(agent=CLAUDE, launch="second"))

    assert number_of_asks(play) == 2


def test_prompt_that_an_offline_agent_has_not_got_is_not_repeated() -> None:
    play = autopilot()
    play.do(Leave(agent=CLAUDE, reason="closed"))
    play.wait(3 * HOUR)
    assert (play.waiting, wait_of(play).kind) == ((CLAUDE,), "offline")

    play.do(Rejoin(agent=CLAUDE, launch="second"))
    assert (number_of_asks(play), play.turn(CLAUDE).wait) == (1, None)
    assert play.due(CLAUDE) == [play.turn(CLAUDE).message]


def test_turn_of_an_offline_agent_waits_for_it(play: Play) -> None:
    play.do(Leave(agent=CODEX, reason="closed"))
    play.reply(CLAUDE)
    play.wait(3 * HOUR)

    assert play.waiting == (CODEX,)
    assert "Cannot deliver codex's turn: it is offline." in play.notices


def test_model_that_is_offline_is_asked_when_it_comes() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.do(Leave(agent=CLAUDE, reason="closed"))
    play.start("autopilot", agents=("claude", "codex"))
    assert (play.waiting, number_of_asks(play)) == ((CLAUDE,), 0)

    play.do(Join(name="claude", kind=ParticipantKind.API))
    assert number_of_asks(play) == 1


def test_model_that_leaves_in_its_turn_is_asked_again() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("autopilot")
    play.deliver(CLAUDE)
    play.do(Leave(agent=CLAUDE, reason="closed"))
    play.do(Join(name="claude", kind=ParticipantKind.API))

    assert number_of_asks(play) == 2


def test_other_modes_do_not_wait_for_who_is_offline() -> None:
    play = Play()
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.do(Leave(agent=CLAUDE, reason="closed"))
    play.do(Rejoin(agent=CLAUDE, launch="second"))

    assert number_of_asks(play) == 1


# --- the time limit ----------------------------------------------------------------------------------


def test_waits_do_not_count_against_the_minutes(play: Play) -> None:
    play.wait(60)
    limited(play)
    play.wait(RESET + 60)
    play.deliver(CLAUDE)

    # It was asked at the end of the last pause, and then no time has passed.
    assert minutes_used(play.session, play.now) == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["round_robin", "autopilot"])
def test_dialogs_do_not_count_against_the_minutes(mode: str) -> None:
    play = Play()
    play.start(mode, limits=Limits(minutes=10.0))
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL))
    play.wait(1700)
    play.do(SetState(agent=CLAUDE, state=AgentState.BUSY))

    assert play.ended is None
    assert minutes_used(play.session, play.now) == 0


def test_time_counts_while_somebody_works() -> None:
    play = Play()
    play.start("debate", limits=Limits(minutes=10.0), on_limit=OnLimit.WAIT)
    play.deliver(CLAUDE)
    limited(play)

    assert play.session.is_idle is False
    play.wait(300)
    assert minutes_used(play.session, play.now) == 5


def test_pause_during_a_wait_counts_once(play: Play) -> None:
    limited(play, in_s=None)
    play.wait(100)
    play.steer(SessionAction.PAUSE)
    play.wait(100)
    play.steer(SessionAction.RESUME)
    play.wait(100)
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))

    assert play.session.idle_s == 300
    assert minutes_used(play.session, play.now) == 0


def test_agent_that_recovers_in_a_pause_is_asked_after_it(play: Play) -> None:
    limited(play, in_s=None)
    play.steer(SessionAction.PAUSE)
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))
    assert number_of_asks(play) == 1

    play.steer(SessionAction.RESUME)
    assert number_of_asks(play) == 2


def test_decision_in_a_review_does_not_count() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("review", terms=RunTerms(run_id="r", approve=True), limits=Limits(minutes=10.0))
    play.do(PrepareRun(run="r", context=RunContext(dir="/d")))
    for agent, text in ((CODEX, "ACK: hi"), (CLAUDE, "PLAN: it\n- a"), (CODEX, "RISK: low")):
        play.reply(agent, text)
    assert play.session.stage.name == "approval"
    play.wait(20 * HOUR)

    assert play.ended is None
    assert minutes_used(play.session, play.now) == 0


# --- a limit of the session that asks ----------------------------------------------------------------


def asking(**limits: float) -> Play:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(**limits), on_hard_limit=OnHardLimit.ASK)  # type: ignore[arg-type]
    return play


def test_limit_that_asks_pauses_and_stops_the_agent() -> None:
    play = asking(minutes=10.0)
    play.deliver(CLAUDE)
    play.wait(600)

    assert (play.session.status, play.session.held, play.ended) == ("paused", "emergency_minutes", None)
    assert play.turn(CLAUDE).state is TurnState.WAITING
    assert [event.control for event in play.all(ControlSent)] == [ControlVerb.INTERRUPT]
    assert play.deadline() is None or play.deadline() == play.now + 30  # the interrupt expires
    assert items(play) == {"budget:s-3": ["y", "e"]}


def test_person_grants_the_same_amount_again_and_the_agent_is_asked_once() -> None:
    play = asking(minutes=10.0)
    play.deliver(CLAUDE)
    play.wait(600)
    play.reply(CLAUDE, "", ending=Ending.INTERRUPTED)
    play.wait(5 * HOUR)
    play.steer(SessionAction.DECIDE, choice="continue")

    assert number_of_asks(play) == 2
    assert play.session.setup.limits.minutes == 20
    assert "The session continues with 10 minutes more." in play.notices
    assert minutes_used(play.session, play.now) == 10
    play.deliver(CLAUDE)
    for _ in range(6):
        play.wait(100)
        play.do(ExtendTurn(agent=CLAUDE))
    assert play.session.held == "emergency_minutes"
    play.steer(SessionAction.DECIDE, choice="continue")
    assert play.session.setup.limits.minutes == 30


def test_turn_limit_that_asks_pauses_between_two_turns() -> None:
    play = asking(turns=2)
    play.reply(CLAUDE)
    play.reply(CODEX)

    assert (play.session.held, play.waiting) == ("emergency_turns", ())
    play.steer(SessionAction.DECIDE, choice="continue")
    play.reply(CLAUDE, "more")
    play.reply(CODEX, "even more")
    assert (play.session.asked, play.session.held) == (4, "emergency_turns")


def test_token_limit_grants_whole_tokens_beyond_what_is_used() -> None:
    play = asking(tokens=100)
    play.reply(CLAUDE, usage=Usage(input=300, output=50))
    assert play.session.held == "emergency_tokens"
    play.steer(SessionAction.DECIDE, choice="continue")

    assert play.session.setup.limits.tokens == 450
    assert play.session.is_running


def test_gather_asks_a_person_before_the_turns_that_are_too_many() -> None:
    play = Play()
    play.start("debate", rounds=1, limits=Limits(turns=2), on_hard_limit=OnHardLimit.ASK)
    play.reply(CLAUDE)
    assert play.session.status is Status.RUNNING
    play.reply(CODEX)
    assert (play.session.held, play.waiting) == ("emergency_turns", (GEMINI,))
    assert number_of_asks(play, GEMINI) == 0

    play.steer(SessionAction.DECIDE, choice="continue")
    assert number_of_asks(play, GEMINI) == 1
    play.reply(GEMINI)
    assert play.ended == EndReason.DONE


def test_person_ends_at_the_limit() -> None:
    play = asking(turns=1)
    play.reply(CLAUDE)
    play.steer(SessionAction.DECIDE, choice="end")

    assert play.ended == EndReason.CANCELED


def test_agents_cannot_raise_a_limit() -> None:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    play.start("autopilot", limits=Limits(turns=1), on_hard_limit=OnHardLimit.ASK, agents=("claude", "codex"))
    play.reply(CLAUDE)
    command = Steer(sender=BOSS, session=play.session.id, action=SessionAction.DECIDE, choice="continue")

    assert "only a person" in play.refused(command)


def test_resume_does_not_pass_a_limit() -> None:
    play = asking(turns=1)
    play.reply(CLAUDE)
    command = Steer(sender=HUMAN, session=play.session.id, action=SessionAction.RESUME)

    assert "has reached its limit" in play.refused(command)


def test_resume_continues_after_a_longer_time_was_given() -> None:
    play = asking(minutes=10.0)
    play.deliver(CLAUDE)
    play.wait(600)
    play.steer(SessionAction.EXTEND, minutes=5.0)
    play.steer(SessionAction.RESUME)

    assert (number_of_asks(play), play.session.held) == (2, None)


def test_stop_at_a_limit_is_the_default() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(turns=1))
    play.reply(CLAUDE)

    assert play.ended == EndReason.EMERGENCY_TURNS


def test_warning_says_what_happens_at_the_limit() -> None:
    play = asking(tokens=100)
    play.reply(CLAUDE, usage=Usage(input=85, output=0))

    assert "85 of 100 new tokens are used: the session pauses and asks you at its limit." in play.notices


def test_soft_limits_only_tell() -> None:
    rules = RoomRules(prompts=PROMPTS, soft_turns=2, soft_tokens=10)
    play = Play(CLAUDE, CODEX, rules=rules)
    play.start("autopilot")
    for number in range(6):
        play.reply(play.waiting[0], f"text {number}", usage=Usage(input=20, output=5))

    assert play.session.is_running
    assert play.all(ControlSent) == []


# --- a closed lid ------------------------------------------------------------------------------------


def test_sleep_counts_neither_for_turns_nor_for_the_session(play: Play) -> None:
    play.wait(60)
    play.now += 8 * HOUR
    play.do(Slept(seconds=8 * HOUR))

    assert minutes_used(play.session, play.now) == pytest.approx(1.0)
    assert play.deadline() == play.now + 30
    assert play.do(Tick()) == []
    assert play.waiting == (CLAUDE,)
    said = "This machine slept for 8 h 0 min; no clock of the session counts that time."
    assert said in play.notices


def test_sleep_in_a_wait_counts_once(play: Play) -> None:
    limited(play, in_s=4 * HOUR)
    play.now += 8 * HOUR
    play.do(Slept(seconds=8 * HOUR))
    play.do(Tick())

    assert number_of_asks(play) == 2
    assert minutes_used(play.session, play.now) == pytest.approx(0.0)


def test_sleep_in_a_pause_changes_nothing(play: Play) -> None:
    play.wait(30)
    play.steer(SessionAction.PAUSE)
    play.now += 8 * HOUR

    assert play.do(Slept(seconds=8 * HOUR)) == []
    play.steer(SessionAction.RESUME)
    assert play.deadline() == play.now + 60


def test_agents_that_wait_for_a_person_end_nothing_by_themselves(play: Play) -> None:
    limited(play, in_s=None)

    assert list(ends(play.room, play.session, play.rules)) == []


def test_person_asks_the_agents_at_their_limit_and_leaves_the_others_alone() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", on_limit=OnLimit.WAIT)
    play.deliver(CLAUDE)
    play.deliver(CODEX)
    limited(play, in_s=None)
    play.steer(SessionAction.DECIDE, choice="continue")

    assert (number_of_asks(play), number_of_asks(play, CODEX)) == (2, 1)


def test_recovery_in_a_pause_is_noted_once(play: Play) -> None:
    limited(play, in_s=None)
    play.steer(SessionAction.PAUSE)
    play.do(SetState(agent=CLAUDE, state=AgentState.IDLE))
    assert wait_of(play).kind == "resume"
    play.do(Rejoin(agent=CLAUDE, launch="second"))
    play.steer(SessionAction.RESUME)

    assert number_of_asks(play) == 2


@pytest.mark.parametrize(("on_limit", "outcome"), [(OnLimit.WAIT, "reset"), (OnLimit.STOP, "ended")])
def test_agent_at_its_limit_after_a_pause_is_not_asked(on_limit: OnLimit, outcome: str) -> None:
    play = autopilot(limits=Limits(tokens=100), on_hard_limit=OnHardLimit.ASK, on_limit=on_limit)
    play.deliver(CLAUDE)
    play.do(ExtendTurn(agent=CLAUDE, turn=play.turn(CLAUDE).id, usage=Usage(input=100, output=10)))
    assert play.session.status is Status.PAUSED
    limited(play)
    play.do(_decide(play, "continue"))

    assert (wait_of(play).kind if play.ended is None else "ended") == outcome
    assert number_of_asks(play) == 1


def test_limit_withdraws_a_prompt_that_has_not_been_typed() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", limits=Limits(tokens=100), on_hard_limit=OnHardLimit.ASK)
    message = play.turn(CODEX).message
    play.reply(CLAUDE, usage=Usage(input=100, output=10))

    assert (play.session.status, wait_of(play, CODEX).kind) == (Status.PAUSED, "resume")
    assert message not in play.due(CODEX)
    assert play.all(ControlSent) == []


def test_second_dialog_of_a_turn_is_the_same_wait(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, asks="permission"))
    before = play.turn(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_HUMAN, asks="login"))

    assert play.turn(CLAUDE) == before


def test_call_that_has_become_too_dear_in_the_wait_fails(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(play)
    monkeypatch.setattr(turns, "estimate_cost", lambda *_: turns.OverBudget("the budget is spent"))
    play.wait(RESET + 60)

    assert play.session.course[-1].reason == "the budget is spent"


def test_sleep_does_not_shorten_a_dialog() -> None:
    play = Play()
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL))
    play.now += 8 * HOUR
    play.do(Slept(seconds=8 * HOUR))

    assert play.deadline() == play.now + 1800


def test_room_without_a_session_notes_no_sleep() -> None:
    assert Play(CLAUDE).do(Slept(seconds=100.0)) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (20, "20 s"), (99, "99 s"), (180, "3 min"), (3600, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_durations_are_readable(seconds: float, words: str) -> None:
    assert duration(seconds) == words
