"""A debate of a crowd: nobody is left out, nobody asked twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.debaters import Debaters
from tests.gateway.served import ServedRoom, served


@pytest.mark.parametrize(("people", "rounds"), [(12, 3), pytest.param(100, 10, marks=pytest.mark.full)])
async def test_a_crowd_debates_without_a_missed_or_doubled_turn(
    tmp_path: Path, people: int, rounds: int
) -> None:
    names = tuple(f"a{number:02}" for number in range(people))
    async with served(tmp_path / "room", max_turns=2 * people * rounds, max_tokens=2**50) as room:
        crowd = Debaters(room)
        await crowd.join(*names)
        view = await crowd.start(rounds=rounds)
        while view["status"] == "running":
            for name, turn in sorted(view["turns"].items()):
                await crowd.reply(name, f"{name} says something of its own in {turn}", turn=turn)
            view = await crowd.mode()
        asked = await whole_history(room, "turn_signal")
        said = await whole_history(room, "agent_response")

    assert view["reason"] == "done"
    each = dict.fromkeys(names, rounds)
    assert Counter(item["target"] for item in asked) == each
    assert Counter(item["sender"] for item in said) == each
    later = [item["target"] for item in asked[people:]]
    assert later == list(names) * (rounds - 1)


async def whole_history(room: ServedRoom, kind: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    while page := await room.history(f"?types={kind}&limit=500&after={items[-1]['seq'] if items else 0}"):
        items += page
    return items
