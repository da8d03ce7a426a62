"""The inbox: what waits for a participant, asked for or waited for."""

import asyncio

import pytest

from csp.protocol.enums import AgentId
from csp.room.commands import Join, Leave
from csp.room.messages import MAX_HOPS
from tests.gateway.served import Clock, Member, ServedRoom
from tests.waiting import wait_until

CLAUDE = AgentId("claude")


async def test_the_inbox_repeats_until_the_end(room: ServedRoom) -> None:
    claude = await room.join("claude")
    messages = [await room.send("claude", f"text {n}") for n in range(3)]
    first = [await room.inbox(claude) for _ in range(3)]

    await room.post("/delivery", {"id": messages[1], "state": "typed"}, claude.token)
    typed = await room.inbox(claude)
    await room.post("/delivery", {"id": messages[1], "state": "confirmed"}, claude.token)

    assert first == [messages] * 3
    assert typed == messages
    assert await room.inbox(claude) == [messages[0], messages[2]]


async def test_reading_acknowledges_nothing(room: ServedRoom) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    seq = room.gateway.writer.safe_seq

    for query in ("", "?after=0", f"?after={seq}", "?wait=0"):
        await room.inbox(claude, query)

    assert await room.states(message) == {"claude": "queued"}
    assert room.gateway.writer.safe_seq == seq


async def test_the_inbox_pages_by_seq(room: ServedRoom) -> None:
    claude = await room.join("claude")
    sent = [await room.post("/message", {"to": "claude", "content": "x"}) for _ in range(3)]

    page = await room.get(f"/inbox/claude?after={sent[0]['seq']}", claude.token)
    empty = await room.get("/inbox/claude?after=1000", claude.token)

    assert [item["id"] for item in page["items"]] == [said["id"] for said in sent[1:]]
    assert page["next"] == sent[2]["seq"]
    assert empty == {"items": [], "next": 1000}


async def test_a_long_inbox_comes_in_pages_without_loss(room: ServedRoom) -> None:
    claude = await room.join("claude")
    socket = await room.connect()
    for number in range(1200):
        await socket.send({"op": "message", "ref": number, "to": "claude", "content": "x"})
    await wait_until(lambda: len(socket.answers) == 1200, 60)
    seqs, place = [], 0
    while True:
        page = await room.get(f"/inbox/claude?after={place}", claude.token)
        if not page["items"]:
            break
        seqs += [item["seq"] for item in page["items"]]
        place = page["next"]

    assert seqs == sorted(set(seqs))
    assert len(seqs) == 1200


async def test_no_page_leads_past_a_message_that_is_held(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    held = await _hold_one(room, claude, codex)
    later = await room.send("claude", "later")
    page = await room.get("/inbox/claude", claude.token)

    await room.post(f"/messages/{held}/continue")
    again = await room.get(f"/inbox/claude?after={page['next']}", claude.token)

    assert held not in [item["id"] for item in page["items"]]
    assert [item["id"] for item in again["items"]][-2:] == [held, later]


async def _hold_one(room: ServedRoom, one: Member, other: Member) -> str:
    """Let two agents answer each other until an answer to the first is held; return it."""
    message = await room.send(other.id, "ping")
    for speaker, listener in [(other, one), (one, other)] * MAX_HOPS:
        body = {"to": listener.id, "content": "pong", "replyTo": message}
        message = str((await room.post("/message", body, speaker.token))["id"])
        if (await room.states(message))[listener.id] == "held(loop)" and listener == one:
            return message
    raise AssertionError("nothing was held")


async def test_an_inbox_item_says_what_a_sidecar_needs(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    await room.send("claude", "hello", codex.token, thread="aside", urgent=True, replyTo="old-1")

    (item,) = (await room.get("/inbox/claude", claude.token))["items"]

    assert item == {
        "id": "m-3",
        "seq": 3,
        "kind": "message",
        "from": "codex",
        "text": "hello",
        "urgent": True,
        "thread": "aside",
        "replyTo": "old-1",
    }


@pytest.mark.parametrize("wake", ["message", "control"])
async def test_a_long_poll_wakes_up(room: ServedRoom, wake: str) -> None:
    claude = await room.join("claude")
    poll = asyncio.ensure_future(room.inbox(claude, "?wait=60"))
    await wait_until(lambda: room.gateway.broadcast._news, what="the poll")  # the only sign of a waiting poll

    if wake == "message":
        expected = await room.send("claude", "hello")
    else:
        expected = (await room.post("/agents/claude/interrupt"))["id"]

    assert await asyncio.wait_for(poll, 60) == [expected]


async def test_a_long_poll_sleeps_on_through_what_is_for_others(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    poll = asyncio.ensure_future(room.inbox(claude, "?wait=60"))
    for _ in range(5):
        await room.send("codex", "for codex")
        assert len(await room.inbox(codex)) > 0
        assert not poll.done()
    message = await room.send("claude", "for claude")

    assert await asyncio.wait_for(poll, 60) == [message]


async def test_a_long_poll_ends_empty(still_room: ServedRoom, clock: Clock) -> None:
    claude = await still_room.join("claude")

    items = await asyncio.wait_for(still_room.inbox(claude, "?wait=0.05"), 60)

    assert items == []


async def test_a_long_poll_ends_with_its_participant(room: ServedRoom) -> None:
    claude = await room.join("claude")
    poll = asyncio.ensure_future(room.call("GET", "/inbox/claude?wait=60", token=claude.token))
    await wait_until(lambda: room.gateway.broadcast._news, what="the poll")

    await room.call("DELETE", "/agents/claude")

    assert (await asyncio.wait_for(poll, 60)).status == 401


@pytest.mark.parametrize("path", ["/inbox/claude?wait=60", "/history?after=1000&wait=60"])
async def test_a_poll_of_an_old_owner_ends_with_its_token(room: ServedRoom, path: str) -> None:
    old = await room.join("claude")
    poll = asyncio.ensure_future(room.call("GET", path, token=old.token))
    await wait_until(lambda: room.gateway.broadcast._news, what="the poll")
    await room.gateway.submit(Leave(agent=CLAUDE, reason="gone"))
    await room.gateway.submit(Join(name="claude"))
    await room.send("claude", "for the new owner")

    answer = await asyncio.wait_for(poll, 60)

    assert answer.status == 401
    assert answer.is_refusal


async def test_a_long_poll_is_a_sign_of_life(still_room: ServedRoom, clock: Clock) -> None:
    room = still_room
    polling, silent = await room.join("polling"), await room.join("silent")
    poll = asyncio.ensure_future(room.inbox(polling, "?wait=60"))
    await wait_until(lambda: room.gateway.broadcast._news, what="the poll")
    clock.now += 10_000

    gone = room.gateway.presence.silent([AgentId(polling.id), AgentId(silent.id)])
    message = await room.send("polling", "hello")

    assert gone == ["silent"]
    assert await asyncio.wait_for(poll, 60) == [message]
    clock.now += 10_000
    assert room.gateway.presence.silent([AgentId(polling.id)]) == ["polling"]


async def test_a_history_poll_wakes_up(room: ServedRoom) -> None:
    poll = asyncio.ensure_future(room.history("?after=0&wait=60"))
    await wait_until(lambda: room.gateway.broadcast._news, what="the poll")

    await room.send("all", "news")

    assert [item["text"] for item in await asyncio.wait_for(poll, 60)] == ["news"]
