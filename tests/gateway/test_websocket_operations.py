"""What a participant does over its WebSocket."""

import json

import aiohttp
import pytest

from tests.gateway.served import ServedRoom
from tests.waiting import wait_until


@pytest.mark.parametrize("ref", [7, 0, -1, "seven", "", 2**53, 10**30])
async def test_an_answer_carries_the_ref_of_its_question(room: ServedRoom, ref: object) -> None:
    socket = await room.connect()
    await socket.send({"op": "message", "ref": ref, "to": "all", "content": "hello"})

    answer = await socket.answer_to(ref)

    assert answer == {"ref": ref, "ok": True, "success": True, "id": "m-1", "seq": 1, "recipients": []}


async def test_an_operation_without_a_ref_is_answered_too(room: ServedRoom) -> None:
    socket = await room.connect()
    await socket.send({"op": "message", "to": "all", "content": "hello"})

    assert (await socket.answer_to(None))["ok"] is True


async def test_every_operation_does_what_its_route_does(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    socket = await room.connect(claude.token)
    asked = await room.send("claude", "what?", codex.token)
    control = (await room.post("/agents/claude/interrupt"))["id"]

    sent = await socket.ask("message", to="codex", content="hello", thread="aside", id="mine")
    typed = await socket.ask("delivery", id=asked, state="typed")
    output = await socket.ask("output", content="that", replyTo=asked)
    working = await socket.ask("working", note="a little longer")
    state = await socket.ask("state", state="limited", until=2e9)
    done = await socket.ask("control_done", id=control)

    assert (sent["id"], sent["recipients"]) == ("mine", ["codex"])
    assert [answer["ok"] for answer in (typed, output, working, state, done)] == [True] * 5
    assert output["recipients"] == ["codex"]
    assert working["extended"] is False
    assert await room.states(asked) == {"claude": "confirmed"}
    assert await room.states(control) == {"claude": "confirmed"}
    assert ((await room.agent("claude"))["state"], (await room.agent("claude"))["until"]) == ("limited", 2e9)


async def test_an_operation_brings_back_whoever_had_said_goodbye(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    seen = []
    for op, fields in (("state", {"state": "offline"}), ("working", {}), ("state", {"state": "offline"})):
        await socket.ask(op, **fields)
        seen.append((await room.agent("claude"))["state"])
    await socket.ask("state", state="busy")
    seen.append((await room.agent("claude"))["state"])

    assert seen == ["offline", "idle", "offline", "busy"]


@pytest.mark.parametrize(
    ("frame", "word"),
    [
        ({"op": "dance", "ref": 1}, "dance"),
        ({"ref": 1}, "op"),
        ({"op": None, "ref": 1}, "op"),
        ({"op": "message", "ref": 1}, "to"),
        ({"op": "message", "ref": 1, "to": "nobody", "content": "x"}, "nobody"),
        ({"op": "message", "ref": 1, "to": "human", "content": 7}, "content"),
        ({"op": "delivery", "ref": 1, "id": "m-9", "state": "typed"}, "m-9"),
        ({"op": "watch", "ref": 1, "after": -1}, "after"),
        ({"op": "watch", "ref": 1, "after": "x"}, "after"),
        ({"op": "message", "ref": [], "to": "human", "content": "x"}, "ref"),
        ("not json", "JSON"),
        ("[]", "object"),
        ("null", "object"),
        ("", "JSON"),
        ("[" * 100_000, "object"),
        ('{"op": "working", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        ('{"op": "working", "ref": NaN}', "JSON"),
        ('{"op": "\\ud800"}', "JSON"),
    ],
)
async def test_a_bad_operation_is_answered_with_a_reason(room: ServedRoom, frame: object, word: str) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    await socket.send(frame)
    await wait_until(lambda: socket.answers)

    (answer,) = socket.answers
    assert word in answer["error"]
    assert isinstance(answer["hint"], str) and "ok" not in answer
    assert (await socket.ask("working"))["ok"] is True


async def test_a_binary_frame_is_answered_with_a_reason(room: ServedRoom) -> None:
    socket = await room.connect()
    await socket.opened.send_bytes(b'{"op": "working", "ref": 1}')

    answer = await socket.answer_to(None)

    assert "binary" in answer["error"]
    assert (await socket.ask("working"))["ok"] is True


async def test_a_frame_over_the_limit_ends_the_connection(room: ServedRoom) -> None:
    socket = await room.connect()
    await socket.send({"op": "message", "to": "all", "content": "x" * 2_000_000})

    assert await socket.until_closed() == 1009
    assert await room.history() == []


async def test_a_text_over_the_limit_is_refused(room: ServedRoom) -> None:
    socket = await room.connect()

    answer = await socket.ask("message", to="all", content="é" * 200_000)

    assert "bytes" in answer["error"]
    assert await room.history() == []


async def test_a_thousand_operations_at_once_are_done_in_their_order(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    frames = [{"op": "message", "ref": n, "to": "human", "content": f"text {n}"} for n in range(1000)]
    for frame in frames:
        await socket.opened.send_str(json.dumps(frame))
    await wait_until(lambda: len(socket.answers) == 1000, 60)

    assert [answer["ref"] for answer in socket.answers] == list(range(1000))
    assert [answer["seq"] for answer in socket.answers] == list(range(2, 1002))
    texts = [item["text"] for item in await room.history("?after=0&limit=1000")]
    assert texts == [f"text {n}" for n in range(1000)]


async def test_unwatch_ends_the_events_but_not_the_deliveries(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    await socket.ask("unwatch")
    await room.send("claude", "one")
    await wait_until(lambda: len(socket.delivers) == 1)
    quiet = list(socket.events)

    await socket.ask("watch", after=1)
    await socket.until_seq(2)
    await room.send("claude", "two")
    await socket.until_seq(3)

    assert quiet == []
    assert socket.texts == ["one", "two"]


async def test_watch_can_start_anywhere_again_and_again(room: ServedRoom) -> None:
    socket = await room.connect()
    for number in range(5):
        await room.send("all", f"text {number}")
    await socket.until_seq(5)
    await socket.ask("watch", after=0)
    await wait_until(lambda: len(socket.seqs) == 10)
    await socket.ask("watch", after=3)
    await wait_until(lambda: len(socket.seqs) == 12)
    await room.send("all", "the end")
    await socket.until_seq(6)

    assert socket.seqs == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 4, 5, 6]


async def test_a_websocket_needs_a_token(room: ServedRoom) -> None:
    for headers in ({}, {"X-Auth-Token": "wrong"}):
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await room.http.ws_connect(room.url + "/ws", headers=headers)

        assert caught.value.status == 401
