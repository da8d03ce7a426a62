"""Typed lines that answer what needs a person: what they do with their words."""

from typing import Any

import pytest

from csp.gateway import run_routes
from csp.protocol.review_messages import Decision, RunActionBody
from tests.gateway.served import ServedRoom
from tests.gateway.test_message_routes import play_ping_pong


async def test_a_decision_is_told_with_the_words_after_it(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[dict[str, str], RunActionBody]] = []

    async def act_on_run(_: object, call: Any) -> None:
        told.append((dict(call.path), call.body))

    monkeypatch.setattr(run_routes, "act_on_run", act_on_run)
    await room.post("/line", {"line": "/review decide run-1 revise accept more tests", "id": "line-1"})

    ((path, body),) = told
    assert path == {"id": "run-1", "act": "decide"}
    assert (body.decision, body.rationale, body.id) == (Decision.REVISE, "accept more tests", "line-1")


async def test_what_waits_for_another_reason_is_not_held_by_the_loop_guard(room: ServedRoom) -> None:
    players = await room.join("claude"), await room.join("codex")
    held, number = await play_ping_pong(room, players)
    listener = players[number % 2]
    other = await room.send(listener.id, "something else")
    body = {"id": other, "state": "held", "reason": "busy"}
    await room.post("/delivery", body, listener.token)
    await room.post("/line", {"line": "/continue"})

    assert await room.states(held) == {listener.id: "queued"}
    assert await room.states(other) == {listener.id: "held(busy)"}
