"""A client that knows several gateways of its room leaves a lost or frozen one, and repeats nothing."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import pytest

from csp.client import Client
from csp.errors import BadInput, Unreachable
from csp.http_client import GatewayClient, field, objects, page
from csp.protocol.enums import ReportedState
from tests.client.proxy import Proxy
from tests.client.reading import read_delivered, read_texts
from tests.client.test_resume import say
from tests.forks import run
from tests.rooms import Room
from tests.waiting import wait_until

#: What a busy machine adds to the three seconds is not the client's.
LOST_S: Final = 60.0


@pytest.fixture
async def ways(room: Room) -> AsyncIterator[tuple[Proxy, Proxy]]:
    """Two ways to the room, each of which can be disturbed."""
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(Proxy(room.port)) for _ in range(2)]
        yield first, second


def both(ways: tuple[Proxy, Proxy]) -> str:
    return f"{ways[0].url},{ways[1].url}"


async def moved(client: Client, to: Proxy, before: int = 0) -> None:
    """Wait until the client is connected over a proxy."""
    await wait_until(lambda: to.asked > before and client.status.is_connected, LOST_S)


def disturb(way: Proxy, how: str) -> None:
    """Freeze the way, so that nothing arrives and nothing fails; or cut it, and refuse the next attempts."""
    if how == "frozen":
        way.hold()
    else:
        way.is_open = False
        way.cut()


@pytest.mark.parametrize("how", ["frozen", "cut"])
async def test_nothing_is_lost_or_doubled_when_a_gateway_is_left(
    room: Room, ways: tuple[Proxy, Proxy], how: str
) -> None:
    async with (
        Client(both(ways), room.token, after=0) as reader,
        Client(both(ways), room.token) as writer,
    ):
        await say(writer, "one")
        assert await read_texts(reader, "one") == ["one"]
        sending = asyncio.create_task(say(writer, *(f"{number}" for number in range(100)), "two"))
        disturb(ways[0], how)
        await sending
        read = await read_texts(reader, "two")

        assert (reader.status.is_connected, ways[1].asked) == (True, 2)
    assert read == [*(f"{number}" for number in range(100)), "two"]


async def test_an_operation_whose_answer_is_held_back_is_executed_once(
    room: Room, ways: tuple[Proxy, Proxy]
) -> None:
    async with Client(both(ways), room.token) as writer:
        await writer.connected()
        ways[0].hold(to_gateway=False)
        sent = await writer.send("all", "once")

    assert [event.id for event in room.journal()] == [sent.id]


async def test_a_delivery_arrives_once_over_two_gateways(room: Room, ways: tuple[Proxy, Proxy]) -> None:
    joined = await Client.register(both(ways), room.token, "ada")
    async with (
        Client(both(ways), joined.token) as agent,
        Client(room.url, room.token) as writer,
    ):
        await say(writer, "before", to="ada")
        first = await read_delivered(agent, "before")
        disturb(ways[0], "frozen")
        await moved(agent, ways[1])
        await say(writer, "after", to="ada")
        second = await read_delivered(agent, "after")
        sent = page(room.gateway, types="human_message")
        await agent.report(str(sent[0]["id"]), ReportedState.TYPED)

    assert (first, second) == (["before"], ["after"])


async def test_a_frozen_gateway_is_left_within_three_seconds(room: Room, ways: tuple[Proxy, Proxy]) -> None:
    async with Client(both(ways), room.token) as writer:
        await writer.connected()
        best_s = 1000.0
        # A machine that is busy for a moment makes one try late, but not all of them.
        for turn in range(6):
            here, there = ways[turn % 2], ways[(turn + 1) % 2]
            before = there.asked
            disturb(here, "frozen")
            began = time.monotonic()
            await writer.send("all", f"{turn}")
            best_s = min(best_s, time.monotonic() - began)
            await moved(writer, there, before)
            here.cut()
            here.flow()
            if best_s < 3.0:
                break

    assert best_s < 3.0


async def test_a_client_returns_to_a_gateway_that_is_back(room: Room, ways: tuple[Proxy, Proxy]) -> None:
    async with Client(both(ways), room.token, after=0) as client:
        await client.connected()
        disturb(ways[0], "cut")
        await moved(client, ways[1])
        ways[0].is_open = True
        before = ways[0].asked
        disturb(ways[1], "cut")
        await moved(client, ways[0], before)
        await say(client, "back")

        assert await read_texts(client, "back") == ["back"]


async def test_every_gateway_of_a_list_must_be_an_address(room: Room) -> None:
    with pytest.raises(BadInput, match=r"expected http://host:port, got 'localhost:1'"):
        Client(f"{room.url},localhost:1", room.token)


# --- single calls ----------------------------------------------------------------------------------


async def test_a_single_call_goes_to_a_gateway_that_answers(room: Room, ways: tuple[Proxy, Proxy]) -> None:
    for how in ("frozen", "cut"):
        disturb(ways[0], how)
        # Neither knows which of them answers.
        reader, writer = GatewayClient(both(ways), room.token), GatewayClient(both(ways), room.token)
        agents = await asyncio.to_thread(reader.get, "/agents")
        await asyncio.to_thread(writer.post, "/message", {"to": "all", "content": how})

        assert (objects(agents), reader.url, writer.url) == ([], ways[1].url, ways[1].url)
    assert room.journal_texts() == ["frozen", "cut"]


async def test_a_gateway_that_freezes_during_a_call_is_left(room: Room, ways: tuple[Proxy, Proxy]) -> None:
    gateway = GatewayClient(both(ways), room.token)
    asking = asyncio.create_task(asyncio.to_thread(gateway.get, "/history", after=0, wait=30))
    await wait_until(lambda: ways[0].passed > 0)
    disturb(ways[0], "frozen")
    await asyncio.to_thread(room.gateway.post, "/message", {"to": "all", "content": "seen elsewhere"})
    answer = await asking

    assert [item["text"] for item in field(answer, "items", list)] == ["seen elsewhere"]
    assert gateway.url == ways[1].url


async def test_a_long_poll_at_a_live_gateway_is_not_cut_short(room: Room, ways: tuple[Proxy, Proxy]) -> None:
    gateway = GatewayClient(both(ways), room.token)
    asking = asyncio.create_task(asyncio.to_thread(gateway.get, "/history", after=0, wait=30))
    # Each check on the gateway is a connection of its own.
    await wait_until(lambda: ways[0].passed > 2)
    await asyncio.to_thread(room.gateway.post, "/message", {"to": "all", "content": "at last"})
    answer = await asking

    assert [item["text"] for item in field(answer, "items", list)] == ["at last"]
    assert (gateway.url, ways[1].passed) == (ways[0].url, 0)


async def test_a_call_without_an_answer_is_repeated_once_elsewhere(
    room: Room, ways: tuple[Proxy, Proxy]
) -> None:
    joined = await Client.register(room.url, room.token, "ada")
    gateway = GatewayClient(both(ways), room.token)
    ways[0].answers_only = b"GET /health"
    answer = await asyncio.to_thread(gateway.post_once, "/message", {"to": "ada", "content": "once"})

    assert (gateway.url, joined.agent) == (ways[1].url, "ada")
    assert [event.id for event in room.journal()[1:]] == [field(answer, "id", str)]


async def test_a_call_without_an_id_is_not_repeated(room: Room, ways: tuple[Proxy, Proxy]) -> None:
    gateway = GatewayClient(both(ways), room.token)
    ways[0].answers_only = b"GET /health"
    with pytest.raises(Unreachable, match="closed the connection"):
        await asyncio.to_thread(gateway.post, "/message", {"to": "all", "content": "perhaps"})

    assert room.journal_texts() == ["perhaps"]


@pytest.mark.parametrize("how", ["frozen", "cut"])
async def test_a_command_uses_a_gateway_that_answers(room: Room, ways: tuple[Proxy, Proxy], how: str) -> None:
    disturb(ways[0], how)
    env = {**room.env, "CSP_GATEWAY_URL": both(ways), "CSP_AUTH_TOKEN": room.token}
    sent = await asyncio.to_thread(run, ["send", "all", "said once"], room.dir, env)
    shown = await asyncio.to_thread(run, ["status"], room.dir, env)
    link = await asyncio.to_thread(run, ["web", "--no-open"], room.dir, env)

    assert (sent.returncode, shown.returncode, link.returncode) == (0, 0, 0), sent.stderr
    assert room.journal_texts() == ["said once"]
    assert f"at {ways[1].url}:" in shown.stdout
    assert link.stdout.startswith(f"{ways[1].url}/#link=")
