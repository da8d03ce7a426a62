"""What people are reminded of."""

from csp.protocol.requests import Usage
from csp.protocol.session_parts import EndReason, Limits
from csp.room.commands import RoomRules
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import PROMPTS, Play

RUNNING = "Autopilot running. Say 'Allstop' to end."


def test_reminder_comes_every_so_many_turns() -> None:
    play = Play(CLAUDE, CODEX, rules=RoomRules(soft_turns=3, prompts=PROMPTS))
    play.start("autopilot")
    for number in range(7):
        play.reply(play.waiting[0], f"thought {number}")

    assert play.notices.count(RUNNING) == 2


def test_reminder_comes_every_so_many_tokens() -> None:
    play = Play(CLAUDE, CODEX, rules=RoomRules(soft_tokens=100, prompts=PROMPTS))
    play.start("autopilot")
    play.reply(CLAUDE, "a", usage=Usage(input=350))
    play.reply(CODEX, "b", usage=Usage(input=10))

    assert (play.notices.count(RUNNING), play.session.reminders) == (1, 3)


def test_bounded_modes_need_no_reminder() -> None:
    play = Play(CLAUDE, CODEX, rules=RoomRules(soft_turns=1, prompts=PROMPTS))
    play.start("round_robin")
    play.reply(CLAUDE)

    assert RUNNING not in play.notices


def test_who_repeats_itself_is_noticed_once() -> None:
    play = Play(CLAUDE)
    play.start("round_robin")
    for text in ("Yes, do it.", "yes,  do IT.", "yes, do it.", "no", "yes, do it."):
        play.reply(CLAUDE, text)

    assert play.notices.count("claude repeated itself.") == 1


def test_a_limit_on_tokens_is_told_once_when_it_is_near() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(tokens=1000))
    play.reply(CLAUDE, "a", usage=Usage(input=799))
    before = [text for text in play.notices if "of 1,000 new tokens" in text]
    play.reply(CODEX, "b", usage=Usage(input=11))
    play.reply(CLAUDE, "c", usage=Usage(input=1))

    assert before == []
    near = [text for text in play.notices if "of 1,000 new tokens" in text]
    assert near == ["810 of 1,000 new tokens are used: the session stops at its limit."]
    assert play.session.is_running


def test_a_limit_on_money_is_told_when_it_is_near_and_holds() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(cost=0.5))
    play.reply(CLAUDE, "a", usage=Usage(cost_usd=0.4))
    near = [text for text in play.notices if "US dollars" in text]
    play.reply(CODEX, "b", usage=Usage(cost_usd=0.1))

    assert near == ["0.4 of 0.5 US dollars are used: the session stops at its limit."]
    assert play.session.reason == EndReason.EMERGENCY_COST
    assert play.session.warned == (EndReason.EMERGENCY_COST,)
