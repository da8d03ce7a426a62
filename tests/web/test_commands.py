"""commands.js: the commands that can be typed."""

from typing import Any, Final

from tests.web.modules import Parts

BEGIN: Final = """const { runCommand, COMMANDS } = await load("commands");
const session = { id: "s", thread: "own", status: given?.status ?? "running" };
const room = await makeRoom({ sessions: [session], shown: given?.none ? null : { session } });
const type = async (name, rest = "") => { const done = await runCommand(room, { name, rest });
return [done, ...asked.splice(0)]; };
"""


def _post(path: str, **body: Any) -> list[Any]:
    return [True, ["POST", path, body]]


async def test_each_command_asks_for_what_it_says(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """return [await type("end"), await type("next"), await type("skip"), await type("skip",
          "ada"), await type("extend"), await type("extend", "2"),
          await type("pause"), await type("pause", "ada"), await type("resume"), await type("resume",
            "ada"), await type("approve", "ada 2"), await type("approve", "ada"),
          await type("deny", "ada"), await type("interrupt", " ada "), await type("stop")]"""
    )

    assert got == [
        _post("/sessions/s/stop"),
        _post("/turn/next", thread="own"),
        _post("/sessions/s/skip"),
        _post("/sessions/s/skip", agent="ada"),
        _post("/sessions/s/extend"),
        _post("/sessions/s/extend", rounds=2),
        _post("/sessions/s/pause"),
        _post("/agents/ada/pause"),
        _post("/sessions/s/resume"),
        _post("/agents/ada/resume"),
        _post("/agents/ada/approve", choice=2),
        _post("/agents/ada/approve"),
        _post("/agents/ada/deny"),
        _post("/agents/ada/interrupt"),
        _post("/stop", all=True),
    ]


async def test_what_cannot_be_done_is_said(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const done = [await type("dance"), await type("deny"), await type("end")];
        statuses["/agents/x/deny"] = 404;
        const said = texts(".toast p"); return [done, said, await type("deny", "x")]""",
        {"status": "ended"},
    )

    assert got == [
        [[False], [False], [False]],
        [
            "there is no /dance here (see /help; a text that begins with a slash has two)",
            "expected more (/deny AGENT)",
            "no session is running",
        ],
        [False, ["POST", "/agents/x/deny", {}]],
    ]


async def test_commands_that_turn_to_a_part_of_the_page(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const searched = []; for (const id of ["search",
          "board-search"]) $(`#${id}`).addEventListener("submit", (event) => { event.preventDefault();
        searched.push(id); });
        $("#mode-part").open = false; const mode = [await type("mode"), document.body.dataset.tab,
          $("#mode-part").open, document.activeElement.id];
        const search = [await type("search", "a  b"), $("#search-text").value];
        const board = [await type("board", "c"), document.body.dataset.tab, $("#board-q").value,
          document.activeElement.id];
        await type("help"); return [mode, search, board, searched,
          texts(".toast p")[0].split(" · ").length === COMMANDS.length,
          texts(".toast p")[0].includes("/skip [AGENT]: go past")]"""
    )

    assert got == [
        [[True], "session", True, "mode-goal"],
        [[True], "a b"],
        [[True], "board", "c", "board-q"],
        ["search", "board-search"],
        True,
        True,
    ]


async def test_the_history_is_saved_as_markdown(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const saved = []; URL.createObjectURL = () => "blob:x"; answers["/health"] = { room: "den" };
        HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
        answers["/history"] = { items: [] }; const [done] = await type("export"); return [done, saved]"""
    )

    assert got == [True, ["den.md"]]


async def test_a_command_that_the_room_refuses_is_given_back(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/sessions/s/skip"] = 409; statuses["/turn/next"] = 409;
        return [(await type("skip"))[0], (await type("next"))[0]]"""
    )

    assert got == [False, False]
