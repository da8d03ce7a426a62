"""A room whose files are deleted, moved or cut under it refuses what the next start would not find."""

import os
import shutil

import pytest

from tests.gateway.served import Answer, ServedRoom
from tests.waiting import wait_until


async def say(room: ServedRoom, text: str) -> Answer:
    return await room.call("POST", "/message", {"to": "claude", "content": text})


async def texts(room: ServedRoom) -> list[str]:
    items = (await room.get("/history"))["items"]
    return [item["text"] for item in items if item["type"] == "human_message"]


async def is_writable(room: ServedRoom) -> bool:
    return bool((await room.get("/health"))["journal"]["writable"])


@pytest.mark.parametrize("is_begun_anew", [False, True])
async def test_nothing_is_acknowledged_after_the_folder_is_deleted(
    room: ServedRoom, is_begun_anew: bool
) -> None:
    await room.join("claude")
    assert (await say(room, "before")).status == 200
    shutil.rmtree(room.folder)
    if is_begun_anew:
        room.folder.mkdir()
        (room.folder / "journal.jsonl").touch()

    for _ in range(2):
        answer = await say(room, "after")
        assert answer.status == 507
        assert answer.data["error"].startswith(
            "the journal was deleted, moved or cut while the gateway was running"
        )
    assert not await is_writable(room)
    assert await texts(room) == ["before"]


async def test_room_goes_on_when_its_folder_is_put_back(room: ServedRoom) -> None:
    await room.join("claude")
    assert (await say(room, "before")).status == 200
    away = room.folder.with_name("away")
    room.folder.rename(away)
    assert (await say(room, "meanwhile")).status == 507
    away.rename(room.folder)
    await wait_until(lambda: room.gateway.writer.is_writable)

    assert (await say(room, "after")).status == 200
    await room.restart()
    assert await texts(room) == ["before", "after"]


@pytest.mark.parametrize("left", [0.0, 0.5])
async def test_nothing_is_acknowledged_after_the_journal_is_cut(room: ServedRoom, left: float) -> None:
    await room.join("claude")
    assert (await say(room, "before")).status == 200
    path = room.folder / "journal.jsonl"
    whole = path.read_bytes()
    size = int(len(whole) * left)
    os.truncate(path, size)

    for _ in range(2):
        answer = await say(room, "after")
        assert answer.status == 507
        assert "cut while the gateway was running" in answer.data["error"]
    assert not await is_writable(room)
    assert path.stat().st_size == size

    path.write_bytes(whole)
    await wait_until(lambda: room.gateway.writer.is_writable)
    assert (await say(room, "whole again")).status == 200
    await room.restart()
    assert await texts(room) == ["before", "whole again"]
