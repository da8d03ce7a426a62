"""The page on the demo room: what it does is seen in the panes and through the API."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.sidecar.stage import Stage, tui
from tests.waiting import wait_until
from tests.web.conftest import Enter
from tests.web.parts import begin, newest_session, see_chip, see_said, write

pytestmark = pytest.mark.timeout(180)


async def test_a_walk_through_the_demo_room(room: Stage, room_page: Page) -> None:
    page = room_page
    for seat in room.seats.values():
        await asyncio.to_thread(seat.wait_ready)
    await write(page, "@ada say hello to the page")
    await expect(page.locator(".tick")).to_contain_text("ada ✓✓ confirmed")
    await wait_until(
        lambda: "say hello to the page" in room.seats["ada"].screen(), what="it in the pane of ada"
    )
    reply = (await wait_until(lambda: room.replies("ada"), what="a reply"))[-1]["text"]
    await see_said(page, reply.split("\n")[0][:40])

    await begin(page, "debate", "Tabs or spaces?", rounds=2, ballot=True)
    await see_chip(page, "Debate: done")
    await expect(page.locator("#votes .candidate")).to_have_count(3)
    await expect(page.locator("#timeline .lane-name")).to_have_count(3)
    await expect(page.locator("#spending .spent")).to_have_count(3)

    await begin(page, "autopilot", "Improve a bakery website indefinitely")
    await see_chip(page, "Autopilot: running (turn ")
    await page.click("#allstop")
    await see_chip(page, "Autopilot: stopped")
    session = newest_session(room.room)
    assert session["reason"] == "stopped_by_user"
    for seat in room.seats.values():
        await asyncio.to_thread(seat.wait_ready)
    assert newest_session(room.room)["turns"] == session["turns"]


async def test_a_screen_is_live_while_somebody_looks(room: Stage, room_page: Page) -> None:
    page, ada = room_page, room.seats["ada"]
    await asyncio.to_thread(ada.wait_ready)
    await page.click("#screen-of-ada")
    screen = page.locator("pre.screen[aria-label='Screen of ada']")
    await expect(screen).to_contain_text("scripted demo")
    await expect(page.locator(".screen-view")).to_have_count(1)
    await asyncio.to_thread(ada.type, "half a draft")
    await expect(screen).to_contain_text("half a draft")
    rows = [line.rstrip() for line in ada.screen().splitlines()]
    shown = [line.rstrip().replace("\xa0", "") for line in (await screen.inner_text()).splitlines()]
    assert [line for line in shown if line] == [line for line in rows if line]
    await page.select_option("#screen-choice", "")
    await expect(page.locator(".screen-view")).to_have_count(3)

    heard = await _live_frames(page)
    await asyncio.to_thread(ada.type, " that goes on")
    await wait_until(lambda: heard, what="a frame of a screen")
    await page.click("#tabs [data-tab=chat]")
    await expect(page.locator(".screen-view")).to_have_count(0)
    await write(page, "@bob hello")
    await expect(page.locator(".tick")).to_contain_text("bob ✓✓ confirmed")
    heard.clear()
    # The screen of bob has changed since, that of ada changes now; nobody is shown either.
    await asyncio.to_thread(ada.type, " and on")
    await wait_until(lambda: "and on" in ada.screen(), what="it in the pane")
    await write(page, "@cy hello")
    await see_said(page, "cy")
    await expect(page.locator(".tick").last).to_contain_text("cy ✓✓ confirmed")
    assert heard == []


async def _live_frames(page: Page) -> list[str]:
    """Return a list that grows with every frame of a screen that comes to the page."""
    heard: list[str] = []

    def take(frame: dict[str, Any]) -> None:
        data = frame["response"]["payloadData"]
        if data.startswith('{"live"'):
            heard.append(data)

    wire = await page.context.new_cdp_session(page)
    wire.on("Network.webSocketFrameReceived", take)
    await wire.send("Network.enable")
    return heard


async def test_a_draft_in_a_pane_holds_a_message_until_it_is_gone(room: Stage, room_page: Page) -> None:
    page, bob = room_page, room.seats["bob"]
    await asyncio.to_thread(bob.wait_ready)
    bob.type("half a thought")
    await wait_until(lambda: "half a thought" in bob.screen(), what="the draft")
    await write(page, "@bob a question")
    await expect(page.locator(".tick")).to_contain_text("there is a draft in its composer")
    bob.keys("C-u")

    await expect(page.locator(".tick")).to_contain_text("bob ✓✓ confirmed")


async def test_a_dialog_in_a_pane_is_answered_from_the_page(stage: Stage, enter: Enter) -> None:
    log = stage.folder / "tui.jsonl"
    seat = stage.seat("careful", tui(log, "--dialog-on", "please", "--dialog-command", "touch here.txt"))
    page = await enter(stage.room)
    await asyncio.to_thread(seat.wait_ready)
    for answer, event in (("Approve", "approved"), ("Deny", "denied")):
        await write(page, f"@careful please {answer}")
        asked = page.locator(".approval[data-agent=careful]")
        await expect(asked).to_contain_text("Do you want to proceed?")
        await asked.get_by_role("button", name=answer).first.click()
        await wait_until(partial(_has, log, event), what=event)
        await expect(page.locator(".approval")).to_have_count(0)


def _has(log: Path, event: str) -> bool:
    return log.exists() and f'"{event}"' in log.read_text()
