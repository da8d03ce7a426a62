"""What a client says of its way to the gateway."""

import asyncio

import pytest

from csp.client import Client, Status
from csp.client import websocket_link as link_module
from csp.errors import Broken, Unauthenticated, Unreachable
from tests.client.proxy import Proxy, Upgrades
from tests.client.reading import read_texts, read_until
from tests.rooms import Room
from tests.waiting import wait_until


@pytest.mark.parametrize("how", [Upgrades.ANSWER_502, Upgrades.HANG_UP, Upgrades.SWALLOW])
async def test_a_blocked_websocket_is_told_until_it_opens(
    room: Room, proxy: Proxy, how: Upgrades, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "OPEN_S", 1.0)
    proxy.upgrades = how
    async with Client(proxy.url, room.token, after=0) as client:
        sending = asyncio.ensure_future(client.send("all", "hello"))
        await wait_until(lambda: proxy.asked > 1)
        why = client.status.why
        proxy.upgrades = Upgrades.PASS
        await sending

        assert why.startswith("cannot open a")
        assert await read_texts(client, "hello") == ["hello"]


async def test_a_loss_is_told_with_its_reason(room: Room) -> None:
    statuses: list[Status] = []
    async with Client(room.url, room.token, on_status=statuses.append) as client:
        await client.connected()
        await asyncio.to_thread(room.restart)
        await wait_until(lambda: len(statuses) > 1 and client.status.is_connected)

    assert statuses[0] == statuses[-1] == Status(is_connected=True)
    assert all(status.why and not status.is_connected for status in statuses[1:-1])


async def test_a_listener_that_fails_ends_the_client_aloud(room: Room) -> None:
    def fail(status: Status) -> None:
        raise ValueError("my own mistake")

    async with Client(room.url, room.token, on_status=fail) as client:
        with pytest.raises(Broken, match="my own mistake"):
            await client.send("all", "hello")


# --- the end of the way --------------------------------------------------------------------------


async def test_a_foreign_token_is_told_so(room: Room) -> None:
    async with Client(room.url, "nonsense") as client:
        with pytest.raises(Unauthenticated, match="token is not valid"):
            await client.connected()
        with pytest.raises(Unauthenticated):
            await client.send("all", "hello")
        with pytest.raises(Unauthenticated):
            await anext(client)


async def test_a_token_that_dies_ends_the_client(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, alice.token) as client:
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
