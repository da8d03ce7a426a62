"""room.js: the room as the page knows it, kept fresh by events."""

from typing import Final

from tests.web.modules import Parts

#: A room that has been opened; `tells` names what was told since, `looks` what was asked for. What needs a
#: person is left out, since most events have it asked for.
OPEN: Final = """window.catalogue.attention_events = [];
const real = window.setTimeout;
window.setTimeout = (run, ms, ...rest) => real(run, Math.min(ms, 5), ...rest);
answers["/health"] = { room: "den", seq: 4 };
answers["/agents"] = [{ id: "ada", kind: "cli" }, { id: "human", kind: "human" }];
answers["/sessions"] = { items: given ?? [] };
answers["/usage"] = { items: [], prices: null }; answers["/queue"] = { items: [{ id: "m" }] };
const { Room } = await load("room"); const room = new Room(); let tells = [];
for (const name of ["said", "moved", "news", "noted", "gap", "agentsChanged", "sessionsChanged",
  "sessionEvent",
  "usageChanged", "queueChanged", "statusChanged", "viewChanged",
    "live"]) room[name].on(() => tells.push(name));
await room.open(); sockets[0].open();
const quiet = async () => {
  // Nothing here waits longer than 5 ms, so what is still to be asked has been asked by then.
  for (let calm = 0, seen = -1; calm < 3; calm += 1) {
    if (seen !== asked.length) calm = 0;
    seen = asked.length; await new Promise((done) => real(done, 12));
  }
};
const looks = () => [...new Set(asked.splice(0).map(([, path]) => path.split("?")[0]))].sort();
await until(() => tells.includes("queueChanged") && tells.includes("usageChanged")); await quiet();
asked.length = 0; tells.length = 0;
const hear = async (event) => {
  sockets[0].hear({ seq: room.seq + 1, type: "x", ...event }); await frame(); await quiet();
  const told = [...new Set(tells.splice(0))].filter((name) => !name.endsWith("Changed")).sort();
  return [told, looks()];
};
"""


async def test_each_event_tells_whom_it_concerns_and_only_what_it_does_not_tell_is_asked_for(
    parts: Parts,
) -> None:
    got = await parts.run(
        OPEN
        + """return [
          await hear({ type: "human_message", recipients: ["ada"] }),
          await hear({ type: "agent_response", sender: "ada", usage: { input: 1 } }),
          await hear({ type: "system" }),
          await hear({ type: "delivery" }),
          await hear({ type: "state", sender: "ada", state: "busy" }),
          await hear({ type: "joined" }),
          await hear({ type: "redacted" }),
          await hear({ type: "vote" }),
          await hear({ type: "turn_signal" }),
          await hear({ type: "run.plan" }),
          await hear({ type: "note" }),
          await hear({ type: "agent_response", idx: 0 })]"""
    )

    assert got == [
        [["said"], []],
        [["said"], []],
        [["said"], []],
        [["moved"], []],
        [[], []],
        [["news"], ["/agents", "/queue"]],
        [["news", "noted"], ["/queue"]],
        [["sessionEvent"], ["/sessions"]],
        [["sessionEvent"], ["/sessions"]],
        [["sessionEvent"], ["/sessions"]],
        [["noted"], []],
        [["noted", "said"], []],
    ]


async def test_a_reply_in_a_session_costs_one_request(parts: Parts) -> None:
    got = await parts.run(
        """answers["/sessions/s1"] = { session: { id: "s1", status: "running" } };"""
        + OPEN
        + """const reply = [
          { type: "delivery", message: "q", agent: "ada", state: "confirmed" },
          { type: "state", sender: "ada", state: "busy" },
          { type: "agent_response", id: "r", sender: "ada", recipients: ["bob"], session_id: "s1",
            usage: { input: 10, output: 5, cache_read: 4, model: "m", cost_usd: 0.5 } },
          { type: "turn", session_id: "s1", turn: "t1", state: "replied" },
          { type: "mode", session_id: "s1", change: "phase" },
          { type: "turn_signal", session_id: "s1", turn: "t2", target: "bob" },
          { type: "state", sender: "ada", state: "idle", detail: "done" }];
        for (const event of reply) sockets[0].hear({ seq: room.seq + 1, ...event });
        await frame(); await frame(); await quiet();
        const [{ new: fresh, cached, replies, cost_usd }] = room.usage.items;
        return [asked.map(([, path]) => path), [fresh, cached, replies, cost_usd],
          [room.agent("ada").state, room.agent("ada").detail],
          room.queue.map(({ id, agent, state }) => [id, agent, state]),
          [...new Set(tells)].filter((name) => name.endsWith("Changed")).sort()]""",
        [{"id": "s1", "status": "running", "thread": "default"}],
    )

    assert got == [
        ["/sessions/s1"],
        [11, 4, 1, 0.5],
        ["idle", "done"],
        [["m", None, None], ["r", "bob", "queued"]],
        ["agentsChanged", "queueChanged", "sessionsChanged", "usageChanged"],
    ]


async def test_an_answer_that_is_older_than_an_event_does_not_undo_it(parts: Parts) -> None:
    got = await parts.run(
        OPEN
        + """const waiting = []; answers["/agents"] = () => new Promise((done) => waiting.push(done));
        const seen = []; room.agentsChanged.on(() => seen.push(room.agent("ada").state));
        sockets[0].hear({ seq: 5, type: "joined" }); await until(() => waiting.length === 1);
        sockets[0].hear({ seq: 6, type: "state", sender: "ada", state: "busy" });
        await until(() => seen.length);
        waiting[0]([{ id: "ada", kind: "cli", state: "idle" }]); await until(() => waiting.length === 2);
        waiting[1]([{ id: "ada", kind: "cli", state: "busy" }, { id: "bob" }]);
        await until(() => room.agents.length === 2); return [...new Set(seen)]"""
    )

    assert got == ["busy"]


async def test_a_reply_that_the_gateway_has_counted_is_not_counted_again(parts: Parts) -> None:
    got = await parts.run(
        OPEN
        + """const usage = { input: 1, output: 0 }; const row = { agent: "ada", model: null, replies: 1,
          input: 1, output: 0, cost_usd: null, unpriced: 1, estimated: 0, cached: 0, new: 1 };
        let go; answers["/usage"] = () => new Promise((done) => (go = done));
        sockets[0].hear({ seq: 5, type: "working", sender: "ada", usage }); await until(() => go);
        for (const seq of [6, 7]) sockets[0].hear({ seq, type: "agent_response", sender: "ada", usage });
        await frame(); go({ items: [row], prices: null, seq: 6 });
        await until(() => room.usage.seq === 6); const both = room.usage.items[0].replies;
        return [both, room.usage.items[0].new]"""
    )

    assert got == [2, 2]


async def test_what_the_room_knows_after_it_was_opened(parts: Parts) -> None:
    sessions = [
        {"id": "s1", "status": "running", "thread": "one"},
        {"id": "s2", "status": "running", "thread": "two"},
        {"id": "s3", "status": "ended", "thread": "three"},
    ]
    got = await parts.run(
        """answers["/sessions/s2"] = { session: { id: "s2" } };
        answers["/sessions/s1"] = { session: { id: "s1" } };"""
        + OPEN
        + """const before = [room.name, new URL(sockets[0].url).search, room.agents.map(({ id }) => id),
          room.queue.length,
          room.running.map(({ id }) => id), room.shown.session.id, room.thread, room.agent("ada").kind,
            room.status];
        room.choose("s1"); await until(() => room.shown.session.id === "s1");
        return [before, room.view, room.thread, tells.includes("viewChanged")]""",
        sessions,
    )

    assert got == [
        ["den", "?after=4", ["ada"], 1, ["s1", "s2"], "s2", None, "cli", "live"],
        "s1",
        "one",
        True,
    ]


async def test_a_room_where_nothing_runs_shows_the_newest_session(parts: Parts) -> None:
    sessions = [{"id": "s1", "status": "ended"}, {"id": "s2", "status": "ended"}]
    got = await parts.run(
        """answers["/sessions/s2"] = { session: { id: "s2" } };"""
        + OPEN
        + "return [room.shown.session.id, room.running]",
        sessions,
    )

    assert got == ["s2", []]


async def test_another_status_of_the_connection_has_everything_looked_at_again(parts: Parts) -> None:
    got = await parts.run(
        OPEN
        + """sockets[0].close(); await quiet(); const lost = looks(); await until(() => sockets.length > 1);
        sockets.at(-1).open(); await quiet(); const back = looks();
        const told = tells.includes("statusChanged");
        room.close(); await quiet(); asked.length = 0; room.refresh(); await quiet();
        return [lost, back, told, looks()]"""
    )

    all_of_it = ["/agents", "/queue", "/sessions", "/usage"]
    assert got == [all_of_it, all_of_it, True, []]


async def test_many_events_at_once_are_applied_in_order(parts: Parts) -> None:
    got = await parts.run(
        OPEN
        + """const order = []; room.said.on((event) => { order.push(event.seq);
        const began = performance.now();
          while (performance.now() - began < 5); });
        for (let seq = 5; seq < 15; seq += 1) sockets[0].hear({ seq, type: "system" });
        await until(() => order.length === 10); return order"""
    )

    assert got == list(range(5, 15))


async def test_a_session_that_is_paused_has_not_ended_and_any_id_can_be_asked_for(parts: Parts) -> None:
    got = await parts.run(
        """const { Room } = await load("room"); const room = new Room(); answers["/sessions"] = { items: [] };
        room.sessions = ["running", "paused", "ended"].map((status) => ({ id: `s/${status}`, status }));
        const running = room.running.map(({ id }) => id); room.choose("s/paused");
        await until(() => asked.length === 2); room.close(); return [running, asked[1][1]]"""
    )

    assert got == [["s/running", "s/paused"], "/sessions/s%2Fpaused"]


async def test_what_needs_a_person_is_asked_for_again_after_events_that_may_change_it(parts: Parts) -> None:
    got = await parts.run(
        """const room = new (await load("room")).Room(); const { catalogue } = await load("catalogue");
        answers["/health"] = { room: "den", seq: 1 }; answers["/sessions"] = { items: [] };
        answers["/agents"] = []; answers["/queue"] = answers["/usage"] = { items: [] };
        answers["/attention"] = { items: [{ id: "a" }] };
        await room.open(); sockets[0].open();
        await until(() => room.attention.length);
        answers["/attention"] = { items: [] }; const hear = (seq, type) => sockets[0].hear({ seq, type,
          id: `m${seq}`,
          sender: "ada", ts: 1, state: "idle" }); hear(2, catalogue.attention_events[0]);
        await until(() => !room.attention.length); hear(3, "activity"); await until(() =>
          room.doing.has("ada"));
        hear(4, "agent_response"); await until(() => !room.doing.has("ada")); room.close(); return true"""
    )

    assert got is True
