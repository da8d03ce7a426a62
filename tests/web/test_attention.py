"""attention.js: what needs the person, with a button for each answer."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { startAttention } = await load("attention"); const room = await makeRoom();
const looked = []; const wrote = [];
startAttention(room, { look: (id) => looked.push(id), write: (to) => wrote.push(to) });
const item = (id, answers, fields = {}) => ({ id, kind: "approval", agent: "ada", since: 5, level: "action",
  title: `about ${id}`, detail: "pytest -q", answers: answers.map(([key, label, line]) => ({ key, label,
    line })),
  ...fields });
const show = (...items) => { room.attention = items; room.attentionChanged.tell(); };
const labels = (id) => [...document.querySelectorAll(`[data-need="${id}"] button`)].map((b) => b.textContent);
const press = async (label) => { [...document.querySelectorAll(".need button")].find((button) =>
  button.textContent === label).click(); for (let i = 0; i < 6; i += 1) await turn();
  return asked.splice(0).map(([, path, body]) => [path, body]); };
const FEW = [["y", "Approve", "/approve ada 1"], ["n", "Deny", "/deny ada 2"],
  ["f", "Open its pane", "/focus ada"]];
const MANY = [["y", "Yes", "/approve ada 1"], ["2", "Always", "/approve ada 2"], ["n", "No", "/deny ada 3"],
  ["f", "Open its pane", "/focus ada"]];
"""


async def test_each_item_is_said_with_its_command_and_its_answers(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const none = $("#attention").hidden; show(item("a", FEW), item("plan", FEW.slice(0, 1),
          { kind: "question" })); const shown = [$("#attention").hidden, texts(".need b"), texts(".need pre"),
          texts(".need p.asked"), labels("a")]; show(); return [none, shown, $("#attention").hidden]"""
    )

    assert got == [
        True,
        [
            False,
            ["about a", "about plan"],
            ["pytest -q"],
            ["pytest -q"],
            ["Approve", "Deny", "Open its pane"],
        ],
        True,
    ]


async def test_an_answer_is_its_line(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/line"] = { kind: "done" }; show(item("a", FEW)); const yes = await press("Approve");
        const no = await press("Deny"); await press("Open its pane"); const refreshed = room.refreshed;
        show(item("q", [["r", "Reply", "@bob"]])); await press("Reply");
        return [yes, no, looked, wrote, refreshed]"""
    )

    assert got == [
        [["/line", {"line": "/approve ada 1"}]],
        [["/line", {"line": "/deny ada 2"}]],
        ["ada"],
        ["bob"],
        2,
    ]


async def test_three_buttons_are_enough_for_an_approval_with_many_choices(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """show(item("a", MANY)); const few = labels("a"); await press("All choices…");
          const all = labels("a");
        const focused = document.activeElement.textContent; return [few, all, focused,
          await press("Always")]"""
    )

    assert got == [
        ["Yes", "No", "All choices…"],
        ["Yes", "Always", "No", "Open its pane"],
        "No",
        [["/line", {"line": "/approve ada 2"}]],
    ]


async def test_the_answers_of_a_tie_are_all_shown(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const tie = ["A", "B", "C", "D"].map((label) => [label.toLowerCase(), label,
          `/decide s-1 ${label}`]);
        show(item("tie:s-1", tie, { kind: "tie" })); return [labels("tie:s-1"), await press("C")]"""
    )

    assert got == [["A", "B", "C", "D"], [["/line", {"line": "/decide s-1 C"}]]]


async def test_a_review_plan_is_approved(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/line"] = { kind: "done" };
        show(item("plan:run-4", [["y", "Approve the plan", "/review go run-4"]], { kind: "plan" }));
        return press("Approve the plan")"""
    )

    assert got == [["/line", {"line": "/review go run-4"}]]


async def test_news_comes_last_can_be_put_away_and_comes_back_when_it_happens_again(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """const ended = (since) => item("ended:cy", [["r", "Start it again", "/restart cy"], ["x",
          "Remove it",
          "/remove cy"]], { kind: "ended", level: "info", since }); show(ended(1), item("a", FEW));
        const order = texts(".need b"); const offered = labels("ended:cy"); await press("Hide");
        const rest = texts(".need b"); show(ended(1), item("a", FEW)); const same = texts(".need b");
        show(ended(9)); return [order, offered, rest, same, texts(".need b")]"""
    )

    assert got == [
        ["about a", "about ended:cy"],
        # Only the pane can remove an agent.
        ["Start it again", "Hide"],
        ["about a"],
        ["about a"],
        ["about ended:cy"],
    ]


async def test_an_item_that_stays_is_not_drawn_again_under_the_hand_of_a_person(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """show(item("a", FEW), item("b", FEW)); const button = $("[data-need=b] button"); button.focus();
        show(item("b", FEW)); const kept = button.isConnected && document.activeElement === button;
        show(item("c", FEW), item("b", FEW, { detail: "other" }));
        return [kept, button.isConnected, texts(".need b"), document.activeElement.id]"""
    )

    assert got == [True, False, ["about c", "about b"], "need-b-0"]


async def test_a_key_gives_an_answer_while_the_focus_is_on_its_item(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """answers["/line"] = { kind: "done" }; show(item("a", FEW)); const button = $(".need button");
        const key = (name, more) => button.dispatchEvent(new KeyboardEvent("keydown", { key: name,
          bubbles: true,
          ...more })); key("z"); key("n", { ctrlKey: true }); key("n", { repeat: true });
        key("y", { altKey: true }); const early = asked.length; key("n"); await turn();
        return [early, asked.map(([, , body]) => body.line)]"""
    )

    assert got == [0, ["/deny ada 2"]]


async def test_an_answer_is_given_once_however_often_it_is_pressed(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """let go; answers["/line"] = () => new Promise((done) => (go = done)); show(item("a", FEW));
        await press("Approve"); await press("Approve"); await press("Deny"); const busy = ids.length;
        go({ kind: "done" }); for (let i = 0; i < 6; i += 1) await turn();
        return [busy, $(".need").getAttribute("aria-busy")]"""
    )

    assert got == [1, None]
