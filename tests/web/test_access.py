"""How a browser gets into the room, stays there, gets out."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page

from csp.errors import Unauthenticated
from csp.http_client import GatewayClient
from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.browser import TIMEOUT_S, Troubles, ask, link_to
from tests.web.conftest import Enter
from tests.web.threaded import GatewayThread, ThreadedRoom

OPEN = 'body[data-room="open"][data-link="live"]'
SHUT = 'body[data-room="shut"]'
SECRET = "the marzipan is in the cupboard"
GONE = r"WebSocket|ERR_CONNECTION|ERR_EMPTY|ERR_SOCKET|Failed to load resource"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    """One room for all tests here, in a process of its own: it has a log, and it can be killed."""
    with LiveRoom(tmp_path_factory.mktemp("access") / "room") as room:
        yield room


@pytest_asyncio.fixture(loop_scope="session")
async def page(gateway: LiveRoom, enter: Enter) -> Page:
    """A page in a browser profile of its own."""
    return await enter(gateway)


async def _token(page: Page) -> str:
    return str(await page.evaluate("() => sessionStorage.getItem('csp-token') ?? ''"))


def _watchers(room: LiveRoom) -> int:
    return int(room.gateway.get("/health")["watchers"])


def _is_in(room: LiveRoom, token: str) -> bool:
    try:
        GatewayClient(room.url, token).get("/queue")
    except Unauthenticated:
        return False
    return True


# --- in ------------------------------------------------------------------------------------------


async def test_a_link_lets_the_page_in_and_leaves_the_address_bar(
    context: BrowserContext, gateway: LiveRoom
) -> None:
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = await context.new_page()
    link = link_to(gateway)
    await page.goto(link)
    await page.wait_for_selector(OPEN)
    token, code = await _token(page), link.partition("#link=")[2]

    assert page.url == f"{gateway.url}/"
    assert _is_in(gateway, token)
    # Chromium keeps the fragment to itself, and so does everything else.
    assert not any(code in url.partition("#")[0] or token in url for url in asked)
    said = gateway.said()
    assert code not in said and token not in said
    assert await page.evaluate("() => [history.length, document.referrer]") == [2, ""]


async def test_a_second_use_of_a_link_shows_how_to_get_another(
    context: BrowserContext, gateway: LiveRoom, troubles: Troubles
) -> None:
    troubles.expect("status of 401")
    gateway.gateway.post("/message", {"to": "all", "content": SECRET})
    link = link_to(gateway)
    for state in (OPEN, SHUT):
        page = await context.new_page()
        await page.goto(link)
        await page.wait_for_selector(state)
    shown = await page.inner_text("body")

    assert "csp web" in shown and "used" in shown
    assert SECRET not in await page.content()
    assert await _token(page) == ""
    assert page.url == f"{gateway.url}/"


async def test_without_a_token_nothing_of_the_room_is_shown(
    context: BrowserContext, gateway: LiveRoom, troubles: Troubles
) -> None:
    troubles.expect("status of 401")
    gateway.gateway.post("/register", {"agentId": "claude"})
    gateway.gateway.post("/message", {"to": "all", "content": SECRET})
    page = await context.new_page()
    await page.goto(gateway.url)
    await page.wait_for_selector(SHUT)
    paths = ("/history", "/agents", "/queue", "/mode", "/sessions", "/usage", "/agents/claude/screen")
    answers = [await ask(page, path) for path in paths]

    assert all(sorted(answer) == ["error", "hint"] for answer in answers)
    content = await page.content()
    assert SECRET not in content and "claude" not in content


async def test_a_tab_stays_in_over_a_reload_another_tab_does_not_get_in(
    context: BrowserContext, gateway: LiveRoom, page: Page
) -> None:
    await page.reload()
    await page.wait_for_selector(OPEN)
    other = await context.new_page()
    await other.goto(gateway.url)
    await other.wait_for_selector(SHUT)

    assert await _token(other) == ""


async def test_nothing_of_a_page_is_kept_but_by_its_tab(
    context: BrowserContext, gateway: LiveRoom, page: Page
) -> None:
    token = await _token(page)
    state = await context.storage_state()
    files = {path.name: path.read_bytes() for path in gateway.folder.iterdir() if path.is_file()}

    assert await context.cookies() == []
    # What lasts longer than a tab: cookies, localStorage.
    assert token not in str(state)
    assert not [name for name, content in files.items() if token.encode() in content]
    assert token not in gateway.said()


# --- out -----------------------------------------------------------------------------------------


async def test_leaving_ends_the_token_and_its_connection(
    gateway: LiveRoom, page: Page, troubles: Troubles
) -> None:
    # What the page has asked just before is answered just after.
    troubles.expect("status of 401")
    token = await _token(page)
    await wait_until(lambda: _watchers(gateway) == 1, TIMEOUT_S, "the page's WebSocket alone")
    await page.click("#menu summary")
    await page.click("#leave")
    await page.wait_for_selector(SHUT)
    await wait_until(lambda: _watchers(gateway) == 0, TIMEOUT_S, "the end of its WebSocket")

    assert not _is_in(gateway, token)
    assert await _token(page) == ""


async def test_a_page_that_was_put_out_says_so(gateway: LiveRoom, page: Page, troubles: Troubles) -> None:
    troubles.expect("status of 401|WebSocket")
    token = await _token(page)
    gateway.gateway.post("/page/leave", {"all": True})
    await page.wait_for_selector(SHUT)

    assert not _is_in(gateway, token)
    assert "csp web" in await page.inner_text("body")


# --- staying -------------------------------------------------------------------------------------


async def test_a_page_outlives_a_killed_gateway(gateway: LiveRoom, page: Page, troubles: Troubles) -> None:
    troubles.expect(GONE)
    token = await _token(page)
    await asyncio.to_thread(gateway.kill9)
    await page.wait_for_selector('body:not([data-link="live"])')
    await asyncio.to_thread(gateway.start)
    await page.wait_for_selector(OPEN)
    gateway.gateway.post("/message", {"to": "all", "content": SECRET})
    await page.wait_for_selector(f"text={SECRET}")

    assert await _token(page) == token
    assert _is_in(gateway, token)


async def test_a_page_of_one_room_is_nobody_in_another(
    tmp_path: Path,
    context: BrowserContext,
    gateway: LiveRoom,
    gateway_thread: GatewayThread,
    enter: Enter,
    troubles: Troubles,
) -> None:
    troubles.expect("status of 401|WebSocket")
    with ThreadedRoom(tmp_path / "other", gateway_thread, name="other") as other:
        other.gateway.post("/message", {"to": "all", "content": SECRET})
        token = await _token(await enter(gateway))
        page = await context.new_page()
        await page.goto(other.url)
        await page.wait_for_selector(SHUT)
        before = await _token(page)
        # Even if somebody carried it over.
        await page.evaluate("(token) => sessionStorage.setItem('csp-token', token)", token)
        await page.reload()
        await page.wait_for_selector(SHUT)

        assert before == ""
        assert _is_in(gateway, token) and not _is_in(other, token)
        assert SECRET not in await page.content()
        await page.close()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_a_page_may_be_opened_by_any_name_of_this_machine(
    context: BrowserContext, gateway: LiveRoom, name: str
) -> None:
    page = await context.new_page()
    await page.goto(link_to(gateway).replace("127.0.0.1", name))
    await page.wait_for_selector(OPEN)

    assert _is_in(gateway, await _token(page))
