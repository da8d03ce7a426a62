"""A call that comes again with the same id causes nothing the second time."""

from csp.protocol.enums import HUMAN, ControlVerb, SessionAction
from csp.protocol.events import CallRecorded
from csp.protocol.review_messages import RunTerms
from csp.room.commands import ControlAgent, NextTurn, SetMode, Steer, Stop
from csp.room.room_reducer import KEPT_CALLS, replay
from csp.room.room_state import dump, load
from tests.room.live import CLAUDE, CODEX, one
from tests.room.playing import Play

DEBATE = SetMode(sender=HUMAN, mode="debate", topic="tabs", agents=(CLAUDE, CODEX), once="k-1")


def test_repeated_mode_does_not_supersede_its_own_session() -> None:
    play = Play()
    play.do(DEBATE)
    session = play.session

    assert play.do(DEBATE) == []
    assert play.session == session
    assert one(list(play.journal), CallRecorded).answer == session.id


def test_id_is_remembered_by_the_journal_and_by_a_snapshot() -> None:
    play = Play()
    play.do(DEBATE)

    assert replay(play.journal).calls == load(dump(play.room)).calls == {HUMAN: {"k-1": play.session.id}}


def test_same_id_of_another_caller_is_another_call() -> None:
    play = Play()
    play.do(Stop(sender=CLAUDE, once="k-1", caller=CLAUDE))
    play.do(DEBATE)

    assert play.session.is_running


def test_stop_that_comes_again_stops_nothing_new() -> None:
    play = Play()
    play.do(Stop(sender=HUMAN, once="k-2"))
    play.do(DEBATE)
    play.do(Stop(sender=HUMAN, once="k-2"))

    assert play.session.is_running


def test_turn_is_passed_on_once() -> None:
    play = Play()
    play.start("autopilot")
    play.do(NextTurn(once="k-3"))
    waiting = play.waiting
    play.do(NextTurn(once="k-3"))

    assert play.waiting == waiting


def test_session_is_extended_once() -> None:
    play = Play()
    play.do(DEBATE)
    more = Steer(sender=HUMAN, session=play.session.id, action=SessionAction.EXTEND, rounds=1, once="k-4")
    play.do(more)
    play.do(more)

    assert play.session.setup.rounds == 4


def test_answer_names_what_was_begun_pressed_or_ended() -> None:
    play = Play()
    terms = RunTerms(run_id="mend")
    play.do(SetMode(sender=HUMAN, mode="review", topic="g", agents=(CLAUDE, CODEX), terms=terms, once="run"))
    pressed = play.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.APPROVE, once="press"))
    play.do(Stop(sender=HUMAN, once="stop"))
    play.do(Stop(sender=HUMAN, once="nothing"))

    expected = {"run": "mend", "press": pressed[0].id, "stop": play.session.id, "nothing": ""}
    assert play.room.calls[HUMAN] == expected


def test_last_calls_of_each_caller_are_remembered() -> None:
    play = Play()
    for number in range(KEPT_CALLS + 1):
        play.do(Stop(sender=HUMAN, once=f"k-{number}"))

    assert list(play.room.calls[HUMAN]) == [f"k-{number}" for number in range(1, KEPT_CALLS + 1)]
