"""What a person does on the page, and what they see there."""

from typing import Any

from playwright.async_api import Page, expect

from tests.rooms import LiveRoom


async def write(page: Page, text: str) -> None:
    """Type into the composer, then press Enter."""
    await page.fill("#composer-text", text)
    await page.press("#composer-text", "Enter")


async def begin(page: Page, mode: str, goal: str, **fields: Any) -> None:
    """Begin a session by the form; `agents` are those who take part, all others are ids of fields."""
    await page.evaluate("() => { document.querySelector('#mode-part').open = true }")
    await page.check(f"#mode-toggle input[value={mode}]", force=True)
    await page.fill("#mode-goal", goal)
    wanted = fields.pop("agents", None)
    for choice in await page.query_selector_all("#mode-agents input"):
        name = await choice.get_attribute("value")
        if wanted is not None and await choice.is_checked() != (name in wanted):
            await choice.click(force=True)
    for name, value in fields.items():
        await _set(page, name, value)
    await page.click("#mode-start")


async def _set(page: Page, name: str, value: Any) -> None:
    field = page.locator(f"#mode-{name}")
    if isinstance(value, bool):
        await field.set_checked(value)
    elif await field.evaluate("(field) => field.tagName") == "SELECT":
        await field.select_option(str(value))
    else:
        await field.fill(str(value))


async def see_chip(page: Page, text: str) -> None:
    await expect(page.locator("#chip-text")).to_contain_text(text)


async def see_said(page: Page, text: str) -> None:
    """Wait until a text stands in the conversation."""
    await expect(page.locator("#log")).to_contain_text(text)


async def see_toast(page: Page, text: str) -> None:
    await expect(page.locator("#toasts")).to_contain_text(text)


def messages(room: LiveRoom, **query: Any) -> list[dict[str, Any]]:
    """Return what the room's history holds."""
    items: list[dict[str, Any]] = room.gateway.get("/history", limit=1000, **query)["items"]
    return items


def newest_session(room: LiveRoom) -> dict[str, Any]:
    items = room.gateway.get("/sessions")["items"]
    return items[-1] if items else {}
