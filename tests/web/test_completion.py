"""completion.js: what can be completed at the caret."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { Completion } = await load("completion"); const input = $("#composer-text");
const list = $("#completion");
const word = (text) => ({ word: text, about: "x" });
const words = { "@": ["@all ", "@ada ", "@adele ",
  ..."12345678".split("").map((n) => `@n${n} `)].map(word), "/": [word("/stop ")],
  "{": [word("{ada.last}")], "!": [word("!ada ")] };
const completion = new Completion(input, list, () => words);
const type = (text, at = text.length) => { input.value = text; input.setSelectionRange(at, at);
input.dispatchEvent(new Event("input")); return texts("#completion b"); };
const key = (name, more = {}) => completion.takes(new KeyboardEvent("keydown", { key: name,
  cancelable: true, ...more }));
const chosen = () => [...list.children].findIndex((option) =>
  option.getAttribute("aria-selected") === "true");
"""


async def test_what_is_offered(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """return [type("@A"), type("hi @ad"), type("x@ad"), type("@ada "), type("@n").length,
          type("@").length, type("/s"), type("see /s"), type("a {ada"), type("!a"), type("@ad z", 3),
          list.hidden, type(""), list.hidden, input.getAttribute("aria-activedescendant")]"""
    )

    assert got == [
        ["@all ", "@ada ", "@adele "],
        ["@ada ", "@adele "],
        [],
        [],
        8,
        8,
        ["/stop "],
        [],
        ["{ada.last}"],
        ["!ada "],
        ["@ada ", "@adele "],
        False,
        [],
        True,
        None,
    ]


async def test_keys_choose_and_complete(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const idle = key("ArrowDown"); type("say @ad"); const first = chosen(); key("ArrowDown");
        const second = chosen(); key("ArrowDown"); const around = chosen();
        key("ArrowUp"); const back = chosen();
          const active = input.getAttribute("aria-activedescendant");
        const other = [key("x"), key("Tab", { shiftKey: true })];
        const took = key("Tab"); const value = input.value; const closed = list.hidden;
        type("@ad"); const escaped = [key("Escape"), list.hidden, input.value]; type("@ad x", 3);
        list.children[0].click();
        return [idle, first, second, around, back, active, other, took, value, closed, escaped,
          input.value, input.selectionStart]"""
    )

    assert got == [
        False, 0, 1, 0, 1, "completion-1", [False, False], True, "say @adele ", True, [True, True, "@ad"],
        "@ada  x", 5,
    ]  # fmt: skip


async def test_a_key_that_was_used_is_used_by_nobody_else(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const heard = []; document.addEventListener("keydown", (event) => heard.push(event.key));
        input.addEventListener("keydown", (event) => completion.takes(event)); type("@ad");
        const press = (name) => input.dispatchEvent(new KeyboardEvent("keydown", { key: name,
          bubbles: true, cancelable: true })); return [press("ArrowDown"), press("x"), heard]"""
    )

    assert got == [False, True, ["x"]]


async def test_other_words_begin_with_the_first_of_them(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """type("@ad"); key("ArrowDown"); const second = chosen(); type("@a"); return [second, chosen()]"""
    )

    assert got == [1, 0]


async def test_a_press_of_the_pointer_does_not_take_the_focus(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """type("@ad");
        return list.children[0].dispatchEvent(new MouseEvent("mousedown", { cancelable: true }))"""
    )

    assert got is False


async def test_the_list_closes_with_the_focus_and_no_later(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const later = []; window.setTimeout = (run) => later.push(run);
        type("@ad"); input.dispatchEvent(new Event("blur")); const closed = list.hidden; type("@ad");
        later.forEach((run) => run()); return [closed, list.hidden]"""
    )

    assert got == [True, False]
