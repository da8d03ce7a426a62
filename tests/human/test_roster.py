"""How often the room is asked who is there."""

import asyncio
from typing import Any

from csp.human.roster import Roster
from tests.waiting import wait_until


async def test_many_changes_are_one_look() -> None:
    asked: list[str] = []

    async def ask(method: str, path: str) -> Any:
        asked.append(path)
        return [] if path == "/agents" else {"mode": "debate", "deadline": 1.0, "currentTurn": "ada"}

    roster = Roster(ask, lambda: None)
    fresh = asyncio.ensure_future(roster.keep_fresh())
    for looks in (1, 2):
        for _ in range(100):
            roster.wake()
        await wait_until(lambda: asked == ["/agents", "/mode"] * looks)  # noqa: B023

    assert roster.session.current == "ada"
    fresh.cancel()
