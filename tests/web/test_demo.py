"""The page on the demo room: what it does is seen in the panes and through the API."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.sidecar.stage import Stage, tui
from tests.waiting import wait_until
from tests.web.browser import TIMEOUT_S, Tab, Troubles
from tests.web.parts import begin, newest_session, see_chip, see_said, write

pytestmark = pytest.mark.timeout(300)

DEMO: Final = ["ada", "bob"]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A room with the demo agents ada and bob, behind sidecars in tmux panes; they answer at once.

    Beside them sits `careful`, which asks before it does what it is told.
    """
    folder = tmp_path_factory.mktemp("demo")
    with Stage(folder, rows=24, cols=80) as stage:
        for name in DEMO:
            argv = [sys.executable, "-P", "-m", "csp.cli", "demo", name]
            stage.seat(name, argv, "--profile", "demo", env={"CSP_DEMO_SPEED": "0"})
        stage.seat(
            "careful",
            tui(folder / "tui.jsonl", "--dialog-on", "please", "--dialog-command", "touch here.txt"),
        )
        for seat in stage.seats.values():
            seat.wait_ready()
        yield stage


@pytest_asyncio.fixture(loop_scope="session")
async def room_page(room: Stage, tab: Tab, troubles: Troubles) -> AsyncIterator[Page]:
    """A page of the room with the demo agents."""
    troubles.listen(tab.context)
    yield await tab.visit(room.room)
    await tab.leave()
    troubles.leave(tab.context)


async def test_a_walk_through_the_demo_room(room: Stage, room_page: Page) -> None:
    page = room_page
    await write(page, "@ada say hello to the page")
    await expect(page.locator(".tick").last).to_contain_text("ada ✓✓ confirmed")
    await wait_until(
        lambda: "say hello to the page" in room.seats["ada"].screen(), TIMEOUT_S, "it in the pane of ada"
    )
    reply = (await wait_until(lambda: room.replies("ada"), TIMEOUT_S, "a reply"))[-1]["text"]
    await see_said(page, reply.split("\n")[0][:40])

    await begin(page, "debate", "Tabs or spaces?", rounds=2, ballot=True, agents=DEMO)
    await see_chip(page, "Debate: done")
    await expect(page.locator("#votes .candidate")).to_have_count(2)
    await expect(page.locator("#timeline .lane-name")).to_have_count(2)
    await expect(page.locator("#spending .spent")).to_have_count(2)

    await begin(page, "autopilot", "Improve a bakery website indefinitely", agents=DEMO)
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
    assert [view["id"] for view in room.room.gateway.get("/agents")] == [*DEMO, "careful"]

    heard = await _live_frames(page)
    await asyncio.to_thread(ada.type, " that goes on")
    await wait_until(lambda: heard, TIMEOUT_S, "a frame of a screen")
    await page.click("#tabs [data-tab=chat]")
    await expect(page.locator(".screen-view")).to_have_count(0)
    await write(page, "@bob hello")
    await expect(page.locator(".tick").last).to_contain_text("bob ✓✓ confirmed")
    heard.clear()
    # The screen of bob has changed since, that of ada changes now; nobody is shown either.
    await asyncio.to_thread(ada.type, " and on")
    await wait_until(lambda: "and on" in ada.screen(), TIMEOUT_S, "it in the pane")
    await write(page, "@careful hello")
    await expect(page.locator(".tick").last).to_contain_text("careful ✓✓ confirmed")
    assert heard == []
    ada.keys("C-u")


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
    await wait_until(lambda: "half a thought" in bob.screen(), TIMEOUT_S, "the draft")
    await write(page, "@bob a question")
    await expect(page.locator(".tick").last).to_contain_text("draft (you have text in its input box)")
    bob.keys("C-u")

    await expect(page.locator(".tick").last).to_contain_text("bob ✓✓ confirmed")


async def test_a_dialog_in_a_pane_is_answered_from_the_page(room: Stage, room_page: Page) -> None:
    page, log = room_page, room.folder / "tui.jsonl"
    for answer, event in (("Approve", "approved"), ("Deny", "denied")):
        await write(page, f"@careful please {answer}")
        asked = page.locator(".need[data-agent=careful]")
        await expect(asked).to_contain_text("careful asks")
        await asked.get_by_role("button", name=answer).first.click()
        await wait_until(partial(_has, log, event), TIMEOUT_S, event)
        await expect(page.locator(".need")).to_have_count(0)


def _has(log: Path, event: str) -> bool:
    return log.exists() and f'"{event}"' in log.read_text()
