"""The distribution's Chromium, with what its pages complain about."""

import re
import shutil
from typing import Any, Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    ViewportSize,
    WebError,
)

from tests.rooms import LiveRoom

_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_PLACES: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
#: A name that leads here though it is not ours, as a rebound one does.
REBOUND: Final = "evil.test"
FLAGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process draws all pages. A new one for each visit takes a quarter of what a test costs.
    "--process-per-site",
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--in-process-gpu",
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
)
TIMEOUT_S: Final = 60.0
SIZE: Final[ViewportSize] = {"width": 1440, "height": 900}
#: What a page is once it shows the room as it is now.
LIVE: Final = 'body[data-room="open"][data-link="live"]'


async def new_context(browser: Browser) -> BrowserContext:
    """Return a new browser profile, as it were."""
    made = await browser.new_context(viewport=SIZE, reduced_motion="reduce")
    made.set_default_timeout(TIMEOUT_S * 1000)
    return made


async def launch(playwright: Playwright, *more_flags: str) -> Browser:
    """Start a browser with a profile of its own.

    Chromium's sandbox works neither for root nor in most containers. The pages are our own, over loopback.
    """
    return await playwright.chromium.launch(
        executable_path=find_chromium(), args=[*FLAGS, *more_flags], chromium_sandbox=False
    )


def find_chromium() -> str:
    """Return the path of a Chromium."""
    found = next(filter(None, map(shutil.which, (*_NAMES, *_PLACES))), None)
    assert found, f"there is none of {', '.join(_NAMES)}; bin/test installs one"
    return found


class Troubles:
    """What the pages of a test complained about: console errors, exceptions, breaches of the policy."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._expected: list[str] = []

    def listen(self, context: BrowserContext) -> None:
        """Note what the pages of a context complain about from here on."""
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)

    def leave(self, context: BrowserContext) -> None:
        """Note nothing more of a context that goes on to live."""
        context.remove_listener("console", self._on_console)
        context.remove_listener("weberror", self._on_error)

    def expect(self, pattern: str) -> None:
        """Let complaints pass that match a pattern."""
        self._expected.append(pattern)

    @property
    def unexpected(self) -> list[str]:
        return [text for text in self._found if not any(re.search(each, text) for each in self._expected)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            self._found.append(f"{message.text} ({message.location.get('url', '')})")

    def _on_error(self, error: WebError) -> None:
        self._found.append(f"uncaught: {error.error}")


def link_to(room: LiveRoom) -> str:
    """Return a link that lets one page in."""
    return room.url + str(room.gateway.post("/page/link", {})["path"])


async def enter(context: BrowserContext, room: LiveRoom) -> Page:
    """Open a page by a one-time link; return when it shows the room as it is now."""
    page = await context.new_page()
    await page.goto(link_to(room))
    await page.wait_for_selector(LIVE)
    return page


class Tab:
    """A page that goes from room to room, with nothing kept from the one before.

    A page that is opened anew costs Chromium three times as much.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self._page: Page | None = None

    async def visit(self, room: LiveRoom) -> Page:
        """Enter a room by a one-time link; return when the page shows it as it is now."""
        if self._page is None or self._page.is_closed():
            self._page = await self.context.new_page()
        await self._page.goto(link_to(room))
        await self._page.wait_for_selector(LIVE)
        return self._page

    async def leave(self) -> None:
        """Leave the room; forget what the page has kept and how it was looked at."""
        page = self._page
        if page is None or page.is_closed():
            return
        # What is kept by the tab alone is the token, which the next link writes over.
        await page.evaluate("() => localStorage.clear()")
        await page.goto("about:blank")
        if page.viewport_size != SIZE:
            await page.set_viewport_size(SIZE)
        await page.emulate_media(color_scheme="light")


async def ask(page: Page, path: str) -> Any:
    """Return what the room answers to the token of a page."""
    return await page.evaluate(
        """async (path) => {
            const headers = { "X-Auth-Token": sessionStorage.getItem("csp-token") ?? "" };
            return (await fetch(path, { headers })).json();
        }""",
        path,
    )


async def violations(page: Page, *rules: str) -> list[dict[str, Any]]:
    """Return what axe finds wrong with a page as it is now: id, impact, help, the elements."""
    # The policy of the page forbids script tags of others; what the debugger evaluates it does not see.
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    options = {"runOnly": list(rules)} if rules else {}
    found = await page.evaluate("(options) => axe.run(document, options)", options)
    return [
        {key: item[key] for key in ("id", "impact", "help")}
        | {"nodes": [" ".join(map(str, node["target"])) for node in item["nodes"]]}
        for item in found["violations"]
    ]
