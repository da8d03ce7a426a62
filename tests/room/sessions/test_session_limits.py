"""Limits count what is new, also while a turn runs."""

from typing import Any

import pytest
from msgspec.structs import replace

from csp.protocol.enums import HUMAN, AgentId, Ending, ParticipantKind, SessionAction
from csp.protocol.events import AgentResponse, ControlSent, KnownEvent, UsageSeen
from csp.protocol.requests import Usage
from csp.protocol.session_parts import EndReason, Limits, Price, Status, TurnState
from csp.room.commands import ExtendTurn, RoomRules, Stop
from csp.room.room_reducer import replay
from csp.room.room_state import dump, load
from csp.room.sessions.session_limits import limit_near, limit_reached
from csp.room.sessions.session_state import MOST_UNDER_WAY, Spent
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import PROMPTS, Play

RUNNING = "Autopilot running. Say 'Allstop' to end."
#: What a CLI's turn with 12 tool calls uses: 13 calls that read 38,000 tokens each from the cache.
TURN = Usage(
    input=13 * 38_000 + 23_900, output=2_600, cache_read=13 * 38_000, cost_usd=0.42, model="opus", calls=13
)


def see(play: Play, agent: AgentId, usage: Usage, turn: str | None = None) -> list[KnownEvent]:
    """Tell what the turn of an agent has used so far."""
    return play.do(ExtendTurn(agent=agent, turn=turn or play.turn(agent).id, usage=usage))


def autopilot(*agents: AgentId, **limits: Any) -> Play:
    play = Play(*(agents or (CLAUDE, CODEX)))
    play.start("autopilot", **({"limits": Limits(**limits)} if limits else {}))
    play.deliver(CLAUDE)
    return play


# --- what is counted -----------------------------------------------------------------------------


def test_an_autopilot_of_two_passes_twenty_realistic_turns() -> None:
    play = Play(CLAUDE, CODEX, rules=RoomRules(prompts=PROMPTS))
    play.start("autopilot")
    for number in range(20):
        play.reply(play.waiting[0], f"thought {number}", usage=TURN)

    assert (play.session.status, play.session.replies) == (Status.RUNNING, 20)
    assert play.session.used.new == 20 * 26_500
    assert play.notices.count(RUNNING) == 2


def test_limits_count_input_that_was_not_cached_and_output() -> None:
    play = autopilot(tokens=100)
    play.reply(CLAUDE, usage=Usage(input=1000, cache_read=960, output=59))
    assert play.session.is_running
    play.reply(CODEX, usage=Usage(input=1, cache_write=1))

    assert play.session.reason == EndReason.EMERGENCY_TOKENS


@pytest.mark.parametrize("limits", [Limits(tokens=30), Limits(cost=0.3), Limits(minutes=3)])
def test_the_limits_of_the_settings_hold_for_an_autopilot(limits: Limits) -> None:
    play = Play(CLAUDE, CODEX, rules=RoomRules(limits=limits, prompts=PROMPTS))
    play.start("autopilot")
    for number in range(3):
        assert play.session.is_running
        play.now += 60
        play.reply(play.waiting[0], f"{number}", usage=Usage(input=10, cost_usd=0.1001))

    assert str(play.ended).startswith("emergency")


def test_a_cache_that_gave_more_than_was_put_in_takes_nothing_from_the_output() -> None:
    usage = Usage(input=10, cache_read=50, output=4)

    assert (usage.cached, usage.new) == (10, 4)


def test_a_reminder_comes_with_each_further_amount_and_once_a_turn() -> None:
    play = Play(CLAUDE, CODEX, rules=RoomRules(soft_tokens=100, prompts=PROMPTS))
    play.start("autopilot")
    after = []
    for number, new in enumerate((99, 1, 50, 49, 1, 350, 10)):
        play.reply(play.waiting[0], f"{number}", usage=Usage(input=new + 10**6, cache_read=10**6))
        after.append(play.notices.count(RUNNING))

    assert after == [0, 1, 1, 1, 2, 3, 3]


def test_figures_of_limits_are_written_out() -> None:
    play = autopilot(tokens=1_000_000, cost=0.25)
    see(play, CLAUDE, Usage(input=801_234, cost_usd=0.2125))

    near = [
        limit_near(play.session, one).text for one in (EndReason.EMERGENCY_TOKENS, EndReason.EMERGENCY_COST)
    ]
    reached = limit_reached(play.session, EndReason.EMERGENCY_TOKENS).text
    assert near[0].startswith("801,234 of 1,000,000 new tokens")
    assert near[1].startswith("0.2125 of 0.25 US dollars")
    assert reached.endswith("limit of 1,000,000 new tokens.")


# --- while a turn runs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "usage", "reason"),
    [
        ({"tokens": 100}, Usage(input=60, output=40), EndReason.EMERGENCY_TOKENS),
        ({"cost": 0.5}, Usage(cost_usd=0.5, input=1), EndReason.EMERGENCY_COST),
    ],
)
def test_a_turn_that_passes_a_limit_is_stopped_while_it_runs(
    limits: dict[str, float], usage: Usage, reason: EndReason
) -> None:
    play = autopilot(**limits)
    turn = play.turn(CLAUDE).id
    see(play, CLAUDE, usage)

    assert play.session.reason == reason
    assert [(one.target, one.turn) for one in play.all(ControlSent)] == [(CLAUDE, turn)]
    assert play.session.course[-1].state is TurnState.CANCELLED


def test_a_turn_below_its_limit_goes_on() -> None:
    play = autopilot(tokens=100)
    see(play, CLAUDE, Usage(input=10**6 + 99, cache_read=10**6))

    assert play.waiting == (CLAUDE,)
    assert play.session.used.new == 99


def test_a_limit_that_is_near_is_told_while_the_turn_runs_and_once() -> None:
    play = autopilot(tokens=100)
    see(play, CLAUDE, Usage(input=80))
    see(play, CLAUDE, Usage(input=85))
    play.reply(CLAUDE, usage=Usage(input=86))

    near = [text for text in play.notices if "of 100 new tokens" in text]
    assert near == ["80 of 100 new tokens are used: the session stops at its limit."]


def test_what_was_seen_counts_once_with_the_reply() -> None:
    play = autopilot()
    see(play, CLAUDE, Usage(input=50, cache_read=20, cost_usd=0.1, model="opus"))
    see(play, CLAUDE, Usage(input=70, cache_read=30, cost_usd=0.2, model="opus"))
    seen = (play.session.used, play.session.spent_so_far, play.room.spent_so_far)
    play.reply(CLAUDE, usage=Usage(input=90, cache_read=40, cost_usd=0.3, model="opus"))

    assert seen[0] == Usage(input=70, cache_read=30, cost_usd=0.2)
    row = Spent(CLAUDE, "opus", replies=1, input=70, cost_usd=0.2, cached=30)
    assert seen[1:] == ((row,), (row,))
    assert play.session.used == Usage(input=90, cache_read=40, cost_usd=0.3)
    assert (play.session.tokens, play.session.cached, play.session.under_way) == (90, 40, {})
    assert play.room.spent_so_far == play.room.spent == play.session.spent


def test_the_same_count_twice_or_an_older_one_changes_nothing() -> None:
    play = autopilot()
    see(play, CLAUDE, Usage(input=50))
    see(play, CLAUDE, Usage(input=50))
    see(play, CLAUDE, Usage(input=40))

    assert [event.usage.input for event in play.all(UsageSeen)] == [50]


def test_a_count_that_comes_after_its_reply_changes_nothing() -> None:
    play = autopilot()
    turn = play.turn(CLAUDE).id
    play.reply(CLAUDE, usage=Usage(input=90))
    see(play, CLAUDE, Usage(input=95), turn)

    assert (play.session.used.new, play.all(UsageSeen)) == (90, [])


def test_nobody_counts_for_the_turn_of_another() -> None:
    play = autopilot(CLAUDE, CODEX, GEMINI)
    turn = play.turn(CLAUDE).id
    see(play, GEMINI, Usage(input=95), turn)
    see(play, CLAUDE, Usage(input=5), turn)
    see(play, GEMINI, Usage(input=95), turn)

    assert play.session.used.new == 5


def test_a_turn_that_was_given_up_counts_on_until_it_has_told() -> None:
    play = autopilot(tokens=100)
    turn = play.turn(CLAUDE).id
    see(play, CLAUDE, Usage(input=50))
    play.wait(play.rules.timeout_s + 1)
    assert play.session.used.new == 50
    see(play, CLAUDE, Usage(input=60), turn)
    assert (play.waiting, play.session.used.new) == ((CODEX,), 60)
    see(play, CLAUDE, Usage(input=100), turn)

    assert play.session.reason == EndReason.EMERGENCY_TOKENS


def test_an_interrupted_turn_is_counted_as_it_ended_after_the_session_too() -> None:
    play = autopilot(tokens=100)
    turn = play.turn(CLAUDE).id
    see(play, CLAUDE, Usage(input=110, cache_read=5, model="opus"))
    broken = Usage(input=130, cache_read=5, model="opus")
    play.reply(CLAUDE, "", turn=turn, ending=Ending.INTERRUPTED, usage=broken)

    assert play.session.is_over
    assert (play.session.used.new, play.session.under_way) == (125, {})
    assert (
        play.room.spent
        == play.session.spent
        == (Spent(CLAUDE, "opus", replies=1, input=130, cached=5, unpriced=1),)
    )


def test_a_reply_that_tells_no_tokens_counts_as_it_was_seen() -> None:
    play = autopilot()
    see(play, CLAUDE, Usage(input=50, model="opus"))
    play.reply(CLAUDE, "x" * 400)
    play.reply(CODEX, "x" * 400)

    seen, guessed = play.session.spent
    assert (seen.input, seen.output, seen.estimated) == (50, 0, 0)
    assert (guessed.output, guessed.estimated) == (100, 1)
    assert play.session.used.estimated


def test_sessions_count_apart() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("autopilot", limits=Limits(tokens=100))
    play.start("autopilot", thread="other", limits=Limits(tokens=100), agents=("codex", "claude"))
    first, second = play.room.sessions.live()
    turn = second.turns[CODEX].id
    see(play, CODEX, Usage(input=100), turn)

    assert [session.reason for session in play.room.sessions.by_id.values()] == [
        None,
        EndReason.EMERGENCY_TOKENS,
    ]
    assert play.room.sessions.by_id[first.id].used.new == 0


def test_words_out_of_turn_of_an_outsider_count_for_nobody() -> None:
    play = autopilot(CLAUDE, CODEX, GEMINI, tokens=100)
    see(play, GEMINI, Usage(input=1000), "t-99")

    assert (play.session.used.new, play.session.is_running) == (0, True)


def test_money_of_a_turn_under_way_is_reckoned_by_the_price_of_its_agent() -> None:
    play = Play(CLAUDE, CODEX)
    prices = {CLAUDE: Price(input=10.0, output=20.0, cached=1.0), CODEX: Price(input=10.0, output=20.0)}
    usage = Usage(input=1_000_000, cache_read=900_000, output=100_000)
    play.start("autopilot", limits=Limits(cost=100.0))
    session = play.session
    play.room.sessions.by_id[session.id] = replace(session, setup=replace(session.setup, prices=prices))
    see(play, CLAUDE, usage)
    assert play.session.used.cost_usd == pytest.approx(1.0 + 0.9 + 2.0)
    play.reply(CLAUDE, usage=usage)
    play.reply(CODEX, usage=usage)

    assert play.session.cost_usd == pytest.approx(3.9 + 12.0)


# --- memory and the past -------------------------------------------------------------------------


def test_what_is_under_way_survives_a_restart() -> None:
    play = autopilot()
    see(play, CLAUDE, Usage(input=50))

    assert replay(play.journal) == load(dump(play.room)) == play.room


def test_turns_that_never_tell_do_not_fill_the_memory() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(turns=10_000))
    for _ in range(MOST_UNDER_WAY + 3):
        agent = play.waiting[0]
        see(play, agent, Usage(input=2, model="m"))
        play.steer(SessionAction.SKIP)

    assert len(play.room.under_way) == MOST_UNDER_WAY
    assert sum(row.input for row in play.room.spent_so_far) == 2 * (MOST_UNDER_WAY + 3)


def test_the_summary_has_what_was_under_way() -> None:
    play = autopilot()
    see(play, CLAUDE, Usage(input=5_000, cache_read=3_000, output=7, cost_usd=0.5, model="opus"))
    play.do(Stop(sender=HUMAN))

    assert "2,007 new tokens (7 output), 3,000 cached" in play.notices[-1]
    assert "Cost: 0.5000 USD (claude 0.5000 with opus)." in play.notices[-1]


def test_work_that_tells_what_it_used_moves_the_clock() -> None:
    play = autopilot()
    before = play.turn(CLAUDE).since
    play.now += 10
    see(play, CLAUDE, Usage(input=5))

    assert play.turn(CLAUDE).since > before
    assert not play.all(AgentResponse)
