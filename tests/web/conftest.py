"""Fixtures for tests in a real browser.

One browser serves all tests of a worker, each in a context of its own. Playwright's objects live in the
event loop that made them, so every test here runs in the session's loop; its blocking form would leave a
running loop behind that the other tests stumble over.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.rooms import LiveRoom
from tests.sidecar.stage import Stage
from tests.web import browser as chromium
from tests.web.browser import TIMEOUT_S, Troubles, violations

NAMES = ("ada", "bob", "cy")
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


@pytest_asyncio.fixture(loop_scope="session")
async def watched(
    browser: Browser, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[BrowserContext, Troubles]]:
    """A context with what its pages complain about; what the test does not expect fails it."""
    for name in {"gateway", "room"} & set(request.fixturenames):
        # What begins first ends last: a page would complain of a room that goes away.
        request.getfixturevalue(name)
    made = await browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    made.set_default_timeout(TIMEOUT_S * 1000)
    troubles = Troubles(made)
    yield made, troubles
    await made.close()
    assert troubles.unexpected == []


@pytest.fixture
def context(watched: tuple[BrowserContext, Troubles]) -> BrowserContext:
    """A new browser profile, as it were: nothing is kept from one test to the next."""
    return watched[0]


@pytest.fixture
def troubles(watched: tuple[BrowserContext, Troubles]) -> Troubles:
    """What the pages of this test complain about, for tests that expect it."""
    return watched[1]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[LiveRoom]:
    """A room without agents."""
    with LiveRoom(tmp_path / "room") as room:
        yield room


@pytest.fixture
def enter(context: BrowserContext) -> Enter:
    """Open a page of any room by a one-time link."""

    async def opened(room: LiveRoom) -> Page:
        return await chromium.enter(context, room)

    return opened


@pytest_asyncio.fixture(loop_scope="session")
async def page(gateway: LiveRoom, enter: Enter) -> Page:
    """A page of the room without agents."""
    return await enter(gateway)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Stage]:
    """A room with the demo agents ada, bob and cy, behind sidecars in tmux panes; they answer at once."""
    with Stage(tmp_path, rows=24, cols=80) as stage:
        for name in NAMES:
            argv = [sys.executable, "-P", "-m", "csp.cli", "demo", name]
            stage.seat(name, argv, "--profile", "demo", env={"CSP_DEMO_SPEED": "0"})
        yield stage


@pytest_asyncio.fixture(loop_scope="session")
async def room_page(room: Stage, enter: Enter) -> Page:
    """A page of the room with the demo agents."""
    return await enter(room.room)


@pytest.fixture
def axe() -> Axe:
    """Find what hinders a screen reader, a keyboard, weak eyes."""
    return violations


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A room into which a test brings its own agents."""
    with Stage(tmp_path, rows=24, cols=80) as empty:
        yield empty
