"""agents.js: the cards of the agents."""

from typing import Final

from tests.web.modules import Parts

DRAW: Final = """const { startAgents } = await load("agents"); const { now } = await load("api");
const agent = (id, fields = {}) => ({ id, kind: "cli", state: "idle", online: true, share: false,
  ...fields });
const looked = [];
const draw = async (agents, fields = {}) => {
  const room = await makeRoom({ agents, ...fields }); startAgents(room, (id) => looked.push(id)); return room;
};
const card = (id) => document.querySelector(`[data-agent="${id}"]`);
const labels = (id) => [...card(id).querySelectorAll("button")].map((button) => button.textContent);
"""


async def test_turn_words_say_who_owes_an_answer(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """const shown = { session: { status: "running" },
          orchestration: { waitingFor: ["ada", "off"], turnOrder: ["ada", "bob", "off"] } };
        const agents = [agent("ada", { state: "busy" }), agent("bob"), agent("cy"), agent("off",
          { state: "offline" })];
        const room = await draw(agents, { shown });
        const words = () => agents.map(({ id }) => card(id).querySelector(".turn-word")?.textContent ?? "");
        const running = words();
        room.shown = { ...shown, session: { status: "ended" } }; room.sessionsChanged.tell();
        const ended = words();
        room.shown = { ...shown, orchestration: { waitingFor: ["bob"], turnOrder: ["ada", "bob"] } };
        room.sessionsChanged.tell(); const next = words();
        room.shown = null; room.sessionsChanged.tell();
        return [running, ended, next, words()]"""
    )

    assert got == [
        ["[YOUR TURN]", "[WAITING]", "", ""],
        ["", "", "", ""],
        ["[WAITING]", "[YOUR TURN]", "", ""],
        ["", "", "", ""],
    ]


async def test_what_a_card_shows(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """await draw([
          agent("ada", { state: "limited", until: now() + 3600, detail: "<b>weekly</b>", kind: "api",
            capabilities: { model: "m-1" } }),
          agent("bob", { state: "limited", until: now() - 5, role: "orchestrator", capabilities: ["x"] }),
          agent("cy", { state: "dreaming" })]);
        return [texts(".agent .state"), texts(".agent .kind"), texts(".agent .detail"),
          texts(".agent .avatar")]"""
    )

    assert got[0][0].startswith("at its limit until ") and got[0][1:] == ["at its limit", "dreaming"]
    assert got[1:] == [["m-1", "orchestrator · x"], ["<b>weekly</b>"], ["Ad", "Bo", "Cy"]]


async def test_a_card_shows_the_context_that_is_left_and_the_worktree(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """await draw([agent("ada", { context: 64600, window: 258400, work: "b: 1 changed file" }),
          agent("bob", { context: 250000, window: 258400 }), agent("cy", { context: 48200, window: 0 }),
          agent("eve", { context: 0, window: 0 })]);
        return [...document.querySelectorAll(".agent")].map((one) => [".context", ".work"].map((name) => {
          const p = one.querySelector(name); return p && [p.textContent, p.dataset.low]; }))"""
    )

    assert got == [
        [["75% context left", "false"], ["b: 1 changed file", None]],
        [["3% context left", "true"], None],
        [["48,200 tokens in context", "false"], None],
        [None, None],
    ]


async def test_each_button_has_its_place_whatever_the_state(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """await draw(["idle", "busy", "paused", "offline", "needs_human"].map((state) => agent(state,
          { state })));
        const off = (id) => [...card(id).querySelectorAll("[aria-disabled]")].map((one) => one.textContent);
        $("#interrupt-idle").click();
        return [["idle", "paused"].map(labels), ["idle", "busy", "paused", "offline", "needs_human"].map(off),
          asked]"""
    )

    assert got == [
        [
            ["Screen", "Pause", "Interrupt", "Share", "Restart"],
            ["Screen", "Resume", "Interrupt", "Share", "Restart"],
        ],
        [
            ["Interrupt", "Restart"],
            ["Restart"],
            ["Interrupt", "Restart"],
            ["Pause", "Interrupt", "Share"],
            ["Interrupt"],
        ],
        [],
    ]


async def test_a_card_says_what_an_agent_does_and_with_which_model(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """const dialog = { tool: "Bash", arguments: "pytest -q" };
        const room = await draw([agent("ada", { state: "needs_approval", dialog, capabilities: ["claude"] }),
          agent("bob", { state: "busy", capabilities: ["bob"] }), agent("cy", { online: false, dialog })],
          { usage: { items: [{ agent: "ada", model: "old" }, { agent: "ada", model: "opus" }],
            prices: null } });
        room.doing.set("bob", { text: "first\\nnow the tests", ts: 1 }); room.agentsChanged.tell();
        const said = [texts(".agent .kind"), texts(".agent .detail")];
        room.agents.find(({ id }) => id === "bob").detail = "Bash: pytest: exit 1"; room.agentsChanged.tell();
        said.push(texts("[data-agent=bob] .detail"));
        room.agents.find(({ id }) => id === "bob").detail = "";
        room.run = { run: { builder: "bob", phase: "building", branch: "csp/run-4" }, update: { tests: {
          command:
          "make test", passed: false, code: 2 }, figures: { files: 1, insertions: 2 } } };
        room.runChanged.tell(); const built = texts("[data-agent=bob] .detail");
        room.run.run.phase = "ended"; room.runChanged.tell();
        return [...said, built, texts("[data-agent=bob] .detail")]"""
    )

    assert got == [
        ["claude · opus"],
        ["Bash: pytest -q", "now the tests"],
        ["Bash: pytest: exit 1"],
        ["now the tests", "make test: exit 2", "csp/run-4 · 1 changed file +2 −0"],
        ["now the tests"],
    ]


async def test_a_button_presses_its_own_verb(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """await draw([agent("ada", { state: "busy", share: true }), agent("bob", { state: "paused" }),
          agent("cy", { state: "offline" })]);
        for (const id of ["interrupt-ada", "noshare-ada", "pause-ada", "resume-bob", "share-bob",
          "restart-cy", "screen-of-cy"])
          document.getElementById(id).click();
        return [asked.map(([, path]) => path), looked]"""
    )

    assert got == [
        [
            "/agents/ada/interrupt",
            "/agents/ada/noshare",
            "/agents/ada/pause",
            "/agents/bob/resume",
            "/agents/bob/share",
            "/agents/cy/restart",
        ],
        ["cy"],
    ]


async def test_what_waits_for_an_agent_is_counted(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """const item = (seq, fields = {}) => ({ id: `m${seq}`, seq, agent: "ada", sender: "bob",
          state: "held", reason: "draft", ...fields });
        const queue = [item(1), item(2, { state: "queued", reason: null }), item(3, { state: "typed" }),
          item(4, { agent: "bob" }), item(5), item(6)];
        const room = await draw([agent("ada"), agent("bob")], { queue });
        const many = [texts("[data-agent=ada] .waiting p"), texts("[data-agent=ada] .waiting li")];
        room.queue = [item(4, { agent: "bob" })]; room.queueChanged.tell();
        return [...many, texts("[data-agent=bob] .waiting p"), texts("[data-agent=ada] .waiting")]"""
    )

    why = "draft (you have text in its input box)"
    assert got == [
        ["4 messages wait"],
        [f"#1 from bob: {why}", "#2 from bob: queued", f"#5 from bob: {why}"],
        ["1 message waits"],
        [],
    ]


async def test_the_focus_stays_when_a_card_is_drawn_again(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """const room = await draw([agent("ada")]); const before = card("ada"); $("#pause-ada").focus();
        room.agentsChanged.tell(); const same = card("ada") === before;
        room.agents = [agent("ada", { state: "busy" })]; room.agentsChanged.tell();
        const focused = document.activeElement.id; room.agents = []; room.agentsChanged.tell();
        return [same, focused, card("ada"), texts("#agent-list li")]"""
    )

    assert got == [
        True, "pause-ada", None, ["Nobody is here yet. In a shell: csp add NAME -- COMMAND"],
    ]  # fmt: skip


async def test_only_a_model_with_a_name_is_named(parts: Parts) -> None:
    got = await parts.run(
        DRAW
        + """await draw([agent("ada", { capabilities: { model: "opus" } }), agent("bob",
          { capabilities: { model: { id: 1 } } }), agent("cy", { capabilities: ["x"] }),
          agent("dee", { capabilities: { profile: "claude", duty: "reviewer" } })]);
        return texts(".agent .kind")"""
    )

    assert got == ["opus", "x", "reviewer · claude"]
