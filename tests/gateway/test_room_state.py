"""What the room says of itself: health, figures, mode, agents, what waits."""

import asyncio
import re

import pytest
from aiohttp import WSServerHandshakeError

from csp import __version__
from tests.gateway.served import Clock, ServedRoom

MODE_FIELDS = {
    *("mode", "topic", "round", "maxRounds", "turnOrder", "currentTurnIndex", "completedTurns"),
    *("roundOutputs", "proposals", "votes", "currentTurn", "waitingFor", "turn", "turns", "phase"),
    *("sessionId", "status", "reason", "startedAt", "deadline"),
    # Beside those of the seeds: what the session waits for.
    *("waits", "held"),
}


async def test_health_tells_how_the_room_is(still_room: ServedRoom, clock: Clock) -> None:
    room = still_room
    await room.join("claude")
    await room.connect()
    clock.now += 12.5

    health = await room.call("GET", "/health", token=None)

    assert health.data == {
        "status": "ok",
        "room": "test",
        "roomId": room.gateway.writer.journal.room_id,
        "replica": False,
        "version": __version__,
        "seq": 1,
        "uptime_s": 12.5,
        "agents": 1,
        "watchers": 1,
        "journal": {"writable": True, "scrub": "running", "checked": 0, "damaged": []},
        "boards": {"count": 0, "notes": 0, "bytes": 0, "largest_bytes": 0, "max_bytes": 64 * 1024 * 1024},
    }


async def test_only_people_see_the_context_of_an_agent(room: ServedRoom) -> None:
    ada, bob = await room.join("ada"), await room.join("bob")
    usage = {"input": 40, "output": 2, "context": 42, "window": 100}
    await room.post("/agent-output", {"content": "hi", "usage": usage}, token=ada.token)
    await room.post("/agent-output", {"content": "more", "usage": {"input": 1}}, token=ada.token)

    async def seen(token: str) -> list[int]:
        views = {view["id"]: view for view in (await room.call("GET", "/agents", token=token)).data}
        return [views["ada"]["context"], views["ada"]["window"]]

    assert [await seen(ada.token), await seen(bob.token)] == [[42, 100], [0, 0]]
    view = await room.agent("ada")
    assert (view["context"], view["window"]) == (42, 100)


async def test_an_agent_is_shown_with_every_field_of_the_design(still_room: ServedRoom, clock: Clock) -> None:
    room = still_room
    claude = await room.join("Claude", kind="api", capabilities=["tools"])
    clock.now += 5
    await room.post("/state", {"state": "limited", "detail": "try later", "until": 2e9}, claude.token)
    await room.send("claude", "hello")

    assert await room.agent("claude") == {
        "id": "claude",
        "name": "Claude",
        "kind": "api",
        "role": "agent",
        "capabilities": ["tools"],
        "online": True,
        "state": "limited",
        "queued": 1,
        "lastSeen": clock.now,
        "share": False,
        "detail": "try later",
        "until": 2e9,
        "dialog": None,
        "context": 0,
        "window": 0,
        "work": "",
    }


async def test_an_open_websocket_is_a_sign_of_life(still_room: ServedRoom, clock: Clock) -> None:
    claude, codex = await still_room.join("claude"), await still_room.join("codex")
    joined = clock.now
    await still_room.connect(claude.token)
    clock.now += 100

    seen = [(await still_room.agent(member.id))["lastSeen"] for member in (claude, codex)]

    assert seen == [clock.now, joined]


async def test_the_figures_are_in_the_format_of_prometheus(room: ServedRoom) -> None:
    await room.join("claude")
    await room.send("claude", "hello")
    await room.call("GET", "/nothing")

    answer = await room.call("GET", "/metrics")

    lines = answer.raw.decode().splitlines()
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert all(re.fullmatch(r'# TYPE \w+ \w+|\w+({\w+="\w+"})? \d+', line) for line in lines)
    assert 'csp_events_total{type="human_message"} 1' in lines
    assert 'csp_http_requests_total{status="404"} 1' in lines
    assert "csp_seq 2" in lines
    assert "csp_deliveries_waiting 1" in lines


async def test_the_mode_has_the_shape_of_the_seeds(room: ServedRoom) -> None:
    mode = await room.get("/mode")
    changed = await room.post("/mode", {"mode": "freeform", "topic": "anything"})

    assert set(mode) == MODE_FIELDS
    assert (mode["mode"], mode["round"], mode["turnOrder"], mode["currentTurn"]) == ("freeform", 0, [], None)
    assert changed == {"success": True, "orchestration": mode}


async def test_an_unknown_mode_is_refused_with_those_there_are(room: ServedRoom) -> None:
    answer = await room.call("POST", "/mode", {"mode": "debat"})

    assert answer.status == 400
    assert answer.data["error"] == "unknown mode 'debat'"
    assert "freeform" in answer.data["hint"]


async def test_stopping_nothing_is_no_error(room: ServedRoom) -> None:
    seq = room.gateway.writer.safe_seq

    assert await room.post("/stop") == {"success": True, "stopped": []}
    assert room.gateway.writer.safe_seq == seq


async def test_the_queue_lists_what_waits_with_the_reason(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    await room.post("/state", {"state": "offline"}, codex.token)
    one, two = await room.send("claude", "x" * 1000), await room.send("codex", "two")
    await room.post("/delivery", {"id": one, "state": "held", "reason": "dialog"}, claude.token)
    control = (await room.post("/agents/claude/deny"))["id"]

    items = (await room.get("/queue"))["items"]

    assert [(item["id"], item["agent"], item["state"], item.get("reason")) for item in items] == [
        (one, "claude", "held", "dialog"),
        (two, "codex", "held", "offline"),
        (control, "claude", "queued", None),
    ]
    assert items[0]["text"] == "x" * 200


async def test_one_poll_too_many_of_an_agent_is_429_until_one_has_ended(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room.caller_limits.MAX_PER_AGENT", 2)
    await room.restart()
    claude = await room.join("claude")
    polls = [asyncio.ensure_future(room.inbox(claude, "?wait=60")) for _ in range(2)]

    async def is_full() -> bool:
        return (await room.call("GET", "/agents", token=claude.token)).status == 429

    await room.until(is_full)
    refused = await room.call("GET", "/agents", token=claude.token)
    message = await room.send("claude", "hello")

    assert refused.is_refusal
    assert refused.headers["Retry-After"] == "1"
    assert await asyncio.gather(*polls) == [[message]] * 2
    assert (await room.call("GET", "/agents", token=claude.token)).status == 200


async def test_one_websocket_too_many_is_429(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.gateway.websocket.MAX_SOCKETS", 3)
    sockets = [await room.connect() for _ in range(3)]

    with pytest.raises(WSServerHandshakeError) as caught:
        await room.connect()
    await sockets[0].close()

    async def is_free() -> bool:
        return bool((await room.get("/health"))["watchers"] == 2)

    await room.until(is_free)
    assert caught.value.status == 429
    assert (await (await room.connect()).ask("working"))["ok"] is True
