"""keys.js: the keys that work everywhere on the page."""

from typing import Final

from tests.web.modules import Parts

#: Esc at chosen moments: the time between two presses decides.
PRESS: Final = """const press = (at, more = {}) => {
  const event = new KeyboardEvent("keydown", { key: "Escape", bubbles: true, ...more });
  Object.defineProperty(event, "timeStamp", { value: at });
  document.body.dispatchEvent(event);
};
const { startKeys } = await load("keys");
const room = await makeRoom({ sessions: given ?? [{ id: "s", thread: "default", status: "running" }] });
startKeys(room);
const stops = () => asked.filter(([, path]) => path === "/stop").length;
"""


async def test_two_presses_of_escape_stop_everything(parts: Parts) -> None:
    got = await parts.run(
        PRESS
        + """press(1000); const hint = $("#escape-hint").hidden; press(1799);
        return [hint, stops(), $("#escape-hint").hidden]"""
    )

    assert got == [False, 1, True]


async def test_presses_that_lie_apart_stop_nothing(parts: Parts) -> None:
    got = await parts.run(
        PRESS
        + """press(1000); press(1800); const apart = stops(); press(2000); const close = stops();
        press(2100); return [apart, close, stops()]"""
    )

    # The third press is the second half of a pair; the fourth begins another one.
    assert got == [0, 1, 1]


async def test_a_held_key_and_one_that_closes_something_do_not_count(parts: Parts) -> None:
    got = await parts.run(
        PRESS
        + """press(1000); press(1100, { repeat: true }); const held = stops();
        $("#menu").open = true; press(5000); const closed = !$("#menu").open; press(5100);
        const menu = stops();
        $("#add-model").showModal(); press(9000); press(9100);
        return [held, closed, menu, stops()]"""
    )

    assert got == [0, True, 0, 0]


async def test_without_a_session_there_is_no_hint(parts: Parts) -> None:
    assert await parts.run(PRESS + "press(1000); return $('#escape-hint').hidden", []) is True


async def test_the_hint_goes_away_by_itself(parts: Parts) -> None:
    got = await parts.run(
        "const waits = []; const real = window.setTimeout;"
        "window.setTimeout = (run, ms) => { waits.push([ms, run]); return 1; };"
        + PRESS
        + """press(1000); const [[ms, run]] = waits; run(); window.setTimeout = real;
        return [ms, $("#escape-hint").hidden]"""
    )

    assert got == [1600, True]


async def test_the_button_and_the_key_of_the_search(parts: Parts) -> None:
    got = await parts.run(
        PRESS
        + """$("#allstop").click(); const stopped = stops();
        const key = (more) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "k",
          bubbles: true, ...more }));
        key({}); const plain = document.activeElement.id; key({ ctrlKey: true });
        const control = document.activeElement.id;
        document.activeElement.blur(); key({ metaKey: true });
        return [stopped, plain, control, document.activeElement.id]"""
    )

    assert got == [1, "", "search-text", "search-text"]


async def test_a_click_elsewhere_closes_the_menu(parts: Parts) -> None:
    got = await parts.run(
        PRESS
        + """const menu = $("#menu"); menu.open = true; $("#theme").click(); const inside = menu.open;
        $("#room-name").click(); return [inside, menu.open]"""
    )

    assert got == [True, False]


async def test_the_key_of_the_search_is_not_the_browsers(parts: Parts) -> None:
    got = await parts.run(
        PRESS
        + """const key = (more) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "k",
          bubbles: true, cancelable: true, ...more })); return [key({}), key({ ctrlKey: true })]"""
    )

    assert got == [True, False]


async def test_each_hint_has_its_own_time(parts: Parts) -> None:
    got = await parts.run(
        "const cleared = []; window.setTimeout = () => 7; window.clearTimeout = (id) => cleared.push(id);"
        + PRESS
        + "press(1000); const first = [...cleared]; press(5000); return [first, cleared]"
    )

    assert got == [[0], [0, 7]]


async def test_a_menu_that_closes_gives_the_focus_back(parts: Parts) -> None:
    got = await parts.run(
        PRESS
        + """const menu = $("#menu"); menu.open = true; $("#theme").focus(); press(1000);
        const escaped = [menu.open, document.activeElement.tagName]; menu.open = true;
        $("#export-md").click(); return [escaped, menu.open]"""
    )

    assert got == [[False, "SUMMARY"], False]
