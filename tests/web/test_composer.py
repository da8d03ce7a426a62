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
        + """statuses["/line"] = 0; await write("x"); await until(() => !$("#composer-note").hidden);
        const sent = ids.splice(0); const note = $("#composer-note").textContent;
        delete statuses["/line"]; room.status = "live"; room.statusChanged.tell();
        await until(() => $("#composer-note").hidden); sent.push(...ids);
        return [new Set(sent).size, sent.length > 2, field.value, note, texts(".toast p")]"""
    )

    assert got == [1, True, "", "1 message queued: sent when the gateway is back.×", []]


async def test_a_line_does_not_overtake_one_that_waits(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """room.status = "live"; statuses["/line"] = 0; await write("one");
        await until(() => !$("#composer-note").hidden); asked.splice(0); delete statuses["/line"];
        const sent = await write("two"); await until(() => $("#composer-note").hidden);
        return [...sent, ...asked].map(([, , { line }]) => line)"""
    )

    assert got == ["one", "two"]


async def test_what_is_written_without_a_gateway_is_sent_in_order_when_it_is_back(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """room.status = "lost"; const early = [await write("one"), await write("two")];
        const note = $("#composer-note").textContent; room.status = "live"; room.statusChanged.tell();
        await until(() => $("#composer-note").hidden);
        return [early, note, asked.map(([, , body]) => body.line)]"""
    )

    assert got == [[[], []], "2 messages queued: sent when the gateway is back.×", ["one", "two"]]


async def test_what_is_queued_can_be_dropped(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """room.status = "lost"; await write("one"); $("#composer-note button").click();
        room.status = "live"; room.statusChanged.tell(); await turn();
        return [asked, $("#composer-note").hidden]"""
    )

    assert got == [[], True]


async def test_an_answer_names_its_message_and_goes_to_its_sender(parts: Parts) -> None:
    got = await parts.run(
        BEGIN.replace("new Composer(room);", "const composer = new Composer(room);")
        + """composer.reply({ id: "m9", seq: 9, sender: "bob", target: "human", text: "t" });
        const note = $("#composer-note").textContent; const [sent] = await write("yes");
        return [note, sent[2], $("#composer-note").hidden, (await write("more"))[0][2].replyTo ?? null]"""
    )

    assert got == ["Reply to bob #9×", {"line": "yes", "to": "bob", "replyTo": "m9"}, True, None]


async def test_a_quotation_goes_under_what_was_begun(parts: Parts) -> None:
    got = await parts.run(
        BEGIN.replace("new Composer(room);", "const composer = new Composer(room);")
        + """field.value = "look:"; composer.quote({ sender: "ada", text: "a\\n\\nb" });
        return [field.value, document.activeElement.id]"""
    )

    assert got == ["look:\n\nada said:\n> a\n>\n> b\n\n", "composer-text"]


async def test_who_was_spoken_to_stays_chosen(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/line"] = { kind: "message", recipients: ["bob"], to: "bob" };
        await write("@bob hi"); return target.value"""
    )

    assert got == "bob"


async def test_a_line_that_the_room_refuses_is_given_back(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/line"] = 409; const refused = await write("y");
        const said = [refused.length, field.value, texts(".toast p")];
        statuses["/line"] = 200; await write("z"); return [...said, texts(".toast p")]"""
    )

    assert got == [1, "y", ["the gateway answered 409"], []]


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
        ["No agents yet; nobody received this.", "Unknown command /dance. (see /help)"],
    ]


async def test_what_the_gateway_asks_is_put_to_the_person(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const put = []; const reply = async (button) => { await until(() => $("#ask").open);
          put.push($("#ask-text").textContent); $(button).click(); await until(() => !$("#ask").open);
          for (let i = 0; i < 8; i += 1) await turn(); };
        answers["/line"] = { kind: "confirm", question: "Send 'quit' to all?" };
        const refused = await write("quit"); await reply("#ask-no"); const kept = field.value;
        let calls = 0;
        answers["/line"] = () => (calls++ ? { kind: "done" }
          : { kind: "ask_replace", question: "Debate is running." });
        const done = await write("/mode debate x"); await reply("#ask-yes");
        done.push(...asked.splice(0)); const gone = field.value;
        answers["/line"] = { kind: "ask_topic", name: "debate", question: "What is the topic?" };
        await write("/mode debate");
        return [put, refused.length, kept, done.map(([, , body]) => body.confirmed ?? null), gone,
          field.value, texts(".toast p")]"""
    )

    assert got == [
        ["Send 'quit' to all?", "Debate is running."],
        *(1, "quit", [None, True], "", "/mode debate"),
        ['What is the topic? (/mode debate "topic")'],
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
        return [one < three, three < many, many, field.style.height]"""
    )

    assert got == [True, True, 240, "auto"]


async def test_what_is_sent_is_not_completed_any_more(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """field.value = "@a"; field.setSelectionRange(2, 2); field.dispatchEvent(new Event("input"));
        const open = !$("#completion").hidden; await write("hello"); return [open, $("#completion").hidden]"""
    )

    assert got == [True, True]
