"""Taking text out of the room for good: redact, prune."""

import asyncio

import pytest

from tests.gateway.served import ServedRoom

SECRET = "marzipan"


def _files_with(room: ServedRoom, text: str) -> list[str]:
    return [path.name for path in room.folder.iterdir() if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("is_ended", [True, False])
async def test_a_redacted_text_is_nowhere(room: ServedRoom, is_ended: bool) -> None:
    claude = await room.join("claude")
    before = await room.send("claude", "before")
    message = await room.send("claude", f"the {SECRET}")
    if is_ended:
        await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)
    await room.send("claude", "after")
    room.gateway.index.catch_up()

    said = await room.post(f"/messages/{message}/redact")

    assert (said["success"], said["id"]) == (True, message)
    texts = [item["text"] for item in await room.history("?types=human_message")]
    assert texts == ["before", "[redacted]", "after"]
    assert await room.history(f"?q={SECRET}") == []
    assert SECRET not in str(await room.get("/inbox/claude"))
    assert (message in await room.inbox(claude), before in await room.inbox(claude)) == (False, True)
    await room.restart()
    assert _files_with(room, SECRET) == []
    assert await room.states(message) == {"claude": "confirmed" if is_ended else "withdrawn"}


async def test_a_watcher_from_the_start_never_sees_a_redacted_text(room: ServedRoom) -> None:
    await room.join("claude")
    message = await room.send("claude", f"the {SECRET}")
    await room.post(f"/messages/{message}/redact")

    socket = await room.connect(after=0)
    await socket.until_seq(room.gateway.writer.safe_seq)

    assert SECRET not in str(socket.events)
    assert socket.events[-1]["type"] == "redacted"
    assert socket.events[-1]["message"] == message


async def test_many_redactions_at_once_are_all_carried_out(room: ServedRoom) -> None:
    await room.join("claude")
    messages = [await room.send("claude", f"the {SECRET} {number}") for number in range(8)]

    answers = await asyncio.gather(*(room.call("POST", f"/messages/{m}/redact") for m in messages))

    assert [answer.status for answer in answers] == [200] * 8
    await room.restart()
    assert _files_with(room, SECRET) == []
    assert (await room.get("/health"))["status"] == "ok"


async def test_the_room_goes_on_while_text_is_removed(room: ServedRoom) -> None:
    claude = await room.join("claude")
    messages = [await room.send("claude", f"the {SECRET} {number}") for number in range(20)]
    socket = await room.connect(claude.token, after=0)

    async def talk(number: int) -> str:
        return await room.send("claude", f"go on {number}")

    work = [room.post(f"/messages/{message}/redact") for message in messages[:4]]
    sent = (await asyncio.gather(*work, *(talk(number) for number in range(50))))[4:]
    await socket.until_seq(room.gateway.writer.safe_seq)
    await room.restart()

    texts = [item["text"] for item in await room.history("?types=human_message&limit=1000")]
    assert sorted(text for text in texts if text.startswith("go on")) == sorted(
        f"go on {n}" for n in range(50)
    )
    assert texts.count("[redacted]") == 4
    assert set(sent) <= set(await room.inbox(claude))
    assert socket.seqs == sorted(set(socket.seqs))


async def test_pruning_removes_what_came_before(room: ServedRoom) -> None:
    claude = await room.join("claude")
    for text in (SECRET, "kept"):
        message = await room.send("claude", text)
        await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)
    waiting = await room.post("/message", {"to": "claude", "content": "still waiting"})

    said = await room.post("/history/prune", {"before": 4})

    assert said["success"] is True
    assert [item["text"] for item in await room.history()] == ["kept", "still waiting"]
    await room.restart()
    assert _files_with(room, SECRET) == []
    assert await room.inbox(claude) == [waiting["id"]]
    assert [item["text"] for item in await room.history()] == ["kept", "still waiting"]
    assert (await room.agent("claude"))["online"]


async def test_a_pruned_room_goes_on_counting(room: ServedRoom) -> None:
    await room.join("claude")
    for number in range(5):
        message = await room.send("claude", f"text {number}")
        await room.post(f"/messages/{message}/cancel")
    seq = room.gateway.writer.safe_seq
    await room.post("/history/prune", {"before": seq})

    after = await room.post("/message", {"to": "claude", "content": "more"})
    await room.restart()
    socket = await room.connect(after=0)
    await socket.until_seq(after["seq"])

    assert after["seq"] > seq
    assert socket.seqs == list(range(socket.seqs[0], after["seq"] + 1))
    assert socket.events[0]["type"] == "base"


async def test_what_still_waits_cannot_be_pruned(room: ServedRoom) -> None:
    await room.join("claude")
    sent = await room.post("/message", {"to": "claude", "content": "hello"})
    await room.send("all", "later")

    answer = await room.call("POST", "/history/prune", {"before": sent["seq"] + 1})

    assert answer.status == 409
    assert f"csp cancel {sent['id']}" in answer.data["hint"]
    assert (await room.history())[0]["text"] == "hello"


async def test_the_future_cannot_be_pruned(room: ServedRoom) -> None:
    await room.send("all", "hello")

    answer = await room.call("POST", "/history/prune", {"before": 1000})

    assert answer.status == 400
    assert answer.is_refusal


async def test_pruning_and_redacting_at_once_lose_nothing(room: ServedRoom) -> None:
    await room.join("claude")
    messages = [await room.send("claude", f"text {number}") for number in range(6)]
    for message in messages:
        await room.post(f"/messages/{message}/cancel")

    work = [room.call("POST", f"/messages/{message}/redact") for message in messages[3:]]
    work += [room.call("POST", "/history/prune", {"before": before}) for before in (2, 3, 4)]
    answers = await asyncio.gather(*work)
    await room.restart()

    assert [answer.status for answer in answers] == [200] * 6
    assert [item["text"] for item in await room.history()] == ["text 2", *["[redacted]"] * 3]
    assert (await room.send("claude", "more")).startswith("m-")
