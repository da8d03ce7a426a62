"""A debate goes on after kill -9 as if nothing had happened."""

from pathlib import Path
from typing import Any

from csp.oneshot import Gateway
from tests.rooms import LiveRoom


class Debate:
    """A debate of two rounds with a ballot, in which every step may be followed by a crash."""

    def __init__(self, room: LiveRoom, crash_after: int) -> None:
        self.room = room
        self.crash_after = crash_after
        self.steps = 0
        self.tokens = {
            name: room.gateway.post("/register", {"agentId": name})["token"] for name in ("claude", "codex")
        }

    def mode(self) -> Any:
        return self.room.gateway.get("/mode")

    def run(self) -> None:
        self.room.gateway.post("/mode", {"mode": "debate", "topic": "tabs", "rounds": 2, "ballot": True})
        self._step()
        while (view := self.mode())["status"] == "running":
            name = view["currentTurn"]
            text = "VOTE: [A]" if view["phase"] == "ballot" else f"{name} in {view['phase']}"
            agent = Gateway(self.room.url, self.tokens[name])
            agent.post("/agent-output", {"content": text, "turn": view["turn"]})
            self._step()

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.crash_after:
            self.room.kill9()
            self.room.start()


def outcome(folder: Path, crash_after: int) -> list[tuple[str, str, str]]:
    """Return what was asked and said in a debate, in order, without the ids of the room."""
    with LiveRoom(folder) as room:
        debate = Debate(room, crash_after)
        debate.run()
        types = "turn_signal,agent_response,vote,system"
        items = room.gateway.get("/history", types=types, limit=1000, after=0)["items"]
        assert debate.mode()["reason"] == "done"
    told = [item for item in items if not item["text"].startswith("Summary")]
    return [(item["type"], item["sender"], item["text"]) for item in told]


def test_debate_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole = outcome(tmp_path / "whole", 0)
    asked = [item for item in whole if item[0] == "turn_signal"]

    assert len(asked) == 6
    for step in range(1, 8):
        assert outcome(tmp_path / f"crash-{step}", step) == whole
