"""acts.js: what a person can do to the room."""

from tests.web.modules import Parts

SESSIONS = """const sessions = [
  { id: "s1", thread: "one", status: "running" }, { id: "s2", thread: "two", status: "running" },
  { id: "s3", thread: "three", status: "ended" }];"""


async def test_whoever_looks_at_everything_stops_everything(parts: Parts) -> None:
    got = await parts.run(
        SESSIONS
        + """const { stop } = await load("acts"); const room = await makeRoom({ sessions });
        const sent = []; room.hurry = (op) => sent.push(op);
        return [await stop(room), asked, room.refreshed, sent, ids]"""
    )

    (stop_id,) = got.pop()
    assert got == [
        True,
        [["POST", "/stop", {"all": True}]],
        1,
        [{"op": "stop", "all": True, "id": stop_id}],
    ]


async def test_whoever_looks_at_one_session_stops_that_one(parts: Parts) -> None:
    got = await parts.run(
        SESSIONS
        + """const { stop } = await load("acts"); const room = await makeRoom({ sessions, view: "s1" });
        const sent = []; room.hurry = (op) => sent.push(op); const done = await stop(room);
        statuses["/stop"] = 507;
        return [done, asked.slice(0, 1), sent[0].thread, sent[0].id === ids[0], await stop(room)]"""
    )

    assert got == [True, [["POST", "/stop", {"thread": "one"}]], "one", True, False]


async def test_buttons_of_sessions_and_agents(parts: Parts) -> None:
    got = await parts.run(
        """const { steer, press } = await load("acts"); statuses["/agents/b/deny"] = 404;
        await steer("s/1", "extend", { rounds: 1 }); await press("a", "approve", 2);
        await press("a", "pause");
        return [await press("b", "deny"), asked, texts(".toast p")]"""
    )

    assert got == [
        None,
        [
            ["POST", "/sessions/s%2F1/extend", {"rounds": 1}],
            ["POST", "/agents/a/approve", {"choice": 2}],
            ["POST", "/agents/a/pause", {}],
            ["POST", "/agents/b/deny", {}],
        ],
        ["the gateway answered 404"],
    ]
