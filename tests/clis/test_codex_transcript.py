"""What one line of a rollout of Codex means; whole conversations are in test_transcripts.py."""

import json
from typing import Any, Final

import msgspec
import pytest

from csp.clis.codex.transcript import CodexReader
from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.transcript_reader import Line
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal.reply_tracker import (
    Asked,
    Counted,
    Ended,
    Item,
    Opened,
    Prompted,
    Returned,
    Started,
    Switched,
    ToolCalled,
    Wrote,
)

UUID: Final = "019a8c3e-1111-7222-8333-444455556666"
PATH: Final = f"/sessions/2026/11/16/rollout-2026-11-16T10-09-54-{UUID}.jsonl"
OTHER: Final = PATH.replace("1111", "9999")
NOW: Final = "1970-01-01T00:01:00Z"


def line(kind: str, path: str = PATH, timestamp: str = NOW, **payload: Any) -> Line:
    record = {"type": kind, "timestamp": timestamp, "payload": payload}
    return Line(path=path, data=json.dumps(record).encode())


def read(*lines: Line, reader: CodexReader | None = None) -> list[Item]:
    return (reader or CodexReader(60.0)).read([], lines, 61.0)


def test_a_turn_enters_its_rollout_once_and_starts_once() -> None:
    reader = CodexReader(60.0)
    begun = line("event_msg", type="task_started")
    switched = Switched(session=UUID, path=PATH)

    assert read(begun, reader=reader) == [switched, Started(), Opened()]
    assert read(begun, reader=reader) == [Opened()]
    heir = CodexReader(60.0)
    heir.load(reader.dump())
    elsewhere = line("event_msg", OTHER, type="task_started")
    assert read(elsewhere, reader=heir) == [
        Switched(session=UUID.replace("1111", "9999"), path=OTHER),
        Opened(),
    ]


def test_what_is_older_than_the_run_is_passed_over() -> None:
    assert read(line("event_msg", timestamp="1970-01-01T00:00:59.9Z", type="task_complete")) == []
    assert read(line("event_msg", type="task_complete")) == [Ended()]


def test_the_lines_of_two_rollouts_come_in_the_order_of_their_times() -> None:
    def wrote(text: str, path: str, second: int) -> Line:
        item = {"type": "AgentMessage", "id": text, "content": [{"text": text}]}
        return line("event_msg", path, f"1970-01-01T00:01:0{second}Z", type="item_completed", item=item)

    lines = [wrote("a", PATH, 1), wrote("d", PATH, 4), wrote("b", OTHER, 2), wrote("c", OTHER, 3)]
    alone = [wrote("a", PATH, 2), wrote("b", PATH, 1)]

    assert [item.id for item in read(*lines) if isinstance(item, Wrote)] == ["a", "b", "c", "d"]
    assert [item.id for item in read(*alone) if isinstance(item, Wrote)] == ["a", "b"]


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        ("UserMessage", [Prompted(id="i", text="one\ntwo")]),
        ("AgentMessage", [Wrote(id="i", text="one\ntwo")]),
        ("Reasoning", []),
    ],
)
def test_a_completed_item_is_a_prompt_or_a_text(kind: str, items: list[Item]) -> None:
    content = [{"text": "one"}, {"text": ""}, {"text": "two"}]
    item = {"type": kind, "id": "i", "content": content}

    assert read(line("event_msg", type="item_completed", item=item)) == items


@pytest.mark.parametrize(
    ("payload", "items"),
    [
        (
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"},
            [ToolCalled(id="c", tool="shell", arguments="{}")],
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "+"},
            [ToolCalled(id="c", tool="patch", arguments="+")],
        ),
        (
            {"type": "local_shell_call", "id": "c", "action": {"a": 1}},
            [ToolCalled(id="c", tool="local_shell_call", arguments='{"a": 1}')],
        ),
        (
            {"type": "web_search_call", "id": "c", "action": {"q": 1}},
            [ToolCalled(id="c", tool="web_search_call", arguments='{"q": 1}'), Returned(id="c")],
        ),
        ({"type": "function_call_output", "call_id": "c"}, [Returned(id="c")]),
        ({"type": "custom_tool_call_output", "call_id": "c"}, [Returned(id="c")]),
        (
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": "Wall time: 1\nProcess exited with code 2\n",
            },
            [Returned(id="c", ending="exit 2")],
        ),
        ({"type": "message"}, []),
    ],
)
def test_each_kind_of_tool_is_called_and_returns(payload: dict[str, Any], items: list[Item]) -> None:
    assert read(line("response_item", **payload)) == items


def test_tokens_have_the_model_of_their_turn() -> None:
    tokens = {
        "input_tokens": 1,
        "cached_input_tokens": 2,
        "cache_write_input_tokens": 3,
        "output_tokens": 4,
        "reasoning_output_tokens": 5,
    }
    usage = Usage(input=1, output=4, cache_read=2, cache_write=3, reasoning=5, model="gpt", context=5)
    counted = read(
        line("turn_context", model="gpt"),
        line("token_usage_record", usage=tokens, response_id="r"),
        line("token_usage_record", usage=tokens),
        line("token_usage_record"),
    )

    assert counted == [Counted(id="r", usage=usage), Counted(id=NOW, usage=usage)]


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (None, Ended()),
        ({"message": "it broke"}, Ended(how=Ending.FAILED, text="it broke")),
        (
            {"message": "try again at 3pm.", "codex_error_info": "usage_limit_exceeded"},
            Ended(how=Ending.LIMITED, text="try again at 3pm.", until="3pm"),
        ),
        ({"message": "no", "codex_error_info": "context_limit"}, Ended(how=Ending.FAILED, text="no")),
        (
            {"message": "no", "codex_error_info": {"usage_limit": {}}},
            Ended(how=Ending.LIMITED, text="no"),
        ),
    ],
)
def test_a_turn_ends_as_codex_says(error: dict[str, Any] | None, ended: Ended) -> None:
    assert read(line("event_msg", type="task_complete", error=error)) == [ended]


def test_a_turn_that_is_broken_off_says_why() -> None:
    aborted = read(line("event_msg", type="turn_aborted", reason="interrupted"))

    assert aborted == [Ended(how=Ending.INTERRUPTED, text="interrupted")]
    assert read(line("event_msg", type="turn_aborted")) == [Ended(how=Ending.INTERRUPTED)]


def test_the_size_of_the_context_is_that_of_the_turn_and_of_no_subagent() -> None:
    tokens = {"input_tokens": 40, "output_tokens": 2}
    side = msgspec.structs.replace(line("token_usage_record", usage=tokens, response_id="s"), is_side=True)
    counted = read(
        side,
        line("event_msg", type="task_started", model_context_window=258_400),
        line("token_usage_record", usage=tokens, response_id="r"),
    )
    found = {item.id: item.usage for item in counted if isinstance(item, Counted)}

    assert (found["r"].context, found["r"].window) == (42, 258_400)
    assert (found["s"].context, found["s"].window) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"cmd": "pytest -q"}, "pytest -q"),
        (
            {"cmd": "touch a", "sandbox_permissions": "require_escalated", "justification": "please"},
            "touch a",
        ),
        ({"cmd": "pytest -q", "workdir": "/elsewhere"}, ""),
        ({"cmd": "pytest -q", "shell": "/tmp/sh"}, ""),
        ({"cmd": "pytest -q", "sandbox_permissions": "with_additional_permissions"}, ""),
        ({"cmd": ["pytest"]}, ""),
    ],
)
def test_a_call_of_the_shell_says_its_command_if_nothing_else_changes_it(
    arguments: dict[str, object], command: str
) -> None:
    words = json.dumps(arguments)
    (called,) = read(
        line("response_item", type="function_call", call_id="c", name="exec_command", arguments=words)
    )
    (other,) = read(line("response_item", type="function_call", call_id="c", name="other", arguments=words))

    assert isinstance(called, ToolCalled) and called.command == command
    assert isinstance(other, ToolCalled) and other.command == ""


def test_a_hook_that_asks_is_told_after_the_lines() -> None:
    hooks = [
        {"hook_event_name": name, "tool_name": "shell", "tool_input": msgspec.Raw(b'{"a":1}')}
        for name in ("PermissionRequest", "Another")
    ]
    events = [HookEvent(at=1.0, hook=msgspec.convert(hook, Hook)) for hook in hooks]
    items = CodexReader(60.0).read(events, [line("event_msg", type="task_complete")], 61.0)

    assert items == [Ended(), Asked(tool="shell", arguments='{"a":1}')]
