"""What a call will cost, before it is made."""

from typing import Any

import pytest
from msgspec.structs import replace

from csp.protocol.enums import AgentId, Ending
from csp.protocol.events import TurnSignal
from csp.protocol.requests import Usage
from csp.protocol.session_parts import Limits, Price
from csp.room.commands import PostReply, Tick
from csp.room.messages import pending
from csp.room.sessions.turns import (
    FIRST_OUTPUT,
    LEAST_OUTPUT,
    OVERHEAD,
    CostEstimate,
    estimate_cost,
    reserved,
)
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import RULES
from tests.room.sessions.test_collaborations import FREE, Work

#: A dollar for each thousand tokens that go in, two for each thousand that come out.
DEAR = Price(input=1000.0, output=2000.0)
PRICES = dict.fromkeys((CLAUDE, CODEX, GEMINI), DEAR)
TEXT = "x" * 3000
FIRST_USD = (1000 + OVERHEAD) / 1000 + FIRST_OUTPUT * 2 / 1000


def begun(limit: float, **fields: Any) -> Work:
    work = Work()
    options: dict[str, Any] = {"cost": limit, "prices": PRICES} | fields
    work.collaborate(**options)
    return work


def used(cost: float, put_in: int = 500, output: int = 100) -> Usage:
    return Usage(input=put_in, output=output, cost_usd=cost, model="m")


def estimate(work: Work, agent: AgentId, text: str = TEXT) -> float:
    """Return what a call is taken to cost where nothing else is under way."""
    found = estimate_cost(replace(work.session, turns={}), agent, text)
    assert isinstance(found, CostEstimate), found
    return found.cost_usd


# --- the estimate ----------------------------------------------------------------------------------


def test_first_call_is_its_prompt_with_a_thousand_tokens_of_answer() -> None:
    work = begun(100.0)

    assert estimate(work, CODEX) == pytest.approx(FIRST_USD)


def test_later_calls_are_half_as_long_again_as_the_longest_reply() -> None:
    work = begun(100.0)
    work.reply(CLAUDE, usage=used(0.1, output=400))

    assert estimate(work, CLAUDE) == pytest.approx(1.5 + 600 * 2 / 1000)
    assert estimate(work, GEMINI) == pytest.approx(FIRST_USD)


def test_short_replies_are_not_trusted_to_stay_so() -> None:
    work = begun(100.0)
    work.reply(CLAUDE, usage=used(0.1, output=2))

    assert estimate(work, CLAUDE) == pytest.approx(1.5 + LEAST_OUTPUT * 2 / 1000)


def test_input_is_as_much_more_than_our_count_as_it_was_told() -> None:
    work = begun(100.0)
    asked = work.turn(CLAUDE).prompt_tokens
    work.reply(CLAUDE, usage=used(0.1, put_in=asked + 9000, output=400))

    assert estimate(work, CLAUDE) == pytest.approx((750 + 9000 + 1200) / 1000)


def test_call_costs_no_less_than_the_dearest_before() -> None:
    work = begun(100.0)
    work.reply(CLAUDE, usage=used(7.0))

    assert estimate(work, CLAUDE) == 7.0


def test_other_scripts_take_more_tokens() -> None:
    work = begun(100.0)

    assert estimate(work, CODEX, "水" * 3000) == pytest.approx(FIRST_USD + 2.0)


def test_model_without_a_price_costs_what_it_has_told() -> None:
    work = begun(100.0, prices={})
    assert estimate(work, CODEX) == 0.0
    work.reply(CLAUDE, usage=used(2.0))

    assert estimate(work, CLAUDE) == 3.0
    assert estimate(work, GEMINI) == 2.0
    work.reply(CODEX)
    assert estimate(work, CODEX) == 0.0
    work.reply(GEMINI)
    assert work.all(TurnSignal)[-1].max_output is None


def test_models_without_a_price_keep_to_the_limit_by_what_the_first_has_told() -> None:
    work = begun(0.03, prices={}, parallel=3)
    asked = work.asked()
    work.reply(CLAUDE, usage=used(0.02))
    work.finish()

    assert asked == work.asked() == [CLAUDE]
    assert (work.ended, work.session.cost_usd) == ("emergency_cost", 0.02)
    assert any("the call of codex may cost 0.0200 USD" in text for text in work.told(work.session.thread))


def test_models_without_a_price_work_at_once_when_one_has_told_its_cost() -> None:
    work = begun(1.0, prices={CODEX: DEAR}, agents=(CLAUDE, GEMINI), parallel=2)
    asked = work.asked()
    work.reply(CLAUDE, usage=used(0.02))

    assert asked == [CLAUDE]
    assert set(work.waiting) == {GEMINI, CLAUDE}


def test_free_models_are_never_too_dear() -> None:
    work = begun(0.01, prices=FREE)

    assert estimate_cost(work.session, CODEX, TEXT) == CostEstimate()


def test_tokens_cost_what_their_price_says_where_no_cost_is_told() -> None:
    work = begun(100.0)
    work.reply(CLAUDE, usage=Usage(input=1000, output=500))
    told = work.session.cost_usd
    work.reply(CODEX, "x" * 400)
    work.fail(GEMINI)

    assert told == 2.0
    assert work.session.cost_usd >= 2.2
    assert [row.agent for row in work.session.spent if row.known_cost] == [CLAUDE, CODEX]


def test_elsewhere_a_limit_of_money_is_for_emergencies() -> None:
    work = Work()
    work.start("round_robin", limits=Limits(cost=0.01))
    session = work.room.sessions.newest_in("default")
    assert session is not None

    assert estimate_cost(session, CODEX, TEXT) == CostEstimate()


def test_without_a_limit_nothing_is_foreseen() -> None:
    work = Work()
    work.collaborate(prices=PRICES)

    assert estimate_cost(work.session, CODEX, TEXT) == CostEstimate()
    assert work.all(TurnSignal)[0].max_output is None


# --- before the call -------------------------------------------------------------------------------


def test_call_that_could_pass_the_limit_is_not_made() -> None:
    work = begun(4.0)
    assert work.waiting == (CLAUDE,)
    work.reply(CLAUDE, usage=used(3.0))

    assert (work.ended, work.asked()) == ("emergency_cost", [CLAUDE])
    (notice,) = [text for text in work.notices if text.startswith("Cost limit")]
    assert "the call of codex may cost" in notice and "with 3.0000 of 4 USD" in notice
    assert any("claude was skipped: the call of claude may cost" in text for text in work.notices)
    assert "No synthesis was written: a summary replaces it." in work.notices
    assert work.session.cost_usd <= 4.0


def test_limit_below_the_first_call_lets_none_be_made() -> None:
    work = begun(0.5)

    assert (work.ended, work.asked()) == ("emergency_cost", [])


def test_synthesis_that_fits_is_still_asked_for() -> None:
    work = begun(40.0, prices=PRICES | {CODEX: Price(input=1e6, output=1e6)})
    work.reply(CLAUDE, usage=used(3.0))

    assert work.asked() == [CLAUDE, CLAUDE]
    assert "<synthesise>" in work.prompt(CLAUDE)


def test_those_asked_at_once_share_what_is_left() -> None:
    work = begun(20.0, parallel=2)
    first, second = work.all(TurnSignal)

    assert first.allowed_usd + second.allowed_usd <= 20.0
    assert reserved(work.session) <= 20.0
    assert first.max_output is not None and first.max_output > FIRST_OUTPUT


def test_group_is_as_large_as_the_limit_allows() -> None:
    work = begun(4.0, parallel=3)
    assert work.waiting == (CLAUDE,), "two could pass the limit"
    work.reply(CLAUDE, usage=used(0.1))

    assert work.waiting == (CODEX,)


def test_output_of_a_call_is_kept_to_what_is_left() -> None:
    work = begun(10.0)
    ask = work.all(TurnSignal)[0]

    assert ask.max_output is not None
    assert ask.foreseen_usd < ask.allowed_usd == 10.0
    assert ask.max_output * 2 / 1000 < 10.0


def test_call_that_timed_out_counts_until_it_has_told_what_it_took() -> None:
    work = begun(100.0, step_s=10.0)
    turn = work.turn(CLAUDE)
    work.deliver(CLAUDE)
    work.now += 10.0
    work.do(Tick())

    assert work.session.unsettled == {turn.id: turn.foreseen_usd}
    work.do(PostReply(sender=CLAUDE, text="", turn=turn.id, ending=Ending.INTERRUPTED, usage=used(0.5)))
    assert (work.session.unsettled, work.session.cost_usd) == ({}, 0.5)


def test_free_call_that_timed_out_leaves_nothing() -> None:
    work = begun(1.0, prices=FREE, step_s=10.0)
    work.deliver(CLAUDE)
    work.now += 10.0
    work.do(Tick())

    assert work.session.unsettled == {}


def test_reply_that_cannot_be_read_is_taken_as_it_is_where_no_money_is_left() -> None:
    def lead(limit: float) -> Work:
        work = begun(limit, mode="orchestrator")
        work.reply(CLAUDE, "no envelope", usage=used(0.1))
        return work

    rich = lead(40.0)
    assert [ask.is_repair for ask in rich.all(TurnSignal)] == [False, True]
    assert rich.turn(CLAUDE).max_output is not None
    poor = lead(2.8)
    assert [ask.is_repair for ask in poor.all(TurnSignal)][:2] == [False, False]
    assert "claude's reply was malformed, so it counts as plain text." in poor.notices


def test_more_money_lets_it_go_on() -> None:
    work = begun(4.0)
    work.reply(CLAUDE, usage=used(3.0))
    work.go_on(cost=10.0, prices=PRICES)

    assert work.waiting == (CODEX,)


def test_unknown_prices_are_told_and_limit_the_tokens() -> None:
    work = begun(1.0, prices={CLAUDE: DEAR}, agents=("codex", "claude"))

    assert work.session.setup.limits.tokens == 1_000_000
    (notice,) = [text for text in work.notices if text.startswith("No price for codex;")]
    assert "The limit of 1,000,000 new tokens applies." in notice


def test_unknown_prices_are_told_where_no_tokens_are_limited() -> None:
    work = Work(rules=replace(RULES, limits=Limits(turns=200)))
    work.collaborate(cost=1.0, prices={CLAUDE: DEAR}, agents=("codex", "claude"))

    assert "No price for codex; its cost counts after the first reported call." in work.notices


def test_random_costs_never_pass_the_limit_where_replies_keep_to_their_length() -> None:
    for seed in range(40):
        work = begun(30.0 + seed, parallel=1 + seed % 3, steps=200)
        while work.waiting:
            for agent in work.waiting:
                turn = work.turn(AgentId(agent))
                output = min(FIRST_OUTPUT, 100 + (seed * 37 + work.session.steps * 61) % 900)
                put_in = turn.prompt_tokens + 100
                usage = used(put_in / 1000 + output * 2 / 1000, put_in=put_in, output=output)
                allowed = next(ask.max_output for ask in work.all(TurnSignal) if ask.turn == turn.id)
                assert allowed is not None and output <= allowed
                work.reply(AgentId(agent), f"words {work.session.steps} {agent}", usage=usage)

        assert work.ended == "emergency_cost"
        assert 20.0 < work.session.cost_usd <= 30.0 + seed


def test_first_try_that_was_too_dear_leaves_no_second_one() -> None:
    work = begun(9.0, mode="orchestrator")
    work.reply(CLAUDE, "no envelope", usage=used(8.0))

    assert [ask.is_repair for ask in work.all(TurnSignal)] == [False]
    assert work.session.failed[CLAUDE].startswith("the call of claude may cost")
    assert work.ended == "emergency_cost"


def test_deliver_tells_how_long_the_answer_may_be() -> None:
    work = begun(9.0)
    (item,) = pending(work.room, CLAUDE)

    assert item.max_output == work.all(TurnSignal)[0].max_output
