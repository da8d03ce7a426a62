"""One WebSocket by itself: what an operation may do, what a loss leaves behind."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from csp.errors import BadInput, Broken, Forbidden, StorageFull, TooLarge, Unauthenticated
from csp.gateway import websocket as sockets_module
from csp.gateway.auth import Caller
from csp.gateway.websocket import SocketSession, serve_socket
from csp.protocol.enums import HUMAN, MAX_BODY_BYTES, AgentId, Role
from csp.protocol.screen_frames import MAX_LIVE_BYTES
from tests.gateway.served import ServedRoom
from tests.gateway.test_broadcast import FakePipe, settle, texts
from tests.waiting import wait_until


def connection(room: ServedRoom) -> SocketSession:
    """Return the only connection of a room."""
    (found,) = room.gateway.sockets
    assert isinstance(found, SocketSession)
    return found


async def operate(room: ServedRoom, op: str, **fields: Any) -> object:
    return await connection(room)._run_op(op, json.dumps({"op": op, "ref": 1, **fields}).encode())


async def test_an_operation_that_comes_after_its_token_died_is_refused(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = await room.join("claude")
    await room.connect(claude.token)
    monkeypatch.setattr(SocketSession, "drop_if_stale", lambda self: None)
    await operate(room, "message", to="all", content="before")
    await room.call("DELETE", "/agents/claude")

    with pytest.raises(Unauthenticated):
        await operate(room, "message", to="all", content="after")
    assert [
        item["text"] for item in await room.history("?types=agent_call,agent_response,human_message")
    ] == ["before"]


async def test_a_long_reply_is_decided_before_what_comes_after_it(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    long = "a `\n" * 3000
    await socket.send({"op": "output", "ref": 1, "content": long})
    await socket.send({"op": "output", "ref": 2, "content": "after"})
    await wait_until(lambda: len(socket.answers) == 2, what="both answers")

    said = [item["text"] for item in await room.history("?types=agent_response")]
    assert said == [long, "after"]


async def test_a_long_frame_that_is_no_reply_is_answered_as_a_short_one(room: ServedRoom) -> None:
    socket = await room.connect(room.token)
    await socket.send({"op": "nothing", "ref": 1, "content": "x" * 5000})
    await socket.send("x" * 5000)
    await wait_until(lambda: len(socket.answers) == 2, what="both answers")

    assert [answer["status"] for answer in socket.answers] == [400, 400]


async def test_a_connection_that_ends_leaves_nothing_behind(room: ServedRoom) -> None:
    claude = await room.join("claude")
    sockets = [await room.connect(claude.token), await room.connect()]
    await sockets[1].ask("watch", screen="claude")
    gateway, agent = room.gateway, AgentId(claude.id)
    before = (
        gateway.presence._sockets[agent],
        len(gateway._pushes[agent]),
        len(gateway.broadcast.watchers),
    )
    for socket in sockets:
        await socket.close()
    await wait_until(lambda: not gateway.sockets)

    assert before == (1, 1, 2)
    assert gateway.presence._sockets[agent] == 0
    assert not gateway._pushes[agent] and not gateway.broadcast.watchers
    assert not gateway.screen_watch._feeds


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


# --- without a network ---------------------------------------------------------------------------

ROOM = Caller(HUMAN, Role.ROOM)


def message(data: Any, kind: WSMsgType = WSMsgType.TEXT) -> SimpleNamespace:
    return SimpleNamespace(type=kind, data=data)


def talking(room: ServedRoom, *messages: SimpleNamespace) -> tuple[SocketSession, FakePipe]:
    """Return a connection over which these messages come before it ends."""

    class Peer:
        async def __aiter__(self) -> AsyncIterator[SimpleNamespace]:
            for one in messages:
                yield one

    pipe, peer = FakePipe(), Peer()
    return SocketSession(room.gateway, ROOM, peer, pipe), pipe  # type: ignore[arg-type]  # both have what is used


async def test_a_socket_is_kept_alive_and_counted_while_it_is_served(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []
    counts: list[int] = []

    class Response:
        def __init__(self, **options: Any) -> None:
            made.append(options)

        async def prepare(self, request: object) -> None:
            counts.append(len(room.gateway.sockets))

    async def run(self: SocketSession, after: int | None) -> None:
        counts.extend([len(room.gateway.sockets), after or 0])
        raise ConnectionResetError

    monkeypatch.setattr(web, "WebSocketResponse", Response)
    monkeypatch.setattr(sockets_module, "Pipe", lambda request: FakePipe())
    monkeypatch.setattr(SocketSession, "run", run)
    request: Any = None
    with pytest.raises(ConnectionResetError):
        await serve_socket(room.gateway, ROOM, request, 7)

    assert (counts, len(room.gateway.sockets)) == ([0, 1, 7], 0)
    assert made == [
        {"protocols": ("csp",), "compress": False, "max_msg_size": MAX_BODY_BYTES, "heartbeat": 30.0}
    ]


async def test_only_so_many_operations_are_under_way_at_once(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sockets_module.MAX_OPS_IN_FLIGHT == 512
    monkeypatch.setattr(sockets_module, "MAX_OPS_IN_FLIGHT", 2)
    begun: list[bytes] = []
    may_end = asyncio.Event()

    async def operate(data: bytes) -> None:
        begun.append(data)
        await may_end.wait()

    one, _ = talking(room, *[message(str(number)) for number in range(5)])
    monkeypatch.setattr(one, "_operate", operate)
    reading = asyncio.ensure_future(one._read())
    await settle()
    early = len(begun)
    may_end.set()
    await reading
    await settle()

    assert (early, begun, one._ops) == (2, [b"0", b"1", b"2", b"3", b"4"], set())


async def test_a_frame_that_is_not_text_is_refused_and_the_next_is_taken(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bytes] = []

    async def operate(data: bytes) -> None:
        taken.append(data)

    one, pipe = talking(room, message(b"\0", WSMsgType.BINARY), message("half \ud800"))
    monkeypatch.setattr(one, "_operate", operate)
    await one._read()
    await settle()
    (answer,) = [json.loads(text) for text in texts(pipe)]

    assert (answer["ref"], answer["status"]) == (None, 400)
    assert taken == [b"half ?"]


@pytest.mark.parametrize(
    ("error", "is_counted"), [(StorageFull("full", "wait"), True), (Forbidden("no", "wait"), False)]
)
async def test_a_failure_is_answered_with_its_status_and_our_own_is_counted(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, error: Broken | Forbidden, is_counted: bool
) -> None:
    one, pipe = talking(room)

    async def run_op(name: str, data: bytes) -> None:
        raise error

    monkeypatch.setattr(one, "_run_op", run_op)
    await one._operate(b'{"op":"message","ref":7}')
    await one._operate(b"nonsense")
    first, second = [json.loads(text) for text in texts(pipe)]

    assert first == {"ref": 7, "error": error.message, "hint": "wait", "status": error.status}
    assert (second["ref"], second["status"]) == (None, 400)
    assert room.gateway.metrics.requests[error.status] == is_counted


async def test_a_loss_ends_what_is_under_way(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    one, pipe = talking(room, message("{}"))
    left: list[object] = []

    async def operate(data: bytes) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(one, "_operate", operate)
    monkeypatch.setattr(room.gateway.screen_watch, "leave", left.append)
    one._catch_up = catch_up = asyncio.ensure_future(asyncio.sleep(3600))
    running = asyncio.ensure_future(one.run(None))
    await running
    (operation,) = one._ops or [None]
    await settle()

    assert operation is None or operation.cancelled()
    assert (catch_up.cancelled(), left, room.gateway.broadcast.watchers) == (True, [one._feed], {})
    assert pipe.written == []


async def test_watching_anew_ends_what_was_watched_before(room: ServedRoom) -> None:
    one, _ = talking(room)
    one._watch(None)
    live = list(room.gateway.broadcast.watchers)
    one._watch(0)
    past, catch_up = list(room.gateway.broadcast.watchers), one._catch_up
    one._watch(None)
    await settle()

    assert (live, past) == ([one._watcher], [])
    assert catch_up is not None and catch_up.cancelled() and one._catch_up is None
    one._unwatch()
    assert not room.gateway.broadcast.watchers
