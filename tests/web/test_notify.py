"""notify.js: the person is called back when an agent cannot go on alone."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const shown = []; let answer = "granted"; let isAway = true;
window.Notification = class { constructor(text, { body, tag }) { shown.push([text, body, tag]); } };
Notification.permission = "granted"; Notification.requestPermission = async () => answer;
Object.defineProperty(document, "hidden", { get: () => isAway, configurable: true });
const { startNotifications } = await load("notify"); const room = await makeRoom({ name: "den" });
startNotifications(room);
const needs = (...all) => { room.attention = all.map(([id, level = "action", detail = ""], since) => ({ id,
  title: `about ${id}`, level, detail, since })); room.attentionChanged.tell(); };
const press = async () => { $("#notify").click(); await turn();
return $("#notify").getAttribute("aria-pressed"); };
"""


async def test_what_needs_a_person_is_counted_and_called_out(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """needs(["ada"]); const silent = [shown.length, document.title, $("#calls").textContent];
        needs(); const none = document.title; const on = await press();
        isAway = false; needs(["ada"]); const here = shown.length; needs(); isAway = true;
        needs(["ada", "action", "pytest"]); needs(["ada", "action", "pytest"], ["cy", "info"]);
        const title = document.title; const off = await press(); needs(); needs(["ada"]);
        return [silent, none, on, here, shown, title, off]"""
    )

    assert got == [
        [0, "(1) den · group chat", "about ada"],
        "den · group chat",
        "true",
        0,
        [["about ada", "pytest", "csp-ada"], ["about cy", "", "csp-cy"]],
        "(1) den · group chat",
        "false",
    ]


async def test_replies_and_the_ends_of_sessions_are_called_out(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await press(); room.sessions = [{ id: "s", mode: "debate", topic: "tabs" }];
        const say = (fields) => room.said.tell({ type: "agent_response", sender: "ada", text: "done",
          ...fields });
        say(); say({ session_id: "s" }); say({ type: "human_message", sender: "human" });
        const end = (fields) => room.sessionEvent.tell({ type: "mode", session_id: "s", change: "ended",
          reason: "cap_reached", ...fields });
        end({ change: "started" }); end(); return shown"""
    )

    assert got == [
        ["ada replied", "done", "csp-reply-ada"],
        ["Debate ended: ended, all rounds done", "tabs", "csp-end-s"],
    ]


async def test_a_browser_that_does_not_allow_it_is_told_of(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answer = "denied"; return [await press(), localStorage.getItem("csp-notify"),
          texts(".toast p")]"""
    )

    assert got == [
        "false", None,
        ["the browser does not allow notifications here (check this site's browser permissions)"],
    ]  # fmt: skip
