"""The tests of messages that are read out of words."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.errors import BadInput
from csp.protocol.review_messages import (
    AlertLevel,
    AnyMessage,
    Decision,
    ExecutionAlert,
    ExecutionUpdate,
    Finding,
    Plan,
    PlanFeedback,
    PlanProposed,
    ReviewDecision,
    Risk,
    RunRole,
    SessionAck,
    SessionEnd,
    Severity,
    Telemetry,
)
from csp.room.runs.run_commands import read_alert, read_message

B, R = RunRole.BUILDER, RunRole.REVIEWER
F = Finding
READ: list[tuple[RunRole, str, AnyMessage]] = [
    (B, "PLAN: do it", PlanProposed(steps=("do it",), summary="do it")),
    (
        B,
        "Here it is.\n\n**PLAN:** all\n1. one\n2) two\n- three\n\nTOOLS: git, make\n"
        "ESTIMATE: an hour\nCONFIDENCE: 0.5",
        PlanProposed(
            steps=("one", "two", "three"),
            summary="all",
            tools=("git", "make"),
            estimate="an hour",
            confidence=0.5,
        ),
    ),
    (B, "PLAN\n- one\nCONFIDENCE: high", PlanProposed(steps=("one",))),
    (B, "STEP: one\n- more", ExecutionUpdate(step="one; more")),
    (
        B,
        "STEP: one\nDONE: all\nMETRIC: lines = 3\nMETRIC: speed: fast",
        ExecutionUpdate(step="all", final=True, metrics={"lines": 3.0, "speed": "fast"}),
    ),
    (B, "DONE:\n- a\n- b", ExecutionUpdate(step="a; b", final=True)),
    (B, "END: good\n- very", SessionEnd(status="done", summary="good; very")),
    (B, "END:\n- very", SessionEnd(status="done", summary="very")),
    (R, "ACK", SessionAck()),
    (
        R,
        "ACK: hi\nSUBSCRIBE: steps, Tests",
        SessionAck(note="hi", telemetry=(Telemetry.STEPS, Telemetry.TESTS)),
    ),
    (R, "ACK: hi\nSUBSCRIBE: none", SessionAck(note="hi")),
    (R, "RISK: low", PlanFeedback(risk=Risk.LOW)),
    (
        R,
        "RISK: High - it is old\n- list\nNOTE: slow\nCHECK: tests\nALTERNATIVE: small\n1. a",
        PlanFeedback(
            risk=Risk.HIGH,
            notes=("it is old", "list", "slow"),
            checks=("tests",),
            alternative=Plan(steps=("a",), summary="small"),
        ),
    ),
    (R, "ALERT: [critical] no", ExecutionAlert(level=AlertLevel.CRITICAL, text="no")),
    (R, "ALERT: info", ExecutionAlert(level=AlertLevel.INFO, text="info")),
    (
        R,
        "ALERT: info - x\nDECISION: revise - soon\nFINDING: major - a\nFINDING: minor: b\n"
        "RESOLVED: f-1, F-2\nRATIONALE: r",
        ReviewDecision(
            decision=Decision.REVISE,
            rationale="soon r",
            findings=(F(severity=Severity.MAJOR, text="a"), F(severity=Severity.MINOR, text="b")),
            resolved=("f-1", "f-2"),
        ),
    ),
    (R, "DECISION: **accept**", ReviewDecision(decision=Decision.ACCEPT)),
]
BAD: list[tuple[RunRole, str, str]] = [
    (B, "I will do it.", "there is no message in it"),
    (B, "DECISION: accept", "there is no message in it"),
    (R, "PLAN: x", "there is no message in it"),
    (B, "```\nPLAN: x\n```", "there is no message in it"),
    (B, "> PLAN: x", "there is no message in it"),
    (B, "PLANS: x", "there is no message in it"),
    (B, "PLAN:", "plan.proposed: expected `array` of length >= 1 - at `$.steps`"),
    (B, "STEP:", "execution.update: expected `str` of length >= 1 - at `$.step`"),
    (R, "RISK: huge", "plan.feedback: invalid enum value 'huge' - at `$.risk`"),
    (R, "RISK: 3", "plan.feedback: invalid enum value '' - at `$.risk`"),
    (R, "DECISION: maybe", "review.decision: invalid enum value 'maybe' - at `$.decision`"),
    (
        R,
        "DECISION: revise\nFINDING: bad",
        "review.decision: invalid enum value 'bad' - at `$.findings[0].severity`",
    ),
    (
        R,
        "ACK: hi\nSUBSCRIBE: everything",
        "session.ack: invalid enum value 'everything' - at `$.telemetry[0]`",
    ),
]


@pytest.mark.parametrize(("role", "text", "message"), READ)
def test_lines_are_read(role: RunRole, text: str, message: AnyMessage) -> None:
    assert read_message(text, role, "r") == message


@pytest.mark.parametrize(("role", "text", "problem"), BAD)
def test_what_is_no_message_says_why(role: RunRole, text: str, problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_message(text, role, "r")

    assert caught.value.message == problem


def whole(**fields: Any) -> str:
    known = {
        "schema_version": "0.1",
        "timestamp": "2025-10-06T13:00:00Z",
        "sender": "builder",
        "run_id": "r",
        "message_type": "plan.proposed",
        "body": {"steps": ["a"], "confidence": 0.58, "plan_path": "runs/r/plan.json"},
    }
    return json.dumps(known | fields)


PROPOSED = PlanProposed(steps=("a",), confidence=0.58, plan_path="runs/r/plan.json")


@pytest.mark.parametrize("frame", ["{}", "words\n\n```json\n{}\n```\nmore", "````\n{}\n````"])
def test_message_of_the_seed_is_read_whole_or_in_a_fence(frame: str) -> None:
    assert read_message(frame.replace("{}", whole()), B, "r") == PROPOSED


def test_json_may_leave_out_what_is_known() -> None:
    assert read_message('{"message_type": "session.ack"}', R, "r") == SessionAck()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"schema_version": "0.2"}, "schema_version is '0.2', expected '0.1'"),
        ({"sender": "reviewer"}, "sender is 'reviewer', expected 'builder'"),
        ({"run_id": "../etc"}, "run_id is '../etc', expected 'r'"),
        ({"message_type": "plan.made"}, "unknown message_type 'plan.made'"),
        ({"body": 5}, "body is not an object"),
        ({"body": {"steps": []}}, "plan.proposed: expected `array` of length >= 1 - at `$.steps`"),
    ],
)
def test_message_that_is_wrong_is_refused_by_name(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_message(whole(**fields), B, "r")

    assert caught.value.message == problem


def test_two_messages_in_one_reply_are_too_many() -> None:
    fence = f"```json\n{whole()}\n```\n"
    with pytest.raises(BadInput, match="several messages"):
        read_message(fence * 2, B, "r")


def test_other_json_is_no_message() -> None:
    assert read_message('```json\n{"a": 1}\n```\nDONE: it', B, "r") == ExecutionUpdate(step="it", final=True)


def test_last_alert_counts() -> None:
    text = "ALERT: info - a\nALERT: critical - b"

    assert read_alert(text) == ExecutionAlert(level=AlertLevel.CRITICAL, text="b")
    assert read_alert("no alert") is None
    assert read_alert("ALERT: loud - b") is None


def test_long_lines_are_cut() -> None:
    read = read_message("STEP: " + "x" * 9000 + "\nMETRIC: " + "n" * 900 + " = " + "v" * 900, B, "r")

    assert isinstance(read, ExecutionUpdate) and len(read.step) < 2000


def test_number_that_json_does_not_know_is_a_word() -> None:
    read = read_message("DONE: it\nMETRIC: a = nan\nMETRIC: b = -inf\nMETRIC: c = 1e999", B, "r")

    assert isinstance(read, ExecutionUpdate)
    assert read.metrics == {"a": "nan", "b": "-inf", "c": "1e999"}
    plan = read_message("PLAN: it\nCONFIDENCE: nan", B, "r")
    assert isinstance(plan, PlanProposed) and plan.confidence is None


@given(
    st.text(alphabet=st.sampled_from('PLAN:STEPDOERICK \n-1.`{}"af[]'), max_size=200),
    st.sampled_from(RunRole),
)
def test_any_text_is_read_or_bad_input(text: str, role: RunRole) -> None:
    with contextlib.suppress(BadInput):
        read_message(text, role, "r")
    read_alert(text)


@pytest.mark.parametrize("text", ["```json\n{broken}\n```\nDONE: it", '```\n{"a": "\\ud800"}\n```\nDONE: it'])
def test_fence_that_is_no_json_is_passed_over(text: str) -> None:
    assert read_message(text, B, "r") == ExecutionUpdate(step="it", final=True)
