"""Commands in agents' texts, over every way an agent can speak."""

from typing import Any

import pytest

from tests.gateway.served import Member, ServedRoom
from tests.waiting import wait_until


async def output(room: ServedRoom, member: Member, text: str, **fields: object) -> dict[str, Any]:
    said: dict[str, Any] = await room.post("/agent-output", {"content": text, **fields}, member.token)
    return said


async def test_commands_run_for_http_and_websocket_alike(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    socket, reader = await room.connect(claude.token), await room.connect(codex.token)
    await output(room, claude, "Hello.\n@send.codex over http")
    await socket.ask("output", content="Hello.\n@send.codex over websocket")
    await wait_until(lambda: len(reader.delivers) == 2)

    assert [deliver["text"] for deliver in reader.delivers] == ["over http", "over websocket"]
    assert {deliver["from"] for deliver in reader.delivers} == {"claude"}


async def test_a_message_runs_no_commands(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    await room.send("human", "@send.codex hi", claude.token)
    await room.post("/agent-output", {"content": "@send.codex hi"})

    assert await room.inbox(codex) == []


async def test_the_same_output_again_runs_nothing_again(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    first = await output(room, claude, "@send.codex hi", id="mine")
    again = await output(room, claude, "@send.codex hi", id="mine")

    assert (first["id"], again) == ("mine", first)
    assert len(await room.inbox(codex)) == 1


async def test_noop_answers_without_a_post(room: ServedRoom) -> None:
    claude = await room.join("claude")
    asked = await room.send("claude", "thank you")
    said = [await output(room, claude, "NOOP", replyTo=asked, id="mine") for _ in range(2)]
    unnamed = await output(room, claude, "NOOP")

    assert [(answer["posted"], answer["id"], answer["recipients"]) for answer in said] == [
        (False, "mine", [])
    ] * 2
    assert (unnamed["posted"], unnamed["id"]) == (False, "")
    assert await room.states(asked) == {"claude": "confirmed"}
    assert [item["text"] for item in await room.history()] == ["thank you"]


async def test_what_is_typed_in_the_pane_stays_there_unless_it_is_shared(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    silent = await output(room, claude, "my secret", local=True, id="one")
    runs = [await output(room, claude, "my secret\n@send.codex hi", local=True, id="two") for _ in range(2)]
    await room.post("/agents/claude/share")
    shared = await output(room, claude, "no secret", local=True, id="three")

    assert [answer["posted"] for answer in (silent, *runs)] == [False] * 3
    assert runs[0] == runs[1]
    assert "posted" not in shared
    assert [item["text"] for item in await room.history()] == ["hi", "no secret"]
    assert len(await room.inbox(codex)) == 1
    assert b"my secret" not in (room.folder / "journal.jsonl").read_bytes()


async def test_activity_is_seen_by_watchers_but_not_in_the_history(room: ServedRoom) -> None:
    claude = await room.join("claude")
    watcher = await room.connect()
    asked = await room.send("claude", "question")
    said = await output(room, claude, "I look at it", replyTo=asked, activity=True)
    answer = await output(room, claude, "42", replyTo=asked)
    await watcher.until_seq(answer["seq"])

    assert [event["type"] for event in watcher.events if event.get("replyTo") == asked] == [
        "activity",
        "agent_response",
    ]
    assert [item["text"] for item in await room.history()] == ["question", "42"]
    assert [item["id"] for item in await room.history("?types=activity")] == [said["id"]]
    assert await room.states(asked) == {"claude": "confirmed"}


@pytest.mark.parametrize("ending", ["interrupted", "failed", "limited"])
async def test_a_turn_that_broke_off_is_told_apart(room: ServedRoom, ending: str) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    asked = await room.send("claude", "question", codex.token)
    await output(room, claude, "", replyTo=asked, ending=ending)
    (item,) = (await room.get("/inbox/codex", codex.token))["items"]

    assert (item["text"], item["ending"], item["replyTo"]) == ("", ending, asked)
    assert (await room.history())[-1]["ending"] == ending


async def test_a_turn_that_is_done_says_nothing_of_its_end(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await output(room, claude, "42", ending="done")

    assert "ending" not in (await room.history())[-1]


@pytest.mark.parametrize("body", [{"content": ""}, {"content": "", "ending": "done"}, {"ending": "failed"}])
async def test_only_a_turn_that_broke_off_may_be_empty(room: ServedRoom, body: object) -> None:
    claude = await room.join("claude")
    answer = await room.call("POST", "/agent-output", body, token=claude.token)

    assert (answer.status, answer.is_refusal) == (400, True)
    assert "content" in answer.data["error"]


# --- questions -----------------------------------------------------------------------------------


async def delivered(room: ServedRoom, member: Member) -> dict[str, Any]:
    """Return the first delivery of a member."""
    items = (await room.get(f"/inbox/{member.id}?wait=10", member.token))["items"]
    found: dict[str, Any] = items[0]
    return found


async def test_a_query_is_answered_with_what_concerns_the_one_who_asked(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    await room.send("all", "hello everybody")
    for member in (claude, codex):
        (message,) = await room.inbox(member)
        await room.post("/delivery", {"id": message, "state": "confirmed"}, member.token)
    await room.send("human", "a secret of codex", codex.token)
    await output(room, claude, "@query.log 5")
    told = await delivered(room, claude)

    assert (told["from"], told["kind"]) == ("system", "message")
    assert told["text"].startswith("[CSP: ") and len(told["text"]) <= 2000
    assert "human -> all: hello everybody" in told["text"]
    assert "secret" not in told["text"]
    assert await room.inbox(codex) == []


async def test_a_query_of_before_a_crash_is_answered_after_it(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = await room.join("claude")

    async def crash() -> None:
        """Answer nothing, as if the gateway had ended before."""

    monkeypatch.setattr(room.gateway, "answer_queries", crash)
    await output(room, claude, "@query.log")
    before = await room.inbox(claude)
    await room.restart()
    await room.gateway.answer_queries()
    await room.gateway.answer_queries()

    assert before == []
    assert len(await room.inbox(claude)) == 1


async def test_the_answer_goes_to_whoever_asked_first(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    asked = await room.send("claude", "what did the human say?", codex.token)
    await output(room, claude, "@query.log", replyTo=asked)
    told = await delivered(room, claude)
    await output(room, claude, "nothing", replyTo=told["id"])
    (item,) = (await room.get("/inbox/codex", codex.token))["items"]

    assert (item["text"], item["replyTo"]) == ("nothing", asked)
    assert await room.inbox(claude) == []


async def test_a_refused_command_is_a_notice_for_people_and_the_agent(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    await output(room, claude, "Hi.\n@send.cdoex please")

    for token, count in ((room.token, 1), (claude.token, 1), (codex.token, 0)):
        notices = await room.history("?types=system", token)
        assert len(notices) == count
        assert all("@send.cdoex was not run" in notice["text"] for notice in notices)
    assert await room.inbox(claude) == []


# --- dialogs -------------------------------------------------------------------------------------


async def test_a_dialog_is_shown_to_people_and_its_agent_alone(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    spy = await room.connect(codex.token, after=0)
    dialog = {"tool": "Bash", "arguments": "cat secrets", "choices": [{"number": 1, "label": "Yes"}]}
    body = {"state": "needs_approval", "detail": "Bash", "dialog": dialog}
    await room.post("/state", body, claude.token)
    seq = (await room.post("/message", {"to": "all", "content": "the end"}))["seq"]
    await spy.until_seq(seq)

    async def shown(token: str) -> object:
        return {view["id"]: view["dialog"] for view in await room.get("/agents", token)}["claude"]

    assert [await shown(token) for token in (room.token, claude.token, codex.token)] == [dialog, dialog, None]
    assert (await room.agent("claude"))["state"] == "needs_approval"
    assert "secrets" not in str(spy.events)
