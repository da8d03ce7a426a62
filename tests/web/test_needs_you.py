"""The list of what needs a person, answered on the page of a real room."""

import asyncio
from typing import Final

from playwright.async_api import Locator, Page, expect

from tests.rooms import LiveRoom
from tests.web.parts import begin, messages, newest_session, see_chip
from tests.web.puppet import Puppet

DIALOG: Final = {
    "tool": "Bash",
    "arguments": '{"command": "pytest -q && rm -rf build"}',
    "question": "Do you want to proceed?",
    "choices": [{"number": 1, "label": "Yes"}, {"number": 2, "label": "No"}],
}


async def _asked(page: Page, title: str) -> Locator:
    """Return the only thing that needs the person; the title of the page counts it."""
    item = page.locator(".need[data-level=action]")
    await expect(item).to_contain_text(title)
    assert (await page.title()).startswith("(1) ")
    return item


async def _answered(page: Page) -> None:
    await expect(page.locator(".need[data-level=action]")).to_have_count(0)
    assert not (await page.title()).startswith("(")


async def test_an_approval_a_plan_and_a_tie_are_answered(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = Puppet(gateway, "gpt"), Puppet(gateway, "claude")
    gpt.report("needs_approval", dialog=DIALOG)
    item = await _asked(page, "gpt asks to run a command")
    await expect(item.locator("pre")).to_have_text("pytest -q && rm -rf build")
    await item.get_by_text("Approve", exact=True).click()
    pressed = await gpt.next("control")
    assert (pressed["control"], pressed["choice"]) == ("approve", 1)
    gpt.report("idle")
    await _answered(page)

    wanted = {"goal": "repair the parser", "builder": "gpt", "reviewer": "claude", "test": "exit 0"}
    await asyncio.to_thread(gateway.gateway.post, "/runs", wanted)
    await claude.take_turn("ACK: ready")
    await gpt.take_turn("PLAN: one step\n1. look")
    await claude.take_turn("RISK: high")
    item = await _asked(page, "needs you: approve the plan?")
    await expect(item).to_contain_text("1. look")
    await item.get_by_text("Approve the plan", exact=True).click()
    await gpt.next()
    await _answered(page)
    await asyncio.to_thread(gateway.gateway.post, "/stop", {"all": True})
    await see_chip(page, "Review: stopped")

    await begin(page, "consensus", "Tabs or spaces?")
    for agent in (gpt, claude):
        await agent.take_turn(f"I am for {agent.id}")
    labels = {"gpt": "B", "claude": "A"}
    for _ in range(2):
        for agent in (gpt, claude):
            await agent.take_turn(f"VOTE: [{labels[agent.id]}]\nREASON: because")
    item = await _asked(page, "is tied")
    await item.get_by_role("button").first.click()
    await _answered(page)

    said = messages(gateway, session=newest_session(gateway)["id"], types="system")[-1]
    assert said["text"].startswith("The tie is decided: A (")
