"""ticks.js: how far each message has come, per recipient."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { Ticks } = await load("ticks"); const ticks = new Ticks();
const place = () => document.body.appendChild(document.createElement("div"));
const message = (id, ...recipients) => ({ id, recipients });
const step = (message, agent, state, reason = null) => ticks.take({ message, agent, state, reason });
const words = (at) => [...at.querySelectorAll(".tick")].map((one) => one.textContent);
const buttons = (at) => [...at.querySelectorAll("button")].map((one) => one.textContent);
"""


async def test_a_new_message_is_queued_until_its_steps_come(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const at = place(); ticks.show(message("m", "ada", "bob"), at, { isLive: true });
        const first = [words(at), buttons(at)]; step("m", "ada", "typed"); step("m", "bob", "held", "loop");
        await frame(); const second = [words(at), buttons(at)]; step("m", "ada", "confirmed");
        step("m", "bob", "failed", "gone"); await frame();
        return [first, second, words(at), buttons(at), asked.length]"""
    )

    assert got == [
        [["ada ○ queued", "bob ○ queued"], ["Cancel"]],
        [
            ["ada ✓ typed", "bob ◔ waits: 8 agent-to-agent messages in a row"],
            ["Cancel", "Let through"],
        ],
        ["ada ✓✓ confirmed", "bob ✗ failed: gone"],
        ["Send again"],
        0,
    ]


async def test_the_buttons_ask_for_what_they_say(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const at = place(); ticks.show(message("m/1", "a", "b", "c"), at, { isLive: true });
        step("m/1", "a", "held", "loop"); step("m/1", "b", "expired"); step("m/1", "c", "withdrawn");
        await frame(); for (const button of at.querySelectorAll("button")) button.click();
        return asked.map(([method, path]) => `${method} ${path}`)"""
    )

    assert got == [f"POST /messages/m%2F1/{action}" for action in ("cancel", "continue", "resend")]


async def test_an_old_message_is_asked_for(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/messages/m"] = { recipients: { ada: { state: "confirmed" },
          bob: { state: "new one" } } };
        const at = place(); ticks.show(message("m", "ada"), at, { isLive: false }); const before = words(at);
        await until(() => words(at).length); const there = words(at);
        statuses["/messages/gone"] = 404; const none = place();
        ticks.show(message("gone", "ada"), none, { isLive: false });
        await turn(); return [before, there, words(none), texts(".toast")]"""
    )

    assert got == [[], ["ada ✓✓ confirmed", "bob ? new one"], [], []]


async def test_four_are_asked_for_at_once_and_the_newest_wish_comes_first(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const waiting = []; let most = 0;
        for (let id = 0; id < 10; id += 1) answers[`/messages/${id}`] = () => new Promise((done) => {
          waiting.push(() => done({ recipients: {} })); most = Math.max(most, waiting.length); });
        for (let id = 0; id < 10; id += 1) ticks.show(message(String(id), "a"), place(), { isLive: false });
        ticks.hide("8");
        while (waiting.length) { waiting.shift()(); await turn(); }
        return [most, asked.map(([, path]) => path.split("/").at(-1)).join("")]"""
    )

    assert got == [4, "012397654"]


async def test_what_is_hidden_is_drawn_no_more_but_known(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const at = place(); ticks.show(message("m", "ada"), at, { isLive: true }); ticks.hide("m");
        step("m", "ada", "typed"); const hidden = words(at);
        ticks.show(message("m", "ada"), at, { isLive: true });
        const back = words(at);
        for (let id = 0; id < 2000; id += 1) step(`n${id}`, "ada", "typed");
        ticks.show(message("m", "ada"), at, { isLive: true });
        return [hidden, back, words(at)]"""
    )

    assert got == [["ada ○ queued"], ["ada ✓ typed"], ["ada ○ queued"]]


async def test_what_has_expired_can_be_sent_again(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const at = place(); ticks.show(message("m", "ada"), at, { isLive: true });
        const seen = []; for (const state of ["failed", "withdrawn", "expired", "confirmed"]) {
          step("m", "ada", state); await frame(); seen.push(buttons(at)); } return seen"""
    )

    assert got == [["Send again"]] * 3 + [[]]


async def test_a_step_of_one_recipient_leaves_the_others_where_they_are(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const at = place(); ticks.show(message("m", "ada", "bob"), at, { isLive: true });
        step("m", "ada", "typed"); await frame(); return words(at)"""
    )

    assert got == ["ada ✓ typed", "bob ○ queued"]


async def test_many_recipients_are_counted_by_state(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const at = place(); const all = Array.from({ length: 13 }, (_, index) => `a${index}`);
        ticks.show(message("m", ...all), at, { isLive: true }); step("m", "a0", "confirmed");
        step("m", "a1", "held", "paused"); step("m", "a2", "held", "busy"); step("m", "a3", "held", "busy");
        await frame(); return [words(at).sort(), buttons(at)]"""
    )

    assert got == [
        [
            "2 agents ◔ waits: busy; queued until this turn ends",
            "9 agents ○ queued",
            "a0 ✓✓ confirmed",
            "a1 ◔ waits: paused",
        ],
        ["Cancel"],
    ]


async def test_a_flood_of_steps_is_drawn_in_pieces(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const places = Array.from({ length: 100 }, place);
        places.forEach((at, index) => ticks.show(message(`m${index}`, "ada"), at, { isLive: true }));
        for (let index = 0; index < 100; index += 1) step(`m${index}`, "ada", "typed");
        const typed = () => places.filter((at) => words(at)[0].includes("typed")).length;
        await frame(); const first = typed(); await until(() => typed() === 100); return first"""
    )

    assert got == 30
