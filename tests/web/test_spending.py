"""spending.js: tokens and money per agent."""

from tests.web.modules import Parts


async def test_what_each_agent_has_spent(parts: Parts) -> None:
    got = await parts.run(
        """const { startSpending } = await load("spending");
        const row = (agent, fields) => ({ agent, model: null, input: 0, output: 0, cost_usd: null,
          replies: 1, cached: 0, new: (fields.input ?? 0) + (fields.output ?? 0) - (fields.cached ?? 0),
          ...fields });
        const room = await makeRoom(); startSpending(room);
        const draw = () => { room.usageChanged.tell();
        return [texts("#spending .spent-head"), texts("#spending p"), texts("#spending-total"),
          texts("#spending-prices"), $("#spending-part").hidden]; };
        const none = draw();
        room.usage = { items: [row("ada", { input: 900, cached: 600, output: 100, cost_usd: 0.5, model: "m",
          estimated: true }), row("bob", { input: 100, output: 0, replies: 2 })], prices: "2026-01" };
        room.shown = { session: { spent: [row("ada", { input: 10, output: 5, cost_usd: 2 })] } };
        const all = draw(); const style = (agent) =>
          document.querySelectorAll("#spending .spent")[agent].style;
        const bars = [style(0).getPropertyValue("--share"), style(1).getPropertyValue("--share"),
          style(0).getPropertyValue("--out")];
        $("#spending-scope").value = "session"; $("#spending-scope").dispatchEvent(new Event("change"));
        const own = texts("#spending-total");
        room.shown = null; room.sessionsChanged.tell();
        return [none, all, bars, own, texts("#spending li")]"""
    )

    assert got == [
        [[], [], ["0 new tokens (0 output), 0 cached"], [""], True],
        [
            ["adam$0.5000", "bobunnamed modelno known price"],
            [
                "about 400 new tokens (100 output), 600 cached, 1 reply",
                "100 new tokens (0 output), 0 cached, 2 replies",
            ],
            ["500 new tokens (100 output), 600 cached, $0.5000"],
            ["Prices: 2026-01"],
            False,
        ],
        ["1", "0.25", "0.25"],
        ["15 new tokens (5 output), 0 cached, $2.00"],
        ["Nothing yet."],
    ]
