"""The schemas that a client is shown."""

from csp.mcp.tool_arguments import (
    BoardAdd,
    ChatterCollaborate,
    Nothing,
    SendMessage,
    SetStatus,
    StartMode,
    Vote,
    schema_of,
)


def test_a_schema_stands_for_itself() -> None:
    text = str([schema_of(kind) for kind in (SendMessage, StartMode, BoardAdd, ChatterCollaborate)])

    assert "$ref" not in text and "anyOf" not in text and "title" not in text and "null" not in text


def test_a_schema_says_what_is_needed_and_that_nothing_else_is_taken() -> None:
    schema = schema_of(SendMessage)

    assert schema["required"] == ["to", "text"]
    assert schema["additionalProperties"] is False
    assert "description" not in schema
    assert schema["properties"]["text"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 262144,
        "description": "the text to send",
    }
    assert schema["properties"]["urgent"]["default"] is False


def test_no_argument_is_an_empty_table() -> None:
    assert schema_of(Nothing)["properties"] == {}


def test_a_choice_is_a_text() -> None:
    state = schema_of(SetStatus)["properties"]["state"]

    assert state["type"] == "string" and "busy" in state["enum"]


def test_a_pattern_ends_as_javascript_has_it() -> None:
    assert schema_of(Vote)["properties"]["label"]["pattern"] == "^[A-Za-z]{1,2}$"


def test_a_client_learns_how_long_a_collaboration_is_waited_for() -> None:
    wait = schema_of(ChatterCollaborate)["properties"]["wait"]

    assert (wait["maximum"], wait["default"]) == (1800, 1800)
