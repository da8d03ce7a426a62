"""The tests of how long a run waits, of who hears of it."""

import pytest

from csp.protocol.enums import SessionAction
from csp.protocol.events import RunReminded
from csp.protocol.review_messages import MAILBOX, RunAction, RunPhase
from csp.room.runs.run_protocol import CALLS, REMIND_S, remind_at, waits_for
from tests.room.reviewing import Reviewing
from tests.room.runs.test_run_protocol import at_phase

P = RunPhase


def reminders(run: Reviewing) -> list[str]:
    return [text for text in run.notices if "has waited for" in text]


@pytest.mark.parametrize("phase", list(CALLS))
def test_person_is_reminded_ever_more_rarely(phase: RunPhase) -> None:
    run = at_phase(phase)
    run.wait(REMIND_S - 1)
    assert reminders(run) == []
    run.wait(1)
    run.wait(2 * REMIND_S - 1)
    assert [text.partition(".")[0] for text in reminders(run)] == [
        f"{run.run.id} has waited for you for 10 minutes"
    ]
    run.wait(1)

    assert "for you for 30 minutes. Answer with: csp review" in reminders(run)[-1]
    assert run.deadline() == run.now + 4 * REMIND_S


def test_missed_reminders_are_one() -> None:
    run = at_phase(P.APPROVAL)
    run.wait(100 * REMIND_S)

    assert [event.number for event in run.all(RunReminded)] == [6]
    assert (remind_at(run.run) or 0) > run.now


def test_file_is_waited_for_as_a_person_is() -> None:
    run = Reviewing("claude", MAILBOX)
    run.prepare()
    run.wait(REMIND_S)

    assert reminders(run) == [
        f"Run {run.run.id} has waited for a file from the reviewer for 10 minutes. "
        f"Put it into mailbox/reviewer/. To give up: csp review abort {run.run.id} WHY"
    ]


def test_new_phase_begins_the_count_anew() -> None:
    run = at_phase(P.APPROVAL)
    run.wait(REMIND_S)
    run.act(RunAction.GO)
    assert (run.run.since, run.run.reminded) == (run.now, 0)
    run.act(RunAction.HALT)

    assert remind_at(run.run) == run.now + REMIND_S


def test_nobody_is_reminded_of_what_has_its_own_clock_or_stands_still() -> None:
    assert remind_at(at_phase(P.CHECKS).run) is None
    assert remind_at(at_phase(P.PLAN).run) is None
    ended = at_phase(P.ENDED).run
    assert (remind_at(ended), waits_for(ended)) == (None, None)
    run = at_phase(P.APPROVAL)
    run.steer(SessionAction.PAUSE)
    run.wait(REMIND_S)

    assert reminders(run) == []
