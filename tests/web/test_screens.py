"""screens.js: the screens of the agents, live, as long as somebody looks."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { Screens } = await load("screens"); const { showTab } = await load("tabs");
const watched = [];
const agent = (id, fields = {}) => ({ id, state: "idle", online: true, ...fields });
const room = await makeRoom({ agents: [agent("ada", { state: "needs_approval" }), agent("bob",
  { online: false, state: "offline" })] });
Object.assign(room, { watch: (id) => watched.push(`+${id}`), unwatch: (id) => watched.push(`-${id}`) });
const screens = new Screens(room);
const show = (id, rows, more = {}) => room.live.tell({ agent: id, screen: { rows, cols: 20, ...more } });
"""


async def test_screens_are_watched_while_they_are_in_sight(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const take = () => watched.splice(0);
        const before = take(); showTab("screens"); const open = take();
        const titles = texts("figcaption"); const empty = texts("pre.screen");
        screens.choose("ada"); const one = [take(), $("#screens").dataset.one, $("#screen-choice").value];
        room.agents = [agent("ada"), agent("cy")]; room.agentsChanged.tell(); const same = take();
        screens.choose(""); const all = [take(), $("#screens").dataset.one,
          [...$("#screen-choice").options].map((o) => o.value)];
        showTab("chat"); return [before, open, titles, empty, one, same, all, take(),
          texts(".screen-view")]"""
    )

    assert got == [
        [],
        ["+ada", "+bob"],
        ["ada · needs approval", "bob · offline"],
        ["waiting for its screen…", "it is offline"],
        [["-bob"], "true", "ada"],
        [],
        [["+cy"], "false", ["", "ada", "cy"]],
        ["-ada", "-cy"],
        [],
    ]


async def test_a_hidden_page_watches_nothing(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """showTab("screens"); watched.length = 0;
        Object.defineProperty(document, "hidden", { get: () => window.isAway, configurable: true });
        window.isAway = true; document.dispatchEvent(new Event("visibilitychange"));
        const away = watched.splice(0);
        window.isAway = false; document.dispatchEvent(new Event("visibilitychange"));
        return [away, watched]"""
    )

    assert got == [["-ada", "-bob"], ["+ada", "+bob"]]


async def test_rows_with_their_styles_and_the_cursor(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """showTab("screens");
        show("ada", [[["plain"], ["bold", { bold: true, fg: "1" }]], [], [["x", { reverse: true }]]],
          { cursor: [0, 6] });
        const rows = [...document.querySelectorAll("[aria-label='Screen of ada'] .row")];
        const spans = [...rows[0].children].map((span) => [span.textContent, span.className,
          span.style.color]);
        const blank = rows[1].textContent; const reverse = [rows[2].firstChild.style.color,
          rows[2].firstChild.style.backgroundColor];
        const kept = rows[1]; show("ada", [[["new"]], []], { cursor: [1, 2] });
        const after = [...document.querySelectorAll("[aria-label='Screen of ada'] .row")];
        return [spans, blank, reverse, after.map((row) => row.textContent), after[1] === kept,
          [...after[1].children].map((span) => [span.textContent, span.className]),
            $("[aria-label='Screen of ada']").style.getPropertyValue("--cols")]"""
    )

    assert got == [
        [
            ["plain", "", ""],
            ["b", "bold", "rgb(224, 108, 117)"],
            ["o", "bold cursor", "rgb(224, 108, 117)"],
            ["ld", "bold", "rgb(224, 108, 117)"],
        ],
        "\u00a0",
        ["var(--screen-back)", "var(--screen-text)"],
        ["new", "   \u00a0"],
        True,
        [["  ", ""], [" ", "cursor"]],
        "20",
    ]


async def test_colours_of_the_wire(parts: Parts) -> None:
    got = await parts.run(
        "const { colour } = await load('screens'); return given.map(colour)",
        [
            "0",
            "15",
            "16",
            "21",
            "196",
            "231",
            "232",
            "255",
            "256",
            "-1",
            "x",
            "#AFafaf",
            "#12345",
            "front",
            "back",
        ],
    )

    assert got == [
        "#1d1f21",
        "#ffffff",
        "rgb(0, 0, 0)",
        "rgb(0, 0, 255)",
        "rgb(255, 0, 0)",
        "rgb(255, 255, 255)",
        "rgb(8, 8, 8)",
        "rgb(238, 238, 238)",
        "inherit",
        "inherit",
        "inherit",
        "#AFafaf",
        "inherit",
        "var(--screen-text)",
        "var(--screen-back)",
    ]


async def test_a_screen_stays_when_its_agent_does_something_else(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """showTab("screens"); show("ada", [[["hello"]]]); const row = $(".screen .row");
        room.agents = [agent("ada", { state: "busy" })]; room.agentsChanged.tell();
        show("ada", [[["hello"]]]); const part = row.firstChild; show("ada", [[["hello"]]]);
        return [texts(".screen"), texts("figcaption"), part.isConnected]"""
    )

    assert got == [["hello"], ["ada · working"], True]


async def test_a_cursor_behind_the_last_letter_has_a_cell_of_its_own(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """showTab("screens"); show("ada", [[["ab"]]], { cursor: [0, 2] });
        const next = texts(".screen .cursor"); show("ada", [[["ab"]]], { cursor: [0, 4] });
        return [next, texts(".screen .row")]"""
    )

    assert got == [[" "], ["ab   "]]


async def test_a_long_screen_shows_where_the_agent_works_until_it_is_scrolled(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """showTab("screens"); const box = $("pre.screen"); box.style.maxHeight = "100px";
        box.style.overflow = "auto";
        const rows = [...Array(40).keys()].map((n) => (n < 30 ? [[`row ${n}`]] : [])); show("ada", rows);
        const sees = (n) => { const row = box.children[n].getBoundingClientRect();
          const { top, bottom } = box.getBoundingClientRect();
          return row.bottom <= bottom + 1 && row.top >= top - 1; };
        const first = [sees(29), sees(0)]; show("ada", [...rows.slice(0, 30), [["more"]], ...rows.slice(31)]);
        const later = sees(30); box.scrollTop = 0; show("ada", rows);
        return [first, later, sees(0)]"""
    )

    assert got == [[True, False], True, True]
