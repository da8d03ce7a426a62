"""One WebSocket by itself: what an operation may do, what a loss leaves behind."""

import json
import time
from typing import Any

import pytest

from csp.errors import BadInput, Forbidden, TooLarge, Unauthenticated
from csp.gateway import sockets as sockets_module
from csp.gateway.sockets import Connection
from csp.wire import MAX_LIVE_BYTES, AgentId
from tests.gateway.served import ServedRoom
from tests.waiting import wait_until


def connection(room: ServedRoom) -> Connection:
    """Return the only connection of a room."""
    (found,) = room.gateway.sockets
    assert isinstance(found, Connection)
    return found


async def operate(room: ServedRoom, op: str, **fields: Any) -> object:
    return await connection(room)._run_op(op, json.dumps({"op": op, "ref": 1, **fields}).encode())


async def test_an_operation_that_comes_after_its_token_died_is_refused(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = await room.join("claude")
    await room.connect(claude.token)
    monkeypatch.setattr(Connection, "drop_if_stale", lambda self: None)
    await operate(room, "message", to="all", content="before")
    await room.call("DELETE", "/agents/claude")

    with pytest.raises(Unauthenticated):
        await operate(room, "message", to="all", content="after")
    assert [
        item["text"] for item in await room.history("?types=agent_call,agent_response,human_message")
    ] == ["before"]


async def test_a_connection_that_ends_leaves_nothing_behind(room: ServedRoom) -> None:
    claude = await room.join("claude")
    sockets = [await room.connect(claude.token), await room.connect()]
    await sockets[1].ask("watch", screen="claude")
    gateway, agent = room.gateway, AgentId(claude.id)
    before = (
        gateway.presence._sockets[agent],
        len(gateway._outboxes[agent]),
        len(gateway.hub.watchers),
    )
    for socket in sockets:
        await socket.close()
    await wait_until(lambda: not gateway.sockets)

    assert before == (1, 1, 2)
    assert gateway.presence._sockets[agent] == 0
    assert not gateway._outboxes[agent] and not gateway.hub.watchers
    assert not gateway.screens._feeds


async def test_a_screen_may_have_so_many_bytes_and_no_more(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.connect(claude.token)
    frame = len(json.dumps({"op": "live", "ref": 1, "more": ""}))

    await operate(room, "live", more="x" * (MAX_LIVE_BYTES - frame))
    with pytest.raises(TooLarge):
        await operate(room, "live", more="x" * (MAX_LIVE_BYTES - frame + 1))


async def test_an_operation_that_there_is_not_is_refused_with_those_there_are(room: ServedRoom) -> None:
    await room.connect()
    with pytest.raises(BadInput, match="unknown op 'dance'") as error:
        await operate(room, "dance")

    assert error.value.hint.endswith("watch, unwatch")


async def test_one_connection_too_many_is_refused(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets_module, "MAX_SOCKETS", 2)
    for _ in range(2):
        await room.connect()
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    headers["Sec-WebSocket-Key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
    answer = await room.call("GET", "/ws", headers=headers)

    assert (answer.status, answer.data["error"]) == (429, "there are 2 connections")


async def test_a_sign_of_life_brings_an_agent_back_over_its_websocket(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    await room.post("/state", {"state": "offline"}, claude.token)
    was_online = (await room.agent("claude"))["online"]
    await socket.ask("message", to="all", content="I am here")

    assert (was_online, (await room.agent("claude"))["online"]) == (False, True)


@pytest.mark.parametrize("op", ["output", "delivery", "state", "working", "live", "control_done"])
async def test_a_page_sends_nothing_that_is_for_agents(room: ServedRoom, op: str) -> None:
    await room.connect(await room.enter())
    with pytest.raises(Forbidden, match=f"a page may not send '{op}'"):
        await operate(room, op)


async def test_catching_up_leaves_the_loop_to_a_room_at_work(room: ServedRoom) -> None:
    await room.connect()
    one, clock = connection(room), time.monotonic
    room.gateway.last_commit = clock()
    busy = one._pause_s(clock() - 0.01)
    room.gateway.last_commit = clock() - 1
    quiet = one._pause_s(clock() - 0.01)

    # Nine times as long as the reading took.
    assert 0.09 <= busy < 5
    assert quiet == 0
