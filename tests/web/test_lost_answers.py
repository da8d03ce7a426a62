"""What a person does on the page happens once, though an answer is lost; ALLSTOP waits for nothing."""

from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.browser import Troubles
from tests.web.parts import newest_session, write
from tests.web.puppet import Puppet

#: How many connections a browser has to a host.
_CONNECTIONS = 6
_LONG_POLL = """(count) => {
  const headers = { "X-Auth-Token": sessionStorage.getItem("csp-token") ?? "" };
  window.ended = 0;
  for (let at = 0; at < count; at += 1) {
    fetch(`/history?after=999999&wait=60&limit=${at + 1}`, { headers, cache: "no-store" })
      .catch(() => {}).finally(() => { window.ended += 1; });
  }
}"""


async def _lose_answers(page: Page, path: str, *, lost: int = 1) -> list[Any]:
    """Let the gateway do what is asked for at a path, but lose its first answers; return what was asked."""
    asked: list[Any] = []

    async def handle(route: Route) -> None:
        asked.append(route.request.post_data_json)
        answer = await route.fetch()
        if len(asked) <= lost:
            await route.abort("connectionreset")
        else:
            await route.fulfill(response=answer)

    await page.route(f"**{path}", handle)
    return asked


@pytest.fixture
def agents(gateway: LiveRoom, page: Page) -> list[Puppet]:
    return [Puppet(gateway, name) for name in ("ada", "bob")]


async def test_a_mode_whose_answer_is_lost_begins_once(
    gateway: LiveRoom, page: Page, agents: list[Puppet], troubles: Troubles
) -> None:
    troubles.expect("ERR_CONNECTION_RESET")
    asked = await _lose_answers(page, "/line")
    await write(page, "/mode debate tabs --agents ada,bob")
    await wait_until(lambda: len(asked) == 2, what="the repeated call")
    await expect(page.locator("#chip-text")).to_contain_text("Debate")
    await page.unroute_all(behavior="wait")

    assert asked[0]["id"] == asked[1]["id"]
    assert [item["status"] for item in gateway.gateway.get("/sessions")["items"]] == ["running"]


async def test_a_button_whose_answer_is_lost_is_pressed_once(
    gateway: LiveRoom, page: Page, agents: list[Puppet], troubles: Troubles
) -> None:
    troubles.expect("ERR_CONNECTION_RESET")
    agents[0].report("needs_approval", dialog={"tool": "Bash", "question": "May I?"})
    asked = await _lose_answers(page, "/line")
    await page.locator(".need button", has_text="Approve").first.click()
    await wait_until(lambda: len(asked) == 2, what="the repeated call")
    await page.unroute_all(behavior="wait")

    pressed = [item for item in gateway.gateway.get("/queue")["items"] if item["agent"] == "ada"]
    assert asked[0]["id"] == asked[1]["id"]
    assert len(pressed) == 1


@pytest.mark.parametrize("way", ["button", "word"])
async def test_allstop_does_not_wait_for_a_free_connection(
    gateway: LiveRoom, page: Page, agents: list[Puppet], way: str
) -> None:
    gateway.gateway.post("/mode", {"mode": "debate", "topic": "tabs", "agents": ["ada", "bob"]})
    await expect(page.locator("#chip-text")).to_contain_text("Debate")
    # More requests than the browser has connections: the next one waits for a minute.
    await page.evaluate(_LONG_POLL, 2 * _CONNECTIONS)
    if way == "button":
        await page.click("#allstop")
    else:
        await write(page, "Allstop")
    await wait_until(lambda: newest_session(gateway)["status"] == "ended", what="the end of the session")

    assert newest_session(gateway)["reason"] == "stopped_by_user"
    assert await page.evaluate("() => window.ended") == 0
