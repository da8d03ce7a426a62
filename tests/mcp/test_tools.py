"""What each tool asks of the room, with a door that only notes it."""

from typing import Any

import msgspec
import pytest

from csp.errors import BadInput
from csp.mcp import tools
from csp.mcp.tools import BY_NAME, TOOLS, read_arguments, shown_to
from csp.protocol.enums import ParticipantKind, Role
from tests.mcp.doors import Call, Door, me


async def run(name: str, door: Door, **given: Any) -> Any:
    tool = BY_NAME[name]
    return await tool.run(Call(door).asked, read_arguments(tool, given))


#: What a tool is given; the one call that it makes: method, path, body or query.
ONE_CALL: list[tuple[str, dict[str, Any], tuple[str, str, dict[str, Any]]]] = [
    (
        "send_message",
        {"to": "bob", "text": "hi"},
        ("POST", "/message", {"to": "bob", "content": "hi", "id": "key-of-the-call"}),
    ),
    (
        "send_message",
        {"to": "bob", "text": "hi", "reply_to": "m-1", "urgent": True, "thread": "x", "id": "own"},
        (
            *("POST", "/message"),
            {"to": "bob", "content": "hi", "replyTo": "m-1", "urgent": True, "thread": "x", "id": "own"},
        ),
    ),
    (
        "send_message",
        {"to": "bob", "text": "hi", "turn": "t-1"},
        ("POST", "/agent-output", {"content": "hi", "turn": "t-1", "id": "key-of-the-call"}),
    ),
    (
        "send_message",
        {"to": "bob", "text": "hi", "turn": "t-1", "id": "own"},
        ("POST", "/agent-output", {"content": "hi", "turn": "t-1", "id": "own"}),
    ),
    (
        "broadcast",
        {"text": "hi", "thread": "x"},
        ("POST", "/message", {"to": "all", "content": "hi", "thread": "x", "id": "key-of-the-call"}),
    ),
    (
        "broadcast",
        {"text": "hi", "id": "own"},
        ("POST", "/message", {"to": "all", "content": "hi", "id": "own"}),
    ),
    ("set_status", {"state": "busy", "detail": "d"}, ("POST", "/state", {"state": "busy", "detail": "d"})),
    ("working", {"note": "n"}, ("POST", "/turn/working", {"note": "n"})),
    (
        "handoff",
        {"to": "bob", "task": "t", "session": "s-1"},
        ("POST", "/turn/handoff", {"to": "bob", "task": "t", "session": "s-1"}),
    ),
    (
        "vote",
        {"label": "b", "reason": "r", "session": "s-1"},
        ("POST", "/turn/vote", {"label": "B", "reason": "r", "session": "s-1"}),
    ),
    (
        "board_add",
        {"text": "t", "session": "s-1", "tags": ["a"], "id": "own"},
        ("POST", "/board", {"text": "t", "session": "s-1", "tags": ["a"], "id": "own"}),
    ),
    ("board_add", {"text": "t"}, ("POST", "/board", {"text": "t", "id": "key-of-the-call"})),
    (
        "board_search",
        {"query": "q", "session": "s-1", "author": "bob", "kind": "reply", "limit": 3, "rerank": True},
        (
            *("GET", "/board/search"),
            {"q": "q", "session": "s-1", "author": "bob", "kind": "reply", "limit": 3, "rerank": 1},
        ),
    ),
    ("board_search", {"query": "q"}, ("GET", "/board/search", {"q": "q", "limit": 10})),
    ("mode_status", {"thread": "x"}, ("GET", "/mode", {"thread": "x"})),
    ("mode_status", {"session": "s-1"}, ("GET", "/sessions/s-1", {})),
    ("stop", {}, ("POST", "/stop", {"id": "key-of-the-call"})),
    ("stop", {"thread": "x"}, ("POST", "/stop", {"thread": "x", "id": "key-of-the-call"})),
    ("stop", {"all": True}, ("POST", "/stop", {"id": "key-of-the-call", "all": True})),
]


@pytest.mark.parametrize(("name", "given", "asked"), ONE_CALL)
async def test_a_tool_asks_the_room_once_for_what_it_was_given(
    name: str, given: dict[str, Any], asked: tuple[str, str, dict[str, Any]]
) -> None:
    door = Door()

    assert await run(name, door, **given) == {"success": True}
    assert door.asked == [asked]


MODE: dict[str, Any] = {
    "mode": "debate",
    "topic": "t",
    "agents": ["a", "b"],
    "rounds": 2,
    "steps": 3,
    "first": "a",
    "synth": "b",
    "ballot": True,
    "respect_final": False,
    "thread": "x",
}


@pytest.mark.parametrize(("own_thread", "path"), [(False, "/mode"), (True, "/sessions")])
async def test_every_term_of_a_mode_is_passed_on(own_thread: bool, path: str) -> None:
    door = Door()
    await run("start_mode", door, **MODE, own_thread=own_thread)

    assert door.asked == [("POST", path, MODE | {"id": "key-of-the-call"})]


WISH: dict[str, Any] = {
    "objective": "o",
    "models": ["a"],
    "session_id": "s",
    "user_input": "u",
    "mode": "orchestrator",
    "max_steps": 4,
    "parallel": 2,
    "timeout_per_step": 5.0,
    "cost_limit_usd": 1.0,
    "summarization_threshold": 9,
}


async def test_every_term_of_a_collaboration_is_passed_on() -> None:
    door = Door().tell("/collaborations", {"handle": "s-1"})

    assert await run("chatter_collaborate", door, **WISH, wait=0) == {"handle": "s-1"}
    assert door.asked == [("POST", "/collaborations", WISH | {"id": "key-of-the-call"})]


# --- waiting for a collaboration -------------------------------------------------------------------


class Time:
    """A clock that a poll moves on by as long as it was asked to wait."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(tools, "time", made)
    return made


def seen(status: str, step: int, *progress: str) -> dict[str, Any]:
    return {"status": status, "step": step, "max_steps": 3, "progress": list(progress)}


class Slow(Door):
    """A room in which a collaboration never ends; each poll takes as long as it may."""

    def __init__(self, clock: Time) -> None:
        super().__init__()
        self.clock = clock
        self.tell("/collaborations", {"handle": "s-1"})

    def _answer(self, method: str, path: str, given: dict[str, Any]) -> Any:
        self.clock.now += given.get("wait", 0.0)
        answer = super()._answer(method, path, given)
        return seen("running", 1) if path == "/collaborations/s-1" else answer


async def test_a_collaboration_is_waited_for_half_an_hour_in_polls_of_20_seconds(clock: Time) -> None:
    door = Slow(clock)
    view = await run("chatter_collaborate", door, objective="o", models=["a"])
    polls = [given["wait"] for _, path, given in door.asked if path == "/collaborations/s-1"]

    assert view["status"] == "running"
    assert polls == [20.0] * 90
    assert clock.now == 100.0 + 1800


async def test_the_last_poll_lasts_as_long_as_there_is_time(clock: Time) -> None:
    door = Slow(clock)
    await run("chatter_collaborate", door, objective="o", models=["a"], wait=50.5)

    assert [given["wait"] for _, path, given in door.asked[1:]] == [20.0, 20.0, 10.5]


async def test_each_step_is_told_once_and_all_of_them_are_returned(clock: Time) -> None:
    door = Door().tell("/collaborations", {"handle": "s-1"})
    door.tell(
        "/collaborations/s-1",
        [seen("running", 1, "one"), seen("running", 2), seen("ended", 3, "two", "three")],
    )
    tool, call = BY_NAME["chatter_collaborate"], Call(door)
    view = await tool.run(call.asked, read_arguments(tool, {"objective": "o", "models": ["a"]}))

    assert [given["after"] for _, _, given in door.asked[1:]] == [0, 1, 1]
    assert call.told == [(1, 3, "one"), (2, 3, "step 2 of 3"), (3, 3, "two; three")]
    assert (view["status"], view["progress"]) == ("ended", ["one", "two", "three"])


async def test_a_poll_returns_at_once_by_default_and_stops_what_it_is_told_to(clock: Time) -> None:
    door = Door().tell("/collaborations/s-1", [seen("running", 1), seen("ended", 1)])

    assert (await run("chatter_poll", door, handle="s-1"))["status"] == "running"
    assert door.asked == [("GET", "/collaborations/s-1", {"after": 0, "wait": 0.0})]
    door.asked.clear()
    assert (await run("chatter_poll", door, handle="s-1", stop=True))["status"] == "ended"
    assert door.asked[0] == ("POST", "/collaborations/s-1/stop", {})


# --- reading ---------------------------------------------------------------------------------------


def item(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"m-{number}", "seq": number, "kind": "message", "from": "bob", "text": "t", **fields}


async def test_an_inbox_is_read_up_to_the_limit_and_what_was_read_is_confirmed() -> None:
    door = Door().tell("/me", me(ParticipantKind.MCP))
    door.tell("/inbox/ada", {"items": [item(1, turn="t-1", urgent=False), item(2), item(3)]})
    read = await run("read_messages", door, limit=2, after=7, wait=5)

    assert door.asked[1:] == [
        ("GET", "/inbox/ada", {"after": 7, "wait": 5}),
        ("POST", "/delivery", {"id": "m-1", "state": "confirmed"}),
        ("POST", "/delivery", {"id": "m-2", "state": "confirmed"}),
    ]
    assert read == {"items": [item(1, turn="t-1"), item(2)]}


@pytest.mark.parametrize("who", [me(ParticipantKind.CLI), me(ParticipantKind.MCP, Role.ROOM)])
async def test_who_has_no_inbox_to_read_reads_the_history(who: dict[str, Any]) -> None:
    said = {"seq": 4, "id": "m-4", "type": "agent_response", "sender": "bob", "target": "all", "text": "t"}
    more = {"replyTo": "m-3", "session_id": "s-1", "turn": "t-1", "ts": 1.5, "crc": "x", "recipients": ["a"]}
    door = Door().tell("/me", who).tell("/history", {"items": [said | more], "next": 3})
    read = await run("read_messages", door, limit=5, after=1, wait=2)
    types = "human_message,agent_call,agent_response"

    assert door.asked[1:] == [("GET", "/history", {"limit": 5, "after": 1, "types": types, "wait": 2})]
    assert read["next"] == 3
    assert read["items"] == [
        {
            "seq": 4,
            "id": "m-4",
            "type": "agent_response",
            "from": "bob",
            "to": "all",
            "text": "t",
            "reply_to": "m-3",
            "session": "s-1",
            "turn": "t-1",
            "ts": 1.5,
        }
    ]


async def test_every_condition_on_the_log_is_passed_on() -> None:
    door = Door().tell("/history", {"items": [], "next": None})
    await run("query_log", door, limit=3, search="w", agent="bob", session="s-1", after=1, before=9)
    expected = {"limit": 3, "q": "w", "agent": "bob", "session": "s-1", "after": 1, "before": 9}

    assert door.asked == [("GET", "/history", expected)]


async def test_agents_are_listed_with_who_asks() -> None:
    agent = {
        "id": "bob",
        "name": "Bob",
        "kind": "cli",
        "role": "agent",
        "online": True,
        "state": "idle",
        "detail": "",
        "queued": 2,
    }
    door = Door().tell("/agents", [agent | {"epoch": 1}])

    assert await run("list_agents", door) == {"you": "ada", "agents": [agent]}


# --- the table -------------------------------------------------------------------------------------


def test_only_tools_that_look_are_called_reading() -> None:
    reading = {tool.name for tool in TOOLS if tool.is_reading}

    assert reading == {"list_agents", "board_search", "query_log", "mode_status"}


def test_an_agent_is_not_shown_what_only_an_orchestrator_may_do() -> None:
    leading = {tool.name for tool in shown_to(Role.ORCHESTRATOR)} - {
        tool.name for tool in shown_to(Role.AGENT)
    }

    assert leading == {"start_mode", "stop", "chatter_collaborate", "chatter_poll"}
    assert shown_to(Role.ROOM) == list(TOOLS)


#: The limits of each argument, just kept and just passed.
LIMITS: list[tuple[str, dict[str, Any], str, list[Any], list[Any]]] = [
    ("read_messages", {}, "limit", [1, 200], [0, 201]),
    ("read_messages", {}, "wait", [0, 60], [-1, 60.5]),
    ("query_log", {}, "limit", [1, 200], [0, 201]),
    ("query_log", {}, "before", [0, 2**53], [-1, 2**53 + 1]),
    ("board_search", {"query": "q"}, "limit", [1, 100], [0, 101]),
    ("board_search", {"query": "q"}, "kind", ["note", "reply", "summary"], ["other"]),
    ("board_add", {"text": "t"}, "tags", [["a"] * 16, []], [["a"] * 17, [""], ["x" * 65]]),
    ("handoff", {"to": "bob"}, "task", ["t" * 500], ["", "t" * 501]),
    ("vote", {}, "label", ["A", "zz"], ["", "ABC", "1", "A\n"]),
    ("working", {}, "note", ["n" * 2000], ["n" * 2001]),
    ("start_mode", {"mode": "debate"}, "rounds", [1, 1000], [0, 1001]),
    ("chatter_collaborate", {}, "wait", [0, 1800], [-1, 1801]),
    ("chatter_collaborate", {}, "timeout_per_step", [0.1, 1800], [0, 1801]),
    ("chatter_collaborate", {}, "parallel", [1, 100], [0, 101]),
    ("chatter_collaborate", {}, "max_steps", [1, 1000], [0, 1001]),
    ("chatter_collaborate", {}, "cost_limit_usd", [0.01], [0]),
    ("chatter_collaborate", {}, "summarization_threshold", [2], [1]),
    ("chatter_poll", {"handle": "s-1"}, "wait", [0, 1800], [-1, 1801]),
]


@pytest.mark.parametrize(("name", "given", "field", "good", "bad"), LIMITS)
def test_an_argument_is_taken_within_its_limits_alone(
    name: str, given: dict[str, Any], field: str, good: list[Any], bad: list[Any]
) -> None:
    tool = BY_NAME[name]
    for value in good:
        assert getattr(read_arguments(tool, given | {field: value}), field) == value
    for value in bad:
        with pytest.raises(BadInput, match=field):
            read_arguments(tool, given | {field: value})


def test_what_may_be_left_out_has_the_usual_value() -> None:
    given: dict[str, dict[str, Any]] = {
        "read_messages": {},
        "query_log": {},
        "board_search": {"query": "q"},
        "chatter_poll": {"handle": "s-1"},
        "chatter_collaborate": {},
        "send_message": {"to": "a", "text": "t"},
    }
    found = {name: msgspec.to_builtins(read_arguments(BY_NAME[name], one)) for name, one in given.items()}

    assert (found["read_messages"]["limit"], found["read_messages"]["wait"]) == (20, 0)
    assert found["query_log"]["limit"] == 20
    assert (found["board_search"]["limit"], found["board_search"]["rerank"]) == (10, False)
    assert found["chatter_poll"] == {"handle": "s-1", "wait": 0, "stop": False}
    assert found["chatter_collaborate"]["wait"] == 1800
    assert found["send_message"]["urgent"] is False
