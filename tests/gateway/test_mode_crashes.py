"""A debate goes on after kill -9 as if nothing had happened."""

import shutil
from pathlib import Path
from typing import Any

from csp.http_client import GatewayClient
from tests.gateway.debaters import Debaters
from tests.gateway.served import served
from tests.rooms import LiveRoom

#: The start, two rounds of two, two votes.
STEPS = 7
Said = list[tuple[str, str, str]]
TYPES = "turn_signal,agent_response,vote,system"


def _told(items: list[dict[str, Any]]) -> Said:
    """Return what was asked and said, in order, without the ids of the room."""
    told = [item for item in items if not item["text"].startswith("Summary")]
    return [(item["type"], item["sender"], item["text"]) for item in told]


def _reply(view: dict[str, Any]) -> tuple[str, str]:
    """Return whose turn it is, and what it says."""
    name = view["currentTurn"]
    return name, "VOTE: [A]" if view["phase"] == "ballot" else f"{name} in {view['phase']}"


async def _debate(folder: Path, crash_after: int) -> Said:
    """Hold a debate whose room is lost after so many steps, but for what lies on the disk."""
    steps = 0
    room = served(folder / "0", durability="flush")
    await room.start()
    debate = Debaters(room)
    await debate.join("claude", "codex")
    while steps == 0 or (await debate.mode())["status"] == "running":
        if steps == 0:
            await debate.start(rounds=2, ballot=True)
        else:
            await debate.reply(*_reply(await debate.mode()))
        steps += 1
        if steps == crash_after:
            # What an orderly end would write comes too late for the copy.
            left = shutil.copytree(room.folder, folder / "1")
            await room.stop()
            room = served(left, durability="flush")
            await room.start()
            debate.room = room
    assert (await debate.mode())["reason"] == "done"
    assert steps == STEPS
    items = await room.history(f"?types={TYPES}&limit=1000&after=0")
    await room.stop()
    return _told(items)


async def test_a_debate_goes_on_from_any_step_with_what_lies_on_the_disk(tmp_path: Path) -> None:
    whole = await _debate(tmp_path / "whole", 0)

    assert len([item for item in whole if item[0] == "turn_signal"]) == STEPS - 1
    for step in range(1, STEPS + 1):
        assert await _debate(tmp_path / f"crash-{step}", step) == whole, step


def test_a_debate_goes_on_after_kill_9(tmp_path: Path) -> None:
    with LiveRoom(tmp_path) as room:
        tokens = {
            name: room.gateway.post("/register", {"agentId": name})["token"] for name in ("claude", "codex")
        }
        room.gateway.post("/mode", {"mode": "debate", "topic": "tabs", "rounds": 2})
        steps = 1
        while (view := room.gateway.get("/mode"))["status"] == "running":
            name, text = _reply(view)
            agent = GatewayClient(room.url, tokens[name])
            agent.post("/agent-output", {"content": text, "turn": view["turn"]})
            steps += 1
            if steps == 3:
                room.kill9()
                room.start()
        said = _told(room.gateway.get("/history", types=TYPES, limit=1000, after=0)["items"])

    assert view["reason"] == "done"
    assert [sender for kind, sender, _ in said if kind == "agent_response"] == ["claude", "codex"] * 2
    assert len([kind for kind, _, _ in said if kind == "turn_signal"]) == 4
