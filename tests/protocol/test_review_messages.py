"""The messages of a review run, as they are written to files and read from them."""

import msgspec
import pytest

from csp.errors import BadInput
from csp.protocol.review_messages import (
    AnyMessage,
    MessageType,
    Plan,
    PlanProposed,
    RunRole,
    SessionAck,
    read_body,
    type_of_body,
    write_message,
)

PROPOSED = PlanProposed(
    steps=("one", "two"), summary="both", tools=("git",), estimate="an hour", confidence=0.5, plan_path="p"
)


def test_a_message_is_written_with_its_envelope() -> None:
    written = write_message("r-1", RunRole.BUILDER, 1759755600.0625, PROPOSED)

    assert msgspec.json.decode(msgspec.json.encode(written)) == {
        "schema_version": "0.1",
        "timestamp": "2025-10-06T13:00:00.062Z",
        "sender": "builder",
        "run_id": "r-1",
        "message_type": "plan.proposed",
        "body": {
            "steps": ["one", "two"],
            "summary": "both",
            "tools": ["git"],
            "estimate": "an hour",
            "confidence": 0.5,
            "plan_path": "p",
        },
    }


@pytest.mark.parametrize("body", [PROPOSED, SessionAck(note="ready")])
def test_what_is_written_is_read_again(body: AnyMessage) -> None:
    written = msgspec.json.decode(msgspec.json.encode(write_message("r-1", RunRole.BUILDER, 0.0, body)))

    assert read_body(MessageType(written["message_type"]), written["body"]) == body
    assert type_of_body(body) == written["message_type"]


def test_a_wrong_field_is_named() -> None:
    with pytest.raises(BadInput, match=r"plan.proposed: .*\$\.steps"):
        read_body(MessageType.PLAN_PROPOSED, {"steps": []})


def test_a_proposed_plan_is_the_plan_of_the_run_without_its_path() -> None:
    assert PROPOSED.plan == Plan(
        steps=("one", "two"), summary="both", tools=("git",), estimate="an hour", confidence=0.5
    )
