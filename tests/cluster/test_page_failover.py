"""The page of a room uses another gateway when its own is lost, and no foreign page may do that."""

import contextlib
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import async_playwright, expect

from tests.cluster.gateways import TOKEN, Gateways
from tests.cluster.nats_servers import NatsServer
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync
from tests.web import browser as chromium

PATIENCE_MS: Final = 120_000


class PublicGateways(Gateways):
    """Gateways that tell each other how browsers reach them."""

    def __init__(self, folder: Path, server: NatsServer, count: int = 2) -> None:
        super().__init__(folder, [server.url], count)
        for gateway in self.all:
            gateway._options = (*gateway._options, "--public-url", gateway.url)

    def wait_known(self) -> None:
        """Return when each knows the others."""
        for gateway in self.all:
            others = [other.url for other in self.all if other is not gateway]
            wait_until_sync(lambda at=gateway, urls=others: all(url in index(at) for url in urls))  # type: ignore[misc]


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicGateways]:
    folder = tmp_path_factory.mktemp("public")
    with NatsServer(folder / "nats") as server, PublicGateways(folder / "g", server) as gateways:
        gateways.wait_known()
        yield gateways


def ask(room: LiveRoom, method: str, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    with contextlib.closing(HTTPConnection("127.0.0.1", room.port)) as connection:
        connection.request(
            method, path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        return response, response.read()


def index(room: LiveRoom) -> str:
    return ask(room, "GET", "/")[1].decode()


def test_the_page_of_another_gateway_may_call_and_no_other(gateways: PublicGateways) -> None:
    one, two = gateways.all
    from_one = {"Origin": one.url, "Sec_Fetch_Site": "same-site"}
    answer, _ = ask(two, "GET", "/agents", X_Auth_Token=TOKEN, **from_one)
    asked, _ = ask(two, "OPTIONS", "/message", Access_Control_Request_Method="POST", **from_one)
    unknown, _ = ask(two, "GET", "/agents", **from_one)
    for origin in ("http://evil.example", f"{one.url}0", "null"):
        foreign, _ = ask(two, "GET", "/agents", X_Auth_Token=TOKEN, Origin=origin)
        preflight, _ = ask(two, "OPTIONS", "/message", Access_Control_Request_Method="POST", Origin=origin)
        assert (foreign.status, preflight.status) == (403, 403)
        assert "Access-Control-Allow-Origin" not in {*foreign.headers, *preflight.headers}

    assert (answer.status, asked.status, unknown.status) == (200, 204, 401)
    assert answer.headers["Access-Control-Allow-Origin"] == one.url
    assert asked.headers["Access-Control-Allow-Headers"] == "X-Auth-Token, Content-Type"


def test_a_page_may_connect_to_the_gateways_of_its_room_alone(gateways: PublicGateways) -> None:
    one, two = gateways.all
    response, _ = ask(one, "GET", "/")
    policy = response.headers["Content-Security-Policy"]

    assert f"connect-src 'self' {two.url} ws{two.url.removeprefix('http')};" in policy


async def test_a_page_whose_gateway_dies_goes_on_at_another(gateways: PublicGateways) -> None:
    one, two = gateways.all
    link = one.gateway.post("/page/link", {})["path"]
    async with async_playwright() as playwright:
        browser = await chromium.launch(playwright)
        page = await (await chromium.new_context(browser)).new_page()
        await page.goto(one.url + link)
        await page.wait_for_selector(chromium.LIVE)
        one.kill9()
        two.gateway.post("/message", {"to": "all", "content": "said at the other one"})
        await expect(page.get_by_text("said at the other one")).to_be_visible(timeout=PATIENCE_MS)
        await page.locator("#composer-text").fill("typed after the death")
        await page.locator("#composer-text").press("Enter")
        await expect(page.locator("#log").get_by_text("typed after the death")).to_be_visible(
            timeout=PATIENCE_MS
        )
        await browser.close()
    texts = [item.get("text") for item in two.gateway.get("/history?limit=100")["items"]]

    assert texts.count("typed after the death") == 1
