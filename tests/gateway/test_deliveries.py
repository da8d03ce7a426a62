"""The way of a message to its recipient: states, ends, answers."""

import asyncio

import pytest

from tests.gateway.served import ServedRoom

ENDS = ["confirmed", "submitted", "failed"]
#: Each way a participant may report, with what the sender sees after every step.
WAYS = [
    ["typed", "submitted", "confirmed"],
    ["typed", "confirmed"],
    ["submitted"],
    ["confirmed"],
    ["failed"],
    ["typed", "failed"],
    ["held", "typed", "held", "typed", "submitted"],
    ["held", "confirmed"],
]
REASONS = {"held": "busy", "failed": "no composer"}


async def _report(room: ServedRoom, token: str, message: str, state: str) -> int:
    body = {"id": message, "state": state, "reason": REASONS.get(state, "")}
    return (await room.call("POST", "/delivery", body, token=token)).status


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_the_sender_sees_every_step(room: ServedRoom, way: list[str]) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    seen = [await room.states(message)]

    for state in way:
        assert await _report(room, claude.token, message, state) == 200
        seen.append(await room.states(message))

    shown = {"held": "held(busy)", "failed": "failed(no composer)"}
    assert seen == [{"claude": shown.get(state, state)} for state in ["queued", *way]]


@pytest.mark.parametrize("end", ENDS)
async def test_an_end_is_an_end(room: ServedRoom, end: str) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    await _report(room, claude.token, message, end)
    others = {"held", "typed", "submitted", "confirmed", "failed"} - {end}
    if end == "submitted":
        # The proof that a message was taken may come after it was handed over.
        others -= {"confirmed"}

    refused = {state: await _report(room, claude.token, message, state) for state in sorted(others)}

    assert set(refused.values()) == {409}
    assert (await room.states(message))["claude"].startswith(end)
    assert await room.inbox(claude) == []


async def test_a_report_said_twice_is_one_event(room: ServedRoom) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    for state in ("typed", "confirmed"):
        assert [await _report(room, claude.token, message, state) for _ in range(3)] == [200] * 3

    assert room.gateway.writer.safe_seq == 4


async def test_nothing_goes_back_from_typed_to_queued(room: ServedRoom) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    await _report(room, claude.token, message, "typed")

    answer = await room.call("POST", f"/messages/{message}/cancel")

    assert answer.status == 409
    assert await room.states(message) == {"claude": "typed"}


@pytest.mark.parametrize("reason", ["offline", "turn", "loop", "nonsense", ""])
async def test_a_held_reason_that_is_not_the_sidecars_is_refused(room: ServedRoom, reason: str) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    body = {"id": message, "state": "held", "reason": reason}

    answer = await room.call("POST", "/delivery", body, token=claude.token)

    assert answer.status == 400
    assert "busy" in answer.data["hint"]


async def test_a_failure_is_told_to_the_sender(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    message = await room.send("codex", "hello", claude.token)

    await _report(room, codex.token, message, "failed")

    (notice,) = await room.history("?types=system", claude.token)
    assert notice["target"] == "claude"
    assert message in notice["text"] and "no composer" in notice["text"]


async def test_the_room_may_report_for_the_only_recipient(room: ServedRoom) -> None:
    await room.join("claude")
    await room.join("codex")
    one, two = await room.send("claude", "hello"), await room.send("all", "hello")

    assert await _report(room, room.token, one, "confirmed") == 200
    assert await _report(room, room.token, two, "confirmed") == 400
    body = {"id": two, "state": "confirmed", "agent": "codex"}
    assert (await room.call("POST", "/delivery", body)).status == 200
    assert await room.states(two) == {"claude": "queued", "codex": "confirmed"}


async def test_an_answer_confirms_and_goes_to_whoever_asked(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    asked = await room.send("codex", "what?", claude.token)

    said = await room.post("/agent-output", {"content": "that", "replyTo": asked}, codex.token)
    again = await room.post("/agent-output", {"content": "and that", "replyTo": asked}, codex.token)

    assert await room.states(asked) == {"codex": "confirmed"}
    assert (said["recipients"], again["recipients"]) == (["claude"], [])
    assert await room.inbox(claude) == [said["id"]]


async def test_an_answer_to_a_turn_that_is_not_open_is_late(room: ServedRoom) -> None:
    claude = await room.join("claude")

    said = await room.post("/agent-output", {"content": "too late", "turn": "t-7"}, claude.token)

    assert (said["late"], said["recipients"]) == (True, [])
    assert await room.history() == []
    assert [item["turn"] for item in await room.history("?types=late")] == ["t-7"]


async def test_the_same_id_twice_is_one_message_with_one_answer(room: ServedRoom) -> None:
    claude = await room.join("claude")
    body = {"to": "claude", "content": "hello", "id": "mine-1"}

    first, second = await asyncio.gather(room.post("/message", body), room.post("/message", body))
    await room.post("/delivery", {"id": "mine-1", "state": "confirmed"}, claude.token)
    await room.restart()
    third = await room.post("/message", body | {"content": "something else"})

    assert first == second == third
    assert first == {"success": True, "id": "mine-1", "seq": 2, "recipients": ["claude"]}
    assert [item["text"] for item in await room.history()] == ["hello"]


async def test_the_same_output_twice_is_one_message(room: ServedRoom) -> None:
    claude = await room.join("claude")
    body = {"content": "done", "id": "out-1"}

    answers = [await room.post("/agent-output", body, claude.token) for _ in range(2)]

    assert answers[0] == answers[1]
    assert len(await room.history()) == 1
