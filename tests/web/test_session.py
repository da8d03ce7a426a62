"""session.js: the session that runs or ran last, and what can be done to it."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { startSession } = await load("session"); const { now } = await load("api");
const session = (fields = {}) => ({ id: "s", mode: "round_robin", topic: "a <b>", thread: "default",
  status: "running", round: 0,
  maxRounds: 3, turns: 2, tokens: 0, startedAt: 1000, ...fields });
const orchestration = (fields = {}) => ({ phase: "turns", waitingFor: ["ada"], currentTurn: "ada",
  turnOrder: ["ada"], ...fields });
const room = await makeRoom(); startSession(room);
const show = (one, more = orchestration()) => { room.shown = one && { session: one,
  orchestration: more }; room.sessions = one ? [one] : []; room.sessionsChanged.tell(); };
const facts = () => Object.fromEntries([...document.querySelectorAll("#session-now dt")].map((dt) =>
  [dt.textContent, dt.nextSibling.textContent]));
const labels = () => texts("#session-now .buttons button");
"""


async def test_the_facts_of_a_running_session(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const used = { tokens: 1500, new: 1400, output: 20, cached: 100, cost_usd: 0.5 };
        show(session(used), orchestration({ deadline: now() + 42.2 }));
        const running = facts();
        const head = [texts(".session-head b"), texts(".session-head .status"),
          texts("#session-now .topic"), $("#chip").dataset.status];
        show(session({ maxRounds: 0, round: 4, topic: "" }), orchestration({ waitingFor: [] }));
        return [head, running, facts().Round, facts()["Waiting for"], texts("#session-now .topic")]"""
    )

    running = got[1]
    assert got[0] == [["Round robin"], ["running"], ["a <b>"], "running"]
    assert running.pop("Started")
    assert running == {
        "Phase": "turns",
        "Round": "1 of 3",
        "Waiting for": "ada0:42",
        "Turns": "2",
        "Spent": "1,400 new tokens (20 output), 100 cached, $0.5000",
    }
    assert got[2:] == ["turn 5", "nobody", ["(no topic)"]]


async def test_the_facts_of_a_session_that_has_ended(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """show(session({ status: "ended", reason: "final", round: 3, endedAt: 1125 }));
        const known = facts();
        return [texts(".session-head .status"), known.Took, known.Round, "Phase" in known, labels()]"""
    )

    assert got == [["finished"], "2:05", "3 of 3", False, []]


async def test_the_buttons_of_a_session(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """show(session()); const running = labels();
        for (const button of document.querySelectorAll("#session-now .buttons button")) button.click();
        await until(() => room.refreshed === 6); const calls = asked.splice(0);
        const refreshed = room.refreshed;
        show(session({ status: "paused" }), orchestration({ currentTurn: null }));
        const paused = labels(); $("#session-resume").click();
        const resumed = asked.splice(0)[0][1]; show(session({ mode: "autopilot", maxRounds: 0 }));
        return [running, calls, refreshed, paused, resumed, labels()]"""
    )

    assert got == [
        ["Stop", "Pause", "Next", "Skip", "+1 round", "More time"],
        [
            ["POST", "/sessions/s/stop", {}],
            ["POST", "/sessions/s/pause", {}],
            ["POST", "/turn/next", {"thread": "default"}],
            ["POST", "/sessions/s/skip", {"agent": "ada"}],
            ["POST", "/sessions/s/extend", {"rounds": 1}],
            ["POST", "/sessions/s/extend", {}],
        ],
        6,
        ["Stop", "Resume", "+1 round"],
        "/sessions/s/resume",
        ["Stop", "Pause", "Next", "Skip", "More time"],
    ]


async def test_the_form_is_out_of_the_way_while_a_session_runs(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const open = () => $("#mode-part").open; const first = open(); show(session());
        const running = open();
        $("#mode-part").open = true; show(session({ turns: 3 })); const reopened = open();
        show(session({ status: "ended", reason: "done" })); const ended = open(); show(null);
        return [first, running, reopened, ended, texts("#session-now p"), texts("#chip-text"),
          $("#chip").dataset.status]"""
    )

    assert got == [
        True,
        False,
        True,
        True,
        ["No session yet. Pick a mode and enter a goal."],
        ["Freeform"],
        "none",
    ]


async def test_every_session_can_be_looked_at_alone(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """room.sessions = [session({ id: "s1", status: "ended", topic: "" }), session({ id: "s2",
          thread: "own", topic: "x".repeat(60) })];
        room.sessionsChanged.tell(); const options = texts("#view-choice option");
        const chosen = []; room.viewChanged.on(() => chosen.push(room.view));
        const choose = (id) => { $("#view-choice").value = id;
        $("#view-choice").dispatchEvent(new Event("change")); };
        choose("s1"); choose(""); return [options, chosen, $("#view-choice").value]"""
    )

    assert got[0][0] == "All threads" and got[0][2] == "Round robin: s1"
    assert got[0][1].startswith("● Round robin: xxx") and got[0][1].endswith(" (own)") and len(got[0][1]) < 65
    assert got[1:] == [["s1", None], ""]


async def test_what_does_not_fit_a_session_is_not_shown(parts: Parts) -> None:
    """The first of the two clocks is the one of the stream."""
    got = await parts.run(
        "const every = []; window.setInterval = (run, ms) => every.push(ms);"
        + BEGIN
        + """show(session({ mode: "consensus", endedAt: 1125 })); const known = Object.keys(facts());
        return [every, known, labels().includes("+1 round")]"""
    )

    assert got == [[15_000, 500], ["Phase", "Round", "Waiting for", "Turns", "Started"], False]


async def test_the_choice_of_a_session_follows_the_view(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """show(session()); const first = $("#view-choice").value; room.view = "s"; room.viewChanged.tell();
        return [first, $("#view-choice").value]"""
    )

    assert got == ["", "s"]


async def test_a_session_is_not_drawn_again_while_it_stays_the_same(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """show(session()); const same = $("#session-stop"); same.focus(); room.sessionsChanged.tell();
        const kept = same.isConnected; show(session({ turns: 3 }));
        return [kept, same.isConnected, document.activeElement.id]"""
    )

    assert got == [True, False, "session-stop"]
