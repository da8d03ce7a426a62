"""The tests of the course of a run."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from csp.errors import BadInput, Refused
from csp.protocol.enums import HUMAN, ParticipantKind, SessionAction
from csp.protocol.events import Activity, ControlSent, RunEnded, RunSaid, TurnSignal
from csp.protocol.requests import Usage
from csp.protocol.review_messages import (
    MAILBOX,
    AlertLevel,
    Decision,
    DiffFigures,
    ExecutionAlert,
    ExecutionUpdate,
    Finding,
    MessageType,
    PlanFeedback,
    PlanProposed,
    ReviewDecision,
    Risk,
    RunAction,
    RunPhase,
    RunRole,
    RunTerms,
    SessionAck,
    SessionEnd,
    SessionStart,
    Severity,
    TestResult,
    type_of_body,
)
from csp.protocol.session_parts import EndReason, Limits, TurnState
from csp.room.commands import PostReply, Remove, SayInRun, SetMode, Stop
from csp.room.runs.run_protocol import ASKS, LEGAL, MAX_STEPS, REMIND_S, TURN_OF, continue_after
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import BOSS, Play
from tests.room.reviewing import PLAN, Reviewing

P = RunPhase
BODIES = (
    SessionStart(goal="g"),
    SessionAck(),
    PlanProposed(steps=("a",)),
    PlanFeedback(risk=Risk.LOW),
    ExecutionUpdate(step="s"),
    ExecutionAlert(level=AlertLevel.INFO, text="t"),
    ReviewDecision(decision=Decision.ACCEPT),
    SessionEnd(status="done"),
)
#: A phase, with the words that lead there from one that `to` knows.
WAITING = {
    P.APPROVAL: (P.FEEDBACK, CODEX, "RISK: high"),
    P.HALTED: (P.DECISION, CODEX, "ALERT: critical - no"),
    P.WATCH: (P.EXECUTION, CLAUDE, "STEP: one"),
}


def at_phase(phase: RunPhase) -> Reviewing:
    if phase is P.ESCALATED:
        run = Reviewing(max_revisions=0).to(P.DECISION)
        run.revise()
        return run
    if phase not in WAITING:
        return Reviewing().to(phase)
    before, agent, words = WAITING[phase]
    run = Reviewing().to(before, "ACK: hi\nSUBSCRIBE: steps")
    run.reply(agent, words)
    if phase is P.WATCH:
        run.check()
    return run


# --- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", list(P))
def test_only_the_messages_of_the_table_are_taken(phase: RunPhase) -> None:
    run = at_phase(phase)

    assert run.run.phase is phase
    for body in BODIES:
        for role in RunRole:
            command = SayInRun(sender=MAILBOX, run=run.run.id, role=role, body=body)
            if LEGAL.get(phase, {}).get(type_of_body(body)) is role:
                assert type_of_body(body) in [
                    type_of_body(one.body) for one in said_by(at_phase(phase), command)
                ]
            else:
                run.refuse(command, Refused)


def said_by(run: Reviewing, command: SayInRun) -> list[RunSaid]:
    return [event for event in run.do(command) if isinstance(event, RunSaid)]


def test_table_names_every_message_but_the_first() -> None:
    known = {name for legal in LEGAL.values() for name in legal}

    assert known == set(MessageType) - {MessageType.SESSION_START}
    assert all(role in LEGAL[phase].values() for phase, role in TURN_OF.items())


def test_refusal_names_the_message_and_what_is_expected() -> None:
    run = Reviewing().to(P.PLAN)
    error = run.refuse(run.message(RunRole.REVIEWER, "DECISION: accept"), Refused)

    assert (
        error.message == f"review.decision by the reviewer is not allowed in phase plan of run {run.run.id}"
    )
    assert error.hint == "expected: plan.proposed by the builder"


def test_refusal_where_nobody_is_expected_says_so() -> None:
    run = at_phase(P.APPROVAL)

    assert run.refuse(run.message(RunRole.BUILDER, PLAN), Refused).hint == "expected: none, it waits"


# --- the way of the seed ---------------------------------------------------------------------------


def test_run_goes_from_plan_to_end() -> None:
    run = Reviewing().to(P.ENDED)

    assert run.phases == ["start", "plan", "feedback", "execution", "checks", "decision", "closing"]
    assert [type_of_body(event.body) for event in run.all(RunSaid)] == [
        MessageType.SESSION_START,
        MessageType.SESSION_ACK,
        MessageType.PLAN_PROPOSED,
        MessageType.PLAN_FEEDBACK,
        MessageType.EXECUTION_UPDATE,
        MessageType.REVIEW_DECISION,
        MessageType.SESSION_END,
    ]
    assert (run.ended, run.run.reason) == (EndReason.ACCEPTED, EndReason.ACCEPTED)
    assert "REVIEW complete: the work is accepted." in run.notices


def test_first_message_says_goal_place_and_test() -> None:
    run = Reviewing(test="make test").to(P.START)
    body = run.all(RunSaid)[0].body

    assert isinstance(body, SessionStart)
    assert (body.goal, body.context.worktree, body.test, body.max_revisions) == (
        "mend it",
        "/w",
        "make test",
        3,
    )


def test_run_without_a_goal_still_says_one() -> None:
    run = Reviewing()
    run.start("review", agents=("claude", "codex"), topic="")
    run.prepare()
    body = run.all(RunSaid)[-1].body

    assert isinstance(body, SessionStart) and body.goal == "(no goal was given)"


def test_roles_are_asked_in_their_phases_with_what_they_need() -> None:
    run = Reviewing(test="make test").to(P.DECISION)
    run.revise()

    assert [event.text.split()[0] for event in run.all(TurnSignal)] == [
        *("<review_ack>", "<build_plan>", "<review_plan>", "<build_step>", "<review_work>", "<build_step>"),
    ]
    assert "findings=- f-1 (major): wrong" in run.prompt(CLAUDE)
    assert "format=BUILDER" in run.prompt(CLAUDE) and "format=REVIEWER" in run.prompt(CODEX)
    assert "test=make test" in run.prompt(CODEX) and "1. write it" in run.prompt(CODEX)


# --- risk, plans -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("risk", "phase"), [("low", P.EXECUTION), ("medium", P.EXECUTION), ("high", P.APPROVAL)]
)
def test_high_risk_alone_waits_for_a_person(risk: str, phase: RunPhase) -> None:
    run = Reviewing().to(P.FEEDBACK)
    run.reply(CODEX, f"RISK: {risk}")

    assert run.run.phase is phase
    assert run.waiting == (() if phase is P.APPROVAL else (CLAUDE,))
    assert (run.deadline() == run.now + REMIND_S) == (phase is P.APPROVAL)


def test_every_plan_waits_where_that_was_wanted() -> None:
    run = Reviewing(approve=True).to(P.FEEDBACK)
    run.reply(CODEX, "RISK: low")

    assert run.run.phase is P.APPROVAL


def test_person_is_told_what_it_waits_for() -> None:
    run = at_phase(P.APPROVAL)

    assert f"Answer with: csp review go {run.run.id}, or" in run.notices[-1]


def test_orchestrator_is_told_as_well() -> None:
    run = Reviewing().to(P.FEEDBACK)
    run.join_boss()
    run.reply(CODEX, "RISK: high")

    assert any(BOSS in event.recipients for event in run.all(TurnSignal)) is False
    assert run.due(BOSS)


def test_plan_says_where_it_lies() -> None:
    run = Reviewing().to(P.PLAN)
    body = PlanProposed(steps=("a",), plan_path="../../etc/passwd")
    run.do(SayInRun(sender=MAILBOX, run=run.run.id, role=RunRole.BUILDER, body=body))

    said = run.all(RunSaid)[-1].body
    assert isinstance(said, PlanProposed) and said.plan_path == f"runs/{run.run.id}/plan.json"


def test_another_plan_is_weighed_by_the_builder_first() -> None:
    run = Reviewing().to(P.FEEDBACK)
    run.reply(CODEX, "RISK: low\nALTERNATIVE: smaller\n- one")

    assert (run.run.phase, run.waiting) == (P.PLAN, (CLAUDE,))
    assert "The reviewer proposes another plan:\nsmaller\n1. one" in run.prompt(CLAUDE)


def test_second_dispute_about_the_plan_is_a_persons() -> None:
    run = Reviewing().to(P.FEEDBACK)
    run.reply(CODEX, "RISK: low\nALTERNATIVE: smaller\n- one")
    run.reply(CLAUDE, PLAN)
    run.reply(CODEX, "RISK: low\nALTERNATIVE: smaller\n- one")

    assert (run.run.phase, run.run.why) == (P.APPROVAL, "builder and reviewer do not agree on a plan")


# --- steps, alerts ---------------------------------------------------------------------------------


def test_step_is_shown_only_to_a_reviewer_who_wants_to_see_it() -> None:
    run = Reviewing().to(P.EXECUTION)
    run.reply(CLAUDE, "STEP: one")
    run.check()

    assert (run.run.phase, run.waiting) == (P.EXECUTION, (CLAUDE,))


@pytest.mark.parametrize("words", ["NOOP", "ALERT: info - mind the gap"])
def test_watching_reviewer_lets_the_work_go_on(words: str) -> None:
    run = at_phase(P.WATCH)
    run.reply(CODEX, words)

    assert (run.run.phase, run.waiting) == (P.EXECUTION, (CLAUDE,))


def test_reviewer_who_does_not_look_holds_nobody_up() -> None:
    run = at_phase(P.WATCH)
    run.deliver(CODEX)
    run.wait(90)
    run.wait(30)

    assert (run.run.phase, run.waiting) == (P.EXECUTION, (CLAUDE,))


def test_steps_without_end_are_a_persons() -> None:
    run = Reviewing().to(P.EXECUTION)
    for _ in range(MAX_STEPS):
        run.reply(CLAUDE, "STEP: one more")
        run.check()

    assert (run.run.phase, run.run.why) == (P.HALTED, f"{MAX_STEPS} steps without a submission")
    run.act(RunAction.RESUME)
    assert (run.run.phase, run.waiting) == (P.EXECUTION, (CLAUDE,))


def test_critical_alert_in_the_midst_of_work_halts_it() -> None:
    run = Reviewing().to(P.EXECUTION)
    run.deliver(CLAUDE)
    turn = run.turn(CLAUDE)
    run.do(PostReply(sender=CODEX, text="I saw it.\nALERT: critical - it deletes the data"))

    assert (run.run.phase, run.run.back, run.waiting) == (P.HALTED, P.EXECUTION, ())
    assert run.run.why == "critical alert from codex: it deletes the data"
    assert [event.turn for event in run.all(ControlSent)] == [turn.id]
    assert run.deadline() == run.all(ControlSent)[0].expires
    late = run.do(PostReply(sender=CLAUDE, text="DONE: all", turn=turn.id))
    assert run.run.phase is P.HALTED and not [one for one in late if isinstance(one, RunSaid)]


def test_alert_before_the_work_was_begun_takes_the_ask_back() -> None:
    run = Reviewing().to(P.EXECUTION)
    run.do(PostReply(sender=CODEX, text="ALERT: critical - no"))

    assert (run.due(CLAUDE), run.all(ControlSent)) == ([], [])


def test_note_of_the_reviewer_moves_nothing() -> None:
    run = Reviewing().to(P.EXECUTION)
    run.do(PostReply(sender=CODEX, text="ALERT: info - looks odd"))

    assert (run.run.phase, run.waiting, run.run.alerts) == (P.EXECUTION, (CLAUDE,), 1)
    assert f"Run {run.run.id}: codex notes: looks odd" in run.notices


@pytest.mark.parametrize(
    "answer",
    [
        PostReply(sender=CLAUDE, text="ALERT: critical - no"),
        PostReply(sender=CODEX, text="ALERT: critical - no", local=True),
        PostReply(sender=CODEX, text="nothing to alert about"),
        PostReply(sender=CODEX, text="ALERT: terrible - no"),
        PostReply(sender=CODEX, text="```\nALERT: critical - no\n```"),
    ],
)
def test_words_that_are_no_alert_of_the_reviewer_halt_nothing(answer: PostReply) -> None:
    run = Reviewing().to(P.EXECUTION)
    run.do(answer)

    assert (run.run.phase, run.run.alerts) == (P.EXECUTION, 0)


def test_alert_where_none_may_come_is_but_words() -> None:
    run = Reviewing().to(P.PLAN)
    run.do(PostReply(sender=CODEX, text="ALERT: critical - no"))

    assert run.run.phase is P.PLAN


def step_by_file(run: Reviewing, **fields: Any) -> SayInRun:
    body = ExecutionUpdate(step="s", final=True, **fields)
    return SayInRun(sender=MAILBOX, run=run.run.id, role=RunRole.BUILDER, body=body)


def test_what_csp_finds_out_itself_is_not_believed_from_a_builder() -> None:
    run = Reviewing().to(P.EXECUTION)
    tests = TestResult(command="make", passed=True)
    run.do(step_by_file(run, tests=tests, figures=DiffFigures(base="a", commit="b")))

    update = run.run.update
    assert update is not None and update.figures is None
    assert update.tests == replace(tests, claimed=True)


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        ({"csp.tests_passed": 1.0}, "metric 'csp.tests_passed' is CSP's own"),
        ({f"m{number}": 1.0 for number in range(51)}, "51 metrics exceed the limit"),
    ],
)
def test_metrics_that_a_builder_may_not_give_are_refused(metrics: dict[str, float], problem: str) -> None:
    run = Reviewing().to(P.EXECUTION)

    assert run.refused(step_by_file(run, metrics=metrics)) == problem


def test_as_many_revisions_as_a_mode_may_have_rounds_can_be_read_back() -> None:
    run = Reviewing(max_revisions=999).to(P.START)

    assert run.run.max_revisions == 999


# --- decisions -------------------------------------------------------------------------------------


def test_revision_begins_a_cycle_with_its_findings_open() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise("FINDING: major - wrong\nFINDING: minor - ugly")

    assert (run.run.phase, run.run.cycle, run.run.revisions, run.waiting) == (P.EXECUTION, 2, 1, (CLAUDE,))
    assert [(one.id, one.severity, one.cycle, one.is_open) for one in run.run.findings] == [
        ("f-1", Severity.MAJOR, 1, True),
        ("f-2", Severity.MINOR, 1, True),
    ]
    assert run.turn(CLAUDE).round == 2


def test_minor_findings_alone_are_an_accept_with_notes() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise("FINDING: minor - ugly")

    assert (run.run.phase, run.run.revisions) == (P.CLOSING, 0)
    assert run.run.decision is not None
    assert run.run.decision.decision is Decision.ACCEPT
    assert run.run.decision.rationale == "revise for minor findings only, treated as accept."
    assert run.run.open_findings[0].text == "ugly"
    assert any("counts as an accept with notes" in notice for notice in run.notices)


def test_minor_finding_revises_while_a_weighty_one_is_open() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise()
    run.submit()
    run.revise("FINDING: minor - ugly")

    assert (run.run.phase, run.run.revisions) == (P.EXECUTION, 2)


def test_revise_after_all_was_resolved_is_for_its_minor_findings_alone() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise("FINDING: critical - wrong\nFINDING: minor - ugly")
    run.submit()
    run.reply(CODEX, "DECISION: revise\nRESOLVED: f-1")

    assert (run.run.phase, [one.id for one in run.run.open_findings]) == (P.CLOSING, ["f-2"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("DECISION: revise", "a revise needs a finding"),
        ("DECISION: abort", "an abort needs a rationale"),
        ("DECISION: accept\nFINDING: major - no", "cannot accept with a major finding"),
        ("DECISION: accept\nRESOLVED: f-7", "finding f-7 is not open, so it is not checked again"),
    ],
)
def test_decision_that_contradicts_itself_is_refused_by_name(words: str, problem: str) -> None:
    run = Reviewing().to(P.DECISION)

    assert run.refused(run.message(RunRole.REVIEWER, words)) == problem
    run.reply(CODEX, words)
    assert f"problem={problem}" in run.prompt(CODEX)


def test_only_open_findings_are_checked_again() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise("FINDING: major - wrong\nFINDING: major - slow")
    run.submit()
    assert "f-1" in run.prompt(CODEX) and "f-2" in run.prompt(CODEX)
    run.reply(CODEX, "DECISION: revise\nRESOLVED: f-1")
    run.submit()

    assert "f-1" not in run.prompt(CODEX).partition("findings=")[2].partition("work=")[0]
    again = Finding(severity=Severity.MAJOR, text="wrong after all", id="f-1")
    body = ReviewDecision(decision=Decision.REVISE, findings=(again,))
    command = SayInRun(sender=MAILBOX, run=run.run.id, role=RunRole.REVIEWER, body=body)
    assert run.refuse(command, Refused).hint == "open: f-2"


def test_finding_that_is_named_again_is_no_second_one() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise()
    run.submit()
    again = Finding(severity=Severity.MAJOR, text="wrong", id="f-1")
    body = ReviewDecision(decision=Decision.REVISE, findings=(again,))
    run.do(SayInRun(sender=MAILBOX, run=run.run.id, role=RunRole.REVIEWER, body=body))

    assert [one.id for one in run.run.findings] == ["f-1"]


def test_accept_resolves_what_it_does_not_name() -> None:
    run = Reviewing().to(P.DECISION)
    run.revise("FINDING: major - wrong\nFINDING: minor - ugly")
    run.submit()
    run.reply(CODEX, "DECISION: accept")

    assert [(one.id, one.resolved) for one in run.run.findings] == [("f-1", 2), ("f-2", 0)]


def test_revisions_beyond_the_cap_are_a_persons() -> None:
    run = Reviewing().to(P.DECISION)
    for number in range(1, 5):
        run.revise(f"FINDING: major - wrong {number}")
        if run.run.phase is P.EXECUTION:
            run.submit()

    assert (run.run.phase, run.run.revisions, run.waiting) == (P.ESCALATED, 3, ())
    assert run.run.why == "not accepted after 3 revisions"


def test_abort_of_the_reviewer_ends_the_run_and_says_where_the_work_is() -> None:
    run = Reviewing().to(P.DECISION)
    run.reply(CODEX, "DECISION: abort\nRATIONALE: wrong goal")

    assert (run.run.reason, run.ended) == (EndReason.ABORTED, EndReason.ABORTED)
    assert f"Run {run.run.id}: codex aborts: wrong goal" in run.notices
    assert f"Run {run.run.id} has ended: aborted. Its worktree stays at /w." in run.notices
    assert run.run.end == SessionEnd(status="aborted", summary="wrong goal")


# --- replies that are none -------------------------------------------------------------------------


def test_reply_that_is_no_message_is_asked_for_once_more() -> None:
    run = Reviewing().to(P.PLAN)
    run.reply(CLAUDE, "I would write it.")

    assert "<repair_review>" in run.prompt(CLAUDE) and "problem=it contains no message" in run.prompt(CLAUDE)
    run.reply(CLAUDE, PLAN)
    assert run.run.phase is P.FEEDBACK


def test_wrong_message_in_a_turn_is_named_in_the_second_chance() -> None:
    run = Reviewing().to(P.PLAN)
    run.reply(CLAUDE, "DONE: it is ready")

    assert "problem=execution.update by the builder is not allowed in phase plan" in run.prompt(CLAUDE)


def test_person_is_called_when_no_message_comes() -> None:
    run = Reviewing().to(P.PLAN)
    run.reply(CLAUDE, "words")
    run.reply(CLAUDE, "words")

    assert (run.run.phase, run.run.back) == (P.HALTED, P.PLAN)
    assert run.run.why == "claude sent no valid plan.proposed even after it was asked again"
    assert [ask.text.split()[0] for ask in run.asks(CLAUDE)] == ["<build_plan>", "<repair_review>"]
    assert run.all(Activity)


def test_second_chance_that_comes_in_a_pause_is_asked_for_anew() -> None:
    run = Reviewing().to(P.PLAN)
    run.reply(CLAUDE, "words")
    run.steer(SessionAction.PAUSE)
    run.reply(CLAUDE, "words")
    assert run.run.phase is P.PLAN
    run.steer(SessionAction.RESUME)

    assert run.waiting == (CLAUDE,)


def test_words_about_a_step_hold_nobody_up() -> None:
    run = at_phase(P.WATCH)
    run.reply(CODEX, "looks fine")
    run.reply(CODEX, "it does")

    assert (run.run.phase, run.waiting) == (P.EXECUTION, (CLAUDE,))


def test_who_has_nothing_to_say_is_not_asked_for_ever() -> None:
    run = Reviewing().to(P.PLAN)
    run.reply(CLAUDE, "NOOP")
    run.reply(CLAUDE, "NOOP")

    assert run.run.phase is P.HALTED


def test_who_was_silent_is_asked_again_once_a_person_resumes() -> None:
    run = Reviewing().to(P.PLAN)
    for _ in range(ASKS):
        run.deliver(CLAUDE)
        run.wait(90)
        run.wait(30)
    assert run.run.phase is P.HALTED and run.session.is_benched(CLAUDE) is False
    run.act(RunAction.RESUME)

    assert (run.run.phase, run.waiting) == (P.PLAN, (CLAUDE,))


def test_limit_reached_by_a_first_try_ends_the_run() -> None:
    run = Reviewing()
    run.start("review", agents=("claude", "codex"), limits=Limits(tokens=1))
    run.prepare()
    run.reply(CODEX, "words without a message", usage=Usage(input=5))

    assert (run.ended, run.run.reason) == (EndReason.EMERGENCY_TOKENS, EndReason.EMERGENCY_TOKENS)


def test_accepted_work_is_not_lost_by_a_builder_without_last_words() -> None:
    run = Reviewing().to(P.CLOSING)
    run.reply(CLAUDE, "NOOP")
    run.reply(CLAUDE, "NOOP")

    assert (run.run.reason, run.run.end) == (EndReason.ACCEPTED, SessionEnd(status="accepted"))


def test_api_agent_says_its_lines_in_an_envelope() -> None:
    run = Reviewing(kind=ParticipantKind.API).to(P.START)
    run.reply(CODEX, '{"message": "ACK: ready"}')

    assert run.run.phase is P.PLAN
    assert "format=BUILDER\n\nJSON only" in run.prompt(CLAUDE)


# --- how a run begins ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agents", "problem"),
    [
        (("claude", "claude"), "an agent is named twice"),
        (("claude",), "review needs at least 2 agents, got 1"),
        (("claude", "codex", "gemini"), "review needs 2 agents, got 3"),
        (("claude", "mallory"), "unknown agent 'mallory'"),
    ],
)
def test_run_takes_a_builder_with_a_reviewer(agents: tuple[str, ...], problem: str) -> None:
    play = Play()

    assert play.refused(SetMode(sender=HUMAN, mode="review", agents=agents)) == problem


def test_mailbox_plays_no_part_in_other_modes() -> None:
    play = Play()
    command = SetMode(sender=HUMAN, mode="debate", agents=("claude", "mailbox"))

    assert play.refused(command) == "unknown agent 'mailbox'"


def test_run_is_named_after_its_first_event_or_as_one_likes() -> None:
    assert Reviewing().run.id == "run-6"
    assert Reviewing(run_id="my.run-1").run.id == "my.run-1"
    assert Reviewing(test="t").run.id == "run-6"


@pytest.mark.parametrize("name", ["../x", "a..b", "A", "", "-a", "a/b", "a" * 65, ".a", "a\n"])
def test_run_cannot_have_a_name_that_is_no_folder(name: str) -> None:
    play = Play()
    command = SetMode(sender=HUMAN, mode="review", agents=("claude", "codex"), terms=RunTerms(run_id=name))

    assert "is not a valid run id" in play.refuse(command, BadInput).message


def test_two_runs_cannot_have_one_name() -> None:
    run = Reviewing(run_id="x").to(P.ENDED)
    command = SetMode(sender=HUMAN, mode="review", agents=("claude", "codex"), terms=RunTerms(run_id="x"))

    assert run.refused(command) == "a run 'x' already exists"


def test_builder_in_another_session_is_refused() -> None:
    play = Play(CLAUDE, CODEX, GEMINI)
    play.start("debate", agents=("claude", "gemini"), thread="dev")
    command = SetMode(sender=HUMAN, mode="review", agents=("claude", "mailbox"))

    assert play.refused(command) == "claude is in session s-4 (debate)"


# --- how it ends besides ---------------------------------------------------------------------------


def test_allstop_ends_the_run_with_its_session() -> None:
    run = Reviewing().to(P.EXECUTION)
    run.do(Stop(sender=HUMAN))

    assert (run.run.reason, run.run.phase) == (EndReason.STOPPED_BY_USER, P.ENDED)
    assert [event.reason for event in run.all(RunEnded)] == [EndReason.STOPPED_BY_USER]


def test_new_session_in_the_thread_ends_the_run() -> None:
    run = Reviewing().to(P.EXECUTION)
    run.start("debate", agents=("claude", "codex"))

    assert run.run.reason is EndReason.SUPERSEDED


def test_run_ends_without_its_reviewer() -> None:
    run = Reviewing().to(P.EXECUTION)
    run.do(Remove(agent=CODEX))

    assert run.run.reason is EndReason.TOO_FEW


def test_run_that_is_not_set_up_yet_has_no_place_to_name() -> None:
    run = Reviewing()
    run.do(Stop(sender=HUMAN))

    assert run.run.reason is EndReason.STOPPED_BY_USER
    assert not any("worktree" in notice for notice in run.notices)


def test_run_waits_while_its_session_is_paused() -> None:
    run = Reviewing().to(P.PLAN)
    run.steer(SessionAction.PAUSE)
    run.reply(CLAUDE, PLAN)
    assert (run.run.phase, run.waiting) == (P.FEEDBACK, ())
    run.steer(SessionAction.RESUME)

    assert run.waiting == (CODEX,)


def test_more_revisions_can_be_granted() -> None:
    run = Reviewing(max_revisions=0).to(P.DECISION)
    run.steer(SessionAction.EXTEND, rounds=1)
    run.revise()

    assert (run.run.phase, run.run.revisions) == (P.EXECUTION, 1)


def test_session_whose_run_is_lost_ends() -> None:
    run = Reviewing()
    run.room.runs.by_id.clear()
    waiting = run.session
    asking = replace(waiting, stage=replace(waiting.stage, is_waiting=False))
    run.room.sessions.by_id[waiting.id] = asking
    run.wait(0)

    assert run.ended == EndReason.ALL_FAILED


# --- a role by files -------------------------------------------------------------------------------


def test_who_writes_files_is_waited_for_without_a_turn() -> None:
    run = Reviewing("claude", "mailbox")
    run.prepare()
    assert (run.run.phase, run.waiting, run.deadline()) == (P.START, (), run.now + REMIND_S)
    run.by_file(RunRole.REVIEWER, "ACK: hi\nSUBSCRIBE: steps")
    run.reply(CLAUDE, PLAN)
    run.by_file(RunRole.REVIEWER, "RISK: low")
    run.reply(CLAUDE, "STEP: one")
    run.check()

    assert (run.run.phase, run.waiting) == (P.EXECUTION, (CLAUDE,))


def test_both_roles_by_files() -> None:
    run = Reviewing("mailbox", "mailbox")
    run.prepare()
    for role, words in (
        (RunRole.REVIEWER, "ACK"),
        (RunRole.BUILDER, PLAN),
        (RunRole.REVIEWER, "RISK: low"),
        (RunRole.BUILDER, "DONE: all"),
    ):
        run.by_file(role, words)
    run.check()
    run.by_file(RunRole.REVIEWER, "DECISION: accept")
    run.by_file(RunRole.BUILDER, "END: done")

    assert run.run.reason is EndReason.ACCEPTED
    assert run.all(TurnSignal) == []


def test_file_answers_the_turn_of_the_same_role() -> None:
    run = Reviewing().to(P.PLAN)
    turn = run.turn(CLAUDE)
    run.by_file(RunRole.BUILDER, PLAN)

    assert (run.run.phase, run.waiting) == (P.FEEDBACK, (CODEX,))
    assert turn.id not in [one.id for one in run.session.turns.values()]
    assert run.due(CLAUDE) == []


def test_message_that_comes_again_changes_nothing() -> None:
    run = Reviewing().to(P.PLAN)
    command = run.message(RunRole.BUILDER, PLAN, key="abc")

    assert run.do(command)
    assert run.do(command) == []


def test_turn_of_a_run_is_an_ordinary_turn() -> None:
    run = Reviewing().to(P.PLAN)
    run.deliver(CLAUDE)
    run.reply(CLAUDE, "@working on it")

    assert run.turn(CLAUDE).state is TurnState.WORKING


def test_message_of_no_known_kind_is_a_fault_of_ours() -> None:
    with pytest.raises(AssertionError):
        continue_after(cast(Any, None), cast(Any, "words"))
