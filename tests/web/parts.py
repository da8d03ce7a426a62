"""What a person does on the page, and what they see there."""

from typing import Any, Final

from playwright.async_api import Page, expect

from tests.rooms import LiveRoom
from tests.web.browser import TIMEOUT_S


async def write(page: Page, text: str) -> None:
    """Type into the composer, then press Enter."""
    await page.fill("#composer-text", text)
    await page.press("#composer-text", "Enter")


#: Fills the form in one go. A field that is hidden or disabled, or lacks the choice, is waited for.
_FILL: Final = """async ([mode, goal, wanted, fields, patienceMs]) => {
  const giveUpAt = performance.now() + patienceMs;
  const ready = async (selector, isReady) => {
    for (;;) {
      const found = document.querySelector(selector);
      if (found && isReady(found)) return found;
      if (performance.now() > giveUpAt) throw new Error(`${selector} cannot be filled in`);
      await new Promise((done) => setTimeout(done, 20));
    }
  };
  const hold = (field, is) => { if (field.checked !== is) field.click(); };
  const put = (field, value) => {
    field.value = value;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  const canUse = (field) => field.checkVisibility() && !field.disabled;
  const offers = (field, value) =>
    field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value);
  document.querySelector("#mode-part").open = true;
  hold(await ready(`#mode-toggle input[value=${mode}]`, (field) => !field.disabled), true);
  put(await ready("#mode-goal", canUse), goal);
  for (const choice of document.querySelectorAll("#mode-agents input")) {
    if (wanted) hold(choice, wanted.includes(choice.value));
  }
  for (const [name, value] of Object.entries(fields)) {
    const field = await ready(`#mode-${name}`, (field) => canUse(field) && offers(field, String(value)));
    if (typeof value === "boolean") hold(field, value);
    else put(field, String(value));
  }
}"""


async def begin(page: Page, mode: str, goal: str, **fields: Any) -> None:
    """Begin a session by the form; `agents` are those who take part, all others are ids of fields.

    A script fills the form in one round trip to the browser. `begin_by_hand` is for the tests that show that
    a person can fill it.
    """
    wanted = fields.pop("agents", None)
    await page.evaluate(_FILL, [mode, goal, wanted, fields, TIMEOUT_S * 1000])
    await page.click("#mode-start")


async def begin_by_hand(page: Page, mode: str, goal: str, **fields: Any) -> None:
    """Do what `begin` does, with the mouse and the keyboard."""
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
