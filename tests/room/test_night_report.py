"""The report on what happened while nobody watched."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from csp.protocol.enums import HUMAN, AgentState, Ending, SessionAction
from csp.protocol.events import ModeChanged, TurnMoved
from csp.protocol.report import ReportView
from csp.protocol.requests import Usage
from csp.protocol.review_messages import ExecutionUpdate, RunContext, RunTerms, TestResult
from csp.protocol.session_parts import Change, Limits, OnHardLimit
from csp.room.attention import attention
from csp.room.commands import CheckRun, Leave, PrepareRun, Rejoin, SetState, Slept
from csp.room.night_report import NightReport
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import Play

HOUR = 3600.0


def report(play: Play, since: float = 0.0, session: str | None = None) -> ReportView:
    night = NightReport(since, session)
    night.add_all(play.journal)
    return night.view(play.now, attention(play.room, play.now))


@pytest.fixture
def play() -> Play:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", topic="make it", limits=Limits(minutes=600.0))
    play.deliver(CLAUDE)
    return play


def test_turns_are_told_by_agent(play: Play) -> None:
    play.reply(CLAUDE, "done", usage=Usage(input=100, output=10, cost_usd=0.5))
    play.reply(CODEX, "", ending=Ending.FAILED, reason="no network")
    play.reply(CLAUDE, "more", usage=Usage(input=50, output=5, cost_usd=0.25))
    view = report(play)

    agents = {one.agent: (one.turns, one.replies, one.cancelled) for one in view.agents}
    assert agents == {"claude": (2, 2, 0), "codex": (2, 0, 0)}
    (failed,) = next(one.failed for one in view.agents if one.agent == "codex")
    assert (failed.reason, failed.count) == ("its answer was failed: no network", 1)
    (spent,) = view.spent
    assert (spent.agent, spent.input, spent.output, spent.cost_usd) == ("claude", 150, 15, 0.75)
    (session,) = view.sessions
    assert (session.mode, session.topic, session.status, session.reason) == (
        "autopilot",
        "make it",
        "running",
        None,
    )


def test_wait_is_told_with_its_length_and_counts_as_one_turn(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, until=play.now + 2 * HOUR))
    began = play.now
    play.now = play.deadline() or 0.0
    play.wait(0)
    play.reply(CLAUDE)
    view = report(play)

    (wait,) = view.waits
    assert (wait.agent, wait.kind, wait.since, wait.ended) == ("claude", "reset", began, play.now)
    assert [(one.agent, one.turns, one.replies) for one in view.agents] == [
        ("claude", 1, 1),
        ("codex", 1, 0),
    ]


def test_wait_that_lasts_has_no_end_and_needs_a_person(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED))
    play.wait(HOUR)
    view = report(play)

    assert [(one.kind, one.ended) for one in view.waits] == [("reset", None)]
    assert view.needs == ("claude is at a usage limit with an unknown reset: ask it now?",)
    assert view.next == f"/decide {play.session.id} continue"


def test_limit_before_the_turn_is_told_as_one_turn() -> None:
    play = Play(CLAUDE, CODEX)
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, until=play.now + HOUR))
    play.start("autopilot")
    play.wait(HOUR + 60)
    play.reply(CLAUDE)
    view = report(play)

    assert (view.agents[0].agent, view.agents[0].turns, view.agents[0].replies) == ("claude", 1, 1)
    assert [one.kind for one in view.waits] == ["reset"]


def test_dialogs_crashes_pauses_and_sleep_are_told(play: Play) -> None:
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, asks="permission"))
    play.wait(600)
    play.do(SetState(agent=CLAUDE, state=AgentState.BUSY))
    play.do(Leave(agent=CLAUDE, reason="crash"))
    play.wait(60)
    play.do(Rejoin(agent=CLAUDE, launch="second"))
    play.steer(SessionAction.PAUSE)
    play.wait(30)
    play.steer(SessionAction.RESUME)
    play.now += 2 * HOUR
    play.do(Slept(seconds=2 * HOUR))
    view = report(play)

    told = [(one.agent, one.kind, one.detail, (one.ended or 0.0) - one.since) for one in view.waits]
    assert told == [
        ("claude", "person", "permission", 600),
        ("claude", "offline", "", 60),
        ("", "resume", "paused", 30),
    ]
    assert view.slept_s == 2 * HOUR


def test_pause_at_a_limit_names_the_limit() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(turns=1), on_hard_limit=OnHardLimit.ASK)
    play.reply(CLAUDE)
    view = report(play)

    assert [(one.agent, one.kind, one.detail) for one in view.waits] == [("", "resume", "emergency_turns")]
    assert view.next == f"/decide {play.session.id} continue"


def test_wait_ends_with_its_session(play: Play) -> None:
    play.steer(SessionAction.PAUSE)
    play.now += 60
    play.steer(SessionAction.STOP)
    (wait,) = report(play).waits

    assert (wait.ended or 0.0) - wait.since == 60


def test_session_whose_start_is_unknown_is_left_out(play: Play) -> None:
    play.steer(SessionAction.STOP)
    known = [event for event in play.journal if getattr(event, "change", None) is not Change.STARTED]
    night = NightReport(0.0)
    night.add_all(known)

    assert night.view(play.now, ()).sessions == ()


def test_warnings_and_later_resets_are_no_waits_of_their_own(play: Play) -> None:
    play.wait(90)
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, until=play.now + HOUR))
    play.wait(60)
    play.do(SetState(agent=CLAUDE, state=AgentState.LIMITED, until=play.now + 2 * HOUR))
    view = report(play)

    assert [(one.kind, one.ended) for one in view.waits] == [("reset", None)]


def test_dialog_of_an_earlier_version_is_a_wait(play: Play) -> None:
    """Its journal says that a turn is blocked, not what it waits for."""
    play.do(SetState(agent=CLAUDE, state=AgentState.NEEDS_APPROVAL, asks="permission"))
    night = NightReport(0.0)
    night.add_all(
        replace(event, wait=None) if isinstance(event, TurnMoved) else event for event in play.journal
    )

    assert [(one.agent, one.kind, one.detail) for one in night.view(play.now, ()).waits] == [
        ("claude", "person", "")
    ]


def test_changes_that_are_no_waits_are_passed_over(play: Play) -> None:
    play.steer(SessionAction.EXTEND, minutes=5)
    play.reply(CLAUDE, usage=Usage(input=850_000, output=0))

    assert (report(play).waits, play.session.warned != ()) == ((), True)


def test_change_of_no_known_kind_is_a_fault_of_ours(play: Play) -> None:
    started = next(event for event in play.journal if isinstance(event, ModeChanged))
    with pytest.raises(AssertionError):
        NightReport(0.0).add_all([replace(started, change=cast(Any, "unknown"))])


def test_only_the_time_of_the_report_counts(play: Play) -> None:
    play.reply(CLAUDE, "early", usage=Usage(input=100, output=10))
    play.do(SetState(agent=CODEX, state=AgentState.LIMITED, until=play.now + 2 * HOUR))
    play.wait(HOUR)
    since = play.now
    play.wait(2 * HOUR)
    play.reply(CODEX, "late", usage=Usage(input=7, output=1))
    view = report(play, since)

    assert [(one.agent, one.turns, one.replies) for one in view.agents] == [
        ("codex", 0, 1),
        ("claude", 1, 0),
    ]
    assert [(one.agent, one.input) for one in view.spent] == [("codex", 7)]
    # The wait began before, but lasted into the time of the report.
    assert [(one.agent, one.since < since) for one in view.waits] == [("codex", True)]


def test_sessions_that_ended_before_are_not_told(play: Play) -> None:
    play.steer(SessionAction.STOP)
    play.now += HOUR
    since = play.now
    play.start("autopilot", topic="second")
    view = report(play, since)

    assert [one.topic for one in view.sessions] == ["second"]


def test_report_of_a_session_leaves_out_the_others(play: Play) -> None:
    first = play.session.id
    play.reply(CLAUDE)
    play.start("round_robin", topic="second")
    play.reply(CLAUDE)
    view = report(play, session=first)

    assert [(one.id, one.reason) for one in view.sessions] == [(first, "superseded")]
    assert {one.agent: (one.turns, one.replies, one.cancelled) for one in view.agents} == {
        "claude": (1, 1, 0),
        "codex": (1, 0, 1),
    }


@pytest.mark.parametrize(
    ("tests", "summary"),
    [
        (TestResult(command="pytest", passed=True), "pytest: passed"),
        (TestResult(command="pytest", passed=False, timed_out=True), "pytest: timed out"),
        (TestResult(command="pytest", passed=False), "pytest: failed"),
    ],
)
def test_tests_of_a_run_are_told(tests: TestResult, summary: str) -> None:
    play = Play(CLAUDE, CODEX)
    play.start("review", terms=RunTerms(run_id="r", test="pytest"))
    play.do(PrepareRun(run="r", context=RunContext(dir="/d")))
    for agent, text in ((CODEX, "ACK: hi"), (CLAUDE, "PLAN: it\n- a"), (CODEX, "RISK: low")):
        play.reply(agent, text)
    play.reply(CLAUDE, "DONE: all")
    update = ExecutionUpdate(step="all", final=True, tests=tests)
    play.do(CheckRun(run="r", cycle=1, step=1, update=update))

    assert [(one.run, one.summary, one.passed) for one in report(play).tests] == [
        ("r", summary, tests.passed)
    ]


def test_quiet_night_says_so() -> None:
    view = report(Play(CLAUDE))

    assert (view.sessions, view.agents, view.waits, view.needs, view.next) == ((), (), (), (), "")
    assert HUMAN not in {one.agent for one in view.agents}
