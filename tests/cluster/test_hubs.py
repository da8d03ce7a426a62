"""Many rooms over several hubs; the large run is `python -m tests.chaos.hubs`."""

import asyncio
import contextlib
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from csp.client.client import Client
from csp.errors import NotFound, Unauthenticated
from csp.http_client import GatewayClient
from tests.chaos.hubs import Scene
from tests.cluster.hubs import Hubs, LiveHub, room_token
from tests.cluster.nats_servers import NatsServer
from tests.waiting import wait_until_sync
from tests.web import browser as chromium


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="module")
def hubs(server: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hubs]:
    with Hubs(tmp_path_factory.mktemp("hubs"), [server.url], 2, "--public-name", "rooms.example") as hubs:
        yield hubs


@pytest.fixture
def hub(hubs: Hubs) -> LiveHub:
    return hubs.all[0]


def say(client: GatewayClient, text: str) -> int:
    return int(client.post("/message", {"to": "all", "content": text})["seq"])


def texts(client: GatewayClient) -> list[str]:
    return [item.get("text", "") for item in client.get("/history?limit=500")["items"]]


async def test_rooms_of_a_killed_hub_go_on_at_the_others(tmp_path: Path) -> None:
    report = await Scene(tmp_path, rooms=30, active=30, pause_s=0.2).play(rest_s=0, after_s=1)

    assert report.lost == []
    assert len(report.silence_s) == 10
    assert report.acknowledged > 90


@pytest.mark.full
async def test_a_thousand_rooms_are_small_and_go_on(tmp_path: Path) -> None:
    report = await Scene(tmp_path, rooms=1000, active=100).play()

    assert report.lost == []
    assert report.kb_per_room < 150


def test_rooms_do_not_see_each_other(hub: LiveHub) -> None:
    for name in ("red", "blue"):
        say(hub.at(name), f"this is {name}")

    assert "this is red" in texts(hub.at("red"))
    assert "this is blue" not in texts(hub.at("red"))
    assert hub.at("red").get("/health")["roomId"] != hub.at("blue").get("/health")["roomId"]


def test_a_token_of_one_room_is_worth_nothing_in_another(hub: LiveHub) -> None:
    agent = hub.at("red").post("/register", {"agentId": "ada"})
    hub.at("green").post("/register", {"agentId": "ada"})
    assert hub.at("red", agent["token"]).get("/me")["id"] == "ada"
    for name in ("green", "never-opened"):
        for token in (agent["token"], room_token("red"), "", "csp-page_" + "x" * 43):
            with pytest.raises(Unauthenticated):
                GatewayClient(f"{hub.url}/r/{name}", token).get("/me")

    assert not (hub.history / "never-opened").exists()


def test_a_room_is_the_same_at_every_hub(hubs: Hubs) -> None:
    one, two = hubs.all
    agent = one.at("both").post("/register", {"agentId": "ada"})
    seqs = [say(at.at("both"), f"message {number}") for number in range(5) for at in (one, two)]

    assert seqs == sorted(set(seqs))
    assert two.at("both", agent["token"]).get("/me")["id"] == "ada"
    wait_until_sync(
        lambda: (
            (one.history / "both" / "journal.jsonl").read_bytes()
            == (two.history / "both" / "journal.jsonl").read_bytes()
        )
    )
    health = [at.at("both").get("/health") for at in (one, two)]
    assert health[0]["roomId"] == health[1]["roomId"]
    assert sorted(one["replica"] for one in health) == [False, True]


async def test_a_client_with_a_path_in_its_url_gets_its_messages(hub: LiveHub) -> None:
    url = f"{hub.url}/r/paths"
    agent = await Client.register(url, room_token("paths"), "ada")
    async with Client(url, agent.token) as client:
        sent = await client.send("human", "from a path")

    assert "from a path" in await asyncio.to_thread(texts, hub.at("paths"))
    assert sent.seq > 1


def test_what_is_no_room_is_not_found(hub: LiveHub) -> None:
    for path in ("/", "/r/", "/r/UPPER/health", f"/r/{'x' * 33}/health", "/message"):
        with pytest.raises(NotFound, match="no room at"):
            GatewayClient(hub.url, "").get(path)


def test_a_balancers_name_is_accepted_and_no_other(hub: LiveHub) -> None:
    assert status_as(hub, "rooms.example") == status_as(hub, "Rooms.Example:443") == 200
    assert status_as(hub, "evil.example") == 403


def status_as(hub: LiveHub, host: str) -> int:
    """Return the status of a request that reaches the hub under another name."""
    with contextlib.closing(HTTPConnection("127.0.0.1", hub.port)) as connection:
        connection.request("GET", "/health", headers={"Host": host})
        return connection.getresponse().status


def test_an_idle_room_is_let_go_and_opens_again_with_everything(
    server: NatsServer, hubs: Hubs, tmp_path: Path
) -> None:
    with Hubs(tmp_path, [server.url], 1, "--idle", "0.5") as short:
        hub = short.all[0]
        say(hub.at("idle"), "before")
        wait_until_sync(lambda: hub.health()["rooms"] == 0, what="no open room")
        # Another one claims it at once, because it was left in order.
        say(hubs.all[0].at("idle"), "elsewhere")
        say(hub.at("idle"), "after")

        assert texts(hub.at("idle"))[-3:] == ["before", "elsewhere", "after"]
        assert not hubs.all[0].at("idle").get("/health")["replica"]


async def test_the_page_of_a_room_works_below_its_path(hub: LiveHub) -> None:
    links = {name: hub.at(name).post("/page/link", {})["path"] for name in ("first", "second")}
    async with async_playwright() as playwright:
        browser = await chromium.launch(playwright)
        context = await chromium.new_context(browser)
        troubles = chromium.Troubles()
        troubles.listen(context)
        page = await context.new_page()
        # In one tab, so that both rooms share what the browser stores for it.
        for name, link in links.items():
            await page.goto(f"{hub.url}/r/{name}{link}")
            await page.wait_for_selector(chromium.LIVE)
            hub.at(name).post("/message", {"to": "all", "content": f"hello {name}"})
            await expect(page.get_by_text(f"hello {name}")).to_be_visible(timeout=120_000)
        await page.goto(f"{hub.url}/r/first")
        await page.wait_for_selector(chromium.LIVE)
        await expect(page.get_by_text("hello first")).to_be_visible(timeout=120_000)
        assert page.url == f"{hub.url}/r/first/"
        assert troubles.unexpected == []
        await browser.close()
