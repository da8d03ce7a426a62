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
        return [mode, search, board, searched, await type("dance"), texts(".toast p")[0]]"""
    )

    assert got == [
        [True, "session", True, "mode-goal"],
        [True, "a b"],
        [True, "board", "c", "board-q"],
        ["search", "board-search"],
        False,
        "Unknown command /dance. (see /help)",
    ]


async def test_help_lists_every_command_and_those_of_the_pane(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await type("help", "skip"); const rows = texts("#help-body dt");
          const heads = texts("#help-body h3");
        const commands = catalogue.commands.every(({ form }) => rows.includes(form));
        const own = catalogue.pane_commands.map(({ name }) => name);
        const open = [$("#help").open, document.activeElement.id]; $("#help").close();
        return [heads, commands, own.length > 0 && catalogue.pane_commands.every(({
          form }) => rows.includes(form)),
          own.filter((name) => ["mode", "queue", "focus"].includes(name)), open]"""
    )

    assert got == [
        ["Talking", "Commands", "Keys", "Only in the pane"],
        *(True, True, []),
        [True, "help-title"],
    ]


async def test_cancel_without_a_number_withdraws_the_newest_own_message(parts: Parts) -> None:
    got = await parts.run(
        BEGIN.replace('rest = "") => runCommand(name, rest)', 'rest = "") => runCommand(name, rest, room)')
        + """const room = await makeRoom({ queue: [{ id: "m1", seq: 1, sender: "human", agent: "ada" },
          { id: "m3", seq: 3, sender: "ada", agent: "bob" }] });
        const first = await type("cancel"); room.queue = []; const second = await type("cancel");
        return [first, second, asked.map(([, path]) => path), texts(".toast p")]"""
    )

    assert got == [True, False, ["/messages/m1/cancel"], ["No message of yours is waiting."]]


async def test_undelivered_messages_are_listed_with_the_reason(parts: Parts) -> None:
    got = await parts.run(
        BEGIN.replace('rest = "") => runCommand(name, rest)', 'rest = "") => runCommand(name, rest, room)')
        + """const room = await makeRoom(); await type("queue"); const none = texts("#waiting-list li");
        $("#waiting").close(); room.queue = [{ seq: 4, sender: "human", agent: "ada", text: "hi",
          reason: "paused", state: "held" }]; await type("queue"); const one = texts("#waiting-list li");
        $("#waiting").close(); return [none, one]"""
    )

    assert got == [["No queued messages."], ["#4 from human to ada: hipaused"]]


async def test_review_goes_to_the_runs_or_to_the_form(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await type("review", "start it"); const form = document.activeElement.id;
        await type("review"); return [form, document.activeElement.id, asked]"""
    )

    assert got == ["mode-goal", "session-panel", []]


async def test_approval_rules_are_listed_with_what_removes_them(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/rules"] = { items: [{ number: 5, agent: "ada", pattern: "pytest", source: "room" },
          { number: 0, agent: "bob", pattern: "ls", source: "csp.toml", problem: "no effect" }] };
        await type("rules"); const rules = [texts("#waiting-title"), texts("#waiting-list li")];
        $("#waiting").close(); answers["/rules"] = { items: [] }; await type("rules");
        return [rules, texts("#waiting-list li")]"""
    )

    assert got == [
        [["Approval rules"], ["ada may run: pytest/unallow 5", "bob may run: lsfrom csp.toml; no effect"]],
        ["No rules yet. /allow AGENT COMMAND adds one."],
    ]


async def test_other_commands_ask_parts_of_the_page(parts: Parts) -> None:
    got = await parts.run(
        BEGIN.replace('rest = "") => runCommand(name, rest)', 'rest = "") => runCommand(name, rest, room)')
        + """const room = await makeRoom({ agents: [{ id: "ada" }] }); const wishes = [];
        (await load("commands")).asked.on((wish) => wishes.push(wish));
        const done = [await type("focus", "@Ada"), await type("focus", "nobody"), await type("show", "#52"),
          await type("show", "x"), await type("history", "20 ada"), await type("fwd", "ada bob look")];
        return [done, wishes, asked.map(([, path, body]) => [path, body.line]), texts(".toast p")]"""
    )

    assert got == [
        [True, False, True, False, True, True],
        [{"look": "ada"}, {"show": 52}, {"history": "ada"}],
        [["/line", "@bob look\n\nada said:\n{ada.last}"]],
        ["There is no agent nobody.", "Which message? x is not a number. (/show 52)"],
    ]


async def test_the_history_is_saved_as_markdown(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const saved = []; URL.createObjectURL = () => "blob:x"; answers["/health"] = { room: "den" };
        HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
        answers["/history"] = { items: [] }; const done = await type("export"); return [done, saved]"""
    )

    assert got == [True, ["den.md"]]
