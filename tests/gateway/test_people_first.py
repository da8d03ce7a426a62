"""No agent and no stranger keeps people from the room."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import WSServerHandshakeError

from csp.gateway.acceptor import HttpServer
from csp.gateway.connections import token_in
from csp.gateway.gateway import MAX_SOCKETS_OF_AGENT
from csp.room.caller_limits import Lane
from tests.gateway.processes import Process
from tests.gateway.raw import request
from tests.gateway.served import ServedRoom
from tests.waiting import wait_until

HALF = b"GET /health HTTP/1.1\r\nHost: local"
FEW_FILES = ("sh", "-c", 'ulimit -n 200; exec "$@"', "sh")


class Cramped(Process):
    """A gateway that may have 200 descriptors open."""

    prefix = FEW_FILES


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[Cramped]:
    with Cramped(tmp_path) as room:
        yield room


def count(room: ServedRoom, lane: Lane) -> int:
    assert isinstance(room.runner.server, HttpServer)
    return room.runner.server.guests.count(lane)


HalfOpen = Callable[..., Awaitable[asyncio.StreamReader]]


@pytest.fixture
async def half_open(room: ServedRoom) -> AsyncIterator[HalfOpen]:
    """Begin requests; their connections are closed with the test."""
    writers: list[asyncio.StreamWriter] = []

    async def begin(head: bytes = HALF) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", room.port)
        writers.append(writer)
        writer.write(head)
        return reader

    yield begin
    for writer in writers:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def test_half_open_requests_leave_people_their_descriptors(cramped: Cramped) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", cramped.port), 60))
            peer.sendall(HALF)
        health = cramped.gateway.get("/health")
        stopped = cramped.gateway.post("/stop", {"all": True})

    assert (health["status"], stopped["success"]) == ("ok", True)
    assert "Traceback" not in cramped.said()


async def test_who_does_not_finish_the_head_of_a_request_is_closed(
    room: ServedRoom, half_open: HalfOpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.gateway.connections.SWEEP_S", 0.01)
    monkeypatch.setattr("csp.gateway.connections.HEAD_S", 0.05)
    silent = await half_open(b"")
    slow = await half_open()
    second = await half_open(request("GET", "/health") + HALF)

    assert (await silent.read(), await slow.read()) == (b"", b"")
    assert (await second.read()).startswith(b"HTTP/1.1 200")
    assert (await room.get("/health"))["status"] == "ok"


async def test_the_oldest_connection_without_a_token_makes_room(
    room: ServedRoom, half_open: HalfOpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room.caller_limits.MAX_STRANGERS", 3)
    await room.restart()
    first = await half_open()
    await wait_until(lambda: count(room, Lane.STRANGERS) == 1)
    others = [await half_open() for _ in range(3)]

    assert await first.read() == b""
    assert count(room, Lane.STRANGERS) <= 3
    assert (await room.get("/agents")) == []
    assert len(others) == 3


async def test_work_ends_when_its_caller_hangs_up(room: ServedRoom) -> None:
    claude = await room.join("claude")
    head = request("GET", "/inbox/claude?wait=60", f"X-Auth-Token: {claude.token}")
    _, writer = await asyncio.open_connection("127.0.0.1", room.port)
    writer.write(head)
    await wait_until(lambda: claude.id in room.gateway.broadcast._news, what="the poll")
    (poll,) = [task for task in asyncio.all_tasks() if "_handle_request" in repr(task.get_coro())]
    writer.close()
    await writer.wait_closed()
    await wait_until(poll.done, what="the end of the poll")

    assert poll.cancelled()


async def test_what_changes_the_room_is_done_even_if_its_caller_hangs_up(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    settle = room.gateway.writer.settle

    async def slow_settle() -> None:
        begun.set()
        await go_on.wait()
        await settle()
        done.set()

    await room.join("claude")
    monkeypatch.setattr(room.gateway, "mark_silent_offline", slow_settle)
    body = b'{"agentId":"codex"}'
    _, writer = await asyncio.open_connection("127.0.0.1", room.port)
    writer.write(
        request("POST", "/register", f"X-Auth-Token: {room.token}", f"Content-Length: {len(body)}") + body
    )
    await begun.wait()
    people = count(room, Lane.PEOPLE)
    writer.close()
    await writer.wait_closed()
    await wait_until(lambda: count(room, Lane.PEOPLE) < people, what="the loss of the connection")
    go_on.set()
    await done.wait()
    await wait_until(lambda: "codex" in room.gateway.writer.room.participants, what="the participant")


async def test_an_agent_over_its_rate_is_429_while_people_are_answered(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room.caller_limits.BURST", 3.0)
    monkeypatch.setattr("csp.room.caller_limits.OPERATIONS_PER_S", 1e-6)
    claude = await room.join("claude")
    statuses = [(await room.call("GET", "/me", token=claude.token)).status for _ in range(3)]
    refused = await room.call("GET", "/me", token=claude.token)

    assert statuses == [200, 200, 200]
    assert (refused.status, refused.is_refusal, refused.headers["Retry-After"]) == (429, True, "1")
    assert (await room.call("GET", "/me")).status == 200


async def test_an_agent_has_only_so_many_websockets(room: ServedRoom) -> None:
    claude = await room.join("claude")
    for _ in range(MAX_SOCKETS_OF_AGENT):
        await room.connect(claude.token)
    with pytest.raises(WSServerHandshakeError) as caught:
        await room.connect(claude.token)
    person = await room.connect()

    assert caught.value.status == 429
    assert (await person.ask("unwatch"))["ok"] is True


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("X-Auth-Token: abc.1.def", "abc.1.def"),
        ("x-auth-token:abc", "abc"),
        ("Authorization: Bearer  abc", "abc"),
        ("authorization: bearer abc", "abc"),
        ("Authorization: Basic abc", ""),
        ("X-Other: X-Auth-Token: abc", ""),
        ("X-Auth-Token:", ""),
    ],
)
def test_the_token_of_a_head_is_seen_at_a_glance(header: str, token: str) -> None:
    assert token_in(request("GET", "/ws", header)) == token
