"""The renderer of agents' text, in a real Chromium under the strictest policy."""

import json
import random
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import Browser, CDPSession, Locator, Page

from csp.gateway.markdown_routes import markdown_tokens
from tests.long_texts import texts
from tests.web.modules import Parts
from tests.web.texts import ADDRESSES, CONSTRUCTS, HOSTILE, KEPT, MARKS, SHOWN

#: Of the kinds of long texts every 16th is laid out; each takes a tenth of a second.
KINDS: Final = 16
#: What the gateway parses, random texts are mixed of, beside words.
SIGNS: Final = (
    *("*", "**", "***", "_", "__", "~~", "`", "``", "```", "~~~", "[", "![", "]", "](https://h.i)"),
    *(
        "](javascript:f)",
        "(",
        ")",
        "<",
        ">",
        "> ",
        "- ",
        "* ",
        "1. ",
        "[ ] ",
        "[x] ",
        "# ",
        "## ",
        "---",
        "===",
    ),
    *("|", "|-|-|", "|:-:|", "\\", "\\|", "\n", "\n", "\n", "\n\n", "  ", "    ", "\t", " ", " ", "\r\n"),
    *(
        "https://h.i/",
        "<https://h.i>",
        "<b>",
        "<img src=x onerror=f()>",
        "&lt;",
        "\u202e",
        "\u200b",
        "\u200d",
    ),
    *("\ufe0f", "\0", "\x1b[31m", "\ud800", "\udc00", "\u0301" * 4, "😀", "中", "。"),
)


def parsed(text: str) -> Any:
    """Return the tokens of a text as a page gets them."""
    return msgspec.to_builtins(markdown_tokens(text))


def _mix(draw: random.Random) -> str:
    """Return signs between numbered words that no sign can be part of, so a lost or moved one shows."""
    parts: list[str] = []
    for number in range(draw.randint(2, 41)):
        word = "".join("abcdefghijklmnop"[int(digit, 16)] for digit in f"{number:x}")
        parts.append(draw.choice(SIGNS) if draw.random() < 0.67 else f"Q{word}Z")
        parts += parts[-1:] * (draw.random() < 0.2)
    return "".join(parts)


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

    async def show(self, source: str) -> Any:
        """Show a text with its markdown; tell what came of it."""
        return await self.call("show", source, parsed(source))

    async def show_each(self, sources: list[str]) -> Any:
        return await self.call("showEach", [[source, parsed(source)] for source in sources])

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
    shown = await sheet.show(source)

    assert shown["html"] == expected
    assert shown["strays"] == []


@pytest.mark.parametrize("address", ADDRESSES, ids=ascii)
async def test_what_is_no_web_or_mail_address_stays_text(sheet: Sheet, address: str) -> None:
    sources = [f"[x]({address})", f"[x](<{address}>)", f"![x]({address})", f"<{address}>"]

    for source, shown in zip(sources, await sheet.show_each(sources), strict=True):
        assert shown["text"] == source.translate(SHOWN)
        assert "<a" not in shown["html"]


@pytest.mark.parametrize("source", HOSTILE)
async def test_html_is_shown_as_it_was_written(sheet: Sheet, source: str) -> None:
    sources = [source, f"**{source}**", f"> - {source}", f"`` {source} ``", f"```{source}\n{source}\n```"]

    for shown in await sheet.show_each(sources):
        assert source in shown["text"]
        assert shown["strays"] == []
    assert await sheet.happened() == []


@pytest.mark.parametrize(("source", "text", "title"), MARKS.values(), ids=MARKS)
async def test_what_a_browser_would_hide_is_marked(sheet: Sheet, source: str, text: str, title: str) -> None:
    for shown in await sheet.show_each([source, f"**{source}**", f"```\n{source}\n```"]):
        assert text in shown["text"]
        assert shown["titles"] == [title]


async def test_half_a_surrogate_pair_is_marked(sheet: Sheet) -> None:
    high, low = "\ud83d", "\ude00"
    texts = [shown["text"] for shown in await sheet.show_each([f"a{high}b", f"a{low}b", f"a{low}{high}b"])]

    assert texts == ["aU+D83Db", "aU+DE00b", "aU+DE00 U+D83Db"]


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
async def test_what_a_script_or_an_emoji_needs_is_kept(sheet: Sheet, source: str) -> None:
    assert (await sheet.show(source))["html"] == f"<p>{source}</p>".replace("\u00a0", "&nbsp;")
    assert await sheet.call("visible", source) == source


async def test_a_text_for_a_place_without_elements_has_its_marks_in_brackets(sheet: Sheet) -> None:
    assert await sheet.call("visible", "a\u202eb\r\nc\x1b\x07") == "a<U+202E>b\nc<␛ ␇>"


async def test_every_block_finds_its_own_direction(sheet: Sheet) -> None:
    await sheet.show("مرحبا\n\nhello\n\n- שלום\n\n```\nمرحبا\n```")
    directions = await sheet.page.locator("main > *").evaluate_all(
        "all => all.map((block) => [block.localName, getComputedStyle(block).direction])"
    )

    assert directions == [["p", "rtl"], ["p", "ltr"], ["ul", "rtl"], ["figure", "ltr"]]


async def test_a_link_opens_elsewhere_without_a_word_about_us(sheet: Sheet) -> None:
    await sheet.show("[a](https://h.i/ä?b='c)")
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
        shown = await sheet.show(source)

        assert ">x</a>" not in shown["html"]


async def test_a_code_block_is_copied_exactly(sheet: Sheet) -> None:
    source = "a\u202eb\t\x1b[0m\r\n  **c** \u200b"
    await sheet.show(f"```\n{source}\n```\n\n```\nother\n```")

    assert await sheet.copied(sheet.page.locator("main .copy").first) == source


async def test_a_code_block_is_copied_without_a_clipboard_object(sheet: Sheet) -> None:
    await sheet.show("```\nolder \u202e way\n```")
    await sheet.page.evaluate(
        "() => { window.board = navigator.clipboard;"
        " Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }); }"
    )
    copied = await sheet.copied(sheet.page.locator("main .copy"))
    await sheet.page.evaluate("() => { delete navigator.clipboard; delete window.board; }")

    assert copied == "older \u202e way"


@pytest.mark.parametrize("first", ["```\nfirst\n```", "> ```\n> first\n> ```"])
@pytest.mark.parametrize("last", ["  ```\nafter", ""])
async def test_a_code_block_that_was_cut_is_copied_whole(sheet: Sheet, first: str, last: str) -> None:
    code = "\n".join(f"line {number}" for number in range(2000))
    inside = "".join(f"  {line}\n" for line in code.split("\n"))
    await sheet.show(f"{first}\n- a\n  ```\n{inside}{last}")

    assert (await sheet.copied(sheet.page.locator("main .copy").last)).rstrip("\n") == code


async def test_a_short_text_has_no_button(sheet: Sheet) -> None:
    assert "more" not in (await sheet.show("a" * 20000))["html"]
    assert "more" not in (await sheet.call("showPlain", "a" * 20000))["html"]


async def test_after_a_cut_stands_a_button(sheet: Sheet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.gateway.markdown_routes.MAX_CHARS", 10)
    shown = await sheet.show("one\ntwo\nthree")

    assert shown["html"] == '<p>one<br>two</p><button class="more">Show all (1 KB)</button>'


async def test_an_open_fence_is_closed_by_the_cut(sheet: Sheet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.gateway.markdown_routes.MAX_CHARS", 8)
    shown = await sheet.show("```\none\ntwo\n```\n**three**")

    assert shown["html"].startswith('<figure class="code">')
    assert "<pre><code>one</code></pre></figure><button" in shown["html"]


async def test_no_link_is_drawn_that_the_page_does_not_know_as_safe(sheet: Sheet) -> None:
    tokens = [
        ["p"],
        ["a", "javascript:ran()"],
        "x",
        None,
        ["a", "https://h.i"],
        ["a", "https://j.k"],
        "y",
        None,
        None,
    ]
    shown = await sheet.call("show", "text", {"length": 4, "tokens": [*tokens, None]})

    assert shown["html"] == '<p>x<a href="https://h.i/">y</a> <span class="host">(h.i)</span></p>'


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
        await sheet.show(source)

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
    await sheet.show("a" * 30000)
    await sheet.page.get_by_role("button", name="Show all (30 KB)").press("Enter")

    await sheet.page.locator("main .plain:focus").wait_for()


async def test_a_table_of_too_many_columns_is_text(sheet: Sheet) -> None:
    fits, wide = ("|a" * columns + "|\n" + "|-" * columns + "|" for columns in (64, 65))

    assert "<table>" in (await sheet.show(fits))["html"]
    assert "<table>" not in (await sheet.show(wide))["html"]


async def test_plain_text_is_shown_as_it_is(sheet: Sheet) -> None:
    shown = await sheet.call("showPlain", "# a\n<b> **c** \u202e")

    assert shown["text"] == "# a\n<b> **c** U+202E"
    assert shown["strays"] == []


async def test_random_markup_breaks_no_law(sheet: Sheet) -> None:
    draw = random.Random(20240607)
    mixes = [_mix(draw) for _ in range(3000)]

    assert await sheet.call("fuzz", [[mix, parsed(mix)] for mix in mixes]) == []
    assert await sheet.happened() == []


@pytest.mark.parametrize("piece", ["> ", "- ", "> - ", "*a ", "1. > ", "**[a "])
async def test_nesting_has_a_floor(sheet: Sheet, piece: str) -> None:
    source = piece * 3000 + "x" + "* a*" * 3000

    assert await sheet.call("deepest", source, parsed(source)) <= 60


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
    count = await sheet.call("layOut", piece * times, parsed(piece * times))
    return count, await _script_seconds(clock) - before


# --- asking the gateway ----------------------------------------------------------------------------

ASK: Final = """const { showMarkdown } = await load("markdown");
const place = (id, text) => {
  const made = document.createElement("div"); made.dataset.seq = id; $("#log").append(made);
  showMarkdown(made, id, text); return made; };
const calls = () => asked.filter(([, path]) => path.startsWith("/markdown"));
const bold = (text) => ({ length: text.length, tokens: [["p"], ["strong"], "B", null, null] });
"""


async def test_a_text_stands_as_it_is_until_its_tokens_are_here(parts: Parts) -> None:
    got = await parts.run(
        ASK
        + """let free; answers["/markdown"] = () => new Promise((done) => { free = done; });
        const one = place("1", "**a**"); const two = place("n-2", "**b**"); const before = one.innerHTML;
        await until(() => free); free({ items: { 1: bold("**a**"), "n-2": bold("**b**") } });
        await until(() => one.querySelector("strong") && two.querySelector("strong"));
        const again = place("1", "**a**");
        return [before, one.innerHTML, again.innerHTML, calls()];"""
    )

    assert got == [
        '<div class="plain" dir="auto">**a**</div>',
        '<p dir="auto"><strong>B</strong></p>',
        '<p dir="auto"><strong>B</strong></p>',
        [["GET", "/markdown?ids=1,n-2", None]],
    ]


async def test_a_text_without_signs_is_not_asked_for(parts: Parts) -> None:
    got = await parts.run(
        ASK + """const one = place("1", "so be it."); await turn(); return [one.innerHTML, calls()];"""
    )

    assert got == ['<p dir="auto">so be it.</p>', []]


async def test_a_long_text_that_was_opened_meanwhile_stays_open(parts: Parts) -> None:
    got = await parts.run(
        ASK
        + """let free; answers["/markdown"] = () => new Promise((done) => { free = done; });
        const text = "**a** ".repeat(5000); const one = place("1", text); one.querySelector(".more").click();
        await until(() => free); free({ items: { 1: { length: 4, tokens: ["x"] } } });
        await until(() => one.textContent.length === text.length); await turn();
        return [one.textContent === text, one.querySelectorAll(".more").length];"""
    )

    assert got == [True, 0]


async def test_a_text_that_was_changed_is_asked_for_again(parts: Parts) -> None:
    got = await parts.run(
        ASK
        + """answers["/markdown"] = { items: { 1: bold("**a**") } };
        const one = place("1", "**a**"); await until(() => one.querySelector("strong"));
        const two = place("1", "[removed]"); const shown = two.textContent;
        await until(() => calls().length === 2); return shown;"""
    )

    assert got == "[removed]"


async def test_what_found_no_room_is_asked_for_again_and_what_cannot_be_read_is_not(parts: Parts) -> None:
    got = await parts.run(
        ASK
        + """const rest = [{ items: { 2: bold("`b`") } }, { items: {} }];
        answers["/markdown"] = () => rest.shift();
        const one = place("1", "`a`"); const two = place("2", "`b`");
        await until(() => calls().length === 2); await turn(); await turn();
        return [one.textContent, two.textContent, calls().map(([, path]) => path)];"""
    )

    assert got == ["`a`", "B", ["/markdown?ids=1,2", "/markdown?ids=1"]]


async def test_a_gateway_that_was_away_is_asked_again(parts: Parts) -> None:
    got = await parts.run(
        ASK
        + """statuses["/markdown"] = 0; const one = place("1", "`a`");
        await until(() => calls().length === 1);
        statuses["/markdown"] = 200; answers["/markdown"] = { items: { 1: bold("`a`") } };
        await until(() => one.querySelector("strong")); return calls().length;"""
    )

    assert got == 2


async def test_what_somebody_reads_stays_where_it_is(parts: Parts) -> None:
    got = await parts.run(
        ASK
        + """const tokens = [...Array(40)].flatMap(() => [["p"], "x", null]);
        answers["/markdown"] = { items: { 1: { length: 3, tokens } } };
        const style = { height: "200px", overflow: "auto", overflowAnchor: "none" };
        Object.assign($("#log-scroller").style, style);
        const one = place("1", "`a`"); for (let at = 2; at < 60; at += 1) place(String(at), "plain words");
        const read = $("[data-seq='30']"); $("#log-scroller").scrollTop = read.offsetTop - one.offsetTop;
        const before = read.getBoundingClientRect().top; const height = one.offsetHeight;
        await until(() => one.offsetHeight > height); return read.getBoundingClientRect().top - before;"""
    )

    assert abs(got) <= 1
