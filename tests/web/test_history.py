"""What was said before: scrolled to, searched, saved; and nothing missed when the connection is cut."""

import asyncio
import json
from pathlib import Path

from playwright.async_api import Page, expect

from tests.rooms import LiveRoom
from tests.web.browser import Troubles
from tests.web.conftest import Enter
from tests.web.parts import messages, see_said, write
from tests.web.puppet import Puppet


def _talk(room: LiveRoom, number: int) -> Puppet:
    ada = Puppet(room, "ada", kind="api")
    for index in range(number):
        ada.say(f"message {index} of many")
    return ada


async def test_the_whole_history_is_reached_by_scrolling(gateway: LiveRoom, enter: Enter) -> None:
    _talk(gateway, 700)
    page = await enter(gateway)
    await see_said(page, "message 699 of many")
    seen: set[str] = set()

    while "message 0 of many" not in seen:
        seen.update(await page.locator("#log .body").all_inner_texts())
        await page.evaluate("() => { document.querySelector('#log-scroller').scrollTop = 0 }")

    # Older ones push newer ones out: the page holds a window, not the history.
    assert await page.locator("#log > li").count() <= 400
    assert {text for text in seen if text.startswith("message")} == {
        f"message {n} of many" for n in range(700)
    }
    await page.click("#jump")
    await see_said(page, "message 699 of many")
    await expect(page.locator("#jump")).to_be_hidden()


async def test_who_reads_far_up_is_left_there(gateway: LiveRoom, enter: Enter) -> None:
    ada = _talk(gateway, 80)
    page = await enter(gateway)
    await see_said(page, "message 79 of many")
    await page.evaluate("() => { document.querySelector('#log-scroller').scrollTop = 1500 }")
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


async def test_search_finds_marks_and_shows(gateway: LiveRoom, enter: Enter) -> None:
    ada = _talk(gateway, 5)
    ada.say("the needle <b>lies</b> here")
    for index in range(150):
        ada.say(f"hay {index}")
    page = await enter(gateway)
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
    await expect(page.locator("#results h2")).to_have_text("Nothing was found")


async def test_the_history_is_saved_whole(gateway: LiveRoom, page: Page, tmp_path: Path) -> None:
    _talk(gateway, 1005)
    saved = {}
    for format in ("md", "json"):
        await page.click("#menu summary")
        async with page.expect_download() as download:
            await page.click(f"#export-{format}")
        done = await download.value
        await done.save_as(tmp_path / format)
        saved[format] = (tmp_path / format).read_text()
        assert done.suggested_filename == f"default.{format}"

    assert json.loads(saved["json"]) == messages_of_all(gateway)
    assert saved["md"].count("> message ") == 1005
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
    await expect(page.locator("#link-text")).to_have_text("connection lost, trying again…")
    await asyncio.to_thread(gateway.start)
    for index in range(200):
        ada.say(f"while it was away {index}")
    await expect(page.locator("#link-text")).to_have_text("live")
    await see_said(page, "while it was away 199")

    said = await page.locator("#log .body").all_inner_texts()
    assert said == ["before", *(f"while it was away {index}" for index in range(200))]


async def test_a_message_to_a_dead_gateway_is_given_back(
    gateway: LiveRoom, page: Page, troubles: Troubles
) -> None:
    troubles.expect("ERR_CONNECTION_(REFUSED|RESET)|WebSocket connection")
    Puppet(gateway, "ada")
    await asyncio.to_thread(gateway.kill9)
    await write(page, "@ada are you there?")
    await expect(page.locator("#toasts")).to_contain_text("the gateway does not answer")
    await expect(page.locator("#composer-text")).to_have_value("@ada are you there?")
    await asyncio.to_thread(gateway.start)
    await expect(page.locator("#link-text")).to_have_text("live")
    await page.press("#composer-text", "Enter")

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
