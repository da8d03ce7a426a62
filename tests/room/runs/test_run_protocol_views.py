"""The tests of how runs are shown."""

import pytest
from msgspec.structs import replace

from csp.protocol.review_messages import MessageType, RunAction, RunPhase, Verdict
from csp.room.runs.run_protocol import run_detail, run_view, stats
from tests.room.live import CLAUDE, CODEX
from tests.room.reviewing import Reviewing
from tests.room.runs.test_run_protocol import at_phase

P = RunPhase


@pytest.mark.parametrize(
    ("phase", "who"),
    [
        (P.SETUP, "csp"),
        (P.START, "codex"),
        (P.PLAN, "claude"),
        (P.APPROVAL, "human"),
        (P.CHECKS, "csp"),
        (P.HALTED, "human"),
        (P.ENDED, ""),
    ],
)
def test_view_says_whom_it_waits_for(phase: RunPhase, who: str) -> None:
    assert run_view(at_phase(phase).run).waits_for == who


def test_detail_has_what_was_said() -> None:
    run = Reviewing().to(P.FEEDBACK)
    assert run_detail(run.run).notes == ()
    run.reply(CODEX, "RISK: high\nNOTE: careful")
    detail = run_detail(run.run, "/f")

    assert (detail.notes, detail.folder, detail.expects) == (("careful",), "/f", ())
    assert run_detail(Reviewing().to(P.PLAN).run).expects == (MessageType.PLAN_PROPOSED,)


def test_stats_measure_the_effect_of_a_reviewer() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise("FINDING: major - a\nFINDING: minor - b\nFINDING: critical - c\nFINDING: minor - d")
    run.submit()
    run.reply(CODEX, "DECISION: accept")
    run.reply(CLAUDE, "END: ok")
    for finding, verdict in (
        ("f-1", Verdict.CONFIRMED),
        ("f-2", Verdict.REJECTED),
        ("f-3", Verdict.CONFIRMED),
    ):
        run.act(RunAction.FINDING, finding=finding, verdict=verdict)
    other = Reviewing().to(P.ENDED).run
    given_up = at_phase(P.ESCALATED)
    given_up.act(RunAction.ABORT, rationale="no")
    (found,) = stats([run.run, other, given_up.run, Reviewing().run])

    assert (found.reviewer, found.runs, found.accepted, found.aborted) == ("codex", 3, 2, 0)
    assert (found.accepted_at_once, found.accepted_after_revision, found.escalated) == (1, 1, 1)
    assert found.findings == {"minor": 2, "major": 2, "critical": 1}
    assert (found.confirmed, found.rejected, found.precision) == (2, 1, 0.667)


def test_stats_without_a_verdict_know_no_precision() -> None:
    run = replace(Reviewing().to(P.ENDED).run, alerts=2)

    assert (stats([run])[0].precision, stats([run])[0].alerts) == (None, 2)
