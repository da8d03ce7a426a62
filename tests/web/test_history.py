"""What was said before: scrolled to, searched, saved; and nothing missed when the connection is cut."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.rooms import LiveRoom, free_port
from tests.web.browser import Tab, Troubles
from tests.web.parts import messages, see_said, write
from tests.web.puppet import Puppet
from tests.web.threaded import GatewayThread, ThreadedRoom

#: More than the page holds at once, more than one page of an export.
MANY: Final = 1005


class Past:
    """A room with a long history, with who said all of it."""

    def __init__(self, room: LiveRoom) -> None:
        self.room = room
        self.ada = Puppet(room, "ada", kind="api")
        for index in range(MANY):
            self.ada.say("the needle <b>lies</b> here" if index == 700 else f"message {index} of many")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory, gateway_thread: GatewayThread) -> Iterator[Past]:
    """The long history, to which tests may add at its end."""
    folder = tmp_path_factory.mktemp("past") / "room"
    with ThreadedRoom(folder, gateway_thread, port=free_port(), is_cached=True) as room:
        yield Past(room)


@pytest_asyncio.fixture(loop_scope="session")
async def past_page(past: Past, tab: Tab, troubles: Troubles) -> AsyncIterator[Page]:
    """A page of the room with the long history."""
    troubles.listen(tab.context)
    yield await tab.visit(past.room)
    await tab.leave()
    troubles.leave(tab.context)


_TO_THE_TOP: Final = "() => { document.querySelector('#log-scroller').scrollTop = 0 }"


async def test_the_whole_history_is_reached_by_scrolling(past: Past, past_page: Page) -> None:
    page = past_page
    past.ada.say("the end of it")
    await see_said(page, "the end of it")
    seen: set[str] = set()

    while "message 0 of many" not in seen:
        seen.update(await page.locator("#log .body").all_inner_texts())
        await page.evaluate(_TO_THE_TOP)
        await page.evaluate("() => new Promise(requestAnimationFrame)")

    # Older ones push newer ones out: the page holds a window, not the history.
    assert await page.locator("#log > li").count() <= 400
    wanted = {f"message {n} of many" for n in range(MANY) if n != 700}
    assert {text for text in seen if text.startswith("message")} == wanted
    await page.click("#jump")
    await see_said(page, "the end of it")
    await expect(page.locator("#jump")).to_be_hidden()


async def test_who_reads_far_up_is_left_there(past: Past, past_page: Page) -> None:
    page, ada = past_page, past.ada
    await see_said(page, f"message {MANY - 1} of many")
    await page.evaluate("() => { document.querySelector('#log-scroller').scrollTop = 1500 }")
    # Far enough from both ends that nothing older or newer is fetched, which would move what is read.
    await expect(page.locator("#jump")).to_be_visible()
    top = "() => document.querySelector('#log-scroller').scrollTop"
    before = await page.evaluate(top)
    ada.say("something new")
    await expect(page.locator("#jump")).to_have_text("1 new message ↓")

    assert await page.evaluate(top) == before
    await page.click("#jump")
    await expect(page.get_by_text("something new")).to_be_in_viewport()


async def test_what_is_new_is_followed(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada", kind="api")
    for index in range(60):
        ada.say(f"line {index}\n\n" + "and more\n\n" * (index % 5))

    await expect(page.get_by_text("line 59")).to_be_in_viewport()
    await expect(page.locator("#jump")).to_be_hidden()


async def test_search_finds_marks_and_shows(past_page: Page) -> None:
    page = past_page
    await page.keyboard.press("Control+k")
    await page.keyboard.type("needle")
    await page.keyboard.press("Enter")
    await expect(page.locator("#results h2")).to_have_text("1 message")
    await expect(page.locator("#results mark")).to_have_text("needle")
    await page.click("#results li button")

    found = page.locator("#log .message", has_text="the needle <b>lies</b> here")
    await expect(found).to_be_in_viewport()
    await expect(page.locator("#results")).to_be_hidden()
    await write(page, "/search nowhere-at-all")
    await expect(page.locator("#results h2")).to_contain_text("No messages match")


async def test_the_history_is_saved_whole(past: Past, past_page: Page, tmp_path: Path) -> None:
    page = past_page
    saved = {}
    for format in ("md", "json"):
        await page.click("#menu summary")
        async with page.expect_download() as download:
            await page.click(f"#export-{format}")
        done = await download.value
        await done.save_as(tmp_path / format)
        saved[format] = (tmp_path / format).read_text()
        assert done.suggested_filename == f"default.{format}"

    assert json.loads(saved["json"]) == messages_of_all(past.room)
    assert saved["md"].count("> message ") == MANY - 1
    assert saved["md"].startswith("# Room default\n\n## 20")


def messages_of_all(room: LiveRoom) -> list[object]:
    first = messages(room, after=0)
    return [*first, *messages(room, after=first[-1]["seq"])]


# --- a cut connection ----------------------------------------------------------------------------


async def test_a_gateway_that_dies_leaves_no_gap(gateway: LiveRoom, page: Page, troubles: Troubles) -> None:
    troubles.expect("ERR_CONNECTION_(REFUSED|RESET)|WebSocket connection")
    ada = Puppet(gateway, "ada", kind="api")
    ada.say("before")
    await see_said(page, "before")
    await asyncio.to_thread(gateway.kill9)
    await expect(page.locator("#link-text")).to_have_text("reconnecting…")
    await asyncio.to_thread(gateway.start)
    for index in range(200):
        ada.say(f"while it was away {index}")
    await expect(page.locator("#link-text")).to_have_text("live")
    await see_said(page, "while it was away 199")

    # More than a page at once is shown from its newest page on; the rest is fetched by scrolling back.
    while await page.locator("#log .body").first.inner_text() != "before":
        await page.evaluate("() => { document.querySelector('#log-scroller').scrollTop = 0 }")
        await asyncio.sleep(0.05)
    said = await page.locator("#log .body").all_inner_texts()
    assert said == ["before", *(f"while it was away {index}" for index in range(200))]


async def test_a_message_to_a_dead_gateway_is_sent_once_when_it_is_back(
    gateway: LiveRoom, page: Page, troubles: Troubles
) -> None:
    troubles.expect("ERR_CONNECTION_(REFUSED|RESET)|WebSocket connection")
    Puppet(gateway, "ada")
    await asyncio.to_thread(gateway.kill9)
    await write(page, "@ada are you there?")
    await expect(page.locator("#composer-note")).to_contain_text("1 message queued")
    await asyncio.to_thread(gateway.start)
    await expect(page.locator("#link-text")).to_have_text("live")

    await see_said(page, "are you there?")
    assert [item["text"] for item in messages(gateway, types="human_message")] == ["are you there?"]


async def test_a_network_that_is_cut_and_back(gateway: LiveRoom, page: Page, troubles: Troubles) -> None:
    troubles.expect("ERR_INTERNET_DISCONNECTED|ERR_NETWORK|WebSocket connection")
    ada = Puppet(gateway, "ada", kind="api")
    wire = await page.context.new_cdp_session(page)
    await wire.send("Network.enable")
    off = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    # What is open stays open in Chromium's own "offline", so the socket is closed as a dead peer's would be.
    await wire.send("Network.emulateNetworkConditions", off)
    for connection in range(2):
        ada.say(f"unheard {connection}")
    await wire.send("Network.emulateNetworkConditions", {**off, "offline": False})

    await see_said(page, "unheard 1")
    assert await page.locator("#log .body").all_inner_texts() == ["unheard 0", "unheard 1"]
