"""composer.js: where the person writes."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { Composer } = await load("composer");
const room = await makeRoom({ agents: [{ id: "ada", state: "idle" }, { id: "bob", state: "busy" }],
  ...(given ?? {}) }); new Composer(room);
answers["/message"] = { recipients: ["ada"] };
const field = $("#composer-text"); const target = $("#composer-target");
const write = async (text) => { field.value = text; $("#composer").requestSubmit(); for (let i = 0;
i < 8; i += 1) await turn(); return asked.splice(0); };
"""


async def test_a_message_goes_out_once_with_an_id(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const plain = await write(" hello "); target.value = "bob"; const aimed = await write("hi");
        const urgent = await write("!ada now"); const empty = field.value;
        const nothing = await write("  ");
        return [plain, aimed[0][2].to, [urgent[0][2].to, urgent[0][2].urgent], nothing, empty,
          texts(".toast"), new Set(ids).size]"""
    )

    body = {"to": "all", "content": "hello", "urgent": False}
    assert got == [[["POST", "/message", body]], "bob", ["ada", True], [], "", [], 3]


async def test_a_message_is_said_in_the_thread_that_is_looked_at(parts: Parts) -> None:
    got = await parts.run(
        BEGIN + """return [(await write("x"))[0][2].thread, (await write("/mode debate y"))[0]]""",
        {"view": "s", "sessions": [{"id": "s", "thread": "own"}]},
    )

    assert got == [
        "own",
        ["POST", "/mode", {"mode": "debate", "limits": {}, "topic": "y", "thread": "own"}],
    ]


async def test_a_message_whose_answer_is_lost_is_sent_again_under_the_same_id(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/message"] = 0; await write("x"); await until(() => texts(".toast p").length);
        const kept = field.value; const sent = ids.splice(0); statuses["/message"] = 409; asked.splice(0);
        const refused = await write("y"); return [new Set(sent).size, sent.length > 1, kept,
          refused.length, field.value, texts(".toast p")]"""
    )

    assert got == [
        1,
        True,
        "x",
        1,
        "y",
        ["the gateway does not answer (see: csp status)", "the gateway answered 409"],
    ]


async def test_what_was_begun_meanwhile_is_not_written_over(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """let go; answers["/message"] = () => new Promise((done) => (go = done));
        statuses["/message"] = 409; field.value = "lost";
        $("#composer").requestSubmit(); await until(() => go);
        const busy = $("#composer").getAttribute("aria-busy"); field.value = "new"; go({});
        for (let i = 0; i < 8; i += 1) await turn();
        return [busy, field.value, $("#composer").getAttribute("aria-busy")]"""
    )

    assert got == ["true", "new", "false"]


async def test_last_words_are_put_in_and_nobody_reading_is_told(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/history"] = { items: [{ sender: "ada", text: "old" }, { sender: "ada",
          text: "new $&" }, { sender: "bob", text: "no" }] }; answers["/message"] = { recipients: [] };
        const [asking, sent] = await write("a {Ada.last} b"); answers["/history"] = { items: [] };
        const [, kept] = await write("{ada.last}");
        return [asking[1], sent[2].content, kept[2].content, texts(".toast p")]"""
    )

    assert got == [
        "/history?types=agent_response,agent_call&agent=ada&limit=50",
        "a new $& b",
        "{ada.last}",
        ["nobody is there to read it"] * 2,
    ]


async def test_aiming_keeps_to_who_is_here(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await write("@bob"); const aimed = target.value; await write("@nobody");
        const kept = [target.value, field.value, texts(".toast p")];
        room.agents = [{ id: "bob" }]; room.agentsChanged.tell(); const stays = target.value;
        room.agents = []; room.agentsChanged.tell();
        return [aimed, kept, stays, target.value, texts("#composer-target option")]"""
    )

    assert got == ["bob", ["bob", "@nobody", ["there is no nobody here"]], "bob", "all", ["everybody"]]


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


async def test_without_the_words_it_quotes_a_message_is_not_sent(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/history"] = 507; const sent = await write("see {ada.last}");
        return [sent.map(([method]) => method), field.value, texts(".toast p")]"""
    )

    assert got == [["GET"], "see {ada.last}", ["the gateway answered 507"]]


async def test_the_word_that_stops_is_kept_as_it_was_typed(parts: Parts) -> None:
    got = await parts.run(
        BEGIN + """return (await write(" ALL stop! ")).map(([, path, body]) => [path, body])"""
    )

    assert got == [["/message", {"to": "all", "content": "ALL stop!"}], ["/stop", {"all": True}]]
