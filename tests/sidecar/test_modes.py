"""CLI agents behind real sidecars take part in the modes; each TUI's own log is the truth."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sidecar.stage import Stage, tui
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as stage:
        yield stage


def seat(stage: Stage, name: str, *knobs: str) -> None:
    stage.seat(name, tui(stage.folder / f"{name}.jsonl", *knobs))
    stage.seats[name].wait_ready()


def prompts(stage: Stage, name: str) -> list[str]:
    """Return what was submitted to the TUI of an agent."""
    lines = (stage.folder / f"{name}.jsonl").read_text().splitlines()
    return [event["text"] for line in lines if (event := json.loads(line))["event"] == "submitted"]


def mode(stage: Stage) -> dict[str, Any]:
    view: dict[str, Any] = stage.room.gateway.get("/mode")
    return view


def wait_for_end(stage: Stage) -> dict[str, Any]:
    wait_until_sync(lambda: mode(stage)["status"] == "ended", 90, f"the end of the mode: {mode(stage)}")
    return mode(stage)


def test_debate_asks_each_once_a_round_with_the_position_of_the_other(stage: Stage) -> None:
    for name in ("one", "two"):
        seat(stage, name, "--reply", f"I am {name} in my turn {{n}}")
    stage.room.gateway.post("/mode", {"mode": "debate", "topic": "tabs or spaces", "rounds": 2})
    view = wait_for_end(stage)

    assert view["reason"] == "done"
    for name, other in (("one", "two"), ("two", "one")):
        asked = prompts(stage, name)
        assert len(asked) == 2
        assert all(text.startswith("[YOUR TURN #t-") for text in asked)
        assert "tabs or spaces" in asked[0] and f"I am {other}" not in asked[0]
        assert f"I am {other}" in asked[1]
        assert set(view["roundOutputs"][name]) == {"round0", "round1"}


def test_nothing_of_a_session_follows_an_allstop(stage: Stage) -> None:
    seat(stage, "one", "--busy-s", "60")
    seat(stage, "two")
    stage.room.gateway.post("/mode", {"mode": "autopilot", "topic": "for ever"})
    wait_until_sync(lambda: bool(prompts(stage, "one")), 60, "the first turn")
    stage.send("all", "Allstop")

    assert mode(stage)["reason"] == "stopped_by_user"
    assert prompts(stage, "two") == []
    items = stage.room.gateway.get("/history", types="agent_response,agent_call,vote")["items"]
    assert items == []
