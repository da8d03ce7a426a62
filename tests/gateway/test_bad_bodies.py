"""Bodies that are not what the routes want: always 4xx with a reason, never our failure."""

import json
from typing import Any

import pytest

from csp.protocol.enums import MAX_BODY_BYTES
from tests.gateway import raw
from tests.gateway.served import ServedRoom

DEEP = b"[" * 100_000 + b"]" * 100_000
POSTS = [
    "/register",
    "/message",
    "/agent-output",
    "/delivery",
    "/state",
    "/turn/working",
    "/mode",
    "/stop",
    "/history/prune",
    "/agents/claude/pause",
    "/messages/m-2/cancel",
]
NOT_AN_OBJECT = [
    b"not json",
    b"{",
    b'{"to": "claude", "content": "hello"} trailing',
    b"[]",
    b'["to", "content"]',
    b'"text"',
    b"null",
    b"true",
    b"17",
    b"NaN",
    b"-",
    b"\x00",
    b"\xff\xfe\xff",
    b"\xef\xbb\xbf{}",
    b"to=claude&content=hello",
    DEEP,
    b'{"a":' * 100_000,
]
#: A good body of each route, with wrong values for every one of its fields.
WRONG_VALUES: dict[str, dict[str, list[Any]]] = {
    "/register": {
        "agentId": [None, 1, True, [], {}, "", "x" * 129, "!!!", "human", "orchestrator"],
        "kind": [None, 1, "robot", []],
        "role": [None, 1, "room", "none", "king"],
        "capabilities": [1, "all", True, {"a": []}, {"a": {}}, [1], [None], ["x"] * 65],
    },
    "/message": {
        "to": [None, 1, True, [], ["claude"], {}, "", "x" * 129],
        "content": [None, 1, False, [], {}, ""],
        "thread": [1, "", "a b", "x" * 65, [], "a\n", "../x"],
        "replyTo": [1, "", "a b", "x" * 129, {}, "a\n"],
        "urgent": [None, 1, "yes", []],
        "id": [1, "", "a b", "x" * 129, [], "m-1", "e-1", "s-1", "t-1", "é"],
    },
    "/agent-output": {
        "content": [None, 1, "", []],
        "turn": [1, "", "a b"],
        "replyTo": [1, "", {}],
        "handoff": [1, "codex", {}, {"to": "codex"}, {"to": "codex", "task": ""}, {"to": "", "task": "x"}],
        "final": [None, 1, "true"],
        "usage": [1, {"input": -1}, {"input": "1"}, {"output": 1.5}, {"cost_usd": -1}, {"model": 1}],
        "thread": [1, "a b"],
        "id": [1, "m-7"],
    },
    "/delivery": {
        "id": [None, 1, "", "a b", []],
        "state": [None, 1, "queued", "withdrawn", "expired", "done"],
        "reason": [None, 1, "x" * 2001],
        "agent": [1, "", []],
    },
    "/state": {
        "state": [None, 1, "paused", "benched", "happy"],
        "detail": [None, 1, "x" * 2001],
        "until": ["soon", -1, 1e12, []],
    },
    "/turn/working": {"note": [None, 1, [], "x" * 2001]},
    "/mode": {"mode": [None, 1, "debat", "x" * 65], "topic": [1, "", []]},
    "/history/prune": {"before": [None, "1", 0, -1, 1.5, 2**60, 10**30]},
    "/agents/claude/approve": {"choice": ["1", 0, 100, 1.5, []]},
}
GOOD: dict[str, dict[str, Any]] = {
    "/register": {"agentId": "codex"},
    "/message": {"to": "claude", "content": "hello"},
    "/agent-output": {"content": "done"},
    "/delivery": {"id": "m-2", "state": "held", "reason": "busy"},
    "/state": {"state": "busy"},
    "/turn/working": {},
    "/mode": {"mode": "freeform"},
    "/history/prune": {"before": 1},
    "/agents/claude/approve": {},
}


async def _prepare(room: ServedRoom) -> str:
    """Fill the room; return the claude's token."""
    claude = await room.join("claude")
    assert await room.send("claude", "hello") == "m-2"
    return claude.token


@pytest.mark.parametrize("path", POSTS)
async def test_a_body_that_is_no_object_is_refused(room: ServedRoom, path: str) -> None:
    await _prepare(room)
    seq = room.gateway.writer.room.seq

    for body in NOT_AN_OBJECT:
        answer = await room.call("POST", path, data=body)

        assert answer.is_refusal, (body[:40], answer)
    assert room.gateway.writer.room.seq == seq


@pytest.mark.parametrize("path", ["/register", "/message", "/agent-output", "/delivery", "/state", "/mode"])
async def test_an_empty_body_is_refused_where_something_is_needed(room: ServedRoom, path: str) -> None:
    await _prepare(room)

    answers = [await room.call("POST", path, data=body) for body in (b"", b"{}", b" ")]

    assert [answer.is_refusal for answer in answers] == [True] * 3


@pytest.mark.parametrize("path", ["/stop", "/turn/working", "/agents/claude/pause", "/messages/m-2/cancel"])
async def test_an_empty_body_is_enough_where_nothing_is_needed(room: ServedRoom, path: str) -> None:
    await _prepare(room)

    answer = await room.call("POST", path)

    assert answer.status == 200


@pytest.mark.parametrize("path", WRONG_VALUES)
async def test_every_field_of_a_wrong_kind_is_refused(room: ServedRoom, path: str) -> None:
    token = await _prepare(room)
    speaker = token if path in ("/delivery", "/state", "/agent-output") else room.token
    good = await room.call("POST", path, GOOD[path], token=speaker)

    assert good.status < 300, good.raw
    for field, values in WRONG_VALUES[path].items():
        for value in values:
            answer = await room.call("POST", path, GOOD[path] | {field: value}, token=speaker)
            assert answer.is_refusal, (field, value, answer)


@pytest.mark.parametrize("path", GOOD)
async def test_depth_in_a_field_nobody_reads_is_refused(room: ServedRoom, path: str) -> None:
    await _prepare(room)
    body = json.dumps(GOOD[path])[:-1].encode() + (b"," if GOOD[path] else b"") + b'"extra":' + DEEP + b"}"

    answer = await room.call("POST", path, data=body)

    assert answer.status == 400
    assert answer.is_refusal


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'"\\udc00\\ud800"', b'"\xff"', b'"\xed\xa0\x80"', b'"a\nb"', b'"\\x"', b'"\x00"']
)
async def test_text_that_is_no_unicode_is_refused(room: ServedRoom, text: bytes) -> None:
    await _prepare(room)

    for body in (
        b'{"to": "claude", "content": %b}' % text,
        b'{"to": %b, "content": "x"}' % text,
        b'{"to": "claude", "content": "x", %b: 1}' % text,
    ):
        answer = await room.call("POST", "/message", data=body)
        assert answer.is_refusal or (answer.status == 200 and body.endswith(b": 1}")), (body, answer)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000, b"-0x1", b"01"])
async def test_a_number_that_is_none_is_refused(room: ServedRoom, number: bytes) -> None:
    await _prepare(room)

    for path, body in {
        "/register": b'{"agentId": "x", "capabilities": {"size": %b}}',
        "/history/prune": b'{"before": %b}',
        "/state": b'{"state": "limited", "until": %b}',
        "/agent-output": b'{"content": "x", "usage": {"cost_usd": %b}}',
    }.items():
        answer = await room.call("POST", path, data=body % number)
        assert answer.is_refusal, (path, answer)


async def test_a_huge_number_comes_back_as_it_went_in(room: ServedRoom) -> None:
    size = 10**4299

    await room.join("claude", capabilities={"size": size})
    view = await room.agent("claude")
    await room.restart()

    assert view["capabilities"] == {"size": size}
    assert (await room.agent("claude"))["capabilities"] == {"size": size}


@pytest.mark.parametrize("text", ["x" * 300 * 1024, "é" * 150 * 1024, "\x00" * (256 * 1024 + 1)])
@pytest.mark.parametrize("path", ["/message", "/agent-output"])
async def test_300_kib_are_too_much(room: ServedRoom, path: str, text: str) -> None:
    await _prepare(room)

    answer = await room.call("POST", path, {"to": "claude", "content": text})

    assert (answer.status, answer.is_refusal) == (413, True)
    assert "is over 262144 bytes" in answer.data["error"]


async def test_256_kib_of_any_text_are_delivered(room: ServedRoom) -> None:
    for text in ("x" * 256 * 1024, "é" * 128 * 1024, "\x00" * 256 * 1024, "😀" * 64 * 1024):
        claude = await room.join("claude")
        message = await room.send(claude.id, text)
        got = await room.get(f"/inbox/{claude.id}", claude.token)

        assert [(item["id"], item["text"]) for item in got["items"]] == [(message, text)]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_body_over_the_limit_is_413_on_any_route(room: ServedRoom, method: str) -> None:
    path = {"POST": "/message", "GET": "/agents", "DELETE": "/agents/x"}[method]
    body = b" " * (MAX_BODY_BYTES + 1)

    answer = await room.call(method, path, data=body)

    assert answer.status == 413
    assert answer.is_refusal


async def test_a_chunked_body_over_the_limit_is_413(room: ServedRoom) -> None:
    sent = raw.chunked("/message", [b" " * 65536] * 40, f"X-Auth-Token: {room.token}")
    answer = await raw.exchange(room.port, sent)

    assert answer.status == 413
    assert answer.is_refusal


async def test_a_chunked_body_is_read(room: ServedRoom) -> None:
    await _prepare(room)
    chunks = [b'{"to": "cla', b'ude", "con', b'tent": "hello"}']

    answer = await raw.exchange(room.port, raw.chunked("/message", chunks, f"X-Auth-Token: {room.token}"))

    assert answer.data["recipients"] == ["claude"]


async def test_an_unknown_recipient_is_404_with_the_nearest_name(room: ServedRoom) -> None:
    await _prepare(room)

    answer = await room.call("POST", "/message", {"to": "cluade", "content": "hello"})

    assert answer.status == 404
    assert answer.data == {"error": "unknown recipient 'cluade'", "hint": "did you mean 'claude'?"}
