"""The page at the sizes people use: nothing overflows, every control is reached, nothing hinders anybody."""

from typing import Final

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.rooms import LiveRoom
from tests.web.conftest import Axe
from tests.web.parts import begin, see_chip
from tests.web.puppet import Puppet

SIZES: Final = {"wide": (1440, 900), "middle": (1024, 768), "narrow": (390, 844)}
DIALOG: Final = {"tool": "Bash", "arguments": "make " + "x" * 300, "question": "Go on?"}
TEXT: Final = f"""# A heading

Some **bold** words, a [link](https://example.com/{"path/" * 40}), `code`, {"W" * 300}.

```python
{"print('a very long line') # " * 12}
```

| a | b |
|---|---|
| {"cell " * 30} | 2 |

> a quote

1. one
2. two
"""


async def _busy_room(room: LiveRoom, page: Page) -> None:
    """Fill every part of the page."""
    ada, bob = Puppet(room, "ada"), Puppet(room, "a-name-of-thirty-two-characters-x")
    for agent in (ada, bob):
        # Who is not in the form yet when the debate begins does not take part.
        await page.wait_for_selector(f"#mode-agents input[value={agent.id}]", state="attached")
    await page.evaluate("() => { document.querySelector('#mode-part').open = true }")
    await begin(page, "debate", "A topic " * 20, rounds=1, ballot=True)
    usage = {"input": 100_000, "output": 9000, "model": "a-model-with-a-long-name-" + "x" * 60}
    for agent in (ada, bob):
        await agent.take_turn(TEXT, usage=usage)
    for agent in (ada, bob):
        await agent.take_turn(f"VOTE: [A]\nREASON: {'because ' * 30}")
    await see_chip(page, "Debate: done")
    room.gateway.post("/message", {"to": "all", "content": "to everybody " * 30})
    bob.deliver((await bob.next("message"))["id"], "held", "draft")
    ada.report("needs_approval", dialog=DIALOG)
    await expect(page.locator(".approval")).to_have_count(1)
    await expect(page.locator("#votes .candidate")).to_have_count(2)


@pytest.fixture(params=list(SIZES))
def size(request: pytest.FixtureRequest) -> ViewportSize:
    width, height = SIZES[request.param]
    return {"width": width, "height": height}


def _tabs(size: ViewportSize) -> list[str]:
    seen = ["chat", "screens", "board"]
    return [*seen, "agents", "session"] if size["width"] < 721 else seen


async def _turn_to(page: Page, tab: str) -> None:
    await page.click(f"#tabs [data-tab={tab}]")
    if tab == "board":
        await expect(page.locator("#board-notes .note")).to_have_count(4)


_OVERFLOWING: Final = """() => {
  const scrolls = (element) => element.closest(".screen, .code pre, .body .table");
  const out = [...document.querySelectorAll("body *")].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width && box.height && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(element);
  });
  const wide = document.documentElement.scrollWidth > innerWidth;
  const names = out.map((element) => `${element.tagName}#${element.id}.${element.className}`);
  return [...(wide ? ["the page"] : []), ...names];
}"""


async def test_nothing_overflows_and_axe_has_nothing_to_say(
    gateway: LiveRoom, page: Page, axe: Axe, size: ViewportSize
) -> None:
    await _busy_room(gateway, page)
    await page.set_viewport_size(size)
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for tab in _tabs(size):
            await _turn_to(page, tab)
            found = [item for item in await axe(page) if item["impact"] in ("serious", "critical")]
            assert found == [], f"{scheme} {tab}"
            assert [one for one in await page.evaluate(_OVERFLOWING) if ".skip" not in one] == [], tab


#: A name by which an element is the same after it was drawn anew.
_NAME: Final = """(element) => {
  const around = element.closest("[data-agent], [data-seq]")?.outerHTML.slice(0, 80);
  const { tagName, id, name, value, ariaLabel, textContent } = element;
  return [tagName, id, name, value, ariaLabel, around, textContent.slice(0, 40)].join("|");
}"""
#: What can be operated and is to be seen; of a group of radio buttons the chosen one stands for all.
_CONTROLS: Final = """() => {
  const nameOf = %s;
  const all = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  return [...document.querySelectorAll(all)].filter((element) =>
    element.checkVisibility() && !element.disabled && element.tabIndex >= 0
    && !(element.type === "radio" && !element.checked))
    .map(nameOf);
}"""


async def test_every_control_is_reached_by_tab(gateway: LiveRoom, page: Page, size: ViewportSize) -> None:
    await _busy_room(gateway, page)
    await page.set_viewport_size(size)
    for tab in _tabs(size):
        await _turn_to(page, tab)
        wanted = set(await page.evaluate(_CONTROLS % _NAME))
        assert wanted - await _reached(page, len(wanted) + 10) == set(), tab


async def _reached(page: Page, presses: int) -> set[str]:
    """Return what has had the focus after so many presses of Tab."""
    await page.evaluate("() => document.activeElement.blur()")
    found: set[str] = set()
    for _ in range(presses):
        await page.keyboard.press("Tab")
        found.add(str(await page.evaluate(f"() => ({_NAME})(document.activeElement)")))
    return found


async def test_allstop_is_in_sight_in_every_part(gateway: LiveRoom, page: Page, size: ViewportSize) -> None:
    await _busy_room(gateway, page)
    await page.set_viewport_size(size)
    for tab in _tabs(size):
        await _turn_to(page, tab)
        await expect(page.locator("#allstop")).to_be_in_viewport(ratio=1)
        await page.click("#allstop", trial=True)


async def test_colours_can_be_chosen_and_stay(page: Page) -> None:
    back = "() => getComputedStyle(document.body).backgroundColor"
    await page.emulate_media(color_scheme="light")
    light = await page.evaluate(back)
    await page.click("#menu summary")
    await page.select_option("#theme", "dark")
    dark = await page.evaluate(back)
    await page.reload()
    await page.wait_for_selector('body[data-room="open"]')

    assert dark != light
    assert await page.evaluate(back) == dark


async def test_a_page_that_is_not_let_in_says_what_to_do(gateway: LiveRoom, page: Page, axe: Axe) -> None:
    await page.click("#menu summary")
    await page.click("#leave")

    await expect(page.locator("#gate")).to_contain_text("csp web")
    await expect(page.locator("main")).to_be_hidden()
    assert [item for item in await axe(page) if item["impact"] in ("serious", "critical")] == []
