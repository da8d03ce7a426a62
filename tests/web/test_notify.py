"""notify.js: the person is called back when an agent cannot go on alone."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const shown = []; let answer = "granted"; let isAway = true;
window.Notification = class { constructor(text, { body, tag }) { shown.push([text, body, tag]); } };
Notification.permission = "granted"; Notification.requestPermission = async () => answer;
Object.defineProperty(document, "hidden", { get: () => isAway, configurable: true });
const { startNotifications } = await load("notify"); const room = await makeRoom({ name: "den" });
startNotifications(room);
const states = (...all) => { room.agents = all.map(([id, state, detail = ""]) => ({ id, state,
  detail })); room.agentsChanged.tell(); };
const press = async () => { $("#notify").click(); await turn();
return $("#notify").getAttribute("aria-pressed"); };
"""


async def test_nobody_is_notified_who_has_not_asked_for_it(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """states(["ada", "needs_approval"]); const silent = [shown.length, document.title,
          $("#calls").textContent];
        states(); const none = document.title; const on = await press();
        isAway = false; states(["ada", "needs_human"]); const here = shown.length;
        states(["ada", "idle"]); isAway = true;
        states(["ada", "needs_human", "log in"], ["bob", "busy"]);
        states(["ada", "needs_human"], ["bob", "needs_approval"]);
        const off = await press(); states(); states(["ada", "needs_human"]);
        return [silent, none, on, here, shown, document.title, off]"""
    )

    assert got == [
        [0, "(1) den · group chat", "ada asks for approval"],
        "den · group chat",
        "true",
        0,
        [["ada needs you in its pane", "log in", "csp-ada"], ["bob asks for approval", "", "csp-bob"]],
        "(1) den · group chat",
        "false",
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
