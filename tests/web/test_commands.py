"""commands.js: the commands that the page does itself."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { runCommand } = await load("commands");
const type = async (name, rest = "") => runCommand(name, rest);
"""


async def test_commands_that_turn_to_a_part_of_the_page(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const searched = []; for (const id of ["search",
          "board-search"]) $(`#${id}`).addEventListener("submit", (event) => { event.preventDefault();
        searched.push(id); });
        $("#mode-part").open = false; const mode = [await type("mode"), document.body.dataset.tab,
          $("#mode-part").open, document.activeElement.id];
        const search = [await type("search", "a b"), $("#search-text").value];
        const board = [await type("board", "c"), document.body.dataset.tab, $("#board-q").value,
          document.activeElement.id];
        await type("help"); return [mode, search, board, searched, await type("dance"),
          texts(".toast p")[0].split(" · ").length === catalogue.commands.length,
          texts(".toast p")[0].includes("/skip [AGENT]: skip the current speaker"), texts(".toast p")[1]]"""
    )

    assert got == [
        [True, "session", True, "mode-goal"],
        [True, "a b"],
        [True, "board", "c", "board-q"],
        ["search", "board-search"],
        False,
        True,
        True,
        "there is no /dance here (see /help)",
    ]


async def test_the_history_is_saved_as_markdown(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const saved = []; URL.createObjectURL = () => "blob:x"; answers["/health"] = { room: "den" };
        HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
        answers["/history"] = { items: [] }; const done = await type("export"); return [done, saved]"""
    )

    assert got == [True, ["den.md"]]
