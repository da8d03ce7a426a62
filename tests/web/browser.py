"""The distribution's Chromium, with what its pages complain about."""

import os
import re
import shutil
from typing import Any, Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, WebError

from tests.rooms import LiveRoom

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_PLACES: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
#: A name that leads here though it is not ours, as a rebound one does.
REBOUND: Final = "evil.test"
_FLAGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
)
TIMEOUT_S: Final = 30.0


async def launch(playwright: Playwright) -> Browser:
    """Start a browser with a profile of its own; Chromium's sandbox does not work for root."""
    found = next(filter(None, map(shutil.which, (*_NAMES, *_PLACES))), None)
    assert found, f"there is none of {', '.join(_NAMES)}; bin/test installs one"
    return await playwright.chromium.launch(
        executable_path=found, args=list(_FLAGS), chromium_sandbox=os.geteuid() != 0
    )


class Troubles:
    """What the pages of a test complained about: console errors, exceptions, breaches of the policy."""

    def __init__(self, context: BrowserContext) -> None:
        self._found: list[str] = []
        self._expected: list[str] = []
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)

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
    await page.wait_for_selector('body[data-room="open"][data-link="live"]')
    return page


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
    await page.evaluate(AXE_SCRIPT)
    options = {"runOnly": list(rules)} if rules else {}
    found = await page.evaluate("(options) => axe.run(document, options)", options)
    return [
        {key: item[key] for key in ("id", "impact", "help")}
        | {"nodes": [" ".join(map(str, node["target"])) for node in item["nodes"]]}
        for item in found["violations"]
    ]
