"""Agents that cannot go on without a person."""

from typing import Any, Final

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.parts import see_said, write
from tests.web.puppet import Puppet

DIALOG: Final = {
    "tool": "Bash",
    "arguments": "rm -rf <b>/tmp/x</b>",
    "question": "Do you want to proceed?",
    "choices": [
        {"number": 1, "label": "Yes"},
        {"number": 2, "label": "Yes, always"},
        {"number": 3, "label": "No"},
    ],
}


async def _asking(room: LiveRoom, page: Page) -> Puppet:
    ada = Puppet(room, "ada")
    ada.report("needs_approval", dialog=DIALOG)
    await expect(page.locator(".need")).to_contain_text("rm -rf")
    return ada


async def test_what_is_asked_stands_above_the_composer(gateway: LiveRoom, page: Page) -> None:
    await _asking(gateway, page)

    asked = page.locator(".need")
    await expect(asked).to_contain_text("ada asks to use Bash")
    await expect(asked.locator("pre")).to_have_text("rm -rf <b>/tmp/x</b>")
    await expect(page.locator("[data-agent=ada] .state")).to_have_text("needs approval")
    assert (await page.title()).startswith("(1) ")


@pytest.mark.parametrize(
    ("label", "verb", "choice"),
    [("Approve", "approve", 1), ("Deny", "deny", 3), ("Yes, always", "approve", 2)],
)
async def test_a_dialog_is_answered_by_a_button(
    gateway: LiveRoom, page: Page, label: str, verb: str, choice: int
) -> None:
    ada = await _asking(gateway, page)
    if label not in ("Approve", "Deny"):
        await page.get_by_role("button", name="All choices").click()
    await page.locator(".need button", has_text=label).first.click()
    pressed = await ada.next("control")
    ada.report("idle")

    assert (pressed["control"], pressed.get("choice")) == (verb, choice)
    await expect(page.locator(".need")).to_have_count(0)
    await expect(page).not_to_have_title("(1) default · group chat")


async def test_a_dialog_is_answered_by_a_command(gateway: LiveRoom, page: Page) -> None:
    ada = await _asking(gateway, page)
    await write(page, "/approve ada 2")

    pressed = await ada.next("control")
    assert (pressed["control"], pressed.get("choice")) == ("approve", 2)


async def test_who_needs_a_person_at_its_keyboard_says_so(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, "ada")
    ada.report("needs_human", detail="log in first")

    await expect(page.locator(".need")).to_contain_text("ada needs you in its pane")
    await expect(page.locator(".need")).to_contain_text("log in first")
    await expect(page.locator(".need button")).to_have_text(["Open its pane"])


@pytest.mark.parametrize(
    ("before", "label", "verb"),
    [
        ("busy", "Interrupt", "interrupt"),
        ("idle", "Share", "share"),
        ("needs_human", "Restart", "restart"),
    ],
)
async def test_the_buttons_of_an_agent(
    gateway: LiveRoom, page: Page, before: str, label: str, verb: str
) -> None:
    ada = Puppet(gateway, "ada")
    ada.report(before)
    await page.click(f"#{verb}-ada")
    if verb == "share":
        await expect(page.locator("#noshare-ada")).to_have_text("Unshare")
        assert _agent(gateway)["share"] is True
    else:
        assert (await ada.next("control"))["control"] == verb


async def test_an_agent_is_paused_and_resumed(gateway: LiveRoom, page: Page) -> None:
    Puppet(gateway, "ada").report("idle")
    await page.click("#pause-ada")
    await expect(page.locator("[data-agent=ada] .state")).to_have_text("paused")
    await page.click("#resume-ada")

    await expect(page.locator("[data-agent=ada] .state")).to_have_text("idle")
    assert _agent(gateway)["state"] == "idle"


def _agent(room: LiveRoom) -> dict[str, Any]:
    found: dict[str, Any] = room.gateway.get("/agents")[0]
    return found


_SHOWN: Final = """() => {
  window.shown = [];
  window.Notification = class { constructor(text) { window.shown.push(text); } };
  window.Notification.permission = "granted";
  window.Notification.requestPermission = async () => "granted";
  Object.defineProperty(document, "hidden", { get: () => window.isAway ?? false });
}"""


async def test_a_person_who_is_away_is_notified_once(
    gateway: LiveRoom, page: Page, context: BrowserContext
) -> None:
    # Headless Chromium shows no notifications of the system, so the page's call to the browser is caught.
    await page.evaluate(_SHOWN)
    await page.click("#menu summary")
    await page.click("#notify")
    await expect(page.locator("#notify")).to_have_attribute("aria-pressed", "true")
    await page.evaluate("() => { window.isAway = true }")
    ada = Puppet(gateway, "ada")
    ada.report("needs_approval", dialog=DIALOG)
    await wait_until(lambda: page.evaluate("() => window.shown.length"), what="a notification")
    ada.report("needs_approval", dialog=DIALOG)
    gateway.gateway.post("/message", {"to": "ada", "content": "still here"})
    await see_said(page, "still here")

    assert await page.evaluate("() => window.shown") == ["ada asks to use Bash"]


async def test_a_reply_is_notified_to_a_person_who_is_away(gateway: LiveRoom, page: Page) -> None:
    await page.evaluate(_SHOWN)
    await page.click("#menu summary")
    await page.click("#notify")
    await expect(page.locator("#notify")).to_have_attribute("aria-pressed", "true")
    await page.evaluate("() => { window.isAway = true }")
    ada = Puppet(gateway, "ada")
    await write(page, "@ada hello")
    ada.say("done", replyTo=(await ada.next("message"))["id"])

    await wait_until(lambda: page.evaluate("() => window.shown.length"), what="a notification")
    assert await page.evaluate("() => window.shown") == ["ada replied"]
