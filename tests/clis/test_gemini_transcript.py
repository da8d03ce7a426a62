"""What one line or hook of Gemini CLI means; whole conversations are in test_transcripts.py."""

import json
from typing import Any, Final

import msgspec
import pytest

from csp.clis.gemini.transcript import GeminiReader
from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.transcript_reader import Line
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal.reply_tracker import (
    Asked,
    Attached,
    CapturedReply,
    Counted,
    Ended,
    Item,
    Prompted,
    Returned,
    Started,
    Submitted,
    Switched,
    ToolCalled,
    Tracker,
    Using,
    Wrote,
)

CHAT: Final = "/chats/one.jsonl"
CANCELLED: Final = "Request cancelled."


def stamp(second: float) -> str:
    return f"1970-01-01T00:01:{second:06.3f}Z"


def hook(second: float, name: str, path: str = CHAT, **fields: Any) -> HookEvent:
    known = {"hook_event_name": name, "session_id": "s", "transcript_path": path, "timestamp": stamp(second)}
    return HookEvent(at=60.0 + second, hook=msgspec.convert(known | fields, Hook))


def line(second: float, kind: str, content: Any, **fields: Any) -> Line:
    record = {"id": f"r{second}", "timestamp": stamp(second), "type": kind, "content": content, **fields}
    return Line(path=CHAT, data=json.dumps(record).encode())


def user(second: float, text: str) -> Line:
    return line(second, "user", [{"text": text}])


class Chat:
    """A reader that has a chat with hooks."""

    def __init__(self, path: str = CHAT) -> None:
        self.reader = GeminiReader(60.0, "s", path)

    def read(self, *what: HookEvent | Line, now: float = 100.0) -> list[Item]:
        events = [one for one in what if isinstance(one, HookEvent)]
        return self.reader.read(events, [one for one in what if isinstance(one, Line)], now)

    def prompt(self, second: float, text: str) -> list[Item]:
        return self.read(hook(second, "BeforeAgent", prompt=text), user(second, text))


@pytest.fixture
def chat() -> Chat:
    return Chat()


def texts(items: list[Item]) -> list[str]:
    return [item.text for item in items if isinstance(item, Prompted | Wrote)]


# --- turns ---------------------------------------------------------------------------------------


def test_a_turn_from_its_prompt_to_its_end(chat: Chat) -> None:
    begun = chat.read(hook(1, "BeforeAgent", prompt="one"))
    written = chat.read(user(1, "one"))
    answered = chat.read(line(2, "gemini", "Hi."))
    ended = chat.read(hook(3, "AfterAgent", prompt="one"))

    assert begun == [Submitted(text="one")]
    assert written == [Prompted(id=f"s@{stamp(1)}", text="one")]
    assert answered == [Wrote(id="r2", text="Hi.")]
    assert ended == [Ended()]
    assert chat.read(hook(3, "AfterAgent", prompt="one")) == []


def test_a_prompt_that_is_tried_on_another_model_is_taken_once(chat: Chat) -> None:
    chat.prompt(1, "one")

    assert chat.read(hook(2, "BeforeAgent", prompt="one")) == []
    chat.read(hook(3, "BeforeAgent", prompt="two"))
    assert chat.read(hook(4, "BeforeAgent", prompt="two")) == []


def test_lines_come_before_hooks_of_the_same_time_whatever_was_read_first(chat: Chat) -> None:
    items = chat.read(
        hook(1, "BeforeAgent", prompt="one"),
        hook(3, "AfterAgent", prompt="one"),
        user(1, "one"),
        line(3, "gemini", "Hi."),
    )

    assert texts(items) == ["one", "Hi."]
    assert items[-1] == Ended()


def test_a_hook_without_a_time_has_the_time_of_its_file(chat: Chat) -> None:
    late = hook(3, "AfterAgent", prompt="one", timestamp="")
    items = chat.read(late, hook(1, "BeforeAgent", prompt="one"), line(2, "gemini", "Hi."))

    assert items[-1] == Ended()
    assert texts(items) == ["one", "Hi."]


@pytest.mark.parametrize(
    ("answers", "how"),
    [
        ([line(2, "gemini", "Hi.")], Ending.DONE),
        ([line(2, "gemini", "")], Ending.INTERRUPTED),
        ([line(2, "gemini", "So.", toolCalls=[{"id": "t"}])], Ending.INTERRUPTED),
        ([], Ending.INTERRUPTED),
    ],
)
def test_the_line_of_the_next_prompt_ends_the_turn_before(
    chat: Chat, answers: list[Line], how: Ending
) -> None:
    chat.prompt(1, "one")
    chat.read(*answers)
    chat.read(hook(3, "BeforeAgent", prompt="two"))

    assert chat.read(user(4, "two")) == [Ended(how=how), Prompted(id=f"s@{stamp(3)}", text="two")]


def test_the_line_of_the_next_prompt_may_come_before_its_hook(chat: Chat) -> None:
    chat.prompt(1, "one")
    assert chat.read(user(2, "two")) == []
    begun = chat.read(hook(3, "BeforeAgent", prompt="two"))

    assert begun[0] == Submitted(text="two")
    assert texts(begun) == ["two"]


OURS = "[from human #7]\nhello\n[end #7]"
OTHER = "[from human #8]\nhello again\n[end #8]"


def unhooked(first: str, second: str, *, is_first_answered: bool = True) -> list[HookEvent | Line]:
    """Return what Gemini writes if two prompts have the same number: the second one has no hook."""
    story: list[HookEvent | Line] = [hook(1, "BeforeAgent", prompt=first), user(1, first)]
    story += [line(2, "gemini", "to the first")] if is_first_answered else []
    return [*story, user(3, second), line(4, "gemini", "to the second"), hook(5, "AfterAgent", prompt=first)]


def replies(items: list[Item]) -> list[tuple[str | None, str, Ending]]:
    """Return the tag, the text and the ending of each reply."""
    reader = Tracker()
    outcomes = [one for item in items for one in reader.feed(item)]
    assert not reader.is_open
    return [(one.tag, one.text, one.how) for one in outcomes if isinstance(one, CapturedReply)]


@pytest.mark.parametrize(
    ("first", "second", "tags"),
    [(OURS, "person", ("7", None)), ("person", OURS, (None, "7")), (OURS, OTHER, ("7", "8"))],
)
@pytest.mark.parametrize("is_at_once", [True, False])
def test_a_prompt_without_a_hook_has_an_answer_of_its_own(
    chat: Chat, first: str, second: str, tags: tuple[str | None, str | None], is_at_once: bool
) -> None:
    story = unhooked(first, second)
    items = chat.read(*story) if is_at_once else [item for one in story for item in chat.read(one)]

    assert replies(items) == [(tags[0], "to the first", Ending.DONE), (tags[1], "to the second", Ending.DONE)]


def test_an_answer_to_a_person_is_not_the_reply_of_a_message_without_one(chat: Chat) -> None:
    items = chat.read(*unhooked(OURS, "person", is_first_answered=False))

    assert replies(items) == [("7", "", Ending.INTERRUPTED), (None, "to the second", Ending.DONE)]


@pytest.mark.parametrize(
    ("end", "how"),
    [(("info", CANCELLED), Ending.INTERRUPTED), (("error", "it broke"), Ending.FAILED)],
)
def test_how_the_second_prompt_ends_is_not_how_the_first_one_did(
    chat: Chat, end: tuple[str, str], how: Ending
) -> None:
    story = unhooked(OURS, "person")
    story[4] = line(4, *end)

    assert replies(chat.read(*story)) == [("7", "to the first", Ending.DONE), (None, "", how)]


@pytest.mark.parametrize("text", ["Please continue.", "System: Potential loop detected."])
def test_a_turn_that_gemini_continues_is_one_turn(chat: Chat, text: str) -> None:
    items = chat.read(*unhooked(OURS, text))

    assert replies(items) == [("7", "to the first\n\nto the second", Ending.DONE)]


def test_old_lines_that_are_recorded_again_take_no_answer(chat: Chat) -> None:
    """Before a step of a turn Gemini may compress the conversation; the step's results follow."""
    old = [user(2.1, "an old question"), line(2.1, "gemini", [{"text": "an old answer"}]), user(2.1, OURS)]
    result = line(2.2, "user", [{"functionResponse": {}}])
    items = chat.read(hook(1, "BeforeAgent", prompt=OURS), user(1, OURS), *old, result)
    items += chat.read(line(3, "gemini", "Hi."), hook(4, "AfterAgent", prompt=OURS))

    assert replies(items) == [("7", "Hi.", Ending.DONE)]


def test_a_hint_for_a_step_is_no_prompt(chat: Chat) -> None:
    hint = line(2, "user", [{"functionResponse": {}}, {"text": "User hints: hurry"}])
    items = chat.read(hook(1, "BeforeAgent", prompt=OURS), user(1, OURS), hint)
    items += chat.read(line(3, "gemini", "Hi."), hook(4, "AfterAgent", prompt=OURS))

    assert replies(items) == [("7", "Hi.", Ending.DONE)]


def test_a_prompt_that_was_ended_by_its_line_is_not_begun_by_its_late_hook(chat: Chat) -> None:
    chat.read(*unhooked("person", OURS))

    assert chat.read(hook(4.5, "BeforeAgent", prompt=OURS)) == []
    # The person sends it once more.
    assert chat.read(hook(8, "BeforeAgent", prompt=OURS)) == [Submitted(text=OURS)]


def test_the_tags_that_are_remembered_are_the_newest(chat: Chat) -> None:
    for number in range(600):
        chat.prompt(1, f"[from human #{number}]\nhello\n[end #{number}]")

    assert len(chat.reader._state.accepted) == 512


def test_a_line_that_was_answered_begins_no_turn_later(chat: Chat) -> None:
    chat.prompt(1, "one")
    items = chat.read(user(2, "two"), line(3, "gemini", "To two."))

    assert items[0] == Submitted(text="two")
    assert chat.read(hook(4, "BeforeAgent", prompt="two")) == []


def test_a_cancelled_request_is_interrupted(chat: Chat) -> None:
    assert chat.read(line(0, "info", CANCELLED)) == []
    chat.prompt(1, "one")

    assert chat.read(line(2, "info", "Another word.")) == []
    assert chat.read(line(2, "info", CANCELLED)) == [Ended(how=Ending.INTERRUPTED)]


def test_whoever_tells_the_end_has_ended_the_turn(chat: Chat) -> None:
    chat.prompt(1, "one")
    chat.read(user(2, "two"), line(2, "error", "broken"))
    chat.reader.end()

    assert chat.reader.due() is None
    assert chat.read(line(3, "gemini", "Late.")) == []
    chat.prompt(4, "three")
    assert chat.read(hook(5, "BeforeAgent", prompt="two")) == [Submitted(text="two")]


def test_a_hook_that_was_written_late_has_its_own_time(chat: Chat) -> None:
    late = HookEvent(at=999.0, hook=hook(1, "BeforeAgent", prompt="one").hook)

    assert texts(chat.read(late, line(2, "gemini", "Hi."))) == ["one", "Hi."]


def test_an_end_is_that_of_its_own_prompt(chat: Chat) -> None:
    chat.read(hook(1, "BeforeAgent", prompt="one"), hook(2, "BeforeAgent", prompt="two"))

    assert texts(chat.read(hook(3, "AfterAgent", prompt="two"))) == ["two"]


def test_a_prompt_that_was_cancelled_before_its_line_was_a_prompt(chat: Chat) -> None:
    chat.read(hook(1, "BeforeAgent", prompt="one"))
    items = chat.read(line(2, "info", CANCELLED))

    assert texts(items) == ["one"]
    assert items[-1] == Ended(how=Ending.INTERRUPTED)


def test_a_line_before_its_hook_begins_no_turn_where_none_is_open(chat: Chat) -> None:
    chat.read(hook(0, "SessionStart"), user(1, "one"))

    assert chat.read(hook(2, "BeforeAgent", prompt="one")) == [Submitted(text="one")]


def test_a_line_as_old_as_the_run_belongs_to_it(chat: Chat) -> None:
    assert texts(chat.read(user(0, "one"))) == ["one"]


def test_an_error_before_the_line_of_a_prompt_is_none_of_it(chat: Chat) -> None:
    chat.read(hook(1, "BeforeAgent", prompt="one"), line(2, "error", "once more"))
    chat.read(user(3, "one"))

    assert chat.reader.due() is None


# --- failures ------------------------------------------------------------------------------------


def test_a_failed_turn_waits_a_second_for_its_hook(chat: Chat) -> None:
    chat.prompt(1, "one")
    assert chat.read(line(2, "error", "it broke"), now=100.0) == []
    assert chat.reader.due() == 101.0
    assert chat.read(now=100.9) == []

    assert chat.read(now=101.0) == [Ended(how=Ending.FAILED, text="it broke")]
    assert chat.reader.due() is None


def test_the_hook_of_a_failed_turn_says_why_at_once(chat: Chat) -> None:
    chat.prompt(1, "one")
    chat.read(line(2, "error", "it broke"))

    assert chat.read(hook(3, "AfterAgent", prompt="one")) == [Ended(how=Ending.FAILED, text="it broke")]
    assert chat.read(now=200.0) == []


def test_an_answer_after_an_error_is_an_answer(chat: Chat) -> None:
    chat.prompt(1, "one")
    chat.read(line(2, "error", "once more"))
    chat.read(line(3, "gemini", "Hi."))

    assert chat.reader.due() is None
    assert chat.read(hook(4, "AfterAgent", prompt="one")) == [Ended()]


def test_an_error_of_the_turn_before_is_none_of_the_next(chat: Chat) -> None:
    chat.prompt(1, "one")
    chat.read(line(2, "error", "it broke"))
    chat.prompt(3, "two")

    assert chat.reader.due() is None
    assert chat.read(hook(4, "AfterAgent", prompt="two")) == [Ended()]


def test_an_error_while_nothing_runs_is_nothing(chat: Chat) -> None:
    chat.read(line(2, "error", "cannot update"))

    assert chat.reader.due() is None


@pytest.mark.parametrize(
    ("fault", "how", "until"),
    [
        ("RESOURCE_EXHAUSTED", Ending.LIMITED, None),
        ("Quota exceeded, try again in 2h.", Ending.LIMITED, "2h"),
        ("a Rate Limit", Ending.LIMITED, None),
        ("Usage limit reached", Ending.LIMITED, None),
        ('{"code":429}', Ending.LIMITED, None),
        ('{"code":500}', Ending.FAILED, None),
    ],
)
def test_a_limit_is_told_from_another_failure(chat: Chat, fault: str, how: Ending, until: str | None) -> None:
    chat.prompt(1, "one")
    chat.read(line(2, "error", fault))

    assert chat.read(hook(3, "AfterAgent")) == [Ended(how=how, text=fault, until=until)]


# --- without hooks -------------------------------------------------------------------------------


def test_without_hooks_the_lines_are_the_prompts(chat: Chat) -> None:
    assert chat.read(user(1, "<session_context>here"), user(1, "")) == []
    assert chat.read(user(2, "one")) == [Submitted(text="one"), Prompted(id="r2", text="one")]
    assert texts(chat.read(line(3, "gemini", "Hi."))) == ["Hi."]


def test_without_hooks_only_the_screen_shows_the_end(chat: Chat) -> None:
    chat.read(user(1, "one"), line(2, "gemini", "Hi."))
    assert chat.reader.lacks_ends
    chat.prompt(3, "two")

    assert not chat.reader.lacks_ends


def test_with_hooks_a_line_alone_is_no_prompt(chat: Chat) -> None:
    chat.read(hook(0, "SessionStart"))

    assert chat.read(user(1, "an old message, recorded again")) == []
    assert chat.read(line(2, "gemini", "an old answer")) == []


def test_an_old_answer_that_is_recorded_again_is_none(chat: Chat) -> None:
    chat.prompt(1, "one")

    assert chat.read(line(2, "gemini", [{"text": "an old answer"}], tokens={"input": 1})) == []


# --- sessions and tools --------------------------------------------------------------------------


def test_a_start_is_told() -> None:
    chat = Chat(path="")

    assert chat.read(hook(1, "SessionStart")) == [Switched(session="s", path=CHAT), Started()]
    assert chat.read(hook(2, "SessionStart")) == [Started()]


def test_the_first_chat_is_read_from_the_start_of_the_run_another_from_its_hook() -> None:
    chat = Chat(path="")
    chat.read(hook(5, "BeforeAgent", prompt="one"))
    assert texts(chat.read(user(1, "one"))) == ["one"]
    chat.read(hook(9, "SessionStart", path="/chats/two.jsonl"))
    chat.read(hook(10, "BeforeAgent", path="/chats/two.jsonl", prompt="two"))

    assert chat.read(user(8, "two"), line(8, "gemini", "history")) == []
    assert texts(chat.read(user(9, "two"), line(10, "gemini", "new"))) == ["two", "new"]


def test_another_chat_ends_what_was_open(chat: Chat) -> None:
    chat.prompt(1, "one")
    chat.read(hook(2, "BeforeAgent", prompt="two"), line(2, "error", "it broke"))
    chat.read(hook(3, "SessionStart", path="/chats/two.jsonl"))

    assert chat.reader.due() is None
    assert chat.read(hook(4, "AfterAgent", path="/chats/two.jsonl", prompt="two")) == []


def test_a_tool_that_returns_is_the_first_of_its_name_that_was_begun(chat: Chat) -> None:
    chat.prompt(1, "one")
    begun = chat.read(*(hook(at, "BeforeTool", tool_name="shell") for at in (2, 3)))
    ended = chat.read(*(hook(at, "AfterTool", tool_name="shell") for at in (4, 5, 6)))

    names = [f"shell@{stamp(at)}" for at in (2, 3, 6)]
    assert begun == [Using(id=name) for name in names[:2]]
    assert ended == [Returned(id=name) for name in names]


def test_a_tool_of_a_turn_that_is_over_is_forgotten(chat: Chat) -> None:
    chat.prompt(1, "one")
    chat.read(hook(2, "BeforeTool", tool_name="shell"), hook(3, "AfterAgent", prompt="one"))

    assert chat.read(hook(4, "AfterTool", tool_name="shell")) == [Returned(id=f"shell@{stamp(4)}")]


@pytest.mark.parametrize(
    ("details", "tool"),
    [({"toolName": "shell", "title": "t"}, "shell"), ({"title": "t"}, "t"), ({}, ""), (7, "")],
)
def test_a_permission_is_asked_for_a_tool(chat: Chat, details: Any, tool: str) -> None:
    raw = msgspec.Raw(json.dumps(details).encode())
    asked = chat.read(hook(1, "Notification", notification_type="ToolPermission", details=raw))

    assert asked == [Asked(tool=tool, arguments=json.dumps(details))]
    assert chat.read(hook(1, "Notification", notification_type="Other", details=raw)) == []


@pytest.mark.parametrize(
    ("details", "command"),
    [
        ({"type": "exec", "title": "t", "command": "pytest -q", "rootCommand": "pytest"}, "pytest -q"),
        ({"type": "edit", "title": "t", "command": "pytest -q"}, ""),
        ({"type": "exec", "command": ["pytest"]}, ""),
    ],
)
def test_only_a_confirmation_of_a_command_line_has_a_command(chat: Chat, details: Any, command: str) -> None:
    raw = msgspec.Raw(json.dumps(details).encode())
    (asked,) = chat.read(hook(1, "Notification", notification_type="ToolPermission", details=raw))

    assert isinstance(asked, Asked)
    assert asked.command == command


def test_a_model_of_gemini_has_the_window_that_its_cli_assumes(chat: Chat) -> None:
    chat.prompt(1, "one")
    items = chat.read(line(2, "gemini", "So.", tokens={"input": 1000}, model="gemini-3.8-flash"))

    assert [(one.usage.context, one.usage.window) for one in items if isinstance(one, Counted)] == [
        (1000, 1_048_576)
    ]


def test_an_answer_has_its_tokens_and_its_calls(chat: Chat) -> None:
    tokens = {"input": 1, "output": 20, "cached": 300, "thoughts": 4000, "tool": 50_000}
    calls = [
        {"id": "a", "name": "shell", "args": {"x": 1}, "status": "success"},
        {"id": "b", "name": "edit", "status": "cancelled"},
        {"id": "c", "name": "read", "status": "error"},
    ]
    chat.prompt(1, "one")
    items = chat.read(line(2, "gemini", "So.", tokens=tokens, model="m" * 200, toolCalls=calls))

    usage = Usage(input=50_001, output=4020, cache_read=300, reasoning=4000, model="m" * 128, context=54_021)
    assert items == [
        Counted(id="r2", usage=usage),
        Wrote(id="r2", text="So."),
        ToolCalled(id="a", tool="shell", arguments='{"x": 1}'),
        Returned(id="a"),
        ToolCalled(id="b", tool="edit", arguments="{}"),
        Returned(id="b", is_refused=True),
        ToolCalled(id="c", tool="read", arguments="{}"),
        Returned(id="c", ending="failed"),
    ]


# --- files ---------------------------------------------------------------------------------------


def with_files(text: str, *names: str) -> list[dict[str, str]]:
    """Return a prompt as Gemini CLI 0.61 writes it down when its text names files."""
    parts = [text, "\n--- Content from referenced files ---"]
    for name in names:
        parts += [f"\nContent from @{name}:\n", "SECRET"]
    return [{"text": part} for part in (*parts, "\n--- End of content ---")]


def test_a_file_that_a_prompt_has_named_is_told(chat: Chat) -> None:
    chat.read(hook(1, "BeforeAgent", prompt="see @a @b"))
    items = chat.read(line(1, "user", with_files("see @a @b", "a", "b")))

    assert texts(items) == ["see @a @b"]
    assert items[-1] == Attached(id="r1 files", path="a, b")


TYPED = "[from human #4]\nsee bob@a and @sub/../b\n[end #4]"
WRITTEN = "[from human #4]\nsee bob @a and @b\n[end #4]"


@pytest.mark.parametrize("is_line_first", [False, True])
def test_a_file_is_told_where_gemini_writes_down_other_words(chat: Chat, is_line_first: bool) -> None:
    taken = hook(1, "BeforeAgent", prompt=TYPED)
    written = line(1, "user", with_files(WRITTEN, "a", "b"))
    items = [
        item for one in ((written, taken) if is_line_first else (taken, written)) for item in chat.read(one)
    ]
    items += chat.read(line(2, "gemini", "ok"))

    kinds = [type(item).__name__ for item in items if isinstance(item, Prompted | Attached | Wrote)]
    assert kinds == ["Prompted", "Attached", "Wrote"]
    assert Attached(id="r1 files", path="a, b") in items


def test_files_of_a_prompt_belong_to_no_other(chat: Chat) -> None:
    chat.read(hook(1, "BeforeAgent", prompt="before"))
    chat.read(user(1, "before"))
    items = chat.read(line(2, "user", with_files(WRITTEN, "a")))

    kinds = [item for item in items if isinstance(item, Prompted | Attached)]
    assert kinds == [Prompted(id="r2", text=WRITTEN), Attached(id="r2 files", path="a")]
    assert chat.read(hook(3, "BeforeAgent", prompt=TYPED)) == []


def test_a_file_without_a_name_is_told_too(chat: Chat) -> None:
    items = chat.read(line(1, "user", with_files("see @a")))

    assert [item.path for item in items if isinstance(item, Attached)] == ["a file"]


def test_a_prompt_that_only_speaks_of_files_has_none(chat: Chat) -> None:
    items = chat.prompt(1, "x\n--- Content from referenced files ---\nContent from @a:\n")

    assert not [item for item in items if isinstance(item, Attached)]
