"""How large whiteboards are, what happens when one is full, how space is made."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.served import Clock, ServedRoom, served
from tests.gateway.test_board_routes import find, write
from tests.gateway.test_board_workers_summaries import answer, asked, summaries

SETTINGS: dict[str, Any] = {
    "board_summary_after": 1000,
    "board_summariser": "scribe",
    "board_max_kb": 1,
    "durability": "flush",
}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[ServedRoom]:
    """A room whose boards hold one KiB."""
    async with served(tmp_path / "room", Clock(), **SETTINGS) as room:
        room.gateway.spawn(room.gateway.board_summaries.work())
        yield room


def metric(text: str, name: str) -> int:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return int(line.rpartition(" ")[2])


async def notes(room: ServedRoom) -> list[str]:
    return [one["text"] for one in (await room.get("/board"))["items"]]


async def test_health_and_metrics_tell_the_size_of_the_boards(room: ServedRoom) -> None:
    await write(room, "a" * 100)
    await write(room, "grün")
    health = (await room.get("/health"))["boards"]
    metrics = (await room.call("GET", "/metrics")).raw.decode()

    assert health == {"count": 1, "notes": 2, "bytes": 105, "largest_bytes": 105, "max_bytes": 1024}
    assert metric(metrics, 'csp_board_bytes{board="room"}') == 105
    assert metric(metrics, 'csp_board_notes_total{board="room"}') == 2


async def test_a_full_board_refuses_a_note_and_says_what_to_do(room: ServedRoom) -> None:
    await write(room, "a" * 1000)
    answer = await room.call("POST", "/board", {"text": "b" * 25})

    assert answer.status == 409
    assert answer.data["error"] == "the whiteboard of room is full (1024 bytes)"
    assert "CSP_BOARD_MAX_KB" in answer.data["hint"]
    await write(room, "b" * 24)


async def test_a_crowded_board_is_summed_up_and_compacted(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    first = await write(room, "apple " * 100)
    await write(room, "pear " * 50)
    ask = await asked(room, scribe)
    await write(room, "a plum came meanwhile")
    await answer(room, scribe, ask["id"], "fruit, in short")

    async def is_compacted() -> bool:
        return bool(room.gateway.writer.room.boards.of(None).compacted)

    await room.until(is_compacted, "the board is compacted")
    board = room.gateway.writer.room.boards.of(None)

    assert await notes(room) == ["a plum came meanwhile", "fruit, in short"]
    assert first["id"] not in [hit["note"]["id"] for hit in await find(room, "apple")]
    assert (await find(room, "plum"))[0]["note"]["text"] == "a plum came meanwhile"
    assert (board.bytes, (await room.get("/health"))["boards"]["bytes"]) == (36, 36)
    # What was taken off the board is still found by its number, and in the history.
    assert (await room.get(f"/board/{first['id']}"))["text"].startswith("apple")
    await write(room, "b" * 900)


async def test_the_index_of_a_compacted_board_can_be_made_again(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    first = await write(room, "apple " * 150)
    ask = await asked(room, scribe)
    await answer(room, scribe, ask["id"], "fruit, in short")

    async def is_compacted() -> bool:
        return bool(room.gateway.writer.room.boards.of(None).compacted)

    await room.until(is_compacted, "the board is compacted")
    room.gateway.board._index.drop()

    assert await notes(room) == ["fruit, in short"]
    assert [one["text"] for one in await summaries(room)] == ["fruit, in short"]
    assert first["id"] not in [hit["note"]["id"] for hit in await find(room, "apple")]


async def test_a_board_with_space_is_left_alone(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    await write(room, "apple " * 100)
    ask = await room.post("/board/summarise", {"by": "scribe"})
    await answer(room, scribe, ask["id"], "fruit, in short")

    assert len(await notes(room)) == 2
    assert room.gateway.board_summaries.crowded() == []
