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


def _without_times(answer: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in answer.items() if key != "seq"}
    if "run" in found:
        found["run"] = {key: found["run"][key] for key in ("id", "session_id", "goal")}
    return found
