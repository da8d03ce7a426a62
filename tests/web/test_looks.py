"""The page at the sizes people use: nothing overflows, every control is reached, nothing hinders anybody."""

from collections.abc import AsyncIterator, Iterator
from typing import Final, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.rooms import LiveRoom, free_port
from tests.web.browser import Troubles, enter, new_context
from tests.web.conftest import Axe
from tests.web.parts import begin, see_chip
from tests.web.puppet import Puppet
from tests.web.threaded import GatewayThread, ThreadedRoom

#: What has room for all parts, what has not; between them only the panels' widths change.
SIZES: Final = {"wide": (1400, 900), "middle": (820, 1000), "narrow": (390, 844)}
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


async def _fill(room: LiveRoom, page: Page) -> None:
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
    await expect(page.locator(".need[data-level=action]")).to_have_count(1)
    await expect(page.locator("#votes .candidate")).to_have_count(2)


@pytest.fixture(scope="module")
def busy_room(tmp_path_factory: pytest.TempPathFactory, gateway_thread: GatewayThread) -> Iterator[LiveRoom]:
    folder = tmp_path_factory.mktemp("looks") / "room"
    with ThreadedRoom(folder, gateway_thread, port=free_port(), is_cached=True) as room:
        yield room


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy_page(browser: Browser, busy_room: LiveRoom) -> AsyncIterator[Page]:
    """One page with every part filled; tests look at it without changing it."""
    context = await new_context(browser)
    troubles = Troubles()
    troubles.listen(context)
    page = await enter(context, busy_room)
    await _fill(busy_room, page)
    yield page
    await context.close()
    assert troubles.unexpected == []


@pytest_asyncio.fixture(loop_scope="session", params=list(SIZES))
async def size(request: pytest.FixtureRequest, busy_page: Page) -> ViewportSize:
    width, height = SIZES[request.param]
    size: ViewportSize = {"width": width, "height": height}
    await busy_page.set_viewport_size(size)
    return size


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


async def test_nothing_overflows(busy_page: Page, size: ViewportSize) -> None:
    for tab in _tabs(size):
        await _turn_to(busy_page, tab)
        assert [one for one in await busy_page.evaluate(_OVERFLOWING) if ".skip" not in one] == [], tab


#: Controls and headings that lie over each other; what scrolls out of its box is not there.
_OVERLAPPING: Final = """() => {
  const all = "button, select, input, textarea, summary, .chip, h1, h2, .link-state, .state, .name";
  const apart = ".mode-choice, .agent-choice, dialog, .actions, .skip";
  const isShown = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 1;
  const shown = [...document.querySelectorAll(all)].filter((one) => isShown(one) && !one.closest(apart));
  const isCut = (element, y) => {
    for (let box = element.parentElement; box; box = box.parentElement) {
      const { top, bottom } = box.getBoundingClientRect();
      if (getComputedStyle(box).overflowY !== "visible" && (y < top || y > bottom)) return true;
    }
    return false;
  };
  const out = [];
  shown.forEach((one, index) => shown.slice(index + 1).forEach((other) => {
    if (one.contains(other) || other.contains(one)) return;
    const [a, b] = [one, other].map((element) => element.getBoundingClientRect());
    const [top, bottom] = [Math.max(a.top, b.top), Math.min(a.bottom, b.bottom)];
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    if (width <= 2 || bottom - top <= 2) return;
    if (isCut(one, (top + bottom) / 2) || isCut(other, (top + bottom) / 2)) return;
    out.push([one, other].map((element) =>
      element.id || element.className || element.textContent).join(" over "));
  }));
  return out;
}"""


async def test_nothing_overlaps(busy_page: Page, size: ViewportSize) -> None:
    for tab in _tabs(size):
        await _turn_to(busy_page, tab)
        assert await busy_page.evaluate(_OVERLAPPING) == [], tab


#: The names in the cards of agents that break, each in turn in the card of the agent that asks for something.
_BROKEN_AGENTS: Final = """(names) => {
  const name = document.querySelector(".agent[data-state=needs_approval] .name");
  const before = name.textContent;
  const broken = names.filter((one) => {
    name.textContent = one;
    const words = document.createRange();
    words.selectNodeContents(name);
    return words.getClientRects().length !== 1;
  });
  name.textContent = before;
  return broken;
}"""


async def test_the_name_of_an_agent_is_on_one_line(busy_page: Page) -> None:
    for width in (1400, 1200, 820, 390):
        await busy_page.set_viewport_size({"width": width, "height": 900})
        if width < 721:
            await _turn_to(busy_page, "agents")
        names = ["claude", "gemini", "copilot", "orchestrator"]
        assert await busy_page.evaluate(_BROKEN_AGENTS, names) == [], width


#: Whether the hint in the empty field for a message has a place.
_HINT_FITS: Final = """() => {
  const field = document.querySelector("#composer-text");
  const measure = document.createElement("canvas").getContext("2d");
  measure.font = getComputedStyle(field).font;
  const inner = field.clientWidth - 2 * parseFloat(getComputedStyle(field).paddingLeft);
  return measure.measureText(field.placeholder).width <= inner;
}"""


async def test_the_hint_of_the_composer_is_not_cut(busy_page: Page, size: ViewportSize) -> None:
    await _turn_to(busy_page, "chat")
    assert await busy_page.evaluate(_HINT_FITS)


#: The names of modes that break or stick out, each as wide as it is when it is chosen. The modes of an
#: orchestrator are offered only where there is one.
_BROKEN_NAMES: Final = """() => [...document.querySelectorAll(".mode-choice")].filter((choice) => {
  const [span, wasHidden] = [choice.querySelector("span"), choice.hidden];
  choice.hidden = false;
  span.style.fontWeight = "650";
  const words = document.createRange();
  words.selectNodeContents(span);
  const isWide = words.getBoundingClientRect().width > span.clientWidth;
  const isBroken = isWide || words.getClientRects().length > 1;
  choice.hidden = wasHidden;
  span.style.fontWeight = "";
  return isBroken;
}).map((choice) => choice.textContent)"""


async def test_the_name_of_every_mode_is_on_one_line(busy_page: Page) -> None:
    await busy_page.evaluate("() => { document.querySelector('#mode-part').open = true }")
    for width in (1440, 1200, 820):
        await busy_page.set_viewport_size({"width": width, "height": 900})
        assert await busy_page.evaluate(_BROKEN_NAMES) == [], width


#: Of the size between the two others nothing but the widths is its own.
_LOOKED_AT: Final = [
    pytest.param("wide", "light"),
    pytest.param("wide", "dark"),
    pytest.param("narrow", "light"),
    pytest.param("narrow", "dark", marks=pytest.mark.full),
    pytest.param("middle", "light", marks=pytest.mark.full),
    pytest.param("middle", "dark", marks=pytest.mark.full),
]


@pytest.mark.parametrize(("size", "scheme"), _LOOKED_AT, indirect=["size"])
async def test_axe_has_nothing_to_say(
    busy_page: Page, axe: Axe, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    """The colours decide about contrast alone, so all other rules are asked once for each size."""
    await busy_page.emulate_media(color_scheme=scheme)
    rules = ("color-contrast",) if scheme == "dark" else ()
    for tab in _tabs(size):
        await _turn_to(busy_page, tab)
        assert await axe(busy_page, *rules) == [], f"{scheme} {tab}"


#: A name by which an element is the same after it was drawn anew.
_NAME: Final = """(element) => {
  const { agent, seq } = element.closest("[data-agent], [data-seq]")?.dataset ?? {};
  const around = agent ?? seq;
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


@pytest.mark.parametrize(
    "size", ["wide", pytest.param("middle", marks=pytest.mark.full), "narrow"], indirect=True
)
async def test_every_control_is_reached_by_tab(busy_page: Page, size: ViewportSize) -> None:
    for tab in _tabs(size):
        await _turn_to(busy_page, tab)
        wanted = set(await busy_page.evaluate(_CONTROLS % _NAME))
        # The buttons of a message are there only while the focus is in it.
        reached = await _reached(busy_page, len(wanted) + 40)
        # Who has reached the newest message needs no button that goes there.
        assert {one for one in wanted - reached if "|jump|" not in one} == set(), tab


async def _reached(page: Page, presses: int) -> set[str]:
    """Return what has had the focus after so many presses of Tab."""
    await page.evaluate(
        f"""() => {{
          window.reached = [];
          window.noteFocus ??= ({{ target }}) => window.reached.push(({_NAME})(target));
          document.addEventListener("focusin", window.noteFocus);
          document.activeElement.blur();
        }}"""
    )
    for _ in range(presses):
        await page.keyboard.press("Tab")
    return set(await page.evaluate("() => window.reached"))


async def test_allstop_is_in_sight_in_every_part(busy_page: Page, size: ViewportSize) -> None:
    for tab in _tabs(size):
        await _turn_to(busy_page, tab)
        await expect(busy_page.locator("#allstop")).to_be_in_viewport(ratio=1)
        await busy_page.click("#allstop", trial=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_allstop_is_red_with_white_letters(page: Page, scheme: Literal["light", "dark"]) -> None:
    await page.emulate_media(color_scheme=scheme)
    colours = await page.locator("#allstop").evaluate(
        "(button) => { const { backgroundColor, color } = getComputedStyle(button);"
        " return [backgroundColor, color].map((text) => text.match(/[0-9]+/g).slice(0, 3).map(Number)); }"
    )
    (red, green, blue), letters = colours

    assert red > 150 and green < 80 and blue < 80
    assert letters == [255, 255, 255]


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
