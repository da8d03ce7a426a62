"""The tests of the state of runs."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from csp.protocol.enums import SessionId
from csp.protocol.events import RunEnded, RunEvent, RunSaid, RunStarted
from csp.protocol.review_messages import AlertLevel, ExecutionAlert, RunPhase, RunRole
from csp.room.room_reducer import replay
from csp.room.room_state import dump, load, without_texts
from csp.room.runs.run_state import KEPT_ENDED, KEPT_KEYS, ReviewRuns
from tests.room.live import CLAUDE, CODEX
from tests.room.reviewing import Reviewing

P = RunPhase


def test_replay_gives_the_same_runs() -> None:
    run = Reviewing(test="t").to(P.DECISION)
    run.revise()
    run.submit()

    assert dump(replay(run.journal)) == dump(run.room)
    assert load(dump(run.room)).runs == run.room.runs


def test_event_of_an_unknown_run_is_passed_over() -> None:
    run = Reviewing().to(P.DECISION)
    journal = [event for event in run.journal if not isinstance(event, RunStarted)]

    assert replay(journal).runs == ReviewRuns()


def test_event_of_no_known_kind_is_a_fault_of_ours() -> None:
    run = Reviewing().to(P.PLAN)
    before, event = run.run, run.all(RunSaid)[-1]
    plain = RunEvent(99, 1.0, event.id, event.sender, event.target, "", "", before.session, before.id)

    with pytest.raises(AssertionError):
        run.room.runs.apply(cast(Any, plain))
    with pytest.raises(AssertionError):
        run.room.runs.apply(replace(event, body=cast(Any, "words")))


def test_roles_are_those_of_the_run() -> None:
    run = Reviewing().run

    assert (run.role_of(CLAUDE), run.role_of(CODEX)) == (RunRole.BUILDER, RunRole.REVIEWER)
    assert ReviewRuns().of_session(SessionId("s-1")) is None


def test_last_critical_alert_is_remembered() -> None:
    run = Reviewing().to(P.DECISION)
    run.by_file(RunRole.REVIEWER, "ALERT: info - hm")
    run.by_file(RunRole.REVIEWER, "ALERT: critical - no")

    assert run.run.alerts == 2
    assert run.run.alert == ExecutionAlert(level=AlertLevel.CRITICAL, text="no")


def test_keys_of_a_long_run_are_the_last_ones() -> None:
    run = Reviewing().to(P.EXECUTION)
    for number in range(KEPT_KEYS + 1):
        run.by_file(RunRole.REVIEWER, "ALERT: info - hm", key=f"k{number}")

    assert (len(run.run.keys), run.run.keys[0]) == (KEPT_KEYS, "k1")


@pytest.fixture
def ended() -> Reviewing:
    return Reviewing().to(P.ENDED)


def test_many_runs_that_have_ended_are_forgotten(ended: Reviewing) -> None:
    runs, first, last = ReviewRuns(), ended.all(RunStarted)[0], ended.all(RunEnded)[0]
    runs.apply(replace(first, run="live"))
    for number in range(KEPT_ENDED + 2):
        runs.apply(replace(first, run=f"r{number}"))
        runs.apply(replace(last, run=f"r{number}"))

    assert len(runs.by_id) == KEPT_ENDED + 1
    assert "live" in runs.by_id and "r1" not in runs.by_id and "r2" in runs.by_id


def test_removed_past_takes_the_words_of_ended_runs(ended: Reviewing) -> None:
    without_texts(ended.room)

    assert b"mend it" not in dump(ended.room) and b"it works" not in dump(ended.room)
    assert ended.run.reason is not None


def test_removed_past_leaves_a_run_that_goes_on() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise()
    without_texts(run.room)

    assert (run.run.goal, run.run.findings[0].text) == ("mend it", "wrong")


def test_findings_of_a_removed_past_lose_their_words() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise()
    run.submit()
    run.reply(CODEX, "DECISION: accept")
    run.reply(CLAUDE, "END: ok")
    without_texts(run.room)

    assert [one.text for one in run.run.findings] == ["-"]
