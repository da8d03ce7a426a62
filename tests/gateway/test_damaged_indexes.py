"""Files that are made from the journal are made again when they are damaged; no question fails for them."""

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.served import ServedRoom

TIMES = 12
SQL = {
    "search.sqlite": ("UPDATE place SET upto = NULL", "UPDATE place SET first = 'x'", "DELETE FROM place"),
    "board.sqlite": (
        "UPDATE notes SET offset = NULL",
        "UPDATE notes SET offset = -1",
        "UPDATE notes SET offset = 'x'",
        "UPDATE notes SET row = NULL",
        "UPDATE place SET upto = NULL",
        "UPDATE stamp SET value = NULL",
        "DELETE FROM stamp",
        "DROP TABLE stamp",
        "UPDATE vectors SET vector = NULL",
        "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE row = 0) || x'00'",
        "UPDATE vectors SET vector = cast(zeroblob(512) || substr(vector, 513) AS BLOB) WHERE row < 4",
        "DROP TABLE names",
    ),
}


async def fill(room: ServedRoom) -> None:
    await room.join("claude")
    for number in range(8):
        await room.send("claude", f"zebra number {number}")
        await room.post("/board", {"text": f"quagga_{number} runs"})
    await ask(room)


async def ask(room: ServedRoom) -> dict[str, Any]:
    """Ask everything that an index is used for, with the indexes as new as can be."""
    while room.gateway.index.catch_up():
        pass
    while not room.gateway.board.catch_up():
        pass
    paths = ("/history?q=zebra&limit=3", "/board?limit=3", "/board/search?q=quagga_3", "/board/search?q=runs")
    answers = {path: await room.call("GET", path) for path in paths}
    assert {path: answer.status for path, answer in answers.items()} == dict.fromkeys(paths, 200)
    found = {path: answer.data["items"] for path, answer in answers.items()}
    return {
        path: [item.get("text") or item["note"]["text"] for item in items] for path, items in found.items()
    }


def damage(path: Path, draw: random.Random) -> None:
    """Turn a stretch of a file into noise, cut it off, or make another file of it."""
    data = bytearray(path.read_bytes())
    at = draw.randrange(len(data))
    match draw.randrange(4):
        case 0:
            data[at : at + 64] = draw.randbytes(64)
        case 1:
            del data[at:]
        case 2:
            data[at] ^= 1 << draw.randrange(8)
        case _:
            data = bytearray(draw.randbytes(draw.randrange(200)))
    path.write_bytes(data)


@pytest.mark.parametrize("name", SQL)
@pytest.mark.parametrize("times", [TIMES, pytest.param(200, marks=pytest.mark.full)])
async def test_damaged_index_changes_no_answer(room: ServedRoom, name: str, times: int) -> None:
    await fill(room)
    before = await ask(room)
    draw = random.Random(5)
    for _ in range(times):
        await room.stop()
        for path in room.folder.glob(f"{name}-*"):
            path.unlink()
        if (room.folder / name).exists():
            damage(room.folder / name, draw)
        await room.start()

        assert await ask(room) == before


@pytest.mark.parametrize(("name", "sql"), [(name, sql) for name, rows in SQL.items() for sql in rows])
async def test_senseless_values_in_an_index_change_no_answer(room: ServedRoom, name: str, sql: str) -> None:
    await fill(room)
    before = await ask(room)
    await room.stop()
    db = sqlite3.connect(room.folder / name)
    try:
        db.execute(sql)
        db.commit()
    except sqlite3.IntegrityError:
        pass
    finally:
        db.close()
    await room.start()

    assert await ask(room) == before
