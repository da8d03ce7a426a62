"""What agents write is text, whatever it looks like; the page stays alive."""

from typing import Final

from playwright.async_api import CDPSession, Page, Request, expect

from tests.rooms import LiveRoom
from tests.web.browser import ask
from tests.web.parts import begin, see_said, write
from tests.web.puppet import Puppet

PWN: Final = "window.pwned = 1"
TEXTS: Final = {
    "script": f"<script>{PWN}</script>",
    "handler": f'<img src=x onerror="{PWN}"><svg/onload="{PWN}"><body onload="{PWN}">',
    "link": f"[click](javascript:{PWN}) [x](data:text/html,<script>{PWN}</script>) <javascript:{PWN}>",
    "image": "![x](http://evil.test/pixel.png)",
    "frame": f'<iframe srcdoc="<script>parent.{PWN}</script>"></iframe><base href="http://evil.test/">',
    "meta": '<meta http-equiv="refresh" content="0;url=http://evil.test/"><form action="http://evil.test/">',
    "fence": f"```html\n<script>{PWN}</script>\n```",
    "table": f"| <script>{PWN}</script> |\n|---|\n| <img src=x onerror={PWN}> |",
    "template": "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1}",
}
ODD: Final = {
    "ansi": ("\x1b[31mred\x1b[0m\x07", "␛[31mred␛[0m␇"),
    "override": ("user\u202etxt.exe", "userU+202Etxt.exe"),
    "zero width": ("pay\u200bpal", "payU+200Bpal"),
    "isolate": ("\u2066a\u2069", "U+2066aU+2069"),
    "tags": ("a\U000e0041b", "aU+E0041b"),
    "null": ("a\x00b", "a␀b"),
}


async def test_markup_is_shown_and_does_nothing(gateway: LiveRoom, page: Page) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if gateway.url not in request.url:
            asked.append(request.url)

    page.on("request", note)
    ada = Puppet(gateway, "ada<script>window.pwned=1</script>")
    await page.wait_for_selector("#mode-agents input", state="attached")
    for name, text in TEXTS.items():
        ada.say(text)
        ada.report("needs_approval", detail=text, dialog={"tool": text, "arguments": text, "question": text})
        await begin(page, "single", text)
        task = {"to": "nobody", "task": text[:500]}
        await ada.take_turn(text, handoff=task, usage={"input": 1, "model": text[:128]})
        gateway.gateway.post("/message", {"to": "all", "content": f"said after {name}"})
        await see_said(page, f"said after {name}")
        made = "() => [window.pwned, document.querySelectorAll('main script, iframe, base').length]"
        assert await page.evaluate(made) == [None, 0], name

    await see_said(page, "window.pwned = 1</script>")
    await write(page, "still alive")
    await see_said(page, "still alive")
    assert asked == []
    assert page.url == f"{gateway.url}/"


async def test_what_cannot_be_seen_is_made_visible(gateway: LiveRoom, page: Page) -> None:
    for text, _ in ODD.values():
        gateway.gateway.post("/message", {"to": "all", "content": text})

    await expect(page.locator("#log .body")).to_have_text([shown for _, shown in ODD.values()])


LETTERS: Final = ["A", "ش", "[[", "`", "**", "😀", "\u0301", "> ", "W\n"]


async def test_the_longest_text_there_is(gateway: LiveRoom, page: Page) -> None:
    """Text without a break costs layout dear: laid out as one word, 20,000 letters take many seconds."""
    await page.set_viewport_size({"width": 390, "height": 844})
    clock = await page.context.new_cdp_session(page)
    await clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    words = await _seconds_for(gateway, page, clock, "one word after the other ")
    costs = {letter: await _seconds_for(gateway, page, clock, letter) for letter in LETTERS}

    # The processor's time, so that other tests do not count. Quadratic would be fifty times more.
    assert {letter: cost for letter, cost in costs.items() if cost > 10 * words + 1} == {}


async def _seconds_for(room: LiveRoom, page: Page, clock: CDPSession, piece: str) -> float:
    """Show 250 kB of one piece; return how long the page's thread had the processor for it."""
    before = await _thread_seconds(clock)
    shown = await page.locator("#log .message .more").count()
    room.gateway.post("/message", {"to": "all", "content": piece * (250_000 // len(piece.encode()))})
    await expect(page.locator("#log .message .more")).to_have_count(shown + 1)
    # A frame later it has been laid out as well.
    await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return await _thread_seconds(clock) - before


async def _thread_seconds(clock: CDPSession) -> float:
    metrics = (await clock.send("Performance.getMetrics"))["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


async def test_all_of_a_long_text_can_be_seen(gateway: LiveRoom, page: Page) -> None:
    text = " ".join(f"word{index}" for index in range(25_000))
    gateway.gateway.post("/message", {"to": "all", "content": text})
    await page.click("#log .more")
    await see_said(page, "word24999")

    shown = await page.locator("#log .body").evaluate("(body) => body.textContent")
    assert shown.split() == text.split()


async def test_the_name_of_an_agent_cannot_act(gateway: LiveRoom, page: Page) -> None:
    ada = Puppet(gateway, '"><img src=x onerror=window.pwned=1>')
    ada.say("hello")
    await see_said(page, "hello")

    assert (await ask(page, "/agents"))[0]["id"] == ada.id
    assert await page.evaluate("() => window.pwned ?? null") is None
