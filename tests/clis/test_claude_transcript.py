"""What one line or hook of Claude Code means; whole conversations are in test_transcripts.py."""

import json
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from csp.clis.claude.transcript import WAIT_S, ClaudeReader
from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.transcript_reader import Line
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal.reply_tracker import (
    Asked,
    Attached,
    Bypassed,
    Counted,
    Ended,
    Item,
    Prompted,
    Reopened,
    Returned,
    Started,
    Submitted,
    Switched,
    ToolCalled,
    Wrote,
)

PATH: Final = "/transcripts/one.jsonl"
OTHER: Final = "/transcripts/two.jsonl"
SINCE: Final = 1000.0


class Session:
    """A reader with the lines and hooks that a test gives it, one batch each, a second later each."""

    def __init__(self) -> None:
        self.reader = ClaudeReader(SINCE, "one", PATH)
        self.now = SINCE
        self._last: str | None = None
        self._count = 0

    def record(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._count += 1
        self.now += 1
        record = {
            "type": kind,
            "uuid": f"u{self._count}",
            "parentUuid": self._last,
            "timestamp": datetime.fromtimestamp(self.now, UTC).isoformat(),
            **fields,
        }
        self._last = record["uuid"]
        return record

    def line(self, kind: str, path: str = PATH, **fields: Any) -> list[Item]:
        return self.take(self.record(kind, **fields), path=path)

    def take(self, *records: dict[str, Any], path: str = PATH) -> list[Item]:
        lines = [Line(path=path, data=json.dumps(record).encode()) for record in records]
        return self.reader.read([], lines, self.now)

    def user(self, content: Any, prompt: str = "p1", **fields: Any) -> list[Item]:
        return self.line("user", promptId=prompt, message={"content": content}, **fields)

    def says(self, text: str, stop: str | None = None, **fields: Any) -> list[Item]:
        return self.line("assistant", message={"content": text, "stop_reason": stop}, **fields)

    def event(self, name: str, path: str = PATH, at: float | None = None, **fields: Any) -> HookEvent:
        hook = {"hook_event_name": name, "session_id": "s", "transcript_path": path, **fields}
        return HookEvent(at=self.now if at is None else at, hook=msgspec.convert(hook, Hook))

    def hook(self, name: str, path: str = PATH, at: float | None = None, **fields: Any) -> list[Item]:
        return self.reader.read([self.event(name, path, at, **fields)], [], self.now)

    def wait(self, seconds: float) -> list[Item]:
        self.now += seconds
        return self.reader.read([], [], self.now)


@pytest.fixture
def session() -> Session:
    return Session()


def texts(items: list[Item]) -> list[str]:
    return [item.text for item in items if isinstance(item, Prompted | Wrote)]


# --- the end of a turn ---------------------------------------------------------------------------


def test_an_end_waits_three_seconds_for_the_last_text(session: Session) -> None:
    session.user("hello")
    assert session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.") == []
    assert session.reader.due() == session.now + 3.0
    assert session.wait(2.9) == []

    assert session.wait(0.1) == [Wrote(id="p1:last", text="Hi."), Ended()]
    assert session.reader.due() is None


def test_a_text_that_was_taken_from_the_hook_is_not_taken_again(session: Session) -> None:
    session.user("hello")
    session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.")
    session.wait(WAIT_S)

    assert session.says("Hi.") == []
    assert texts(session.says("Hi.")) == ["Hi."]


def test_the_same_text_in_answer_to_the_next_prompt_is_taken(session: Session) -> None:
    """As where the turn before had no prompt in the transcript, nor its text."""
    session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.")
    session.wait(WAIT_S)
    session.user("again", prompt="p2")

    assert texts(session.says("Hi.")) == ["Hi."]


def test_a_text_whose_prompt_comes_late_is_not_taken_again(session: Session) -> None:
    session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.")
    session.wait(WAIT_S)
    session.user("hello", prompt="p1")

    assert texts(session.says("Hi.")) == []


def test_a_turn_whose_lines_all_come_late_is_answered_once(session: Session) -> None:
    """As on a busy machine, where Claude writes its transcript seconds after its hooks ran."""
    session.user("first", prompt="p1")
    session.says("One.", "end_turn")
    session.line("system", subtype="turn_duration")
    session.hook("UserPromptSubmit", prompt_id="p2", prompt="second")
    session.hook("Stop", prompt_id="p2", last_assistant_message="Two.")
    assert session.wait(WAIT_S) == [Wrote(id="p2:last", text="Two."), Ended()]

    assert session.user("second", prompt="p2") == []
    assert session.says("Two.", "end_turn") == []
    assert session.line("system", subtype="turn_duration") == []
    assert session.user("third", prompt="p3") == [Prompted(id="u7", text="third")]
    assert session.says("Two.") == [Wrote(id="u8", text="Two.")]


def test_a_failure_whose_lines_all_come_late_is_told_once(session: Session) -> None:
    session.hook("StopFailure", prompt_id="p1", error="server_error", last_assistant_message="it broke")
    assert session.wait(WAIT_S) == [Ended(how=Ending.FAILED, text="it broke")]

    assert session.user("hello", prompt="p1") == []
    assert session.says("it broke", isApiErrorMessage=True) == []


def test_an_answer_to_a_command_is_a_turn_though_its_id_is_that_of_a_told_one(session: Session) -> None:
    session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.")
    session.wait(WAIT_S)
    session.user("<bash-input>ls</bash-input>", prompt="p1")

    assert texts(session.says("That is a list.")) == ["<bash-input>ls</bash-input>", "That is a list."]


def test_an_end_comes_with_the_last_text(session: Session) -> None:
    session.user("hello")
    session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.")

    assert session.says("Hi.") == [Wrote(id="u2", text="Hi."), Ended()]
    assert session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.") == []
    assert session.wait(60) == []


def test_a_failure_is_a_reason_not_a_text(session: Session) -> None:
    session.user("hello")
    text = "Limit reached, resets 3pm"
    session.hook("StopFailure", prompt_id="p1", error="rate_limit", last_assistant_message=text)

    assert session.wait(WAIT_S) == [Ended(how=Ending.LIMITED, text=text, until="3pm")]


def test_a_failure_waits_for_the_line_that_says_why(session: Session) -> None:
    session.user("hello")
    assert session.hook("StopFailure", prompt_id="p1", error="server_error") == []
    assert session.says("it broke", isApiErrorMessage=True) == [Ended(how=Ending.FAILED, text="it broke")]
    assert session.wait(60) == []


def test_an_end_that_was_waited_for_in_vain_is_told_once(session: Session) -> None:
    """As where the line of the prompt itself never comes."""
    session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.")
    session.wait(WAIT_S)

    assert session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.") == []
    assert session.wait(60) == []


def test_an_end_of_another_prompt_pushes_out_the_one_that_waits(session: Session) -> None:
    session.user("hello")
    session.hook("Stop", prompt_id="p1", last_assistant_message="One.")

    assert session.hook("Stop", prompt_id="p2", last_assistant_message="Two.") == [
        Wrote(id="p1:last", text="One."),
        Ended(),
    ]
    assert texts(session.wait(WAIT_S)) == ["Two."]


@pytest.mark.parametrize("name", ["Stop", "StopFailure"])
def test_the_end_of_a_subagent_is_no_end(session: Session, name: str) -> None:
    session.user("hello")
    session.hook(name, prompt_id="p1", agent_id="sub", last_assistant_message="Sub.")

    assert session.reader.due() is None
    assert session.wait(60) == []


def test_a_line_about_its_duration_ends_a_turn_of_its_own(session: Session) -> None:
    session.user("hello")
    session.says("Hi.")
    assert session.line("system", subtype="turn_duration", parentUuid=None) == []
    session._last = "u2"
    assert session.line("system", subtype="turn_duration") == [Ended()]
    session._last = "u2"
    assert session.line("system", subtype="turn_duration") == []


def test_an_interrupt_is_told_by_a_line_that_nobody_typed(session: Session) -> None:
    words = "[Request interrupted by user]"
    session.user("hello")
    assert texts(session.user(words)) == [words]
    assert texts(session.user([{"type": "text", "text": words}], promptSource="typed")) == [words]

    assert session.user([{"type": "text", "text": words}]) == [Ended(how=Ending.INTERRUPTED)]
    assert session.user([{"type": "text", "text": words}]) == []


@pytest.mark.parametrize(
    ("error", "text", "how"),
    [
        ("rate_limit", "stop", Ending.LIMITED),
        ("server_error", "stop", Ending.FAILED),
        ("", "Session LIMIT, RESETS 3pm", Ending.LIMITED),
        ("", "your limit", Ending.FAILED),
        ("", "a reset", Ending.FAILED),
    ],
)
def test_an_error_of_the_api_ends_a_turn(session: Session, error: str, text: str, how: Ending) -> None:
    session.user("hello")
    (ended,) = session.says(text, isApiErrorMessage=True, error=error)

    assert isinstance(ended, Ended)
    assert (ended.how, ended.text) == (how, text)
    assert session.says(text, isApiErrorMessage=True, error=error) == []


@pytest.mark.parametrize(
    ("stop", "how"), [("end_turn", Ending.DONE), ("tool_use", Ending.INTERRUPTED), (None, Ending.INTERRUPTED)]
)
def test_a_new_prompt_ends_the_turn_before(session: Session, stop: str | None, how: Ending) -> None:
    session.user("one")
    session.says("Well.", stop)

    assert session.user("two", "p2") == [Ended(how=how), Prompted(id="u3", text="two")]


def test_a_prompt_of_the_same_turn_joins_it(session: Session) -> None:
    session.user("one")

    assert session.user("two", "p1") == [Prompted(id="u2", text="two")]


def test_a_prompt_with_the_id_of_an_ended_one_can_end_too(session: Session) -> None:
    """What a `!` command makes Claude say has the id of the prompt before it."""
    for text in ("one", "two"):
        session.user(text)
        session.hook("Stop", prompt_id="p1", last_assistant_message=text)
        assert session.says(text)[-1] == Ended()


def test_a_turn_that_a_hook_of_the_users_sends_back_goes_on(session: Session) -> None:
    session.user("one")
    session.says("Done.")
    assert session.user("Stop hook feedback: go on", "p2", isMeta=True) == []
    assert session.user("Another remark", isMeta=True) == []
    assert session.user("Stop hook feedback: go on", isMeta=True) == [Ended(), Reopened()]
    old = session.hook("Stop", prompt_id="p1", last_assistant_message="Done.")
    assert session.reader.due() is None
    session.says("More.")
    new = session.hook("Stop", prompt_id="p1", stop_hook_active=True, last_assistant_message="More.")

    assert (old, new) == ([], [Ended()])


def test_a_prompt_that_a_hook_of_the_users_refused_has_failed(session: Session) -> None:
    content = "UserPromptSubmit operation blocked by hook: no\n\nOriginal prompt: do it"
    refused = session.line("system", content=content)

    assert refused == [
        Prompted(id="u1", text="do it"),
        Ended(how=Ending.FAILED, text="UserPromptSubmit operation blocked by hook: no"),
    ]
    session.user("hello")
    assert session.line("system", content=content) == []


def test_whoever_tells_the_end_has_ended_the_turn(session: Session) -> None:
    session.user("hello")
    session.hook("Stop", prompt_id="p1", last_assistant_message="Hi.")
    session.reader.end()

    assert session.reader.due() is None
    assert session.user("two", "p2") == [Prompted(id="u2", text="two")]


# --- prompts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["<local-command-stdout>", "<bash-stdout>", "<bash-stderr>", "<system-reminder>"]
)
def test_what_claude_itself_writes_for_a_user_is_no_prompt(session: Session, text: str) -> None:
    assert session.user(text) == []
    assert session.line("attachment", attachment={"type": "queued_command", "prompt": text}) == []


@pytest.mark.parametrize("text", ["<command-name>/x", "<bash-input>ls", "<task-notification>"])
def test_a_command_is_a_prompt_once_the_model_answers_it(session: Session, text: str) -> None:
    assert session.user(text) == []
    assert session.line("attachment", attachment={"type": "queued_command", "prompt": text}) == []
    assert texts(session.says("Done.")) == [text, "Done."]
    assert texts(session.says("More.")) == ["More."]
    assert texts(session.user(text, promptSource="typed")) == [text]


def test_a_summary_or_a_line_of_a_subagent_is_no_prompt(session: Session) -> None:
    assert session.user("a summary", isCompactSummary=True) == []
    assert session.user("for the subagent", isSidechain=True) == []


@pytest.mark.parametrize(
    ("attachment", "expected"),
    [
        ({"type": "queued_command", "prompt": "two"}, ["two"]),
        ({"type": "queued_command", "prompt": [{"type": "text", "text": "two"}]}, ["two"]),
        ({"type": "queued_command", "prompt": "two", "commandMode": "bash"}, []),
        ({"type": "file", "prompt": "two"}, []),
    ],
)
def test_a_queued_prompt_is_taken_between_two_calls(
    session: Session, attachment: dict[str, Any], expected: list[str]
) -> None:
    session.user("one")

    assert texts(session.line("attachment", attachment=attachment)) == expected


def test_a_prompt_is_announced_by_its_hook_unless_it_is_known(session: Session) -> None:
    assert session.hook("UserPromptSubmit", prompt="one", prompt_id="p1") == [Submitted(text="one")]
    assert session.hook("UserPromptSubmit", prompt="two") == [Submitted(text="two")]
    session.user("one")
    assert session.hook("UserPromptSubmit", prompt="one", prompt_id="p1") == []
    session.user("two", "p2")
    assert session.hook("UserPromptSubmit", prompt="one", prompt_id="p1") == []
    assert session.hook("UserPromptSubmit", prompt="sub", prompt_id="p3", agent_id="sub") == []


# --- tools and tokens ----------------------------------------------------------------------------


def test_a_tool_is_asked_for_called_and_returned(session: Session) -> None:
    session.user("one")
    part = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"a": 1}}
    called = session.line("assistant", message={"content": [{"type": "text", "text": "So."}, part]})
    asked = session.hook("PermissionRequest", tool_name="Bash", tool_input=msgspec.Raw(b'{"a":1}'))

    assert called == [Wrote(id="u2", text="So."), ToolCalled(id="t1", tool="Bash", arguments='{"a": 1}')]
    assert asked == [Asked(tool="Bash", arguments='{"a":1}')]
    assert session.hook("PostToolUse", tool_use_id="t1") == [Returned(id="t1")]
    assert session.hook("PostToolUse", tool_use_id="t1", tool_name="Bash") == [
        Returned(id="t1", ending="exit 0")
    ]


@pytest.mark.parametrize(
    ("text", "ending"), [("Exit code 127\nno pytest", "exit 127"), ("no such file", "failed")]
)
def test_a_tool_that_failed_says_how(session: Session, text: str, ending: str) -> None:
    part = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": text}

    assert session.hook("PostToolUseFailure", tool_use_id="t1", error=text) == [
        Returned(id="t1", ending=ending)
    ]
    assert session.user([part], toolUseResult=f"Error: {text}") == [Returned(id="t1", ending=ending)]


@pytest.mark.parametrize(
    ("tool", "given", "command"),
    [
        ("Bash", {"command": "pytest -q", "description": "d", "timeout": 9}, "pytest -q"),
        ("Bash", {"command": "pytest", "run_in_background": True}, "pytest"),
        ("Bash", {"command": "pytest", "dangerouslyDisableSandbox": True}, ""),
        ("Bash", {"command": ["pytest"]}, ""),
        ("Write", {"command": "pytest"}, ""),
    ],
)
def test_only_the_whole_input_of_the_shell_tool_is_a_command(
    session: Session, tool: str, given: dict[str, object], command: str
) -> None:
    raw = msgspec.Raw(msgspec.json.encode(given))
    (asked,) = session.hook("PermissionRequest", tool_name=tool, tool_input=raw)

    assert isinstance(asked, Asked)
    assert asked.command == command


def test_text_before_a_tool_is_not_the_last_of_a_turn(session: Session) -> None:
    session.user("one")
    part = {"type": "tool_use", "id": "t1", "name": "Bash"}
    session.line("assistant", message={"content": [{"type": "text", "text": "So."}, part]})

    assert session.hook("Stop", prompt_id="p1", last_assistant_message="So.") == []


@pytest.mark.parametrize(("result", "is_refused"), [("User rejected tool use", True), ({"ok": 1}, False)])
def test_a_result_says_whether_the_call_was_refused(session: Session, result: Any, is_refused: bool) -> None:
    part = {"type": "tool_result", "tool_use_id": "t1"}

    assert session.user([part], toolUseResult=result) == [Returned(id="t1", is_refused=is_refused)]


def test_the_tokens_of_an_answer_are_counted(session: Session) -> None:
    tokens = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "output_tokens": 4000,
    }
    message = {"id": "m1", "model": "m" * 200, "content": "", "usage": tokens}
    usage = Usage(input=321, output=4000, cache_read=300, cache_write=20, model="m" * 128, context=4321)
    session.user("one")
    counted = session.line("assistant", message=message)
    synthetic = session.line("assistant", message={**message, "model": "<synthetic>"})

    assert Counted(id="m1", usage=usage) in counted
    assert not any(isinstance(item, Counted) for item in synthetic)


def test_what_claude_says_for_the_model_is_said_by_nobody(session: Session) -> None:
    def says(text: str) -> list[str]:
        return texts(session.line("assistant", message={"content": text, "model": "<synthetic>"}))

    assert says("No response requested.") == []
    assert says("Another word.") == ["Another word."]


# --- sessions and lines --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "items"), [("startup", [Started()]), ("resume", [Started()]), ("compact", [])]
)
def test_a_compaction_is_no_start(session: Session, source: str, items: list[Item]) -> None:
    assert session.hook("SessionStart", source=source) == items


def test_another_session_begins_with_what_is_new(session: Session) -> None:
    session.user("one")
    session.hook("Stop", prompt_id="p1", last_assistant_message="Late.")
    session.user("<command-name>/resume")
    left = session.hook("SessionStart", path=OTHER, at=session.now + 2)
    session._last = None

    assert left == [
        Wrote(id="p1:last", text="Late."),
        Ended(),
        Switched(session="s", path=OTHER),
        Started(),
    ]
    session.now += 0.75  # the line comes a quarter of a second before the hook
    assert session.user("history", path=OTHER) == []
    session.now -= 0.9
    assert session.user("new", "p2", path=OTHER) == [Prompted(id="u4", text="new")]
    assert session.user("of the old session", path=PATH) == []


def test_the_first_transcript_is_read_from_the_start_of_the_run(session: Session) -> None:
    session.reader = ClaudeReader(SINCE, "one", "")
    session.hook("SessionStart", at=SINCE + 100)

    assert texts(session.user("hello")) == ["hello"]


def test_lines_that_wait_are_given_out_before_another_session_begins(session: Session) -> None:
    session._last = "never"
    session.user("one")
    items = session.hook("SessionStart", path=OTHER)

    assert items == [Prompted(id="u1", text="one"), Switched(session="s", path=OTHER), Started()]


def test_a_command_of_the_session_before_is_no_prompt_of_the_next(session: Session) -> None:
    session.user("<command-name>/clear")
    session.hook("SessionStart", path=OTHER)
    session._last = None

    assert texts(session.says("Hi.", path=OTHER)) == ["Hi."]


def test_a_line_waits_for_the_one_before_it(session: Session) -> None:
    first, second, third = (
        session.record("user", promptId="p1", message={"content": text}) for text in ("one", "two", "three")
    )

    assert session.take(third, second) == []
    assert session.reader.due() == session.now + WAIT_S
    assert texts(session.take(first)) == ["one", "two", "three"]
    assert session.reader.due() is None
    assert session.take(first, second, third) == []


def test_a_line_that_has_waited_goes_before_those_behind_it(session: Session) -> None:
    first, second, third = (
        session.record("user", promptId="p1", message={"content": text}) for text in ("one", "two", "three")
    )

    assert texts(session.take(second, first, {**third, "parentUuid": None})) == ["one", "two", "three"]


def test_lines_that_wait_in_vain_come_in_the_order_of_their_times(session: Session) -> None:
    session._last = "never"
    records = [session.record("user", promptId="p1", message={"content": text}) for text in ("one", "two")]
    for record in records:
        record["parentUuid"] = "never"
    session.take(*reversed(records))
    assert session.wait(2.9) == []

    assert texts(session.wait(0.1)) == ["one", "two"]


def test_a_long_session_is_not_remembered_whole(session: Session) -> None:
    for number in range(600):
        session.user("again", f"p{number}")
    state = session.reader._state

    assert list(state.seen) == [f"u{number}" for number in range(89, 601)]
    assert len(state.ended) == 512


# --- what the model was given besides, or does past the room --------------------------------------


def attachment(session: Session, **fields: Any) -> list[Item]:
    return session.line("attachment", attachment=fields)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        # As Claude Code 2.1.326 has written them.
        ({"type": "file", "filename": "/etc/passwd", "displayPath": "../etc/passwd"}, "/etc/passwd"),
        ({"type": "already_read_file", "filename": "/p/secret.txt"}, "/p/secret.txt"),
        ({"type": "directory", "path": "/etc"}, "/etc"),
        ({"type": "agent_mention", "agentType": "helper"}, "helper"),
        ({"type": "mcp_resource", "server": "s", "uri": "x://y"}, "x://y"),
        ({"type": "at_mention_reference", "mentions": ["/etc/x"]}, "at_mention_reference"),
    ],
)
def test_what_a_prompt_has_named_is_told(session: Session, fields: dict[str, Any], name: str) -> None:
    session.user("see @it")

    assert attachment(session, **fields) == [Attached(id="u2", path=name)]


def test_what_claude_adds_of_itself_is_nothing_that_a_prompt_has_named(session: Session) -> None:
    session.user("hello")

    for kind in ("skill_listing", "date", "environment", "nested_memory", "edited_text_file", "diagnostics"):
        assert attachment(session, type=kind, filename="/p/x") == []


def test_a_file_that_is_attached_later_in_a_turn_was_not_named_by_its_prompt(session: Session) -> None:
    session.user("hello")
    session.says("A look first.")

    assert attachment(session, type="file", filename="/p/x") == []


def test_a_file_that_is_attached_again_after_a_compaction_was_not_named(session: Session) -> None:
    session.user("hello")
    session.user("This session continues ...", isCompactSummary=True)

    assert attachment(session, type="file", filename="/p/x") == []


def test_a_file_in_a_prompt_that_was_queued_is_told(session: Session) -> None:
    session.user("hello")
    session.says("A look first.")
    attachment(session, type="queued_command", prompt="see @it")

    assert attachment(session, type="file", filename="/p/x") == [Attached(id="u4", path="/p/x")]


def calls(session: Session, tool: str, /, **arguments: Any) -> list[Item]:
    part = {"type": "tool_use", "id": "c1", "name": tool, "input": arguments}
    return session.line("assistant", message={"content": [part]})


def past(items: list[Item]) -> list[str]:
    return [item.to for item in items if isinstance(item, Bypassed)]


@pytest.mark.parametrize("to", ["claude-2", "uds:/tmp/x.sock", "8d5c2f80-0000-4000-8000-000000000000"])
def test_a_message_to_another_session_is_past_the_room(session: Session, to: str) -> None:
    session.user("hello")

    assert past(calls(session, "SendMessage", to=to, message="hi")) == [to]


def test_a_message_to_an_agent_of_its_own_is_not_past_the_room(session: Session) -> None:
    session.user("hello")
    calls(session, "Agent", name="scout", prompt="look")
    result = [{"type": "tool_result", "tool_use_id": "c1"}]
    session.user(result, toolUseResult={"status": "completed", "agentId": "a1b2"})

    for to in ("scout", "a1b2", "main"):
        assert past(calls(session, "SendMessage", to=to, message="hi")) == []


@pytest.mark.parametrize("arguments", [{}, {"to": 7}, {"to": ["x"]}])
def test_a_message_of_another_shape_is_past_the_room(session: Session, arguments: dict[str, Any]) -> None:
    assert past(calls(session, "SendMessage", **arguments)) == ["another session"]


def test_other_tools_are_not_past_the_room(session: Session) -> None:
    assert past(calls(session, "Bash", to="claude-2")) == []
