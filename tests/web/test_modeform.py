"""modeform.js: a session is begun with what the form says."""

from typing import Any, Final

from tests.web.modules import Parts

BEGIN: Final = """const { ModeForm } = await load("modeform");
const agent = (id, fields = {}) => ({ id, online: true, role: "agent", ...fields });
const room = await makeRoom({ agents: [agent("ada"), agent("bob")] }); new ModeForm(room);
room.agentsChanged.tell();
const choose = (mode) => { const input = $(`#mode-toggle input[value=${mode}]`); input.checked = true;
input.dispatchEvent(new Event("change")); };
const fill = (id, value) => { $(`#${id}`).value = value; };
answers["/sessions"] = { items: [] };
const posted = () => asked.splice(0).find(([method]) => method !== "GET") ?? null;
const submit = async () => { $("#mode-form").requestSubmit(); for (let i = 0; i < 5; i += 1) await turn();
return posted(); };
const hidden = () => ["rounds", "first", "synth", "ballot", "final", "limits", "roles", "agents",
  "thread"].filter((name) => $(`#field-${name}`).hidden);
"""


async def test_each_mode_is_asked_for_with_its_own_fields(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const all = {};
        for (const mode of ["single", "collaborate", "autopilot", "debate", "consensus", "round_robin"]) {
          choose(mode); fill("mode-goal", " a goal "); fill("mode-first", "bob");
          fill("mode-synth", "ada"); $("#mode-ballot").checked = $("#mode-final").checked = true;
          fill("limit-turns", "9"); fill("limit-cost", "0.5"); all[mode] = await submit();
        }
        return all"""
    )

    def body(mode: str, **fields: Any) -> list[Any]:
        return ["POST", "/mode", {"mode": mode, "topic": "a goal", "agents": ["ada", "bob"], **fields}]

    assert got == {
        "single": body("single", first="bob"),
        "collaborate": body("collaborate", rounds=6, first="bob"),
        "autopilot": body("autopilot", first="bob", respect_final=True, limits={"turns": 9, "cost": 0.5}),
        "debate": body("debate", rounds=3, synth="ada", ballot=True),
        "consensus": body("consensus", synth="ada"),
        "round_robin": body("round_robin", steps=10, first="bob", synth="ada"),
    }


async def test_the_fields_that_a_mode_does_not_have_are_hidden(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const shown = {}; for (const mode of ["collaborate", "autopilot", "debate", "round_robin",
          "review"]) { choose(mode); shown[mode] = [hidden(), texts("#rounds-label")[0],
          $("#mode-rounds").value]; }
        return [shown, localStorage.getItem("csp-mode"), texts("#mode-about")[0].length > 10]"""
    )

    assert got == [
        {
            "collaborate": [["synth", "ballot", "final", "limits", "roles"], "Rounds", "6"],
            "autopilot": [["rounds", "synth", "ballot", "roles"], "Rounds", ""],
            "debate": [["first", "final", "limits", "roles"], "Rounds", "3"],
            "round_robin": [["ballot", "final", "limits", "roles"], "Steps", "10"],
            "review": [
                ["rounds", "first", "synth", "ballot", "final", "limits", "agents", "thread"],
                "Rounds",
                "",
            ],
        },
        "review",
        True,
    ]


async def test_in_a_thread_of_its_own_or_in_the_one_that_is_looked_at(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """room.sessions = [{ id: "s", thread: "there", status: "ended" }]; room.view = "s";
        fill("mode-goal", "g"); const here = await submit(); fill("mode-goal", "g");
        $("#mode-thread").checked = true; const own = await submit();
        return [here[1], here[2].thread, own[1], own[2].thread ?? null, room.refreshed]"""
    )

    assert got == ["/mode", "there", "/sessions", None, 2]


async def test_who_takes_part_and_who_was_chosen_stays_so_when_others_join(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """choose("collaborate"); fill("mode-goal", "g"); $("#mode-agents input[value=ada]").click();
        fill("mode-first", "bob"); fill("mode-synth", "ada"); fill("mode-builder", "bob");
        fill("mode-reviewer", "ada");
        room.agents = [agent("ada"), agent("bob"), agent("cy"), agent("lead", { role: "orchestrator" }),
          agent("away", { online: false })]; room.agentsChanged.tell();
        const chosen = ["first", "synth", "builder", "reviewer"].map((name) => $(`#mode-${name}`).value);
        const { agents } = (await submit())[2];
        const lead = $("[data-mode=orchestrator]").hidden; room.agents = [agent("ada")];
        room.agentsChanged.tell(); const alone = ["first", "builder",
          "reviewer"].map((name) => $(`#mode-${name}`).value);
        room.agents = [agent("ada"), agent("bob")]; room.agentsChanged.tell();
        const again = ["builder", "reviewer"].map((name) => $(`#mode-${name}`).value);
        room.agents = []; room.agentsChanged.tell();
        return [chosen, agents, lead, alone, again, $("[data-mode=orchestrator]").hidden,
          texts("#mode-agents")]"""
    )

    assert got == [
        ["bob", "ada", "bob", "ada"],
        ["bob", "cy"],
        False,
        ["", "ada", "ada"],
        ["ada", "bob"],
        True,
        ["Nobody is online."],
    ]


async def test_too_few_agents_are_refused_before_anybody_is_asked(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """$("#mode-agents input[value=ada]").click(); choose("debate"); const one = await submit();
        $("#mode-agents input[value=bob]").click(); choose("single"); const none = await submit();
        choose("review"); fill("mode-reviewer", "ada");
        fill("mode-goal", "g"); return [one, none, await submit(), texts(".field-error"), texts(".toast p"),
          $("#mode-reviewer").getAttribute("aria-invalid"), document.activeElement.id]"""
    )

    assert got == [
        None,
        None,
        None,
        ["", "Pick two different agents: a builder and a reviewer.", "", "", ""],
        [],
        "true",
        "mode-reviewer",
    ]


async def test_what_is_missing_is_said_at_its_field(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """choose("debate"); const none = await submit(); const error = $("#mode-goal-error");
        const said = [error.textContent, error.hidden, $("#mode-goal").getAttribute("aria-describedby"),
          document.activeElement.id]; $("#mode-goal").value = "g";
        $("#mode-goal").dispatchEvent(new Event("input")); const typed = [error.textContent, error.hidden];
        $("#mode-agents input[value=ada]").click(); const few = await submit();
        return [none, said, typed, few, $("#mode-agents-error").textContent, document.activeElement.value]"""
    )

    assert got == [
        None,
        ["Enter a goal.", False, "mode-goal-error", "mode-goal"],
        ["", True],
        None,
        "Pick at least 2 agents.",
        "ada",
    ]


async def test_a_session_that_runs_is_replaced_only_after_a_question(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/sessions"].items = [{ id: "s", thread: "default", mode: "debate", topic: "tabs",
          status: "running" }];
        choose("consensus"); fill("mode-goal", "g"); const first = await submit();
        await until(() => $("#ask").open); const question = $("#ask-text").textContent;
          $("#ask-no").click(); await until(() => !$("#ask").open);
        await turn(); const kept = posted(); await submit(); await until(() => $("#ask").open);
        $("#ask-yes").click();
        await until(() => asked.length); const begun = posted()[2].mode;
        fill("mode-goal", "g"); $("#mode-thread").checked = true; const own = await submit();
        return [first, question, kept, begun, own[1], $("#ask").open]"""
    )

    assert got == [
        None,
        'Debate mode is running: "tabs". Stop it and start consensus?',
        *(None, "consensus", "/sessions", False),
    ]


async def test_a_session_that_has_just_ended_is_not_asked_about(parts: Parts) -> None:
    """The page hears of the end before it has looked at the sessions again."""
    got = await parts.run(
        BEGIN
        + """room.sessions = [{ id: "s", thread: "default", mode: "debate", topic: "tabs",
          status: "running" }];
        choose("consensus"); fill("mode-goal", "g"); const begun = await submit();
        return [begun?.[2].mode, $("#ask").open]"""
    )

    assert got == ["consensus", False]


async def test_nothing_is_begun_while_the_gateway_cannot_say_what_runs(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """statuses["/sessions"] = 500; choose("consensus"); fill("mode-goal", "g");
        return [await submit(), texts(".toast p")]"""
    )

    assert got == [None, ["the gateway answered 500"]]


async def test_a_review_is_begun_with_its_roles(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """choose("review"); fill("mode-goal", "g");
        fill("mode-revisions", "0"); const zero = await submit(); const goal = $("#mode-goal").value;
        fill("mode-revisions", "");
        statuses["/runs"] = 409; fill("mode-goal", "kept"); const unset = await submit();
        return [zero, goal, unset[2].max_revisions, $("#mode-goal").value, $("#mode-start").disabled,
          texts(".toast p")]"""
    )

    run = {"goal": "g", "builder": "ada", "reviewer": "bob", "max_revisions": 0}
    assert got == [["POST", "/runs", run], "", 3, "kept", False, ["the gateway answered 409"]]


async def test_the_mode_of_last_time_is_offered_again(parts: Parts) -> None:
    got = await parts.run(
        """const { ModeForm } = await load("modeform"); const modes = [];
        for (const kept of ["debate", "no such mode"]) { localStorage.setItem("csp-mode", kept);
        new ModeForm(await makeRoom()); modes.push([localStorage.getItem("csp-mode"),
          $("#mode-toggle input:checked")?.value ?? null]); }
        return modes"""
    )

    assert got == [["debate", "debate"], ["debate", "debate"]]
