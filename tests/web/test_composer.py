"""composer.js: where the person writes."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { Composer } = await load("composer");
const room = await makeRoom({ agents: [{ id: "ada", state: "idle" }, { id: "bob", state: "busy" }],
  ...(given ?? {}) }); new Composer(room);
answers["/line"] = { kind: "message", recipients: ["ada"] };
const field = $("#composer-text"); const target = $("#composer-target");
const write = async (text) => { field.value = text; $("#composer").requestSubmit(); for (let i = 0;
i < 8; i += 1) await turn(); return asked.splice(0); };
"""


async def test_a_line_goes_out_once_as_it_was_typed(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const plain = await write(" hello "); target.value = "bob"; const aimed = await write("!ada hi");
        const empty = field.value; const nothing = await write("  ");
        return [plain, aimed[0][2], nothing, empty, texts(".toast"), new Set(ids).size]"""
    )

    assert got == [
        [["POST", "/line", {"line": " hello ", "to": "all"}]],
        {"line": "!ada hi", "to": "bob"},
        [],
        "",
        [],
        2,
    ]


async def test_a_line_is_for_the_thread_that_is_looked_at(parts: Parts) -> None:
    got = await parts.run(
        BEGIN + """return (await write("x"))[0][2].thread""",
        {"view": "s", "sessions": [{"id": "s", "thread": "own"}]},
    )

    assert got == "own"


async def test_a_line_whose_answer_is_lost_is_sent_again_under_the_same_id(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/line"] = 0; await write("x"); await until(() => texts(".toast p").length);
        await until(() => field.value); const sent = ids.splice(0);
        return [new Set(sent).size, sent.length > 1, field.value, texts(".toast p")]"""
    )

    assert got == [1, True, "x", ["the gateway does not answer (see: csp status)"]]


async def test_a_line_that_the_room_refuses_is_given_back(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/line"] = 409; const refused = await write("y");
        return [refused.length, field.value, texts(".toast p")]"""
    )

    assert got == [1, "y", ["the gateway answered 409"]]


async def test_what_was_begun_meanwhile_is_not_written_over(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """let go; answers["/line"] = () => new Promise((done) => (go = done));
        statuses["/line"] = 409; field.value = "lost";
        $("#composer").requestSubmit(); await until(() => go);
        const busy = $("#composer").getAttribute("aria-busy"); field.value = "new"; go({});
        for (let i = 0; i < 8; i += 1) await turn();
        return [busy, field.value, $("#composer").getAttribute("aria-busy")]"""
    )

    assert got == ["true", "new", "false"]


async def test_each_answer_is_acted_on(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/line"] = { kind: "message" }; await write("x");
        answers["/line"] = { kind: "target", to: "bob" }; await write("@bob"); const aimed = target.value;
        answers["/line"] = { kind: "done" }; await write("/pause"); const refreshed = room.refreshed;
        answers["/line"] = { kind: "command", name: "mode" }; await write("/mode");
        const part = $("#mode-part").open; answers["/line"] = { kind: "command", name: "dance" };
        await write("/dance"); return [aimed, refreshed, part, field.value, texts(".toast p")]"""
    )

    assert got == [
        *("bob", 1, True, "/dance"),
        ["No agents yet; nobody received this.", "there is no /dance here (see /help)"],
    ]


async def test_what_the_gateway_asks_is_put_to_the_person(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """let yes = false; const put = []; window.confirm = (text) => { put.push(text); return yes; };
        answers["/line"] = { kind: "confirm", question: "Send 'quit' to all?" };
        const refused = await write("quit"); const kept = field.value; yes = true;
        let calls = 0;
        answers["/line"] = () => (calls++ ? { kind: "done" }
          : { kind: "ask_replace", question: "Debate is running." });
        const done = await write("/mode debate x"); const gone = field.value;
        answers["/line"] = { kind: "ask_topic", name: "debate", question: "What is the debate about?" };
        await write("/mode debate");
        return [put, refused.length, kept, done.map(([, , body]) => body.confirmed ?? null), gone,
          field.value, texts(".toast p")]"""
    )

    assert got == [
        ["Send 'quit' to all?", "Debate is running."],
        *(1, "quit", [None, True], "", "/mode debate"),
        ['What is the debate about? (/mode debate "topic")'],
    ]


async def test_several_and_groups_are_targets(parts: Parts) -> None:
    got = await parts.run(
        "catalogue.groups = { pair: ['ada', 'bob'] };"
        + BEGIN
        + """answers["/line"] = { kind: "target", to: "ada,bob" }; await write("@ada @bob");
        const aimed = target.value; room.agents = [{ id: "bob" }]; room.agentsChanged.tell();
        return [aimed, target.value, texts("#composer-target option")]"""
    )

    assert got == ["ada,bob", "ada,bob", ["everybody", "bob", "pair", "ada, bob"]]


async def test_who_is_gone_is_no_target_any_more(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """target.value = "bob"; room.agents = [{ id: "bob" }]; room.agentsChanged.tell();
        const stays = target.value; room.agents = []; room.agentsChanged.tell();
        return [stays, target.value, texts("#composer-target option")]"""
    )

    assert got == ["bob", "all", ["everybody"]]


async def test_enter_sends_and_with_shift_or_alt_it_does_not(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """let sent = 0; $("#composer").addEventListener("submit", () => (sent += 1));
        const enter = (more) => { field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter",
          cancelable: true, ...more })); return sent; };
        return [enter({ shiftKey: true }), enter({ altKey: true }), enter({ isComposing: true }),
          enter({})]"""
    )

    assert got == [0, 0, 0, 1]


async def test_the_field_grows_with_its_lines_up_to_a_limit(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const grow = (text) => { field.value = text; field.dispatchEvent(new Event("input"));
        return parseFloat(field.style.height); };
        const [one, three, many] = ["a", "a\\nb\\nc\\nd\\ne\\nf", "a\\n".repeat(100)].map(grow);
        await write("x");
        return [one < three, three < many, many, parseFloat(field.style.height) < many]"""
    )

    assert got == [True, True, 240, True]


async def test_what_is_sent_is_not_completed_any_more(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """field.value = "@a"; field.setSelectionRange(2, 2); field.dispatchEvent(new Event("input"));
        const open = !$("#completion").hidden; await write("hello"); return [open, $("#completion").hidden]"""
    )

    assert got == [True, True]
