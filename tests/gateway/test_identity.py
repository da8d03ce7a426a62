"""Who somebody is: names, tokens, ids that come back and ids that are taken over."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from csp.gateway.routes import ROUTES
from tests.gateway.served import Clock, Member, ServedRoom, served

SILENCE_S = 0.1


@pytest.fixture
async def watched(tmp_path: Path, clock: Clock) -> AsyncIterator[ServedRoom]:
    """A room that looks after silent participants, by the clock of the test."""
    async with served(tmp_path / "room", clock, offline_after_s=SILENCE_S) as room:
        room.gateway.spawn(room.gateway.watch_presence())
        yield room


async def _id_of(room: ServedRoom, token: str) -> str:
    """Ask the gateway whose token this is."""
    return str((await room.post("/register", {"agentId": "whoever"}, token))["agentId"])


async def _until_offline(room: ServedRoom, agent: str) -> None:
    async def is_offline() -> bool:
        return not (await room.agent(agent))["online"]

    await room.until(is_offline, f"{agent} offline")


async def _refuse_everywhere(room: ServedRoom, token: str) -> None:
    """Check that a token opens no route at all."""
    paths = [(route.method, route.path) for route in ROUTES if route.needs != "none"]
    for method, path in [*paths, ("GET", "/ws")]:
        answer = await room.call(method, re.sub("{.*?}", "claude", path), token=token)
        assert (answer.status, answer.is_refusal) == (401, True), (method, path)


# --- names ---------------------------------------------------------------------------------------


async def test_two_claudes_are_claude_and_claude_2(room: ServedRoom) -> None:
    members = [await room.join("claude") for _ in range(3)]

    assert [member.id for member in members] == ["claude", "claude-2", "claude-3"]
    assert len({member.token for member in members}) == 3


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("Claude Code", "claude-code"),
        ("  --x--  ", "x"),
        ("a" * 40, "a" * 32),
        ("Ünïcode", "n-code"),
        ("gpt.5/mini", "gpt-5-mini"),
        ("claude\n", "claude"),
    ],
)
async def test_a_name_becomes_an_id(room: ServedRoom, name: str, agent: str) -> None:
    member = await room.join(name)

    assert member.id == agent
    assert (await room.agent(agent))["name"] == name


async def test_long_names_that_are_alike_stay_apart(room: ServedRoom) -> None:
    members = [await room.join("a" * 40) for _ in range(11)]

    assert len({member.id for member in members}) == 11
    assert all(len(member.id) <= 32 for member in members)


@pytest.mark.parametrize(
    "name",
    ["human", "all", "System", "router", "you", "user", "CSP", "none", "orchestrator", "-Human-", "é", ""],
)
async def test_a_reserved_name_is_refused(room: ServedRoom, name: str) -> None:
    answer = await room.call("POST", "/register", {"agentId": name})

    assert answer.status == 400
    assert answer.is_refusal
    assert await room.get("/agents") == []


async def test_the_orchestrator_is_a_role_with_a_name_of_its_own(room: ServedRoom) -> None:
    boss = await room.join("orchestrator", role="orchestrator")
    other = await room.join("foreman", role="orchestrator")

    assert (boss.id, other.id) == ("orchestrator", "foreman")
    assert [view["role"] for view in await room.get("/agents")] == ["orchestrator"] * 2


async def test_a_registration_says_everything_in_its_answer(room: ServedRoom) -> None:
    answer = await room.call("POST", "/register", {"agentId": "claude", "kind": "api"})

    assert answer.status == 201
    assert set(answer.data) == {"success", "agentId", "token", "seq"}
    assert (answer.data["success"], answer.data["agentId"], answer.data["seq"]) == (True, "claude", 1)


# --- coming back ---------------------------------------------------------------------------------


async def test_a_token_outlives_a_restart(room: ServedRoom) -> None:
    members = [await room.join("claude") for _ in range(2)]

    await room.restart()

    assert [await _id_of(room, member.token) for member in members] == ["claude", "claude-2"]
    assert len(await room.get("/agents")) == 2


async def test_the_rooms_token_outlives_a_restart(room: ServedRoom) -> None:
    before = room.token

    await room.restart()

    assert room.token == before


async def test_a_chosen_room_token_is_the_rooms_token(tmp_path: Path) -> None:
    async with served(tmp_path / "room", auth_token="open sesame") as room:
        answer = await room.call("GET", "/agents", token="open sesame")

        assert answer.status == 200


async def test_an_agent_can_register_as_nobody_but_itself(room: ServedRoom) -> None:
    claude = await room.join("claude")
    body = {"agentId": "codex", "role": "orchestrator", "kind": "human", "capabilities": {"tools": True}}

    said = await room.post("/register", body, claude.token)

    (view,) = await room.get("/agents")
    assert (said["agentId"], said["token"]) == ("claude", claude.token)
    assert (view["role"], view["kind"], view["capabilities"]) == ("agent", "cli", {"tools": True})


async def test_a_call_brings_an_offline_agent_back(watched: ServedRoom, clock: Clock) -> None:
    claude = await watched.join("claude")
    clock.now += 1
    await _until_offline(watched, "claude")

    await watched.inbox(claude)

    assert (await watched.agent("claude"))["online"]
    assert await _id_of(watched, claude.token) == "claude"


# --- being taken over ----------------------------------------------------------------------------


async def _taken_over(room: ServedRoom, clock: Clock) -> tuple[Member, Member]:
    """Return the old and the new owner of the id claude."""
    old = await room.join("claude")
    clock.now += 1
    await _until_offline(room, "claude")
    return old, await room.join("claude")


async def test_an_offline_id_is_taken_over_and_the_old_token_dies(watched: ServedRoom, clock: Clock) -> None:
    old, new = await _taken_over(watched, clock)

    assert (old.id, new.id) == ("claude", "claude")
    assert await _id_of(watched, new.token) == "claude"
    await _refuse_everywhere(watched, old.token)


async def test_a_taken_over_token_stays_dead_after_a_restart(watched: ServedRoom, clock: Clock) -> None:
    old, new = await _taken_over(watched, clock)

    await watched.restart()

    assert await _id_of(watched, new.token) == "claude"
    await _refuse_everywhere(watched, old.token)


async def test_what_waited_for_the_old_owner_waits_for_the_new_one(watched: ServedRoom, clock: Clock) -> None:
    await watched.join("claude")
    message = await watched.send("claude", "hello")
    clock.now += 1
    await _until_offline(watched, "claude")

    assert await watched.states(message) == {"claude": "held(offline)"}
    assert await watched.inbox(await watched.join("claude")) == [message]


async def test_an_open_websocket_of_the_old_owner_is_closed(room: ServedRoom) -> None:
    old = await room.join("claude")
    socket = await room.connect(old.token)
    await socket.ask("state", state="offline")

    new = await room.join("claude")

    assert new.id == "claude"
    assert await socket.until_closed() == 4001


async def test_an_open_websocket_keeps_an_id(watched: ServedRoom, clock: Clock) -> None:
    silent = await watched.join("silent")
    listening = await watched.join("claude")
    await watched.connect(listening.token)
    clock.now += 1000

    await _until_offline(watched, silent.id)

    assert (await watched.agent("claude"))["online"]
    assert (await watched.join("claude")).id == "claude-2"


async def test_after_a_restart_everybody_has_time_to_come_back(tmp_path: Path, clock: Clock) -> None:
    async with served(tmp_path / "room", clock, offline_after_s=SILENCE_S) as room:
        claude = await room.join("claude")
        clock.now += 1000
        await room.restart()
        assert room.gateway.presence.silent([claude.id]) == []  # type: ignore[list-item]  # ids are words here

        clock.now += 1

        assert room.gateway.presence.silent([claude.id]) == ["claude"]  # type: ignore[list-item]  # as above


# --- being removed -------------------------------------------------------------------------------


async def test_a_removed_agents_token_is_dead(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)

    answer = await room.call("DELETE", "/agents/claude")

    assert (answer.status, answer.data) == (200, {"success": True})
    assert await socket.until_closed() == 4001
    assert await room.get("/agents") == []
    await _refuse_everywhere(room, claude.token)


async def test_a_name_that_comes_back_does_not_revive_old_tokens(room: ServedRoom) -> None:
    tokens = []
    for _ in range(3):
        tokens.append((await room.join("claude")).token)
        await room.call("DELETE", "/agents/claude")
    last = await room.join("claude")

    assert len({*tokens, last.token}) == 4
    for token in tokens:
        await _refuse_everywhere(room, token)
    await room.restart()
    for token in tokens:
        await _refuse_everywhere(room, token)
    assert await _id_of(room, last.token) == "claude"


async def test_removing_nobody_is_404(room: ServedRoom) -> None:
    await room.join("claude")

    answer = await room.call("DELETE", "/agents/cloude")

    assert answer.status == 404
    assert "'claude'" in answer.data["hint"]
