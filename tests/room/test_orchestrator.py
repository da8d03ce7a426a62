"""When the orchestrator is woken, when its silence is told."""

import pytest

from csp.protocol.enums import HUMAN, AgentId, AgentState, DeliveryState, HeldReason, JoinRole, MessageId
from csp.protocol.events import DeliveryMoved, KeptPrivate, NoticePosted, SystemReply, TurnSignal
from csp.room.commands import Join, Leave, PostReply, Rejoin, ReportDelivery, SetState, Stop, Tick
from csp.room.room_reducer import replay
from csp.room.sessions.steering import next_deadline
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import BOSS, Play


@pytest.fixture
def play() -> Play:
    play = Play(CLAUDE, CODEX)
    play.join_boss()
    return play


def wakeups(play: Play) -> list[SystemReply]:
    return [event for event in play.all(SystemReply) if event.session_id is not None]


def why(play: Play) -> list[str]:
    """Return what happened, as each digest has it: the third line of a digest without a template."""
    return [event.text.split("\n")[2] for event in wakeups(play)]


def warnings(play: Play) -> list[str]:
    return [event.text for event in play.all(NoticePosted) if event.silent]


def debate(play: Play, rounds: int = 2) -> None:
    """Have a debate from its beginning to its end, with a wake-up after the first round, one at the end."""
    play.start("debate", rounds=rounds, synth="claude")
    while play.ended is None:
        play.reply_all(f"{{0}} has seen {len(play.journal)} events")


# --- reasons -------------------------------------------------------------------------------------


def test_round_end_and_end_wake_it(play: Play) -> None:
    debate(play)

    assert why(play) == [
        "round 1 is over. responses, waiting for claude.",
        "it has ended: done. it has ended: done.",
    ]
    assert all(event.recipients == (BOSS,) for event in wakeups(play))


def test_timeout_wakes_it(play: Play) -> None:
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.wait(90)
    play.wait(30)

    assert why(play) == ["claude timed out. turns, waiting for codex."]


def test_dialog_wakes_it(play: Play) -> None:
    play.start("round_robin")
    play.deliver(CLAUDE)
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL))

    assert why(play) == ["claude is blocked: it waits for a person. turns, waiting for claude."]


def test_draft_in_the_way_wakes_it(play: Play) -> None:
    play.start("round_robin")
    play.deliver(CLAUDE, DeliveryState.HELD, HeldReason.DRAFT)
    play.wait(120)

    assert why(play) == [
        "claude cannot be asked: draft (you have text in its input box). turns, waiting for claude."
    ]


def test_stall_wakes_it_once(play: Play) -> None:
    play.start("autopilot")
    for _ in range(3):
        play.reply(CLAUDE, "the same")
        play.reply(CODEX, "another thing")

    assert why(play) == [
        "it has stalled: claude repeated itself. turns, waiting for codex.",
        "it has stalled: codex repeated itself. turns, waiting for claude.",
    ]


def test_several_reasons_at_once_are_one_wakeup(play: Play) -> None:
    play.start("collaborate", rounds=1)
    play.deliver(CLAUDE)
    play.wait(90)
    play.wait(30)

    assert why(play) == ["claude timed out; it has ended: cap_reached. it has ended: cap_reached."]


# --- who is woken --------------------------------------------------------------------------------


def test_without_an_orchestrator_nobody_is_told() -> None:
    play = Play(CLAUDE, CODEX)
    debate(play)

    assert play.all(SystemReply) == []


def test_an_orchestrator_that_is_away_is_not_woken_later(play: Play) -> None:
    play.do(Leave(agent=BOSS, reason="closed"))
    debate(play)
    play.do(Rejoin(agent=BOSS))

    assert play.due(BOSS) == []


def test_in_its_own_mode_it_has_turns_instead(play: Play) -> None:
    play.start("orchestrator")
    play.reply(BOSS, "begin\n@handoff.claude go")
    play.deliver(CLAUDE)
    play.wait(90)
    play.wait(30)
    play.reply(BOSS, "that was all\n@final")

    assert play.ended == "final"
    assert wakeups(play) == []


def test_it_is_not_woken_while_it_writes_the_synthesis(play: Play) -> None:
    play.start("debate", rounds=4)
    play.reply_all()
    assert len(wakeups(play)) == 1
    play.reply(CLAUDE, "fine\nAGREE")
    play.reply(CODEX, "good\nAGREE")

    assert play.waiting == (BOSS,)
    assert len(wakeups(play)) == 1
    play.reply(BOSS, "both are right")
    assert wakeups(play)[-1].text.split("\n")[3] == "Synthesis: both are right"


def test_who_stops_by_hand_wakes_nobody(play: Play) -> None:
    play.start("autopilot")
    play.do(Stop(sender=HUMAN))

    assert wakeups(play) == []


def test_another_name_with_the_role_is_woken_too() -> None:
    play = Play(CLAUDE, CODEX)
    play.do(Join(name="foreman", role=JoinRole.ORCHESTRATOR))
    debate(play)

    assert {event.target for event in wakeups(play)} == {"foreman"}


# --- answers -------------------------------------------------------------------------------------


def answer(play: Play, text: str) -> None:
    play.do(PostReply(sender=BOSS, text=text, reply_to=MessageId(wakeups(play)[-1].id)))


@pytest.mark.parametrize(
    "text", ["NOOP", "all is well", "@mode.status", "@send.claude go on", "@query.log 3"]
)
def test_no_answer_to_a_wakeup_wakes_it_again_or_moves_the_session(play: Play, text: str) -> None:
    play.start("debate", rounds=3, synth="claude")
    play.reply_all()
    before = play.session
    answer(play, text)

    assert len(wakeups(play)) == 1
    assert (play.session.turns, play.session.asked, play.session.replies, play.session.tokens) == (
        before.turns,
        before.asked,
        before.replies,
        before.tokens,
    )
    assert not play.room.wakeups.is_owed_by(BOSS)


def test_nothing_to_do_is_kept_without_a_word(play: Play) -> None:
    debate(play)
    answer(play, "NOOP")

    assert [(event.sender, event.text, event.recipients) for event in play.all(KeptPrivate)] == [
        (BOSS, "", ())
    ]


def test_nothing_to_do_is_not_kept_of_one_that_was_not_woken(play: Play) -> None:
    asked = play.say(HUMAN, BOSS, "all well?")
    play.do(PostReply(sender=BOSS, text="NOOP", reply_to=MessageId(asked.id)))

    assert play.all(KeptPrivate) == []


# --- silence -------------------------------------------------------------------------------------


def test_two_unanswered_wakeups_are_one_warning(play: Play) -> None:
    debate(play)
    due = play.now + 120
    assert next_deadline(play.room, play.rules) == due
    play.wait(119)
    assert warnings(play) == []
    play.wait(1)
    assert warnings(play) == [
        "Orchestrator orchestrator has not answered 2 wake-ups. It is idle. Sessions continue without it."
    ]
    assert next_deadline(play.room, play.rules) is None
    debate(play, rounds=4)
    play.wait(1000)
    play.wait(1000)

    assert len(warnings(play)) == 1
    assert [event.target for event in play.all(NoticePosted) if event.silent] == [HUMAN]


def test_one_unanswered_wakeup_is_no_warning(play: Play) -> None:
    play.start("debate", rounds=3, synth="claude")
    play.reply_all()
    play.do(Stop(sender=HUMAN))
    play.wait(10_000)

    assert len(wakeups(play)) == 1
    assert warnings(play) == []


def test_the_time_runs_from_the_second(play: Play) -> None:
    play.start("debate", rounds=3, synth="claude")
    play.reply_all()
    play.now += 100
    play.reply_all()
    play.reply_all()
    play.do(Stop(sender=HUMAN))
    play.wait(119)
    assert warnings(play) == []
    play.wait(1)

    assert len(warnings(play)) == 1


def test_an_answer_allows_for_a_new_warning(play: Play) -> None:
    debate(play)
    play.wait(120)
    answer(play, "NOOP")
    debate(play)
    play.wait(120)

    assert len(warnings(play)) == 2


def test_the_warning_of_one_who_is_gone_for_good_names_no_state(play: Play) -> None:
    debate(play)
    del play.room.participants[BOSS]
    play.wait(120)

    assert warnings(play) == [
        "Orchestrator orchestrator has not answered 2 wake-ups. Sessions continue without it."
    ]


def test_a_restart_neither_loses_nor_doubles_anything(play: Play) -> None:
    debate(play)
    play.room = replay(play.journal)
    assert play.due(BOSS) == [event.id for event in wakeups(play)]
    for event in wakeups(play):
        play.do(ReportDelivery(agent=BOSS, message=event.id, state=DeliveryState.CONFIRMED))
    play.room = replay(play.journal)
    assert play.due(BOSS) == []
    play.wait(120)
    play.room = replay(play.journal)
    play.now += 1000
    play.do(Tick())

    assert len(wakeups(play)) == 2
    assert len(warnings(play)) == 1
    assert {
        event.agent for event in play.all(DeliveryMoved) if event.message in {m.id for m in wakeups(play)}
    } == {AgentId(BOSS)}


def test_a_wakeup_is_no_turn(play: Play) -> None:
    debate(play)

    assert BOSS not in {event.target for event in play.all(TurnSignal)}
