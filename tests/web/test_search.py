"""search.js: what was said is found, marked and shown."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { startSearch } = await load("search"); const shown = [];
startSearch((seq) => shown.push(seq));
const item = (seq, text, type = "agent_response") => ({ seq, text, type, sender: "ada", ts: 1000 + seq });
const find = async (text, items) => { answers["/history"] = { items }; $("#search-text").value = text;
  $("#search").requestSubmit(); await turn(); await turn(); await turn(); };
"""


async def test_the_newest_comes_first_and_votes_are_left_out(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await find(" needle  x ", [item(1, "a Needle here"), item(2, "VOTE needle", "vote"), item(3,
          `${"y".repeat(200)} X ${"z".repeat(200)}`)]);
        const list = texts("#results .excerpt"); const marks = texts("#results mark");
        const title = texts("#results h2");
        const focused = document.activeElement.textContent;
        document.querySelectorAll("#results li button")[1].click();
        return [asked.map(([, path]) => path), list.map((text) => text.length), marks, title, focused,
          shown, $("#results").hidden, texts("#results li")]"""
    )

    assert got == [
        ["/history?limit=100&q=needle%20%20x"],
        [120 + 1 + 120, 13],
        ["X", "Needle"],
        ["2 messages"],
        "2 messages",
        [1],
        True,
        [],
    ]


async def test_a_hundred_are_the_newest_and_nothing_is_said_so(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await find("x", Array.from({ length: 100 }, (_, index) => item(index, "x")));
        const many = texts("#results h2");
        await find("x", []); const none = [texts("#results h2"), $("#results").hidden];
        $("#results").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
        const closed = [$("#results").hidden, document.activeElement.id];
        await find("x", [item(1, "x")]); await find("  ", []); const blank = $("#results").hidden;
        return [many, none, closed, blank, asked.length]"""
    )

    assert got == [
        ["100 messages (the newest)"],
        [['No messages match "x".'], False],
        [True, "search-text"],
        True,
        3,
    ]


async def test_a_search_shows_the_conversation_and_goes_with_its_words(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const heard = []; document.addEventListener("keydown", (event) => heard.push(event.key));
        await find("x", [item(1, "x")]); const tab = document.body.dataset.tab;
        const press = (key) => $("#results").dispatchEvent(new KeyboardEvent("keydown", { key,
          bubbles: true })); press("a"); press("Escape"); await find("x", [item(1, "x")]);
        $("#search-text").value = ""; $("#search-text").dispatchEvent(new Event("input"));
        return [tab, heard, $("#results").hidden]"""
    )

    assert got == ["chat", ["a"], True]
