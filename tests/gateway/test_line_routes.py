"""A line that a person typed is read and done by the gateway."""

from typing import Any

import pytest

from tests.gateway.served import ServedRoom


async def _type(room: ServedRoom, line: str, **more: Any) -> dict[str, Any]:
    said: dict[str, Any] = await room.post("/line", {"line": line, **more})
    return said


async def _refused(room: ServedRoom, line: str) -> tuple[int, str]:
    answer = await room.call("POST", "/line", {"line": line})
    return answer.status, answer.data["error"]


async def _texts(room: ServedRoom, types: str = "human_message") -> list[tuple[str, str]]:
    items = (await room.get(f"/history?types={types}"))["items"]
    return [(item["target"], item["text"]) for item in items]


async def test_a_text_is_sent_to_whom_it_names_or_to_the_target(room: ServedRoom) -> None:
    await room.join("claude")
    await room.join("codex")

    first = await _type(room, "@Claude: hello", to="codex")
    await _type(room, " hi there ", to="codex")

    assert (first["kind"], first["recipients"]) == ("message", ["claude"])
    assert await _texts(room) == [("claude", "hello"), ("codex", "hi there")]


async def test_a_line_is_done_once_under_its_id(room: ServedRoom) -> None:
    await room.join("claude")
    first = await _type(room, "@claude once", id="mine")

    assert await _type(room, "@claude once", id="mine") == first
    assert await _texts(room) == [("claude", "once")]


async def test_a_line_may_come_over_the_websocket_as_well(room: ServedRoom) -> None:
    await room.join("claude")
    await room.post("/mode", {"mode": "autopilot", "topic": "x", "agents": ["claude"]})
    socket = await room.connect()

    await socket.ask("line", line="/end", id="mine")

    assert await _type(room, "/end", id="mine") == {"kind": "done"}
    assert (await room.get("/sessions"))["items"][0]["status"] == "ended"


async def test_what_an_agent_said_last_is_put_in(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.join("codex")
    for text in ("the old plan", "the new plan"):
        await room.post("/message", {"to": "human", "content": text}, token=claude.token)

    await _type(room, "@codex see {Claude.last} and {{nobody.last}}")

    assert (await _texts(room))[-1] == ("codex", "see the new plan and {nobody.last}")
    assert await _refused(room, "@codex {nobody.last}") == (404, "unknown agent in '{nobody.last}'")
    assert await _refused(room, "@codex {codex.last}") == (404, "codex has not sent a message yet")


async def test_a_long_message_cannot_be_quoted_many_times(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.post("/message", {"to": "human", "content": "x" * 250_000}, token=claude.token)

    answer = await room.call("POST", "/line", {"line": "@claude " + "{claude.last}" * 20_000})

    assert (answer.status, answer.data["error"]) == (
        413,
        "the text with what claude said is over 262144 bytes",
    )


async def test_a_mistyped_command_is_answered_with_the_one_to_type(room: ServedRoom) -> None:
    answer = await room.call("POST", "/line", {"line": "/hlep"})

    assert answer.data["hint"] == "did you mean '/help'?"


async def test_a_name_alone_is_a_target_if_it_is_known(room: ServedRoom) -> None:
    await room.join("claude")

    assert await _type(room, "@claude") == {"kind": "target", "to": "claude"}
    assert await _type(room, "@all") == {"kind": "target", "to": "all"}
    assert await _type(room, "  ") == {"kind": "empty"}
    assert await _refused(room, "@nobody") == (404, "unknown agent 'nobody'")


@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        ("/dance", 404, "unknown command /dance"),
        ("/hlep", 404, "unknown command /hlep"),
        ("/quit", 404, "/quit works only in the room's pane"),
        ("/deny", 404, "no dialog is open"),
        ("/interrupt", 400, "which agent?"),
        ("/approve claude x", 400, "expected a number, got 'x'"),
        ("/next now", 400, "unexpected argument 'now'"),
        ("/end", 409, "no session is running"),
        ("/mode debate --rounds x", 400, "--rounds: expected a whole number, got 'x'"),
        ("/mode dance now", 400, "unknown mode 'dance'"),
        ("!claude", 400, "nothing to send"),
    ],
)
async def test_what_cannot_be_done_is_refused(room: ServedRoom, line: str, status: int, error: str) -> None:
    await room.join("claude")

    assert await _refused(room, line) == (status, error)


async def test_several_are_one_target_and_get_one_message(room: ServedRoom) -> None:
    for name in ("claude", "codex", "gemini"):
        await room.join(name)

    sent = await _type(room, "@claude @codex both?")
    assert (sent["recipients"], await _texts(room)) == (["claude", "codex"], [("claude,codex", "both?")])
    assert await _type(room, "@codex,gemini") == {"kind": "target", "to": "codex,gemini"}
    assert (await _type(room, "you two", to="codex,gemini"))["recipients"] == ["codex", "gemini"]

    assert await _refused(room, "@claude @cody hi") == (404, "unknown recipient 'cody'")


async def test_what_was_hardly_meant_for_agents_is_sent_after_a_yes(room: ServedRoom) -> None:
    await room.join("claude")
    asked = await _type(room, "quit")

    assert asked == {"kind": "confirm", "question": "Send 'quit' to all? (type /quit)"}
    assert await _texts(room) == []
    assert (await _type(room, "quit", confirmed=True))["kind"] == "message"


async def test_a_mode_asks_for_its_topic_and_before_it_ends_another(room: ServedRoom) -> None:
    await room.join("claude")
    await room.join("codex")
    topic = {"kind": "ask_topic", "name": "debate", "question": "What is the topic?"}
    over = "Debate mode is running. Stop it and start the new one?"
    assert await _type(room, "/mode debate --rounds 2") == topic
    await _type(room, "/mode debate --rounds 2 tabs")

    assert await _type(room, "/mode autopilot x") == {
        "kind": "ask_replace",
        "name": "autopilot",
        "question": over,
    }
    assert [one["mode"] for one in (await room.get("/sessions"))["items"]] == ["debate"]
    assert await _type(room, "/mode autopilot x", confirmed=True) == {"kind": "done"}
    assert await _type(room, "/mode debate y --replace") == {"kind": "done"}
    assert [one["status"] for one in (await room.get("/sessions"))["items"]] == ["ended", "ended", "running"]


async def test_a_mode_is_begun_and_steered(room: ServedRoom) -> None:
    await room.join("claude")
    await room.join("codex")
    await _type(room, '/mode round_robin "tabs" --steps 4 --agents claude,codex')

    async def session() -> dict[str, Any]:
        found: dict[str, Any] = (await room.get("/sessions"))["items"][-1]
        return found

    begun = await session()
    await _type(room, "/extend 2")
    extended = await session()
    await _type(room, "/pause")
    paused = await session()
    await _type(room, "/resume")
    await _type(room, "/skip claude")
    await _type(room, "/next")
    await _type(room, "/end")

    assert (begun["mode"], begun["topic"], begun["maxRounds"]) == ("round_robin", "tabs", 4)
    assert (extended["maxRounds"], paused["status"]) == (6, "paused")
    assert (await session())["status"] == "ended"


async def test_the_word_stops_everything_and_is_kept(room: ServedRoom) -> None:
    await room.join("claude")
    await room.join("codex")
    for thread, agent in (("one", "claude"), ("two", "codex")):
        await room.post("/mode", {"mode": "autopilot", "topic": "x", "agents": [agent], "thread": thread})

    await _type(room, " ALL stop! ")

    sessions = (await room.get("/sessions"))["items"]
    assert [session["status"] for session in sessions] == ["ended", "ended"]
    assert await _texts(room) == [("all", "ALL stop!")]
    assert not any("no session is running" in text for _, text in await _texts(room, "system"))


async def test_who_looks_at_one_thread_stops_that_one(room: ServedRoom) -> None:
    await room.join("claude")
    await room.join("codex")
    for thread, agent in (("one", "claude"), ("two", "codex")):
        await room.post("/mode", {"mode": "autopilot", "topic": "x", "agents": [agent], "thread": thread})

    await _type(room, "/stop", thread="one")

    sessions = (await room.get("/sessions"))["items"]
    assert {session["thread"]: session["status"] for session in sessions} == {
        "one": "ended",
        "two": "running",
    }


async def test_a_button_of_an_agent_is_pressed(room: ServedRoom) -> None:
    await room.join("claude")

    assert await _type(room, "/pause @claude") == {"kind": "done"}
    assert [agent["state"] for agent in await room.get("/agents")] == ["paused"]


async def test_a_command_of_the_interface_is_returned_to_it(room: ServedRoom) -> None:
    assert await _type(room, "/search two words") == {
        "kind": "command",
        "name": "search",
        "rest": "two words",
    }


async def test_an_agent_may_not_type_lines(room: ServedRoom) -> None:
    claude = await room.join("claude")

    answer = await room.call("POST", "/line", {"line": "hello"}, token=claude.token)

    assert answer.status == 403
