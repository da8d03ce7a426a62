"""Fixtures for tests in a real browser.

One browser serves all tests of a worker. Starting things is what costs time here, so a test gets a room of
its own from a gateway in a thread, and a page that other tests have used before; a test that needs a browser
profile of its own asks for `context` or `enter`. Playwright's objects live in the event loop that made them,
so every test here runs in the session's loop; its blocking form would leave a running loop behind that the
other tests stumble over.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.rooms import LiveRoom
from tests.web import browser as chromium
from tests.web.browser import TIMEOUT_S, Tab, Troubles, violations
from tests.web.files import served_files
from tests.web.modules import Parts
from tests.web.threaded import GatewayThread, ThreadedRoom

HERE = Path(__file__).parent
Enter = Callable[[LiveRoom], Awaitable[Page]]
Axe = Callable[..., Awaitable[list[dict[str, Any]]]]


expect.set_options(timeout=TIMEOUT_S * 1000)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        # A module stays on one worker; two workers with a browser each is the most there can be.
        item.add_marker(pytest.mark.xdist_group(f"web {item.path.stem}"))
        if pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The browser of this worker."""
    async with async_playwright() as playwright:
        started = await chromium.launch(playwright)
        yield started
        await started.close()


@pytest.fixture
def troubles() -> Iterator[Troubles]:
    """What the pages of this test complain about; what the test does not expect fails it."""
    found = Troubles()
    yield found
    assert found.unexpected == []


@pytest_asyncio.fixture(loop_scope="session")
async def context(
    browser: Browser, troubles: Troubles, request: pytest.FixtureRequest
) -> AsyncIterator[BrowserContext]:
    """A new browser profile, as it were: nothing is kept from one test to the next."""
    if "gateway" in request.fixturenames:
        # What begins first ends last: a page would complain of a room that goes away.
        request.getfixturevalue("gateway")
    made = await chromium.new_context(browser)
    troubles.listen(made)
    yield made
    await made.close()


@pytest.fixture
def enter(context: BrowserContext) -> Enter:
    """Open a page of any room by a one-time link, in a browser profile of the test's own."""

    async def opened(room: LiveRoom) -> Page:
        return await chromium.enter(context, room)

    return opened


# --- a room without agents, one for each test ----------------------------------------------------


@pytest.fixture(scope="session")
def gateway_thread() -> Iterator[GatewayThread]:
    """Where the gateways of this worker run, one after the other."""
    thread = GatewayThread()
    yield thread
    thread.close()


@pytest.fixture
def gateway(tmp_path: Path, gateway_thread: GatewayThread) -> Iterator[LiveRoom]:
    """A room without agents."""
    with ThreadedRoom(tmp_path / "room", gateway_thread, is_cached=True) as room:
        yield room


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tab(browser: Browser) -> AsyncIterator[Tab]:
    """The page of this worker that goes from room to room."""
    context = await chromium.new_context(browser)
    yield Tab(context)
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(gateway: LiveRoom, tab: Tab, troubles: Troubles) -> AsyncIterator[Page]:
    """A page of the room without agents."""
    troubles.listen(tab.context)
    yield await tab.visit(gateway)
    await tab.leave()
    troubles.leave(tab.context)


@pytest.fixture
def axe() -> Axe:
    """Find what hinders a screen reader, a keyboard, weak eyes."""
    return violations


# --- the modules of the page, without a gateway --------------------------------------------------


@pytest.fixture(scope="session")
def origin() -> Iterator[str]:
    """Where the files of the page are, with no gateway behind them."""
    with served_files() as url:
        yield url


@pytest.fixture(scope="session")
def parts_origin() -> Iterator[str]:
    """The same files for a browser that may keep them."""
    with served_files(is_cached=True) as url:
        yield url


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def parts_context(browser: Browser) -> AsyncIterator[BrowserContext]:
    context = await chromium.new_context(browser)
    yield context
    await context.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def parts_page(parts_context: BrowserContext) -> Page:
    return await parts_context.new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def parts(
    parts_origin: str, parts_context: BrowserContext, parts_page: Page, troubles: Troubles
) -> AsyncIterator[Parts]:
    """The page's elements with nothing begun: a test calls its modules, and answers what they ask."""
    opened = Parts(parts_page)
    await opened.open(parts_origin)
    troubles.listen(parts_context)
    yield opened
    await parts_page.goto("about:blank")
    troubles.leave(parts_context)
