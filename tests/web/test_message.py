"""message.js: one message of the conversation."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { messageElement, newsElement } = await load("message");
const event = (fields) => ({ seq: 7, ts: 1000, type: "agent_response", sender: "ada", target: "all",
  text: "hi", thread: "default", ...fields });
const seen = (element, selector) => [...element.querySelectorAll(selector)].map((one) => one.textContent);
"""


async def test_a_message_says_from_whom_and_to_whom(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """return [["human", "all"], ["human", "bob"], ["ada", "all"], ["ada", "human"], ["ada",
          "bob"], ["ada", ""]].map(([sender, target]) => {
          const element = messageElement(event({ sender, target }));
          return [seen(element, ".name")[0], seen(element, ".to")[0] ?? null, element.className,
            element.dataset.seq, seen(element, ".avatar")[0]];
        })"""
    )

    assert got == [
        ["you", "→ all", "message own", "7", "Yo"],
        ["you", "→ bob", "message own", "7", "Yo"],
        ["ada", None, "message", "7", "Ad"],
        ["ada", None, "message", "7", "Ad"],
        ["ada", "→ bob", "message", "7", "Ad"],
        ["ada", None, "message", "7", "Ad"],
    ]


async def test_a_vote_is_said_in_words(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """return [["ada", "VOTE: [b]\\nREASON: it is *short*."], ["ada", "VOTE: C"],
          ["human", "VOTE: [B]"], ["ada", "My VOTE: [B]"], ["ada", "VOTE: [B]\\nREASON: x\\nMore."]].map(
          ([sender, text]) => messageElement(event({ sender, text })).querySelector(".body").textContent)"""
    )

    assert got == [
        "✓ votes Bit is *short*.",
        "✓ votes C",
        "VOTE: [B]",
        "My VOTE: [B]",
        "VOTE: [B]\nREASON: x\nMore.",
    ]


async def test_a_command_in_a_line_is_said_in_words(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const said = (sender, text, more = {}) => {
          const element = messageElement(event({ sender, text, ...more }));
          return [element.querySelector(".body").textContent, seen(element, ".handoff")]; };
        const handoff = { to: "bob", task: "fix it" };
        return [said("ada", "@handoff.bob fix it", { handoff }), said("ada", "fixed", { handoff }),
          said("ada", "@final"), said("ada", "@final answer"), said("ada", "@send.cy look"),
          said("ada", "@all"), said("ada", "@working"), said("ada", "write @all here"),
          said("human", "@send.cy look")]"""
    )

    assert got == [
        ["→ hands over to bob: fix it", []],
        ["fixed", ["hands over to bob: fix it"]],
        ["✓ suggests finishing", []],
        ["@final answer", []],
        ["→ to cy: look", []],
        ["→ to all", []],
        ["· still working", []],
        ["write @all here", []],
        ["@send.cy look", []],
    ]


async def test_only_lines_outside_of_code_and_lists_are_commands(parts: Parts) -> None:
    got = await parts.run(
        """const { renderTokens } = await load("render");
        const tokens = [["p"], "@final ", ["code", "x"], ["br"], "@handoff.bob read ", ["code", "@final"],
          ["br"], "VOTE: [A]", ["br"], "REASON: short", null, ["ul"], ["li"], ["p"], "@final", null, null,
          null, ["pre", "", "@final"]];
        const box = document.createElement("div"); box.append(renderTokens("x".repeat(9),
          { length: 9, tokens }, { isSpeech: true }));
        return [...box.children].map((one) => one.textContent.replace("codeCopy", ""))"""
    )

    assert got == [
        "@final x→ hands over to bob: read @final✓ votes Areason: short",
        "@final",
        "@final",
    ]


async def test_the_marks_of_a_message(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const marks = (fields, options) => seen(messageElement(event(fields), options), ".mark");
        return [
          marks({ urgent: true, late: true, out_of_turn: true, malformed: true, final: true, thread: "t2" }),
          marks({ ending: "interrupted" }), marks({ ending: "limited" }), marks({ ending: "failed" }),
            marks({ ending: "ok" }),
          marks({ session_id: "s", round: 2, max_rounds: 3 }), marks({ session_id: "s", round: 2 }),
            marks({ round: 2 }),
          marks({ sealed: true, session_id: "s" }, { isLive: true }), marks({ sealed: true,
            session_id: "s" })]"""
    )

    assert got == [
        [
            "urgent",
            "late",
            "out of turn",
            "not in the form that was asked for",
            "suggests finish",
            "thread t2",
        ],
        ["interrupted"],
        ["reached a usage limit"],
        ["failed"],
        [],
        ["round 2 of 3"],
        ["round 2"],
        [],
        ["sealed until all have answered"],
        [],
    ]


async def test_the_foot_of_a_message(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const foot = (fields) => { const element = messageElement(event(fields));
        return [seen(element, ".handoff"), seen(element, ".cost"), seen(element, ".ticks").length]; };
        return [foot({}), foot({ handoff: { to: "bob", task: "<b>" }, recipients: ["bob"],
          usage: { input: 5, output: 1, cache_read: 2, cost_usd: 0.01 } }),
          foot({ recipients: [], usage: { output: 1, estimated: true } })]"""
    )

    assert got == [
        [[], [], 0],
        [["hands over to bob: <b>"], ["4 new tokens (1 output), 2 cached, $0.0100"], 1],
        [[], ["about 1 new tokens (1 output), 0 cached"], 0],
    ]


async def test_notices_and_news(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const kind = (code) => messageElement(event({ type: "system", text: "x", code })).className;
        const news = (fields) => { const element = newsElement(event(fields));
        return [element.querySelector("p").textContent, element.dataset.seq]; };
        return [["mode", "round", "ended_done", "ended_canceled", "of_a_newer_version", undefined].map(kind),
          messageElement(event({ type: "system",
            text: "x".repeat(7000) })).querySelector("p").textContent.length < 6100,
          news({ type: "joined" }), news({ type: "left" }), news({ type: "left", removed: true,
            reason: "removed" }), news({ type: "left", reason: "silent" }),
          news({ type: "redacted", message: "m-1" })]"""
    )

    assert got == [
        ["part", "part", "part", "notice", "notice", "notice"],
        True,
        ["ada joined", "7"],
        ["ada left", "7"],
        ["ada was removed", "7"],
        ["ada left (silent)", "7"],
        ["the text of m-1 was removed", "7"],
    ]


async def test_a_notice_says_no_more_than_is_news(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const drawn = (code, params = {}) => {
          const element = messageElement(event({ type: "system", text: "the words", code, params }));
          return [seen(element, "p")[0], element.hidden, element.className];
        };
        const ended = { session: "s-6", mode: "round_robin", reason: "done", replies: 9, tokens: 2906,
          about: "about ", seconds: 14.6, details: "\\n- ada: So [cut]\\nCost: 0.5 USD (ada 0.5)." };
        return [drawn("your_turn", { agent: "bob" }), drawn("session_summary", ended),
          drawn("session_summary", { ...ended, reason: "superseded", replies: 1, details: "" }),
          drawn("session_summary"), drawn("ended_stopped_by_user"),
          drawn("suggests_finish", { agent: "ada" }),
          drawn("skipped", { agent: "ada" }),
          drawn("run_needs_person", { run: "run-4", why: "the plan is to be approved",
            answer: "csp review go" }),
          drawn("run_waits_for_person", { run: "run-4", minutes: 10.2, answer: "csp review go" })]"""
    )

    summary = "Round robin summary: {} after {}, about 2,906 new tokens, 15 s"
    assert got == [
        ["the words", True, "notice"],
        [f"{summary.format('finished', '9 replies')}\nCost: 0.5 USD (ada 0.5).", False, "notice summary"],
        [summary.format("replaced", "1 reply"), False, "notice summary"],
        ["the words", False, "notice summary"],
        ["Stopped (Allstop).", False, "notice"],
        ["ada suggests finishing.", False, "notice"],
        ["the words", False, "notice"],
        ["run-4 needs you: the plan is to be approved", False, "notice"],
        ["run-4 has waited for you for 10 minutes.", False, "notice"],
    ]


async def test_a_message_says_when_it_was_said(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const { dateTime, title, textContent } =
          messageElement(event({ ts: 86400 })).querySelector("time");
        const at = new Date(86400_000);
        const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
        return [dateTime, title, textContent, `${at.toLocaleString()} · #7`, clock]"""
    )

    assert got[0] == "1970-01-02T00:00:00.000Z"
    assert (got[1], got[2]) == (got[3], got[4])
