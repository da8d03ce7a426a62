"""What the agents used, as the gateway tells it."""

from pathlib import Path

from tests.gateway.debaters import Debaters
from tests.gateway.served import served


async def test_usage_is_told_by_agent_and_model_and_priced_where_a_price_is_known(tmp_path: Path) -> None:
    async with served(tmp_path / "room") as room:
        crowd = Debaters(room)
        await crowd.join("claude", "codex")
        await crowd.start("round_robin", rounds=2, limits={"tokens": 2**50})
        known = {"input": 1_000_000, "output": 0, "model": "claude-opus-4-5"}
        await crowd.reply("claude", "tabs", usage=known)
        await crowd.reply("codex", "spaces", usage={"input": 5, "output": 2, "model": 'odd "name"\\'})
        told = await room.get("/usage")
        session = (await room.get("/sessions"))["items"][0]
        detail = await room.get(f"/sessions/{session['id']}")
        figures = (await room.call("GET", "/metrics")).raw.decode()

    assert told["prices"].startswith("genai-prices ")
    assert told["items"] == session["spent"] == detail["session"]["spent"]
    claude, codex = told["items"]
    assert (claude["agent"], claude["model"], claude["input"]) == ("claude", "claude-opus-4-5", 1_000_000)
    # The list price of this model: 5 US dollars for a million tokens.
    assert claude["cost_usd"] == session["cost_usd"] == 5.0
    assert (codex["cost_usd"], codex["unpriced"], codex["output"]) == (None, 1, 2)
    assert 'csp_cost_usd_total{agent="claude",model="claude-opus-4-5"} 5.000000' in figures
    assert r'csp_tokens_total{agent="codex",model="odd \"name\"\\",kind="output"} 2' in figures
