"""A call whose answer was lost is made again with its id, and answered as before, after a crash as well."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.served import ServedRoom, served

DEBATE = {"mode": "debate", "topic": "tabs", "agents": ["claude", "codex"], "id": "k-1"}
RUN = {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "run_id": "mend", "id": "k-1"}
PLAN = {"objective": "a plan", "models": ["codex"], "id": "k-1"}
CALLS = [
    ("/mode", DEBATE),
    ("/sessions", DEBATE),
    ("/runs", RUN),
    ("/collaborations", PLAN),
    ("/stop", {"id": "k-1"}),
    ("/agents/claude/pause", {"id": "k-1"}),
]


async def _sessions(room: ServedRoom) -> list[tuple[str, str]]:
    return [(item["id"], item["status"]) for item in (await room.get("/sessions"))["items"]]


@pytest.mark.parametrize(("path", "body"), CALLS, ids=[path for path, _ in CALLS])
async def test_repeated_call_gets_the_same_answer(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    async with served(tmp_path / "room") as room:
        for name in ("claude", "codex"):
            await room.join(name)
        first = await room.post(path, body)
        sessions, seq = await _sessions(room), (await room.get("/health"))["seq"]
        await room.restart()
        again = await room.post(path, body)

        assert _without_times(again) == _without_times(first)
        assert await _sessions(room) == sessions
        if path not in ("/runs", "/agents/claude/pause"):  # CSP's own hands go on with a run
            assert (await room.get("/health"))["seq"] == seq


async def test_turn_is_passed_on_once(room: ServedRoom) -> None:
    for name in ("claude", "codex"):
        await room.join(name)
    await room.post("/mode", {"mode": "autopilot", "topic": "tabs"})
    first = await room.post("/turn/next", {"id": "k-1"})

    assert await room.post("/turn/next", {"id": "k-1"}) == first


async def test_stop_over_both_ways_stops_once(room: ServedRoom) -> None:
    """The page sends it over its WebSocket and by HTTP; the second must not stop what has begun since."""
    for name in ("claude", "codex"):
        await room.join(name)
    await room.post("/mode", {key: DEBATE[key] for key in ("mode", "topic", "agents")})
    (begun,) = [session for session, _ in await _sessions(room)]
    socket = await room.connect(room.token)
    over_socket = await socket.ask("stop", all=True, id="k-2")
    await room.post("/mode", {**DEBATE, "id": "k-3"})
    over_http = await room.post("/stop", {"all": True, "id": "k-2"})

    assert over_socket["stopped"] == over_http["stopped"] == [begun]
    assert [status for _, status in await _sessions(room)] == ["ended", "running"]


@pytest.mark.parametrize("action", ["resend", "cancel"])
async def test_message_is_acted_on_once(tmp_path: Path, action: str) -> None:
    async with served(tmp_path / "room") as room:
        claude = await room.join("claude")
        message = await room.send("claude", "hello")
        first = await room.post(f"/messages/{message}/{action}", {"id": "k-1"})
        waiting = await room.inbox(claude)
        await room.restart()

        assert await room.post(f"/messages/{message}/{action}", {"id": "k-1"}) == first
        assert await room.inbox(claude) == waiting


def _without_times(answer: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in answer.items() if key != "seq"}
    if "run" in found:
        found["run"] = {key: found["run"][key] for key in ("id", "session_id", "goal")}
    return found
