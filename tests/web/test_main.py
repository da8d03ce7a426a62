"""main.js: the page is begun, shows how it stands with the gateway, is left."""

from typing import Final

from tests.web.modules import Parts

#: A room with one agent; the page has been let in before.
BEGIN: Final = """sessionStorage.setItem("csp-token", "secret");
Object.assign(answers, { "/health": { room: "den", seq: 4 }, "/history": { items: [] },
  "/queue": { items: [] }, "/agents": [{ id: "ada", kind: "cli", state: "idle", online: true }],
  "/sessions": { items: [] }, "/usage": { items: [], prices: null } });
const room = () => document.body.dataset.room;
const gate = () => [room(), $("#gate").hidden, $("#gate-why").textContent, document.activeElement.id];
const begin = async () => { await load("main"); await until(() => sockets.length && $(".agent")); };
const isShut = () => until(() => room() === "shut");
"""


async def test_a_page_that_was_never_let_in_shows_the_gate(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """sessionStorage.clear(); await load("main"); await isShut(); return [gate(), asked, sockets]"""
    )

    assert got == [["shut", False, "This link has been used or has expired.", "gate-title"], [], []]


async def test_the_gate_says_why_a_link_was_of_no_use(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """sessionStorage.clear(); history.replaceState(null, "", `#link=${"a".repeat(24)}`);
        statuses["/page/enter"] = 401; answers["/page/enter"] = { error: "it has been used" };
        await load("main"); await isShut(); return gate()[2]"""
    )

    assert got == "It has been used."


async def test_the_gate_says_that_no_gateway_answers(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """sessionStorage.clear(); history.replaceState(null, "", `#link=${"a".repeat(24)}`);
        statuses["/page/enter"] = 0; await load("main"); await isShut(); return gate()[2]"""
    )

    assert got == "The gateway does not answer."


async def test_a_room_that_cannot_be_looked_at_is_a_gate_with_the_reason(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/health"] = 507; answers["/health"] = { error: "the disk is full" };
        await load("main"); await isShut(); return gate()[2]"""
    )

    assert got == "the disk is full"


async def test_a_page_shows_the_room_and_how_it_is_connected(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const looks = () => [$("#link-text").textContent, $("#link").dataset.status,
          document.body.dataset.link];
        await begin(); await until(() => document.activeElement.id === "composer-text");
        const first = [room(), $("#room-name").textContent, $("#gate").hidden, ...looks()];
        sockets[0].open(); const live = looks(); sockets[0].close(); await turn(); const lost = looks();
        const paths = new Set(asked.map(([, path]) => path.split("?")[0]));
        return [first, live, lost, new URL(sockets[0].url).search, [...paths].sort()]"""
    )

    assert got == [
        ["open", "den", True, "connecting…", "connecting", "connecting"],
        ["live", "live", "live"],
        ["reconnecting…", "lost", "lost"],
        "?after=4",
        ["/agents", "/attention", "/catalogue", "/health", "/history", "/queue", "/sessions", "/usage"],
    ]


async def test_who_leaves_is_forgotten_even_by_a_gateway_that_does_not_answer(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await begin(); sockets[0].open(); statuses["/page/leave"] = 0;
        $("#leave").click(); await isShut();
        return [gate(), sessionStorage.getItem("csp-token"), sockets[0].readyState,
          asked.filter(([method]) => method === "POST")]"""
    )

    left = ["shut", False, "You have signed out.", "gate-title"]
    assert got == [left, None, 3, [["POST", "/page/leave", {}]]]


async def test_who_is_put_out_sees_why_and_listens_no_more(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await begin(); statuses["/agents"] = 401; answers["/agents"] = { error: "its week is over" };
        sockets[0].open(); await isShut();
        return [gate(), sessionStorage.getItem("csp-token"), sockets[0].readyState]"""
    )

    assert got == [["shut", False, "its week is over", "gate-title"], None, 3]


async def test_the_history_is_saved_in_the_form_that_was_asked_for(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const saved = []; URL.createObjectURL = () => "blob:x";
        HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
        await begin(); $("#export-md").click(); await until(() => saved.length === 1);
        $("#export-json").click(); await until(() => saved.length === 2); return saved"""
    )

    assert got == ["den.md", "den.json"]


async def test_a_look_at_an_agent_shows_its_screen_alone(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/agents"].push({ id: "bob", kind: "cli", state: "needs_human", online: true });
        answers["/catalogue"] = catalogue; answers["/attention"] = { items: [{ id: "stuck:bob", kind: "stuck",
          agent: "bob", since: 1, title: "bob needs you", answers: [{ key: "f", label: "Open its pane",
            line: "/focus bob" }] }] };
        await begin(); const looks = () => [document.body.dataset.tab, texts(".screen-view figcaption"),
          document.activeElement.id];
        $("#screen-of-ada").click(); const card = looks();
        await until(() => $(".need")); $(".need button").click(); return [card, looks()]"""
    )

    assert got == [
        ["screens", ["ada · idle"], "screens-panel"],
        ["screens", ["bob · needs you"], "screens-panel"],
    ]


async def test_what_is_found_is_shown_where_it_was_said(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await begin(); const found = { seq: 70, ts: 1, type: "human_message", sender: "human",
          target: "all", id: "m70", text: "marzipan", thread: "default" };
        answers["/history"] = { items: [found] }; $("#search-text").value = "marzipan";
        $("#search").requestSubmit(); await until(() => $("#results li button"));
        $("#results li button").click(); await until(() => $("#log .found"));
        return [asked.at(-1)[1], $("#log .found").dataset.seq]"""
    )

    assert got == ["/history?limit=60&before=100", "70"]


async def test_every_part_of_the_page_is_begun(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const session = { id: "s", mode: "autopilot", topic: "t", thread: "default", status: "running",
          round: 0, maxRounds: 0, turns: 1, tokens: 0, startedAt: 1000 };
        const proposals = { A: { agent: "ada", text: "mine" } };
        const orchestration = { phase: "turns", waitingFor: [], turnOrder: ["ada"], proposals, votes: {} };
        answers["/sessions"] = { items: [session] }; answers["/sessions/s"] = { session, orchestration };
        answers["/agents"][0].state = "busy";
        answers["/usage"].items = [{ agent: "ada", input: 1, output: 1, cost_usd: null, replies: 1 }];
        await begin(); await until(() => $("#chip-text").textContent !== "Freeform");
        await until(() => !$("#spending-part").hidden); sockets[0].open();
        sockets[0].hear({ seq: 5, id: "m5", ts: 1, type: "agent_response", sender: "ada", target: "all",
          text: "done?", thread: "default", session_id: "s", final: true });
        await until(() => bodyTexts().length); const banner = $("#banner").hidden;
        function bodyTexts() { return texts("#log .body"); }
        const key = new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true });
        document.body.dispatchEvent(key); const focused = document.activeElement.id;
        $("#add-model-open").click(); const dialog = $("#add-model").open; $("#add-model").close();
        $("#tabs [data-tab=board]").click();
        const read = () => new Set(asked.map(([, path]) => path.split("&")[0]));
        await until(() => read().has("/board?limit=50"));
        return [banner, focused, dialog, document.body.dataset.tab, localStorage.getItem("csp-theme"),
          document.title, $("#votes-part").hidden, texts("#busy b"), texts("#composer-target option"),
          texts("#mode-agents label"), read().has("/history?types=turn,turn_signal"),
          texts("#view-choice option").length]"""
    )

    assert got == [
        *(False, "search-text", True, "board", "auto", "den · group chat", False),
        *(["ada"], ["everybody", "ada"], ["ada"], True, 2),
    ]


async def test_the_run_of_a_review_is_shown(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const session = { id: "s", mode: "review", topic: "t", thread: "default", status: "running",
          round: 0, maxRounds: 0, turns: 1, tokens: 0, startedAt: 1000 };
        answers["/sessions"] = { items: [session] };
        answers["/sessions/s"] = { session, orchestration: { waitingFor: [], turnOrder: [] } };
        answers["/runs"] = { items: [{ id: "r", session_id: "s" }] };
        answers["/runs/r"] = { run: { id: "r", phase: "plan", builder: "ada", reviewer: "bob", cycle: 1,
          revisions: 0, max_revisions: 3 } };
        await begin(); await until(() => !$("#run-part").hidden); return texts("#run dd")[0]"""
    )

    assert got == "r"
