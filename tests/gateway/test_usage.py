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


async def test_what_a_turn_has_used_so_far_is_shown_and_stops_it_at_its_limit(tmp_path: Path) -> None:
    async with served(tmp_path / "room") as room:
        crowd = Debaters(room)
        await crowd.join("claude", "codex")
        view = await crowd.start("autopilot", limits={"tokens": 1000})
        turn, token = view["turns"]["claude"], crowd.members["claude"].token
        used = {"input": 50_500, "cache_read": 50_000, "output": 20, "model": "claude-opus-4-5", "calls": 2}
        await room.post("/turn/working", {"turn": turn, "usage": used}, token)
        told = await room.get("/usage")
        session = (await room.get("/sessions"))["items"][0]
        figures = (await room.call("GET", "/metrics")).raw.decode()
        await room.post("/turn/working", {"turn": turn, "usage": used | {"output": 500}}, token)
        ended = (await room.get("/sessions"))["items"][0]

    (row,) = told["items"]
    assert (row["new"], row["cached"], row["output"], row["replies"]) == (520, 50_000, 20, 1)
    # 500 tokens at 5 US dollars for a million, 50,000 at 0.5, 20 at 25.
    assert row["cost_usd"] == session["cost_usd"] == 0.028
    assert (session["new"], session["cached"], session["output"], session["tokens"]) == (
        520,
        50_000,
        20,
        50_520,
    )
    assert 'csp_tokens_total{agent="claude",model="claude-opus-4-5",kind="new"} 520' in figures
    assert 'csp_tokens_total{agent="claude",model="claude-opus-4-5",kind="cached"} 50000' in figures
    assert ended["reason"] == "emergency_tokens"
