"""reducer.js: what events change in the lists of the page."""

from typing import Any

from tests.web.modules import Parts


async def _reduce(parts: Parts, name: str, cases: list[list[Any]]) -> list[Any]:
    got: list[Any] = await parts.run(
        f"const {{ {name} }} = await load('reducer'); return given.map((one) => {name}(...one))", cases
    )
    return got


async def test_a_state_is_that_of_the_agent_who_reports_it(parts: Parts) -> None:
    ada = {"id": "ada", "state": "idle", "detail": "", "share": False}
    bob = {"id": "bob", "state": "idle"}
    busy, shared = await _reduce(
        parts,
        "reduceAgents",
        [
            [[ada, bob], {"type": "state", "sender": "ada", "state": "busy", "detail": "reads", "until": 5}],
            [[ada, bob], {"type": "state", "sender": "ada", "share": True}],
        ],
    )

    assert busy == [
        {**ada, "state": "busy", "detail": "reads", "until": 5, "dialog": None},
        bob,
    ]
    assert shared == [{**ada, "share": True}, bob]


async def test_what_the_gateway_works_out_is_asked_for(parts: Parts) -> None:
    ada, benched = {"id": "ada", "state": "idle"}, {"id": "ada", "state": "benched"}
    got = await _reduce(
        parts,
        "reduceAgents",
        [
            [[ada], {"type": "joined", "sender": "bob"}],
            [[ada], {"type": "state", "sender": "bob", "state": "busy"}],
            [[ada], {"type": "state", "sender": "ada", "paused": False}],
            [[{**ada, "state": "paused"}], {"type": "state", "sender": "ada", "state": "busy"}],
            [[ada], {"type": "turn", "state": "timed_out"}],
            [[benched], {"type": "agent_response", "sender": "ada"}],
            [[benched], {"type": "mode", "change": "ended"}],
        ],
    )

    assert got == [None] * 7


async def test_other_events_leave_the_agents_as_they_are(parts: Parts) -> None:
    ada = {"id": "ada", "state": "idle"}
    events = [{"type": "agent_response", "sender": "ada"}, {"type": "turn", "state": "replied"}]

    assert await _reduce(parts, "reduceAgents", [[[ada], event] for event in events]) == [[ada], [ada]]


async def test_a_message_waits_until_its_delivery_has_ended(parts: Parts) -> None:
    got = await parts.run(
        """const { reduceQueue } = await load("reducer");
        const agents = [{ id: "a", state: "paused" }, { id: "b", state: "idle" }, { id: "c", state: "idle" }];
        const message = { type: "agent_call", id: "m", seq: 3, recipients: ["a", "b", "c"], waits: ["c"] };
        let queue = reduceQueue([], agents, message); const first = queue;
        queue = reduceQueue(queue, agents, message);
        const same = queue.length;
        for (const [agent, state, reason] of [["a", "held", "busy"], ["b", "confirmed"], ["x", "failed"]]) {
          queue = reduceQueue(queue, agents, { type: "delivery", message: "m", agent, state, reason });
        }
        const words = (items) => items.map(({ agent, state, reason }) => [agent, state, reason]);
        return [words(first), same, words(queue), reduceQueue(queue, agents, { type: "left" })]"""
    )

    assert got == [
        [["a", "queued", "paused"], ["b", "queued", None], ["c", "queued", "turn"]],
        3,
        [["a", "held", "busy"], ["c", "queued", "turn"]],
        None,
    ]


async def test_the_queue_holds_the_oldest_thousand(parts: Parts) -> None:
    full = [{"id": f"m{index}", "agent": "a"} for index in range(1000)]
    (got,) = await _reduce(
        parts, "reduceQueue", [[full, [], {"type": "agent_call", "id": "x", "recipients": ["a"]}]]
    )

    assert len(got) == 1000


async def test_a_reply_is_added_to_the_row_of_its_agent_and_model(parts: Parts) -> None:
    got = await parts.run(
        """const { reduceUsage } = await load("reducer"); let rows = [];
        const reply = (sender, usage) => {
          rows = reduceUsage(rows, { type: "agent_response", sender, usage }); };
        reply("ada", { input: 10, output: 2, cache_read: 4, model: "m", cost_usd: 1 });
        reply("ada", { input: 1, output: 1, model: "m", estimated: true }); reply("ada", { output: 3 });
        const names = ["model", "replies", "input", "output", "cost_usd", "unpriced", "estimated",
          "cached", "new"];
        return [rows.map((row) => names.map((name) => row[name])),
          reduceUsage(rows, { type: "system" }) === rows,
          reduceUsage(rows, { type: "working", usage: { input: 1 } })]"""
    )

    assert got == [
        [["m", 2, 11, 3, 1, 1, 1, 4, 10], [None, 1, 0, 3, None, 1, 0, 0, 3]],
        True,
        None,
    ]
