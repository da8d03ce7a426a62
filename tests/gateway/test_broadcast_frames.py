"""What a WebSocket brings: events for all, deliveries for one."""

import asyncio
import json

from tests.gateway.served import ServedRoom
from tests.waiting import wait_until

ALWAYS = {"v", "seq", "id", "ts", "type", "sender", "target", "thread", "text", "crc"}


# --- events --------------------------------------------------------------------------------------


async def test_an_event_frame_has_every_field_of_the_design(room: ServedRoom) -> None:
    socket = await room.connect()
    claude = await room.join("claude")
    message = await room.send("claude", "hello", thread="aside")
    await room.post("/delivery", {"id": message, "state": "held", "reason": "busy"}, claude.token)
    await room.post("/state", {"state": "busy", "detail": "thinking"}, claude.token)
    await room.post("/agent-output", {"content": "hi", "replyTo": message, "final": True}, claude.token)
    await room.call("DELETE", "/agents/claude")
    await socket.until_seq(7)

    assert all(set(event) >= ALWAYS for event in socket.events)
    assert socket.seqs == [1, 2, 3, 4, 5, 6, 7]
    assert [event["type"] for event in socket.events] == [
        *("joined", "human_message", "delivery", "state", "delivery", "agent_response", "left")
    ]
    joined, said, held, state, confirmed, answer, left = socket.events
    assert (joined["sender"], joined["target"], joined["role"], joined["kind"]) == (
        "claude",
        "all",
        "agent",
        "cli",
    )
    assert (said["sender"], said["target"], said["thread"], said["text"]) == (
        "human",
        "claude",
        "aside",
        "hello",
    )
    assert (said["id"], said["recipients"]) == (message, ["claude"])
    assert (held["message"], held["agent"], held["state"], held["reason"]) == (
        message,
        "claude",
        "held",
        "busy",
    )
    assert (state["state"], state["detail"]) == ("busy", "thinking")
    assert (confirmed["message"], confirmed["state"]) == (message, "confirmed")
    assert (answer["replyTo"], answer["final"], answer["target"]) == (message, True, "human")
    assert (left["removed"], left["reason"]) == (True, "removed")
    assert all(isinstance(event["ts"], float) for event in socket.events)


async def test_an_event_is_the_same_for_every_reader_and_in_the_history(room: ServedRoom) -> None:
    claude = await room.join("claude")
    sockets = [await room.connect(token) for token in (room.token, room.token, claude.token)]
    await room.send("all", "hello")
    for socket in sockets:
        await socket.until_seq(2)

    line = (room.folder / "journal.jsonl").read_bytes().splitlines()[1]
    (item,) = await room.history()
    assert [socket.events[-1] for socket in sockets] == [item] * 3
    assert json.loads(line) == item


async def test_joining_leaving_and_state_are_events_for_agents_too(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    codex = await room.join("codex")
    await room.post("/state", {"state": "offline", "detail": "bye"}, codex.token)
    await socket.until_seq(3)

    assert [event["type"] for event in socket.events] == ["joined", "left"]


# --- deliver frames ------------------------------------------------------------------------------


async def test_a_deliver_frame_goes_to_its_recipient_alone(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    sockets = [await room.connect(token) for token in (claude.token, codex.token, room.token)]
    message = await room.send("claude", "hello")
    both = await room.send("all", "hello all")
    for socket in sockets:
        await socket.until_seq(room.gateway.writer.safe_seq)
    await wait_until(lambda: len(sockets[0].delivers) == 2 and len(sockets[1].delivers) == 1)

    got = [[deliver["id"] for deliver in socket.delivers] for socket in sockets]
    assert got == [[message, both], [both], []]
    assert sockets[0].delivers[0] == {
        "id": message,
        "seq": 3,
        "kind": "message",
        "from": "human",
        "text": "hello",
        "urgent": False,
    }


async def test_every_connection_of_a_participant_gets_its_deliveries(room: ServedRoom) -> None:
    claude = await room.join("claude")
    sockets = [await room.connect(claude.token) for _ in range(2)]

    message = await room.send("claude", "hello")

    for socket in sockets:
        await wait_until(lambda s=socket: [deliver["id"] for deliver in s.delivers] == [message])  # type: ignore[misc]  # binds the loop's socket


async def test_a_delivery_comes_again_after_a_reconnect_until_its_end(room: ServedRoom) -> None:
    claude = await room.join("claude")
    one, two = await room.send("claude", "one"), await room.send("claude", "two")
    first = await room.connect(claude.token)
    await wait_until(lambda: len(first.delivers) == 2)
    await first.ask("delivery", id=one, state="typed")
    await first.ask("delivery", id=two, state="submitted")
    await first.close()
    await room.restart()

    second = await room.connect(claude.token)
    await wait_until(lambda: second.delivers)
    await second.ask("delivery", id=one, state="confirmed")
    third = await room.connect(claude.token)
    await third.ask("working")

    assert [(deliver["id"], deliver["state"]) for deliver in second.delivers] == [(one, "typed")]
    assert third.delivers == []


async def test_deliveries_keep_the_order_of_the_journal(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect(claude.token)
    await asyncio.gather(*(room.send("claude", f"text {number}") for number in range(200)))
    await wait_until(lambda: len(socket.delivers) == 200)

    seqs = [deliver["seq"] for deliver in socket.delivers]
    assert seqs == sorted(set(seqs))


async def test_a_long_queue_of_long_texts_arrives_whole(room: ServedRoom) -> None:
    claude = await room.join("claude")
    messages = [await room.send("claude", f"{number:03}" * 60_000) for number in range(40)]

    socket = await room.connect(claude.token)
    await wait_until(lambda: len(socket.delivers) == 40, 60)

    assert [deliver["id"] for deliver in socket.delivers] == messages
