"""timeline.js: the turns of a session along time, a lane for each agent."""

from typing import Final

from tests.web.modules import Parts

BEGIN: Final = """const { Timeline } = await load("timeline"); const { now } = await load("api");
const signal = (turn, target, ts, round = 1) => ({ type: "turn_signal", session_id: "s", turn, target,
  ts, round });
const moved = (turn, state, ts) => ({ type: "turn", session_id: "s", turn, state, ts });
const room = await makeRoom({ shown: { session: { id: "s", status: given ?? "ended" } } });
new Timeline(room);
const show = async (items) => { answers["/history"] = { items }; room.sessionsChanged.tell();
await drawn(); };
const drawn = async () => { await turn(); await frame(); await frame(); };
const bars = () => [...document.querySelectorAll("#timeline rect")].map((bar) =>
  ["x", "width"].map((name) => Math.round(Number(bar.getAttribute(name)))).concat(bar.getAttribute("class")));
const frame = window.frame, turn = window.turn;
"""


async def test_bars_lie_along_time_in_the_lane_of_their_agent(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([signal("t1", "gpt", 100), moved("t1", "replied", 110), signal("t2",
          "claude-the-second", 110),
          moved("t2", "working", 112), moved("t2", "timed_out", 120)]);
        return [bars(), texts("#timeline .lane-name"), texts("#timeline title"), texts("#timeline p"),
          $("#timeline svg").getAttribute("aria-label"), $("#timeline-part").hidden,
          [...document.querySelectorAll("#timeline rect")].map((bar) => bar.getAttribute("y"))]"""
    )

    assert got == [
        [[78, 109, "turn replied"], [187, 109, "turn timed_out"]],
        ["gpt", "claude-the…"],
        ["gpt, round 1: replied after 10.0 s", "claude-the-second, round 1: timed out after 10.0 s"],
        ["Turn 2: claude-the-second, timed out after 10.0 s"],
        "Turns: gpt replied, claude-the-second timed out",
        False,
        ["4", "26"],
    ]


async def test_what_happens_while_the_turns_so_far_are_fetched_comes_after_them(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """let go; answers["/history"] = () => new Promise((done) => (go = done));
        room.sessionsChanged.tell(); await until(() => go);
        for (const event of [signal("t2", "claude", 110), moved("t2", "working",
          111)]) room.sessionEvent.tell(event);
        go({ items: [signal("t1", "gpt", 100), moved("t1", "replied", 110), signal("t2", "claude", 110),
          moved("t2", "delivered", 110)] });
        await drawn(); const first = [texts("#timeline .lane-name"), bars().map((bar) => bar[2])];
        room.sessionEvent.tell(moved("t2", "replied", 115)); await drawn();
        return [...first, texts("#timeline p")]"""
    )

    assert got == [
        ["gpt", "claude"],
        ["turn replied", "turn working"],
        ["Turn 2: claude, replied after 5.0 s"],
    ]


async def test_a_turn_may_end_later_than_the_clock_shows(parts: Parts) -> None:
    """The page knows the gateway's clock by about a second."""
    got = await parts.run(
        BEGIN
        + """const at = now();
        await show([signal("t1", "gpt", at - 3), moved("t1", "replied", at + 0.9), signal("t2", "claude",
          at + 0.9)]);
        return bars().map(([x, width]) => x + width <= 300 && x >= 78)""",
        "running",
    )

    assert got == [True, True]


async def test_an_open_turn_of_a_running_session_grows_until_now(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([signal("t1", "gpt", now() - 60)]); return [bars()[0][1], texts("#timeline p")]""",
        "running",
    )

    assert got == [218, ["Turn 1: gpt, asked"]]


async def test_events_of_other_sessions_do_not_belong_here(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show([signal("t1", "gpt", 100), { ...signal("t9", "bob", 101), session_id: "other" }]);
        room.sessionEvent.tell({ ...signal("t8", "cy", 101), session_id: "other" });
        room.sessionEvent.tell(moved("t7", "replied", 1));
        await drawn(); const mine = texts("#timeline .lane-name");
        room.shown = null; room.sessionsChanged.tell(); await drawn();
        return [mine, $("#timeline-part").hidden, asked.map(([, path]) => path)]"""
    )

    assert got == [["gpt"], True, ["/history?types=turn,turn_signal&session=s&limit=1000"]]


async def test_the_newest_three_hundred_turns_are_drawn(parts: Parts) -> None:
    got = await parts.run(
        BEGIN
        + """await show(Array.from({ length: 305 }, (_, index) => signal(`t${index}`,
          index < 5 ? "old" : "gpt", 100 + index)));
        return [bars().length, texts("#timeline .lane-name")]"""
    )

    assert got == [300, ["gpt"]]
