"""review.js: a builder's run with its reviewer."""

from typing import Any, Final

from tests.web.modules import Parts

BEGIN: Final = """const { startRuns } = await load("review");
const room = await makeRoom({ shown: { session: { id: "s", mode: "review" } } }); startRuns(room);
const run = (fields) => ({ id: "r/1", session_id: "s", builder: "ada", reviewer: "bob",
  phase: "building", waits_for: "ada", cycle: 1, revisions: 1, max_revisions: 3, ...fields });
const show = async (fields, more = {}) => {
  answers["/runs"] = { items: [run({ id: "old" }), run(fields), { ...run(), id: "other",
    session_id: "x" }] }; answers["/runs/r%2F1"] = { run: run(fields), ...more };
  room.sessionsChanged.tell(); for (let i = 0; i < 6; i += 1) await turn(); asked.length = 0;
};
const facts = () => Object.fromEntries([...document.querySelectorAll("#run dt")].map((dt) =>
  [dt.textContent, dt.nextSibling.textContent]));
const press = async (id) => { $(id).click(); for (let i = 0; i < 4; i += 1) await turn();
return asked.splice(0)[0]; };
"""


async def test_the_facts_of_a_run(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show({ branch: "b", why: "w" }, { risk: "high" });
        const first = [facts(), $("#run-part").hidden];
        await show({ phase: "ended", reason: "all_well" }); const ended = facts().Phase;
        room.shown = { session: { id: "s", mode: "debate" } }; room.sessionsChanged.tell(); await turn();
        return [...first, ended, $("#run-part").hidden, asked]"""
    )

    assert got == [
        {
            "Run": "r/1",
            "Builder": "ada",
            "Reviewer": "bob",
            "Phase": "building, waiting for ada",
            "Cycle": "1, 1 revision of 3",
            "Risk": "high",
            "Why": "w",
            "Branch": "b",
        },
        False,
        "ended, all well",
        True,
        [],
    ]


async def test_the_plan_and_each_step_with_its_diff_and_its_tests(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const update = (passed) => ({ step: "look", figures: { files: 2, insertions: 5,
          deletions: 1 }, tests: { passed, command: "make <x>" } });
        await show({}, { plan: { summary: "sum", steps: ["one", "two"] }, notes: ["n1"],
          update: update(true) });
        const good = [texts("#run p"), texts("#run .plan li"), $("#run .verdict").dataset.passed];
        await show({}, { update: update(false) });
        const bad = [texts("#run .verdict"), $("#run .verdict").dataset.passed];
        await show({}, { update: { step: "x" } }); return [good, bad, texts("#run p")]"""
    )

    assert got == [
        [
            ["sum", "n1", "look", "Diff from git: 2 files, +5 −1", "Tests passed ✓: make <x>"],
            ["one", "two"],
            "true",
        ],
        [["Tests failed ✗: make <x>"], "false"],
        ["x"],
    ]


async def test_what_a_person_can_do_in_each_phase(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const all = {}; for (const phase of ["building", "approval", "escalated", "halted",
          "ended"]) { await show({ phase, reason: "r" }); all[phase] = texts("#run > .buttons button");
        } return all"""
    )

    assert got == {
        "building": ["Halt", "Abort"],
        "approval": ["Approve the plan", "Abort"],
        "escalated": ["Accept", "Revise", "Abort"],
        "halted": ["Continue", "Abort"],
        "ended": [],
    }


async def test_buttons_ask_for_what_they_say_with_the_reason(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show({ phase: "escalated" }); const revise = await press("#run-revise");
        $("#run input").value = " why "; const abort = await press("#run-abort");
        const refreshed = room.refreshed;
        await show({ phase: "halted" }); const kept = $("#run input").value;
        const go = await press("#run-continue"); statuses["/runs/r%2F1/abort"] = 409;
          await press("#run-abort");
        return [revise, abort, refreshed, kept, go, room.refreshed]"""
    )

    def post(action: str, **body: Any) -> list[Any]:
        return ["POST", f"/runs/r%2F1/{action}", body]

    assert got == [
        post("decide", decision="revise"),
        post("decide", decision="abort", rationale="why"),
        2,
        " why ",
        post("resume", rationale="why"),
        3,
    ]


async def test_findings_are_judged(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show({}, { findings: [{ id: "f-1", severity: "major", text: "<leak>",
          resolved: false }, { id: "f-2", severity: "minor", text: "typo", resolved: true,
          verdict: "rejected" }] });
        return [texts(".findings li"), await press("[aria-label='Finding f-1 was right']"),
          await press("[aria-label='Finding f-1 was wrong']")]"""
    )

    assert got == [
        ["major, open: <leak>RightWrong", "minor, resolved: typo (rejected)"],
        ["POST", "/runs/r%2F1/finding", {"finding": "f-1", "verdict": "confirmed"}],
        ["POST", "/runs/r%2F1/finding", {"finding": "f-1", "verdict": "rejected"}],
    ]
