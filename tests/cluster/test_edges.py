"""A gateway that is not the owner serves its clients as the owner does."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from csp.errors import CspError
from csp.http_client import GatewayClient
from tests.cluster.gateways import TOKEN, Gateways
from tests.cluster.nats_servers import NatsServer
from tests.gateway.sockets import Socket
from tests.rooms import LiveRoom
from tests.waiting import wait_until

SCREEN = {"rows": [[["hello"]]], "cols": 80}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="module")
def gateways(server: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    with Gateways(tmp_path_factory.mktemp("gateways"), [server.url], 2) as gateways:
        yield gateways


@pytest.fixture
async def people(gateways: Gateways) -> AsyncIterator["People"]:
    async with AsyncExitStack() as stack:
        yield People(gateways, await stack.enter_async_context(aiohttp.ClientSession()), stack)


class People:
    """Clients of the owner and of the edge."""

    def __init__(self, gateways: Gateways, http: aiohttp.ClientSession, stack: AsyncExitStack) -> None:
        self.owner = gateways.owner()
        (self.edge,) = [one for one in gateways.all if one is not self.owner]
        self._http = http
        self._stack = stack

    async def socket(self, gateway: LiveRoom, token: str = TOKEN, query: str = "") -> Socket:
        opened = await self._http.ws_connect(f"{gateway.url}/ws{query}", headers={"X-Auth-Token": token})
        socket = Socket(opened)
        self._stack.push_async_callback(socket.close)
        return socket

    async def join(self, gateway: LiveRoom, name: str) -> tuple[str, str]:
        """Return the id and the token of a new agent."""
        said = await post(gateway, "/register", {"agentId": name})
        return str(said["agentId"]), str(said["token"])


async def post(gateway: LiveRoom, path: str, body: dict[str, Any], token: str = TOKEN) -> Any:
    return await asyncio.to_thread(GatewayClient(gateway.url, token).post, path, body)


async def get(gateway: LiveRoom, path: str, token: str = TOKEN) -> Any:
    return await asyncio.to_thread(GatewayClient(gateway.url, token).get, path)


async def until(condition: Callable[[], Awaitable[Any]], what: str = "") -> Any:
    asked: Callable[[], Any | Awaitable[Any]] = condition
    return await wait_until(asked, what=what)


async def test_a_token_is_valid_at_the_other_gateway_at_once(people: People) -> None:
    for number in range(20):
        gateway, other = (people.owner, people.edge) if number % 2 else (people.edge, people.owner)
        agent, token = await people.join(gateway, f"new-{number}")
        assert (await get(other, "/me", token))["id"] == agent


async def test_a_message_from_an_edge_is_delivered_at_the_owner_and_back(people: People) -> None:
    agent, token = await people.join(people.edge, "carol")
    here = await people.socket(people.owner, token)
    sent = await post(people.edge, "/message", {"to": agent, "content": "hello carol"})
    await wait_until(lambda: here.delivers)
    await here.ask("delivery", id=sent["id"], state="confirmed")
    view = await get(people.edge, f"/messages/{sent['id']}")

    async def is_confirmed() -> bool:
        view = await get(people.edge, f"/messages/{sent['id']}")
        return bool(view["recipients"][agent]["state"] == "confirmed")

    assert here.delivers[0]["id"] == sent["id"]
    await until(is_confirmed)
    assert set(view["recipients"]) == {agent}


async def test_operations_over_one_socket_of_an_edge_keep_their_order(people: People) -> None:
    _, token = await people.join(people.edge, "dora")
    socket = await people.socket(people.edge, token)
    for number in range(100):
        await socket.send({"op": "message", "ref": number, "to": "human", "content": f"dora {number}"})
    answers = [await socket.answer_to(number) for number in range(100)]
    seqs = [answer["seq"] for answer in answers]

    assert seqs == sorted(set(seqs))


async def test_a_refusal_is_the_same_at_both(people: People) -> None:
    wrong = {"to": "nobody-here", "content": "x"}
    found = []
    for gateway in (people.owner, people.edge):
        async with aiohttp.ClientSession(headers={"X-Auth-Token": TOKEN}) as http:
            async with http.post(f"{gateway.url}/message", json=wrong) as response:
                found.append((response.status, await response.json()))

    assert found[0] == found[1]
    assert found[0][0] == 404


async def test_a_reader_that_is_ahead_of_an_edge_gets_no_event_twice(people: People) -> None:
    before = int((await get(people.owner, "/health"))["seq"])
    socket = await people.socket(people.edge, query=f"?after={before + 3}")
    for number in range(6):
        await post(people.owner, "/message", {"to": "all", "content": f"ahead {number}"})
    await socket.until_seq(before + 6)

    assert socket.seqs == [before + 4, before + 5, before + 6]


async def test_an_agent_at_an_edge_is_present_at_the_owner(people: People) -> None:
    agent, token = await people.join(people.owner, "erin")
    socket = await people.socket(people.edge, token)

    async def seen() -> bool:
        ages = []
        for _ in range(2):
            views = await get(people.owner, "/agents")
            ages.append(next(view["lastSeen"] for view in views if view["id"] == agent))
            await asyncio.sleep(0.01)
        # A connected agent is seen now, whenever that is asked.
        return bool(ages[1] > ages[0])

    await until(seen, "the agent at the owner")
    assert not socket.is_closed


async def test_a_screen_is_seen_from_the_other_gateway_only_while_it_is_watched(people: People) -> None:
    agent, token = await people.join(people.owner, "frank")
    pane = await people.socket(people.edge, token)
    watcher = await people.socket(people.owner)
    await watcher.ask("watch", screen=agent)
    await wait_until(lambda: {"live": {"watch": True}} in [_live(frame) for frame in pane.others])

    async def is_seen() -> bool:
        await pane.ask("live", screen=SCREEN)
        return any(frame["live"].get("screen") for frame in watcher.others)

    await until(is_seen, "the screen")
    await watcher.ask("unwatch", screen=agent)
    await wait_until(lambda: _live(pane.others[-1]) == {"live": {"watch": False}})
    assert watcher.others[-1]["live"]["agent"] == agent


def _live(frame: dict[str, Any]) -> dict[str, Any]:
    return {"live": {"watch": frame["live"].get("watch", False)}}


async def test_one_screen_can_be_asked_for_from_the_other_gateway(people: People) -> None:
    agent, token = await people.join(people.owner, "gina")
    pane = await people.socket(people.edge, token)

    async def show() -> None:
        while True:
            if pane.others and pane.others[-1]["live"].get("watch"):
                await pane.ask("live", screen=SCREEN)
            await asyncio.sleep(0.02)

    showing = asyncio.create_task(show())

    async def screen() -> Any:
        try:
            return (await get(people.owner, f"/agents/{agent}/screen"))["screen"]
        except Exception:
            # The owner may not have heard of the connection yet.
            return None

    found = await until(screen, "the screen")
    showing.cancel()

    assert found["rows"][0][0][0] == "hello"


async def test_a_page_is_logged_in_at_every_gateway_and_logged_out_at_every_gateway(people: People) -> None:
    link = await post(people.owner, "/page/link", {})
    token = (await post(people.owner, "/page/enter", {"code": link["code"]}, ""))["token"]
    assert (await get(people.edge, "/me", token))["id"] == "human"
    socket = await people.socket(people.edge, token)
    await post(people.owner, "/page/leave", {}, token)
    code = await socket.until_closed()

    assert code == 4001


async def test_a_call_with_an_id_is_carried_out_once_whichever_gateway_gets_it(people: People) -> None:
    agents = [(await people.join(people.owner, name))[0] for name in ("hans", "ivy")]
    body = {"mode": "debate", "topic": "t", "agents": agents, "id": "one-session"}
    first = await post(people.owner, "/sessions", body)
    again = [await post(gateway, "/sessions", body) for gateway in (people.edge, people.owner, people.edge)]
    others = [(await people.join(people.edge, name))[0] for name in ("lea", "max")]
    two = body | {"id": "two", "agents": others}
    both = await asyncio.gather(*[post(gateway, "/sessions", two) for gateway in (people.edge, people.owner)])

    assert {said["id"] for said in again} == {first["id"]}
    assert both[0]["id"] == both[1]["id"] != first["id"]


async def test_a_run_needs_a_gateway_that_hosts_runs(people: People) -> None:
    body = {"goal": "g", "builder": "hans", "reviewer": "ivy"}
    for gateway in (people.owner, people.edge):
        async with aiohttp.ClientSession(headers={"X-Auth-Token": TOKEN}) as http:
            async with http.post(f"{gateway.url}/runs", json=body) as response:
                assert response.status == 409
                assert "--host-runs" in (await response.json())["hint"]


async def test_without_nats_reads_and_watchers_go_on_and_then_everything(
    people: People, server: NatsServer
) -> None:
    await people.join(people.owner, "nina")
    await post(people.edge, "/message", {"to": "all", "content": "before"})
    watchers = [await people.socket(gateway) for gateway in (people.owner, people.edge)]
    await asyncio.to_thread(server.kill)

    async def is_degraded() -> bool:
        found = []
        for gateway in (people.owner, people.edge):
            async with aiohttp.ClientSession() as http, http.get(f"{gateway.url}/health") as response:
                found.append((response.status, (await response.json())["status"]))
        return found == [(503, "degraded")] * 2

    waiting = asyncio.create_task(
        post(people.edge, "/message", {"to": "all", "content": "while it was down"})
    )
    await until(is_degraded, "both gateways degraded")
    stuck = asyncio.create_task(post(people.owner, "/message", {"to": "all", "content": "stuck"}))
    for gateway in (people.owner, people.edge):
        assert (await get(gateway, "/history?limit=1"))["items"]
        assert await get(gateway, "/agents")
    assert not any(watcher.is_closed for watcher in watchers)
    await asyncio.to_thread(server.start)
    with contextlib.suppress(CspError):
        # Whether the commands wait long enough depends on the machine.
        await waiting
    with contextlib.suppress(CspError):
        await stuck
    said = await post(people.edge, "/message", {"to": "all", "content": "again"})
    for watcher in watchers:
        await watcher.until_seq(said["seq"])

    assert watchers[0].texts == watchers[1].texts
    assert watchers[0].texts.count("while it was down") <= 1


async def test_an_edge_that_cannot_reach_the_log_sends_its_clients_away(
    people: People, server: NatsServer
) -> None:
    watcher = await people.socket(people.edge)
    server.signal(signal.SIGSTOP)
    try:
        code = await watcher.until_closed()
    finally:
        server.signal(signal.SIGCONT)

    assert code == 1013


async def test_agents_are_interrupted_before_the_log_answers(people: People, server: NatsServer) -> None:
    agents = [await people.join(people.owner, name) for name in ("jack", "kim")]
    panes = [
        await people.socket(gateway, agents[number][1])
        for number, gateway in enumerate((people.edge, people.owner))
    ]
    names = [agent for agent, _ in agents]
    await post(people.owner, "/mode", {"mode": "debate", "topic": "t", "agents": names, "thread": "stopped"})
    await wait_until(lambda: any(one.delivers for one in panes), what="a turn")
    pane = next(one for one in panes if one.delivers)
    # A turn that has not arrived is withdrawn instead.
    await pane.ask("delivery", id=pane.delivers[0]["id"], state="confirmed")
    gateway = people.edge if pane is panes[0] else people.owner
    server.signal(signal.SIGSTOP)
    stopping = asyncio.create_task(post(gateway, "/stop", {"thread": "stopped"}))
    try:
        await wait_until(lambda: any(one["kind"] == "control" for one in pane.delivers), what="an interrupt")
        was_answered = stopping.done()
    finally:
        server.signal(signal.SIGCONT)
    with contextlib.suppress(CspError):
        await stopping

    assert not was_answered
