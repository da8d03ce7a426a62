"""actions.js: what a person can do with a message."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { startActions, linkOf, linked, quoted } = await load("actions");
const { messageElement } = await load("message");
const room = await makeRoom({ agents: [{ id: "ada" }, { id: "bob" }] }); const done = [];
const message = (seq, sender) => ({ seq, id: `m${seq}`, ts: 1, type: "agent_response", sender,
  target: "human",
  text: "one\\ntwo", thread: "default" });
const all = [message(7, "ada"), message(8, "human")];
$("#log").append(...all.map((one) => messageElement(one)));
const chat = { messageOf: (element) => all.find(({ seq }) => seq === Number(element.dataset.seq)) };
startActions(room, chat, { reply: ({ seq }) => done.push(["reply", seq]),
  quote: ({ seq }) => done.push(["quote", seq]) });
const [first, second] = document.querySelectorAll(".message");
const over = (element) => element.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
const key = (element, name) => element.dispatchEvent(new KeyboardEvent("keydown", { key: name,
  bubbles: true }));
"""


async def test_one_row_of_buttons_goes_to_the_message_under_the_pointer(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """over(first.querySelector(".body")); const labels = texts(".actions button");
        const at = () => $(".actions").closest("li").dataset.seq; const places = [at()];
        $(".actions button").click(); over(second); places.push(at()); $(".actions button + button").click();
        return [labels, places, done, document.querySelectorAll(".actions").length]"""
    )

    assert got == [
        ["Reply", "Quote", "Forward", "Copy link"],
        ["7", "8"],
        [["reply", 7], ["quote", 8]],
        1,
    ]


async def test_keys_do_the_same_on_the_message_that_has_the_focus(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """key(first, "r"); key(second, "Q"); key(first.querySelector(".body"), "r"); key(first, "x");
        key(first, "f"); const open = $("#forward").open; $("#forward").close(); return [done, open]"""
    )

    assert got == [[["reply", 7], ["quote", 8]], True]


async def test_a_message_is_forwarded_as_a_quotation(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """key(first, "f"); const shown = [$("#forward-title").textContent, $("#forward-text").textContent,
          texts("#forward-to option")]; $("#forward-note").value = "look"; $("#forward-form").requestSubmit();
        await until(() => !$("#forward").open); return [shown, asked.filter(([method]) =>
          method === "POST").map(([, path, body]) =>
          [path, body])]"""
    )

    assert got == [
        ["Forward #7 from ada", "one\ntwo", ["bob", "everybody"]],
        [["/message", {"to": "bob", "content": "look\n\nada said:\n> one\n> two"}]],
    ]


async def test_the_link_of_a_message_leads_back_to_it(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const copied = []; Object.defineProperty(navigator, "clipboard", { configurable: true,
          value: { writeText: async (text) => copied.push(text) } }); key(first, "l"); await turn();
        const none = linked(); history.replaceState(null, "", linkOf(7)); const found = linked();
        return [copied[0].endsWith("/parts#message-7"), none, found, texts(".toast p"), quoted(all[1])]"""
    )

    assert got == [True, None, 7, ["Copied the link to #7."], "I said:\n> one\n> two"]
