"""The renderer of agents' text, in a real Chromium under the strictest policy."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, CDPSession, Locator, Page, async_playwright

from tests.long_texts import texts
from tests.web.browser import launch
from tests.web.files import served_files
from tests.web.texts import ADDRESSES, CONSTRUCTS, HOSTILE, KEPT, MARKS, PIECES, SHOWN

#: Of the kinds of long texts every 16th is laid out; each takes a tenth of a second.
KINDS: Final = 16
PARSE: Final = "async ([piece, size]) => (await import('/rendering.js')).parseMany(JSON.parse(piece), size)"


class Sheet:
    """An empty page that renders texts and keeps account of what else happened in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.surprises: list[str] = []

    async def open(self, origin: str) -> None:
        await self.page.goto(origin)
        await self.call("visible", "")  # loads the modules: every request from here on is one too many
        self.page.on("request", lambda request: self.surprises.append(request.url))
        self.page.on("dialog", lambda dialog: self.surprises.append(dialog.message))
        self.page.on("pageerror", lambda error: self.surprises.append(str(error)))
        self.page.on("popup", lambda popup: self.surprises.append(popup.url))
        await self.page.evaluate(
            "() => { window.happened = []; window.ran = () => happened.push('ran');"
            " const note = (event) => happened.push(event.violatedDirective);"
            " document.addEventListener('securitypolicyviolation', note); }"
        )

    async def call(self, name: str, *arguments: object) -> Any:
        """Call a function of rendering.js; ASCII carries what UTF-8 cannot: half a pair."""
        code = "async ([name, args]) => (await import('/rendering.js'))[name](...JSON.parse(args))"
        return await self.page.evaluate(code, [name, json.dumps(arguments)])

    async def happened(self) -> list[str]:
        """Name the scripts that ran, what the policy had to stop, and all that was loaded."""
        await self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return [*await self.page.evaluate("() => window.happened"), *self.surprises]

    async def copied(self, button: Locator) -> str:
        """Press a button that copies; give what the clipboard then has."""
        await button.click()
        await self.page.get_by_role("button", name="Copied").wait_for()
        return str(await self.page.evaluate("() => (window.board ?? navigator.clipboard).readText()"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sheet(browser: Browser, origin: str) -> AsyncIterator[Sheet]:
    context = await browser.new_context()
    await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    sheet = Sheet(await context.new_page())
    await sheet.open(origin)
    yield sheet
    await context.close()


@pytest.mark.parametrize(("source", "expected"), CONSTRUCTS.values(), ids=CONSTRUCTS)
async def test_markdown_becomes_elements(sheet: Sheet, source: str, expected: str) -> None:
    shown = await sheet.call("show", source)

    assert shown["html"] == expected
    assert shown["strays"] == []


@pytest.mark.parametrize("address", ADDRESSES, ids=ascii)
async def test_what_is_no_web_or_mail_address_stays_text(sheet: Sheet, address: str) -> None:
    sources = [f"[x]({address})", f"[x](<{address}>)", f"![x]({address})", f"<{address}>"]

    for source, shown in zip(sources, await sheet.call("showEach", sources), strict=True):
        assert shown["text"] == source.translate(SHOWN)
        assert "<a" not in shown["html"]


@pytest.mark.parametrize("source", HOSTILE)
async def test_html_is_shown_as_it_was_written(sheet: Sheet, source: str) -> None:
    sources = [source, f"**{source}**", f"> - {source}", f"`` {source} ``", f"```{source}\n{source}\n```"]

    for shown in await sheet.call("showEach", sources):
        assert source in shown["text"]
        assert shown["strays"] == []
    assert await sheet.happened() == []


@pytest.mark.parametrize(("source", "text", "title"), MARKS.values(), ids=MARKS)
async def test_what_a_browser_would_hide_is_marked(sheet: Sheet, source: str, text: str, title: str) -> None:
    for shown in await sheet.call("showEach", [source, f"**{source}**", f"```\n{source}\n```"]):
        assert text in shown["text"]
        assert shown["titles"] == [title]


async def test_half_a_surrogate_pair_is_marked(sheet: Sheet) -> None:
    high, low = "\ud83d", "\ude00"
    texts = [
        shown["text"] for shown in await sheet.call("showEach", [f"a{high}b", f"a{low}b", f"a{low}{high}b"])
    ]

    assert texts == ["aU+D83Db", "aU+DE00b", "aU+DE00 U+D83Db"]


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
async def test_what_a_script_or_an_emoji_needs_is_kept(sheet: Sheet, source: str) -> None:
    assert (await sheet.call("show", source))["html"] == f"<p>{source}</p>".replace("\u00a0", "&nbsp;")
    assert await sheet.call("visible", source) == source


async def test_a_text_for_a_place_without_elements_has_its_marks_in_brackets(sheet: Sheet) -> None:
    assert await sheet.call("visible", "a\u202eb\r\nc\x1b\x07") == "a<U+202E>b\nc<␛ ␇>"


async def test_every_block_finds_its_own_direction(sheet: Sheet) -> None:
    await sheet.call("show", "مرحبا\n\nhello\n\n- שלום\n\n```\nمرحبا\n```")
    directions = await sheet.page.locator("main > *").evaluate_all(
        "all => all.map((block) => [block.localName, getComputedStyle(block).direction])"
    )

    assert directions == [["p", "rtl"], ["p", "ltr"], ["ul", "rtl"], ["figure", "ltr"]]


async def test_a_link_opens_elsewhere_without_a_word_about_us(sheet: Sheet) -> None:
    await sheet.call("show", "[a](https://h.i/ä?b='c)")
    link = sheet.page.locator("main a")

    assert await link.get_attribute("href") == "https://h.i/%C3%A4?b=%27c"
    assert await link.get_attribute("title") == "https://h.i/%C3%A4?b=%27c"
    assert await link.get_attribute("target") == "_blank"
    assert await link.get_attribute("rel") == "noopener noreferrer nofollow"


@pytest.mark.parametrize(
    "hidden", ["\u202e", "\u200b", "\u00ad", "\t", "\x01", "\ufe0f", "\\", "\ufffe"], ids=ascii
)
async def test_no_link_leads_elsewhere_than_is_read(sheet: Sheet, hidden: str) -> None:
    # A parser of addresses drops some of these, turns others into something else.
    for source in (
        f"[x](<https://h{hidden}.i>)",
        f"[x](<https://h.i/{hidden}y>)",
        f"[x](<mailto:a@h{hidden}.i>)",
    ):
        shown = await sheet.call("show", source)

        assert ">x</a>" not in shown["html"]


async def test_a_code_block_is_copied_exactly(sheet: Sheet) -> None:
    source = "a\u202eb\t\x1b[0m\r\n  **c** \u200b"
    await sheet.call("show", f"```\n{source}\n```\n\n```\nother\n```")

    assert await sheet.copied(sheet.page.locator("main .copy").first) == source


async def test_a_code_block_is_copied_without_a_clipboard_object(sheet: Sheet) -> None:
    await sheet.call("show", "```\nolder \u202e way\n```")
    await sheet.page.evaluate(
        "() => { window.board = navigator.clipboard;"
        " Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }); }"
    )
    copied = await sheet.copied(sheet.page.locator("main .copy"))
    await sheet.page.evaluate("() => { delete navigator.clipboard; delete window.board; }")

    assert copied == "older \u202e way"


@pytest.mark.parametrize("first", ["```\nfirst\n```", "> ```\n> first\n> ```"])
async def test_a_code_block_that_was_cut_is_copied_whole(sheet: Sheet, first: str) -> None:
    code = "\n".join(f"line {number}" for number in range(500))
    await sheet.call("show", f"{first}\n- a\n  ```\n{code}\n  ```\nafter", {"limit": 1000})

    assert await sheet.copied(sheet.page.locator("main .copy").last) == code


async def test_a_short_text_has_no_button(sheet: Sheet) -> None:
    assert "more" not in (await sheet.call("show", "a" * 20000))["html"]
    assert "more" not in (await sheet.call("showPlain", "a" * 20000))["html"]


async def test_a_long_text_is_cut_at_the_end_of_a_line(sheet: Sheet) -> None:
    shown = await sheet.call("show", "one\ntwo\nthree", {"limit": 10})

    assert shown["html"] == '<p>one<br>two</p><button class="more">Show all (1 KB)</button>'


async def test_an_open_fence_is_closed_by_the_cut(sheet: Sheet) -> None:
    shown = await sheet.call("show", "```\none\ntwo\n```\n**three**", {"limit": 8})

    assert shown["html"].startswith('<figure class="code">')
    assert "<pre><code>one\n</code></pre></figure><button" in shown["html"]


@pytest.mark.parametrize(
    ("text", "at", "end"),
    [
        ("ab", 5, 2),
        ("ab", 1, 1),
        ("a😀b", 2, 1),
        ("a😀b", 3, 3),
        ("ae\u0301b", 2, 1),
        ("a👨\u200d👩b", 3, 1),
        ("a👨\u200d👩b", 4, 1),
        ("a\r\nb", 2, 1),
        ("a" + "\u0301" * 99, 50, 50),
    ],
    ids=ascii,
)
async def test_a_cut_splits_nothing_that_is_read_as_one(sheet: Sheet, text: str, at: int, end: int) -> None:
    assert await sheet.call("cutBefore", text, at) == end


async def test_short_lines_and_marks_are_cut_before_they_are_too_many_elements(sheet: Sheet) -> None:
    for source in ("- a\n" * 5000, "\0a" * 10000, "# a\n" * 5000):
        await sheet.call("show", source)

        assert await sheet.page.locator("main *").count() < 4100


@pytest.mark.parametrize(
    "source",
    ["x" * 1_000_000, "\0" + "😀" * 50_000, "a b\n" * 50_000, "ab\u202e" * 20_000],
    ids=["one line", "pairs", "lines", "marks"],
)
async def test_show_all_brings_the_rest_in_slices_frame_by_frame(sheet: Sheet, source: str) -> None:
    seen = await sheet.call("showAll", source, 5000)

    assert seen["text"] == source.replace("\0", "␀").replace("\u202e", "U+202E")
    assert seen["most"] == 1
    assert seen["longest"] <= 8000


async def test_the_focus_goes_on_where_the_rest_begins(sheet: Sheet) -> None:
    await sheet.call("show", "a" * 30000)
    await sheet.page.get_by_role("button", name="Show all (30 KB)").press("Enter")

    await sheet.page.locator("main .plain:focus").wait_for()


async def test_a_table_of_too_many_columns_is_text(sheet: Sheet) -> None:
    fits, wide = ("|a" * columns + "|\n" + "|-" * columns + "|" for columns in (64, 65))

    assert "<table>" in (await sheet.call("show", fits))["html"]
    assert "<table>" not in (await sheet.call("show", wide))["html"]


async def test_plain_text_is_shown_as_it_is(sheet: Sheet) -> None:
    shown = await sheet.call("showPlain", "# a\n<b> **c** \u202e")

    assert shown["text"] == "# a\n<b> **c** U+202E"
    assert shown["strays"] == []


async def test_random_markup_breaks_no_law(sheet: Sheet) -> None:
    assert await sheet.call("fuzz", 20240607, 3000) == []
    assert await sheet.happened() == []


@pytest.mark.parametrize("piece", ["> ", "- ", "> - ", "*a ", "1. > ", "**[a "])
async def test_nesting_has_a_floor(sheet: Sheet, piece: str) -> None:
    assert await sheet.call("deepest", piece * 3000 + "x" + "* a*" * 3000) <= 60


async def test_steps_grow_with_the_text_and_no_faster() -> None:
    # Code that the engine optimizes loses counts, how many depends on the load: so it only interprets.
    async with async_playwright() as playwright:
        browser = await launch(playwright, "--js-flags=--jitless")
        page = await browser.new_page()
        counter = await page.context.new_cdp_session(page)
        await counter.send("Profiler.enable")
        await counter.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})
        steps = {}
        with served_files() as origin:
            await page.goto(origin)
            for piece in PIECES:
                steps[piece] = [await _steps(page, counter, piece, size) for size in (8_000, 32_000)]
            await browser.close()

    assert {piece: counts for piece, counts in steps.items() if counts[1] > 4.5 * counts[0]} == {}
    assert {piece: counts for piece, counts in steps.items() if counts[1] > 100 * 32_000} == {}


async def _steps(page: Page, counter: CDPSession, piece: str, size: int) -> int:
    """Count how often the blocks of the modules' code ran, which no load of the machine changes."""
    await page.evaluate(PARSE, [json.dumps(piece), size])
    scripts = (await counter.send("Profiler.takePreciseCoverage"))["result"]
    functions = [function for script in scripts for function in script["functions"]]
    return sum(block["count"] for function in functions for block in function["ranges"])


async def test_time_grows_with_the_text_and_no_faster(sheet: Sheet) -> None:
    # What the engine does in one step, like a search in a string, costs time alone. Sixteen times
    # the text takes 16 times as long, more where garbage is collected; quadratic would be 256 times.
    clock = await sheet.page.context.new_cdp_session(sheet.page)
    await clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    times = {}
    for piece in PIECES:
        times[piece] = [await _thread_time(sheet.page, clock, piece, size) for size in (8_000, 128_000)]
    await clock.detach()

    assert {piece: pair for piece, pair in times.items() if pair[1] > 128 * max(pair[0], 0.001)} == {}


async def _thread_time(page: Page, clock: CDPSession, piece: str, size: int) -> float:
    """Measure the time that the page's thread had the processor for."""
    before = await _script_seconds(clock)
    await page.evaluate(PARSE, [json.dumps(piece), size])
    return await _script_seconds(clock) - before


async def _script_seconds(clock: CDPSession) -> float:
    metrics = (await clock.send("Performance.getMetrics"))["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


async def test_what_a_long_text_costs_to_show_is_bounded(sheet: Sheet) -> None:
    # Of both lengths the same is shown: the rest of the longer one may be looked over, not laid out.
    clock = await sheet.page.context.new_cdp_session(sheet.page)
    await clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    costs = {}
    for kind, text in list(texts(24_000))[::KINDS]:
        costs[kind] = [await _layout(sheet, clock, text, times) for times in (1, 10)]
    await clock.detach()

    assert {kind: pair for kind, pair in costs.items() if pair[1][0] > pair[0][0] + 10} == {}
    # Laying out all of it would take ten times as long.
    assert sum(pair[1][1] for pair in costs.values()) < 4 * sum(pair[0][1] for pair in costs.values())


async def _layout(sheet: Sheet, clock: CDPSession, piece: str, times: int) -> tuple[int, float]:
    """Return how many elements a text becomes, and the time that its layout took of the page's thread."""
    before = await _script_seconds(clock)
    count = await sheet.call("layOut", piece, times)
    return count, await _script_seconds(clock) - before
