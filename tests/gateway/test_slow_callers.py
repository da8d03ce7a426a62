"""Callers that take their time: with a body, with reading, with an inbox."""

import asyncio
import json

from tests.gateway.raw import request
from tests.gateway.served import ServedRoom
from tests.waiting import wait_until


async def _begin(
    room: ServedRoom, path: str, token: str, body: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send the head of a request and keep its body back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", room.port)
    writer.write(request("POST", path, f"X-Auth-Token: {token}", f"Content-Length: {len(body)}"))
    await writer.drain()
    return reader, writer


async def _finish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> bytes:
    writer.write(body)
    answer = await reader.readuntil(b"\r\n")
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_token_that_dies_before_the_body_is_there_says_nothing(room: ServedRoom) -> None:
    claude = await room.join("claude")
    calls = {"/message": {"to": "all", "content": "from the grave"}, "/register": {"agentId": "claude"}}
    bodies = {path: json.dumps(body).encode() for path, body in calls.items()}
    begun = {path: await _begin(room, path, claude.token, body) for path, body in bodies.items()}
    # The gateway has looked at both tokens once it has answered somebody who came later.
    await room.get("/agents")
    await room.call("DELETE", "/agents/claude", token=room.token)
    await room.join("claude")

    for path, (reader, writer) in begun.items():
        assert b" 401 " in await _finish(reader, writer, bodies[path]), path
    assert await room.history() == []


async def test_who_asks_without_reading_is_not_answered_for_ever(room: ServedRoom) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", room.port)
    transport = writer.transport
    requests = request("GET", "/health") * 500
    before = -1

    def is_stuck() -> bool:
        nonlocal before
        was, before = before, room.gateway.metrics.requests[200]
        writer.write(requests)
        return was == before and transport.get_write_buffer_size() > len(requests)

    await wait_until(is_stuck, 60.0, what="the gateway to stop answering")
    await room.get("/agents")
    transport.abort()


async def test_next_of_an_inbox_never_passes_what_is_held_back(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.post("/agents/claude/pause")
    held = await room.send("claude", "later")
    await room.post("/agents/claude/interrupt")
    page = await room.get("/inbox/claude", claude.token)
    await room.post("/agents/claude/resume")
    after = (await room.get(f"/inbox/claude?after={page['next']}", claude.token))["items"]

    assert [item["kind"] for item in page["items"]] == ["control", "control"]
    assert held in [item["id"] for item in after]


async def test_an_inbox_is_not_woken_by_what_is_for_others(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.join("codex")
    polling = asyncio.ensure_future(room.get("/inbox/claude?wait=30", claude.token))
    await wait_until(lambda: claude.id in room.gateway.broadcast._news, what="the poll")
    waiting = room.gateway.broadcast.next_news(claude.id)  # type: ignore[arg-type]  # it is its id
    await room.send("codex", "not for claude")

    assert not waiting.done()
    await room.send("claude", "for claude")
    assert [item["text"] for item in (await polling)["items"]] == ["for claude"]


async def test_an_agent_that_said_good_bye_is_back_with_its_next_word(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.post("/state", {"state": "offline"}, claude.token)
    await room.post("/state", {"state": "busy"}, claude.token)

    assert (await room.agent("claude"))["state"] == "busy"
