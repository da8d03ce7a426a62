"""A builder's run with its reviewer, begun, watched and decided on the page."""

import asyncio

from playwright.async_api import Page, expect

from tests.rooms import LiveRoom
from tests.web.parts import see_chip
from tests.web.puppet import Puppet


async def _begin(room: LiveRoom, page: Page) -> tuple[Puppet, Puppet]:
    pair = Puppet(room, "gpt"), Puppet(room, "claude")
    await page.wait_for_selector("#mode-builder option[value=claude]", state="attached")
    await page.check("#mode-toggle input[value=review]", force=True)
    await page.select_option("#mode-builder", "gpt")
    await page.select_option("#mode-reviewer", "claude")
    await page.fill("#mode-goal", "mend the parser")
    await page.click("#mode-start")
    return pair


async def test_a_run_from_its_plan_to_its_branch(gateway: LiveRoom, page: Page) -> None:
    builder, reviewer = Puppet(gateway, "gpt"), Puppet(gateway, "claude")
    wanted = {"goal": "mend the parser", "builder": "gpt", "reviewer": "claude", "test": "exit 0"}
    await asyncio.to_thread(gateway.gateway.post, "/runs", wanted)
    run = page.locator("#run")
    await reviewer.take_turn("ACK: ready")
    await builder.take_turn("PLAN: two steps\n1. <b>look</b>\n2. mend")
    await expect(run.locator(".plan li")).to_have_text(["<b>look</b>", "mend"])
    await reviewer.take_turn("RISK: high\nNOTE: keep the old one")
    await expect(run).to_contain_text("approval, waiting for you")
    await expect(run).to_contain_text("keep the old one")
    await page.click("#run-approve")
    await builder.take_turn("DONE: it is mended")
    await expect(run.locator(".verdict")).to_have_text("Tests passed ✓: exit 0")
    await reviewer.take_turn("DECISION: revise\nFINDING: major - it leaks")
    await expect(run.locator(".findings")).to_contain_text("major, open: it leaks")
    await builder.take_turn("DONE: it leaks no more")
    await reviewer.take_turn("DECISION: accept\nRESOLVED: f-1")
    await builder.take_turn("END: all is well")

    await see_chip(page, "Review: accepted")
    await expect(run).to_contain_text("major, resolved: it leaks")
    await run.get_by_role("button", name="Finding f-1 was right").click()
    await expect(run.locator(".findings")).to_contain_text("(confirmed)")
    assert gateway.gateway.get("/runs")["stats"][0]["confirmed"] == 1


async def test_a_run_is_halted_and_aborted_with_a_reason(gateway: LiveRoom, page: Page) -> None:
    _, reviewer = await _begin(gateway, page)
    await reviewer.next()
    await page.click("#run-halt")
    await expect(page.locator("#run")).to_contain_text("halted, waiting for you")
    await page.fill("#run input", "it is not needed any more")
    await page.click("#run-abort")

    await see_chip(page, "Review: ended after a halt")
    items = gateway.gateway.get("/runs")["items"]
    assert [item["reason"] for item in items] == ["halted"]


async def test_nobody_reviews_itself(gateway: LiveRoom, page: Page) -> None:
    Puppet(gateway, "gpt")
    await page.wait_for_selector("#mode-builder option[value=gpt]", state="attached")
    await page.check("#mode-toggle input[value=review]", force=True)
    await page.fill("#mode-goal", "alone")
    await page.click("#mode-start")

    words = "Pick two different agents: a builder and a reviewer."
    await expect(page.locator("#mode-reviewer-error")).to_have_text(words)
    assert gateway.gateway.get("/runs")["items"] == []
