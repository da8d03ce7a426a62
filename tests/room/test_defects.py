"""The tests of defects that the reviewer of an accepted run missed."""

from typing import Any

import pytest

from csp.errors import BadInput, NotFound
from csp.protocol.enums import HUMAN
from csp.protocol.events import RunDefect
from csp.protocol.review_messages import MAX_ITEMS, Defect, RunAction, RunPhase, Severity, Verdict
from csp.room.commands import ActOnRun
from csp.room.runs.run_protocol import run_detail, stats
from tests.room.live import CLAUDE, CODEX
from tests.room.reviewing import Reviewing
from tests.room.runs.test_run_protocol import at_phase

P = RunPhase


def accepted() -> Reviewing:
    return Reviewing().to(P.ENDED)


def command(run: Reviewing, **fields: Any) -> ActOnRun:
    return ActOnRun(sender=HUMAN, run=run.run.id, action=RunAction.DEFECT, **fields)


def test_a_defect_of_an_accepted_run_is_recorded() -> None:
    run = accepted()
    (event,) = run.do(command(run, defect=" tabs are lost ", severity=Severity.CRITICAL))
    run.do(command(run, defect="so are blanks"))

    assert isinstance(event, RunDefect) and event.sender == HUMAN
    assert run.run.defects == (
        Defect(id="d-1", severity=Severity.CRITICAL, text="tabs are lost"),
        Defect(id="d-2", severity=Severity.MAJOR, text="so are blanks"),
    )
    assert run_detail(run.run).defects == run.run.defects
    assert (run.run.phase, run.run.is_over) == (P.ENDED, True)


def test_the_same_defect_is_recorded_once() -> None:
    run = accepted()
    run.do(command(run, defect="tabs are lost"))

    assert run.do(command(run, defect="tabs are lost", severity=Severity.MINOR)) == []
    assert [one.severity for one in run.run.defects] == [Severity.MAJOR]


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_a_defect_says_what_was_wrong(text: str | None) -> None:
    run = accepted()

    assert run.refuse(command(run, defect=text), BadInput).message == "a defect is missing"


@pytest.mark.parametrize("phase", [P.PLAN, P.DECISION, P.HALTED])
def test_a_run_that_goes_on_has_missed_nothing_yet(phase: RunPhase) -> None:
    run = at_phase(phase)

    assert run.refused(command(run, defect="x")) == (
        f"run {run.run.id} was not accepted, so its reviewer cannot have missed a defect"
    )


def test_a_run_that_was_aborted_has_missed_nothing() -> None:
    run = at_phase(P.HALTED)
    run.act(RunAction.ABORT, rationale="no")

    assert "was not accepted" in run.refused(command(run, defect="x"))


def test_the_defects_of_a_run_are_bounded() -> None:
    run = accepted()
    for number in range(MAX_ITEMS):
        run.do(command(run, defect=f"defect {number}"))

    assert run.refused(command(run, defect="one more")) == f"run {run.run.id} has 50 defects, the maximum"
    assert len(run.run.defects) == 50


def test_a_defect_needs_a_known_run() -> None:
    run = accepted()
    unknown = ActOnRun(sender=HUMAN, run="nobody", action=RunAction.DEFECT, defect="x")

    assert run.refuse(unknown, NotFound).message == "unknown run 'nobody'"


def test_the_text_of_a_defect_goes_with_the_texts_of_its_run() -> None:
    run = accepted()
    run.do(command(run, defect="a secret"))
    run.room.runs.drop_texts()

    assert [(one.id, one.text) for one in run.run.defects] == [("d-1", "-")]


def test_stats_tell_what_a_reviewer_missed() -> None:
    found = Reviewing().to(P.DECISION)
    found.revise("FINDING: major - a")
    found.submit()
    found.reply(CODEX, "DECISION: accept")
    found.reply(CLAUDE, "END: ok")
    found.act(RunAction.FINDING, finding="f-1", verdict=Verdict.CONFIRMED)
    missed = accepted()
    missed.do(command(missed, defect="b"))
    missed.do(command(missed, defect="c"))
    (one,) = stats([found.run, missed.run, accepted().run])

    assert (one.missed, one.accepted, one.accepted_with_defects, one.miss_rate) == (2, 3, 1, 0.667)


def test_a_miss_rate_needs_a_defect_that_is_known() -> None:
    found = Reviewing().to(P.DECISION)
    found.revise("FINDING: major - a")
    found.submit()
    found.reply(CODEX, "DECISION: accept")
    found.reply(CLAUDE, "END: ok")
    (before,) = stats([found.run])
    found.act(RunAction.FINDING, finding="f-1", verdict=Verdict.CONFIRMED)
    (after,) = stats([found.run])

    assert (before.miss_rate, after.miss_rate, after.missed) == (None, 0.0, 0)
