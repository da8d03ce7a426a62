"""An API model is asked for on the page and speaks there, through all processes;
see test_addmodel.py for the form."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.agents.api_room import KEY
from tests.models.rules import Rule, Text
from tests.models.server import ModelServer
from tests.panes.place import Place
from tests.waiting import wait_until_sync
from tests.web.browser import Troubles
from tests.web.parts import see_said, see_toast, write


@pytest.mark.full
async def test_a_model_without_a_key_is_refused_and_one_with_a_key_speaks(
    context: BrowserContext, troubles: Troubles, tmp_path: Path
) -> None:
    troubles.expect("400.*/agents|409.*/agents")
    rule = Rule(match="", reply=[Text(text="a **good** day")])
    with Place(tmp_path) as place, ModelServer([rule]) as models:
        place.set(MINE=KEY)
        gateway = place.start("gateway", "--port", "0")
        shown = await context.new_page()
        await shown.goto(await asyncio.to_thread(_link, place))
        await _add(shown, "api")
        await see_toast(shown, "ANTHROPIC_API_KEY")
        await shown.click("#add-model-cancel")
        wanted = ("--provider=anthropic", "--model=claude-sonnet-5", "--key-env=MINE")
        await asyncio.to_thread(place.csp, "add", "api", *wanted, f"--base-url={models.url('api')}")
        await expect(shown.locator("[data-agent=api] .kind")).to_have_text("claude-sonnet-5")
        await write(shown, "@api good morning")
        await see_said(shown, "a good day")
        await expect(shown.locator("#spending .spent")).to_contain_text("claude-sonnet-5")
        troubles.expect("ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|WebSocket connection")
        await asyncio.to_thread(place.csp, "down")
        await asyncio.to_thread(gateway.communicate, timeout=30)

    assert KEY not in str(place.seen_commands)


def _link(place: Place) -> str:
    """Return a link to the page once there is a gateway."""
    return wait_until_sync(lambda: place.csp("web", "--no-open").out.strip(), 30, "the gateway")


async def _add(page: Page, name: str) -> None:
    await page.click("#add-model-open")
    await page.select_option("#add-model [name=provider]", "anthropic")
    await page.fill("#add-model [name=model]", "claude-sonnet-5")
    await page.fill("#add-model [name=name]", name)
    await page.click("#add-model-start")
