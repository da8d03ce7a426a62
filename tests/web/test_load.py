"""A room that talks fast: the page stays smooth, and does not grow."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Page

from tests.rooms import LiveRoom
from tests.web.conftest import Enter
from tests.web.parts import see_said
from tests.web.puppet import Puppet

LONGEST_MS: Final = 200.0
TEXT: Final = "message **{}** with `code`\n\n- one\n- two {}\n\n```py\nprint({})\n```\n"


def _say(ada: Puppet, number: int) -> None:
    ada.say(TEXT.format(number, "x" * (number % 300), number))


@pytest.mark.full
async def test_fifty_messages_a_second_in_a_log_of_a_thousand(
    gateway: LiveRoom, enter: Enter, browser: Browser, tmp_path: Path
) -> None:
    ada = Puppet(gateway, "ada", kind="api")
    for number in range(1000):
        _say(ada, number)
    page = await enter(gateway)
    await see_said(page, "message 999 with")
    await page.mouse.move(700, 400)
    await browser.start_tracing(
        page=page, path=tmp_path / "trace.json", categories=["toplevel", "devtools.timeline"]
    )
    talk = asyncio.create_task(asyncio.to_thread(_talk, ada, 300, 50.0))
    tick = 0
    while not talk.done():
        await page.mouse.wheel(0, 1200 if tick // 15 % 2 else -900)
        await asyncio.sleep(0.05)
        tick += 1
    await page.evaluate("() => document.querySelector('#jump').click()")
    await see_said(page, "message 299 with")
    await browser.stop_tracing()

    assert _longest_ms(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) < LONGEST_MS


def _talk(ada: Puppet, number: int, rate: float) -> None:
    began = time.monotonic()
    for index in range(number):
        _say(ada, index)
        time.sleep(max(0.0, began + (index + 1) / rate - time.monotonic()))


def _longest_ms(events: list[dict[str, Any]]) -> float:
    """Return the CPU time of the longest task of a page's main thread: other tests must not count."""
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"].get("name") == "CrRendererMain"
    }
    tasks = [
        event.get("tdur", event["dur"]) / 1000
        for event in events
        if event.get("ph") == "X" and "RunTask" in event["name"] and (event["pid"], event["tid"]) in mains
    ]
    assert tasks
    return float(max(tasks))


@pytest.mark.full
@pytest.mark.parametrize(("full", "more"), [(420, 200), (5000, 5000)])
async def test_the_page_does_not_grow(gateway: LiveRoom, page: Page, full: int, more: int) -> None:
    """As many messages as the page holds go by, then more: what it holds stays the same."""
    ada = Puppet(gateway, "ada", kind="api")
    wire = await page.context.new_cdp_session(page)
    await wire.send("Performance.enable")
    sizes = []
    for first, number in ((0, full), (full, more)):
        # In pieces that the page keeps up with: it leaves messages out when it is far behind.
        for start in range(first, first + number, 20):
            await asyncio.to_thread(_flood, ada, start, 20)
            await see_said(page, f"flood {start + 19} ends")
        sizes.append(await _size(wire))

    assert await page.locator("#log > li").count() <= 400
    assert sizes[1]["Nodes"] <= sizes[0]["Nodes"] * 1.1
    assert sizes[1]["JSEventListeners"] <= sizes[0]["JSEventListeners"] * 1.1
    assert sizes[1]["JSHeapUsedSize"] <= sizes[0]["JSHeapUsedSize"] * 1.1 + 1e6


def _flood(ada: Puppet, first: int, number: int) -> None:
    for index in range(first, first + number):
        ada.say(f"flood {index} ends")


async def _size(wire: Any) -> dict[str, float]:
    await wire.send("HeapProfiler.collectGarbage")
    metrics = (await wire.send("Performance.getMetrics"))["metrics"]
    return {item["name"]: item["value"] for item in metrics}
