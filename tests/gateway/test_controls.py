"""Buttons a person presses for an agent."""

import pytest

from csp.room.membership import CONTROL_TTL_S
from tests.gateway.served import Clock, ServedRoom
from tests.waiting import wait_until

LASTING = ["pause", "resume", "share", "noshare"]
MOMENTARY = ["interrupt", "approve", "deny", "restart"]


async def test_pause_holds_messages_back_until_resume(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    await room.post("/agents/claude/pause")
    message = await room.send("claude", "hello")
    paused = ((await room.agent("claude"))["state"], await room.states(message), await room.inbox(claude))

    await room.post("/agents/claude/resume")
    await wait_until(lambda: message in [deliver["id"] for deliver in socket.delivers])

    controls = [deliver["control"] for deliver in socket.delivers if deliver["kind"] == "control"]
    assert paused == ("paused", {"claude": "held(paused)"}, [await _control_id(room, 0)])
    assert (await room.agent("claude"))["state"] == "idle"
    assert await room.states(message) == {"claude": "queued"}
    assert [control for n, control in enumerate(controls) if control not in controls[:n]] == [
        "pause",
        "resume",
    ]


async def _control_id(room: ServedRoom, number: int) -> str:
    """Return the id of the n-th control that waits in the room."""
    waiting = (await room.get("/queue"))["items"]
    return str(
        [item for item in waiting if item["sender"] == "human" and item["text"] in LASTING][number]["id"]
    )


async def test_share_is_a_state_that_a_person_switches(room: ServedRoom) -> None:
    claude = await room.join("claude")
    seen = [(await room.agent("claude"))["share"]]
    for verb in ("share", "noshare"):
        await room.post(f"/agents/claude/{verb}")
        seen.append((await room.agent("claude"))["share"])

    items = (await room.get("/inbox/claude", claude.token))["items"]
    assert seen == [False, True, False]
    assert [(item["kind"], item["control"]) for item in items] == [
        ("control", "share"),
        ("control", "noshare"),
    ]


@pytest.mark.parametrize("verb", LASTING)
async def test_a_switch_that_is_set_already_changes_nothing(room: ServedRoom, verb: str) -> None:
    await room.join("claude")
    for _ in range(2):
        await room.post(f"/agents/claude/{verb}")
    seq = room.gateway.writer.safe_seq

    said = await room.post(f"/agents/claude/{verb}")

    assert (said, room.gateway.writer.safe_seq) == ({"success": True, "seq": seq}, seq)


@pytest.mark.parametrize("verb", LASTING)
async def test_a_switch_outlives_a_restart(room: ServedRoom, verb: str) -> None:
    await room.join("claude")
    opposite = {"resume": "pause", "noshare": "share"}.get(verb)
    if opposite:
        await room.post(f"/agents/claude/{opposite}")
    await room.post(f"/agents/claude/{verb}")
    before = await room.agent("claude")

    await room.restart()

    after = await room.agent("claude")
    assert (before["state"], before["share"]) == (after["state"], after["share"])
    assert (after["state"] == "paused", after["share"]) == (verb == "pause", verb == "share")


@pytest.mark.parametrize("verb", MOMENTARY)
async def test_a_button_becomes_a_delivery(room: ServedRoom, verb: str) -> None:
    claude = await room.join("claude")

    said = await room.post(f"/agents/claude/{verb}", {"choice": 2})
    (item,) = (await room.get("/inbox/claude", claude.token))["items"]
    await room.post("/delivery", {"id": said["id"], "state": "confirmed"}, claude.token)

    assert (item["id"], item["kind"], item["control"], item["choice"]) == (said["id"], "control", verb, 2)
    assert (item["from"], item["urgent"]) == ("human", True)
    assert await room.states(said["id"]) == {"claude": "confirmed"}
    assert await room.inbox(claude) == []


async def test_a_control_is_finished_over_the_websocket(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    said = await room.post("/agents/claude/interrupt")
    await wait_until(lambda: socket.delivers)

    failed = await socket.ask("control_done", id=said["id"], state="failed", reason="nothing to interrupt")

    assert failed["ok"] is True
    assert await room.states(said["id"]) == {"claude": "failed(nothing to interrupt)"}


async def test_a_control_comes_before_the_messages_that_wait(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.send("claude", "first")
    await room.send("claude", "second")
    await room.post("/agents/claude/interrupt")
    socket = await room.connect(claude.token)
    await wait_until(lambda: len(socket.delivers) == 3)

    assert [deliver["kind"] for deliver in socket.delivers] == ["control", "message", "message"]


async def test_a_control_before_much_text_hides_none_of_it(room: ServedRoom) -> None:
    claude = await room.join("claude")
    messages = [await room.send("claude", f"{number}" * 100_000) for number in range(8)]
    control = (await room.post("/agents/claude/interrupt"))["id"]

    socket = await room.connect(claude.token)
    await wait_until(lambda: len(socket.delivers) >= 9, what="nine deliveries")

    assert [deliver["id"] for deliver in socket.delivers] == [control, *messages]


@pytest.mark.parametrize("verb", MOMENTARY)
async def test_a_button_for_an_offline_agent_is_409(room: ServedRoom, verb: str) -> None:
    claude = await room.join("claude")
    await room.post("/state", {"state": "offline"}, claude.token)

    answer = await room.call("POST", f"/agents/claude/{verb}")

    assert answer.status == 409
    assert answer.is_refusal
    assert (await room.get("/queue"))["items"] == []


@pytest.mark.parametrize("verb", ["pause", "share"])
async def test_a_switch_for_an_offline_agent_waits_for_it(room: ServedRoom, verb: str) -> None:
    claude = await room.join("claude")
    await room.post("/state", {"state": "offline"}, claude.token)

    await room.post(f"/agents/claude/{verb}")
    await room.inbox(claude)

    view = await room.agent("claude")
    assert (view["state"] == "paused", view["share"]) == (verb == "pause", verb == "share")


async def test_an_unknown_button_or_agent_is_404(room: ServedRoom) -> None:
    await room.join("claude")

    answers = [await room.call("POST", path) for path in ("/agents/claude/dance", "/agents/codex/pause")]

    assert [answer.status for answer in answers] == [404, 404]
    assert "pause" in answers[0].data["hint"]


@pytest.mark.parametrize("verb", ["approve", "pause"])
async def test_a_control_nobody_took_expires(still_room: ServedRoom, clock: Clock, verb: str) -> None:
    room = still_room
    claude = await room.join("claude")
    control = (await room.post(f"/agents/claude/{verb}"))["id"]
    clock.now += CONTROL_TTL_S - 1
    room.gateway.set_alarm()
    waiting = await room.inbox(claude)

    clock.now += 1
    room.gateway.set_alarm()

    (notice,) = await room.history("?types=system&after=0&wait=10")
    assert f"{verb} to claude expired" in notice["text"]
    assert waiting == [control]
    assert await room.states(control) == {"claude": "expired"}
    assert await room.inbox(claude) == []


async def test_a_control_expires_by_itself_before_the_messages_that_wait(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room.membership.CONTROL_TTL_S", 0.05)
    claude = await room.join("claude")
    message = await room.send("claude", "this may wait for days")
    await room.post("/agents/claude/approve")

    (notice,) = await room.history("?types=system&after=0&wait=10")

    assert "approve to claude expired" in notice["text"]
    assert await room.inbox(claude) == [message]


async def test_an_old_button_does_nothing_after_a_restart(still_room: ServedRoom, clock: Clock) -> None:
    room = still_room
    claude = await room.join("claude")
    control = (await room.post("/agents/claude/approve"))["id"]
    await room.stop()
    clock.now += 3600
    await room.start()
    room.gateway.set_alarm()

    async def is_expired() -> bool:
        return await room.states(control) == {"claude": "expired"}

    await room.until(is_expired)
    assert await room.inbox(claude) == []
