"""approvals.js: what agents ask of the person."""

from tests.web.modules import Parts


async def test_each_agent_that_asks_has_its_answers(parts: Parts) -> None:
    got = await parts.run(
        """const { startApprovals } = await load("approvals"); const room = await makeRoom();
        const looked = []; startApprovals(room, (id) => looked.push(id));
        const show = (...agents) => { room.agents = agents; room.agentsChanged.tell(); };
        show({ id: "ada", state: "needs_approval", dialog: { tool: "Bash", arguments: "x".repeat(3000),
          question: "q?", choices: [{ number: 2, label: "always" }] } },
          { id: "bob", state: "needs_approval", detail: "d" }, { id: "cy", state: "needs_approval" },
            { id: "dee", state: "needs_human" }, { id: "eve", state: "busy" });
        const heads = texts(".approval-head"); const asks = texts(".approval p.asked");
        const cut = $(".approval pre").textContent.length; const labels = texts(".approval button");
        for (const button of document.querySelectorAll(".approval[data-agent=ada] button")) button.click();
        const calls = asked.splice(0).map(([, path, body]) => [path, body]); const same = $(".approval");
        room.agentsChanged.tell(); const kept = same.isConnected;
        room.agents[0].dialog.question = "and now?"; room.agentsChanged.tell();
        const next = $(".approval p.asked").textContent; show();
        return [heads, asks, cut < 2100, labels, calls, looked, kept, next,
          texts(".approval")]"""
    )

    assert got == [
        [
            "ada wants to use Bash",
            "bob wants to use a tool",
            "cy wants to use a tool",
            "dee needs you in its pane",
        ],
        ["q?", "d", "May it go on?", "It waits for somebody at its keyboard."],
        True,
        ["Approve", "Deny", "2. always", "Screen", *["Approve", "Deny", "Screen"] * 2, "Screen"],
        [["/agents/ada/approve", {}], ["/agents/ada/deny", {}], ["/agents/ada/approve", {"choice": 2}]],
        ["ada"],
        True,
        "and now?",
        [],
    ]
