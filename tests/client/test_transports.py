"""Which way a client takes to its gateway."""

import asyncio

import pytest

from csp.client import Client, Status, Transport
from csp.client import polling as polling_module
from csp.client import websocket_link as link_module
from csp.errors import Broken, Unauthenticated, Unreachable
from csp.protocol.enums import ReportedState
from tests.client.proxy import Proxy, Upgrades
from tests.client.reading import delivered, read_delivered, read_texts, read_until
from tests.rooms import Room
from tests.waiting import wait_until


@pytest.mark.parametrize("how", [Upgrades.ANSWER_502, Upgrades.HANG_UP, Upgrades.SWALLOW])
async def test_polling_takes_over_where_websocket_is_blocked(
    room: Room, proxy: Proxy, how: Upgrades, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "OPEN_S", 1.0)
    proxy.upgrades = how
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(proxy.url, alice.token) as client, Client(room.url, room.token, after=0) as other:
        await client.connected()
        await client.send("human", "from alice")
        await read_texts(other, "from alice")
        await other.send("alice", "to alice")
        items = await read_until(client, lambda items: "to alice" in delivered(items))

        assert client.status.transport is Transport.HTTP
        assert delivered(items) == ["to alice"]


async def test_a_client_told_to_use_websocket_never_polls(room: Room, proxy: Proxy) -> None:
    proxy.upgrades = Upgrades.ANSWER_502
    async with Client(proxy.url, room.token, transport="websocket") as client:
        await wait_until(lambda: proxy.asked > 1)

        assert "no WebSocket gets through" in client.status.why


async def test_a_client_goes_back_to_websocket_when_it_can(
    room: Room, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling_module, "FIRST_PROBE_S", 0.05)
    proxy.upgrades = Upgrades.ANSWER_502
    async with Client(proxy.url, room.token, after=0) as client:
        await client.send("all", "polled")
        first = await read_texts(client, "polled")
        assert client.status.transport is Transport.HTTP
        proxy.upgrades = Upgrades.PASS
        await wait_until(lambda: client.status.transport is Transport.WEBSOCKET)
        await client.send("all", "pushed")

        assert first + await read_texts(client, "pushed") == ["polled", "pushed"]


async def test_websocket_is_tried_first(room: Room) -> None:
    statuses: list[Status] = []
    async with Client(room.url, room.token, on_status=statuses.append) as client:
        await client.connected()

    assert statuses == [Status(transport=Transport.WEBSOCKET)]


async def test_a_loss_is_told_with_its_reason(room: Room, transport: Transport) -> None:
    statuses: list[Status] = []
    async with Client(room.url, room.token, transport=transport, on_status=statuses.append) as client:
        await client.connected()
        await asyncio.to_thread(room.restart)
        await wait_until(lambda: len(statuses) > 1 and client.status.is_connected)

    assert statuses[0] == statuses[-1] == Status(transport=transport)
    assert all(status.why and not status.is_connected for status in statuses[1:-1])


async def test_polled_deliveries_end_like_pushed_ones(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, alice.token, transport="http") as client:
        await client.connected()
        sent = await asyncio.to_thread(room.gateway.post, "/message", {"to": "alice", "content": "hello"})
        await read_delivered(client, "hello")
        await client.report(sent["id"], ReportedState.SUBMITTED)
    states = room.gateway.get(f"/messages/{sent['id']}")["recipients"]

    assert states["alice"]["state"] == "submitted"


async def test_a_held_message_is_polled_once_it_is_released(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling_module, "WAIT_S", 0.2)
    monkeypatch.setattr(polling_module, "SWEEP_S", 0.2)
    alice = await Client.register(room.url, room.token, "alice")
    bob = await Client.register(room.url, room.token, "bob")
    async with (
        Client(room.url, alice.token, transport="http") as a,
        Client(room.url, bob.token, transport="http") as b,
    ):
        asked = await a.send("bob", "1")
        await read_delivered(b, "1")
        for number in range(2, 9):
            # An answer proves that its question has arrived, so nobody answers what has not come in yet.
            speaker, hearer, name = (b, a, "alice") if number % 2 == 0 else (a, b, "bob")
            asked = await speaker.send(name, str(number), reply_to=asked.id)
            await read_delivered(hearer, str(number))
        held = await a.send("bob", "9", reply_to=asked.id)
        await a.send("bob", "10")
        first = await read_delivered(b, "10")
        await asyncio.to_thread(room.gateway.post, f"/messages/{held.id}/continue")

        assert first + await read_delivered(b, "9") == ["10", "9"]


async def test_what_concerns_others_is_not_looked_through_again(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling_module, "WAIT_S", 0.1)
    alice = await Client.register(room.url, room.token, "alice")
    bob = await Client.register(room.url, room.token, "bob")
    async with (
        Client(room.url, alice.token, after=0, transport="http") as client,
        Client(room.url, bob.token) as other,
    ):
        sent = await other.send("human", "not for alice")
        await wait_until(lambda: (client._inbox.last_seq or 0) >= sent.seq)
        await other.send("alice", "for alice")

        assert await read_texts(client, "for alice") == ["for alice"]


async def test_a_listener_that_fails_ends_the_client_aloud(room: Room) -> None:
    def fail(status: Status) -> None:
        raise ValueError("my own mistake")

    async with Client(room.url, room.token, on_status=fail) as client:
        with pytest.raises(Broken, match="my own mistake"):
            await client.send("all", "hello")


# --- the end of the way --------------------------------------------------------------------------


async def test_a_foreign_token_is_told_so(room: Room, transport: Transport) -> None:
    async with Client(room.url, "nonsense", transport=transport) as client:
        with pytest.raises(Unauthenticated, match="token is not valid"):
            await client.connected()
        with pytest.raises(Unauthenticated):
            await client.send("all", "hello")
        with pytest.raises(Unauthenticated):
            await anext(client)


async def test_a_token_that_dies_ends_the_client(room: Room, transport: Transport) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, alice.token, transport=transport) as client:
        await client.connected()
        await asyncio.to_thread(room.gateway.delete, "/agents/alice")
        with pytest.raises(Unauthenticated):
            await read_until(client, lambda items: False)
        with pytest.raises(Unauthenticated):
            await client.send("all", "hello")

        assert not client.status.is_connected


async def test_an_agent_comes_back_with_its_own_token(room: Room) -> None:
    first = await Client.register(room.url, room.token, "alice")
    again = await Client.register(room.url, first.token, "alice")

    assert (again.agent, again.token) == (first.agent, first.token)


async def test_a_client_gives_up_if_it_is_told_to(room: Room) -> None:
    await asyncio.to_thread(room.stop)
    async with Client(room.url, room.token, give_up_s=0.0) as client:
        with pytest.raises(Unreachable, match="no gateway answers"):
            await client.connected()
        with pytest.raises(Unreachable):
            await client.send("all", "hello")
