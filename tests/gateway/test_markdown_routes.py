"""What was said, parsed as markdown for those who may read it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from csp.gateway.markdown_routes import MAX_CHARS
from csp.protocol.enums import MAX_TEXT_BYTES
from tests.gateway.served import ServedRoom, served

#: Among the dearest lines for the parser: every level looks at every line.
DEAR = "- " * 8 + "`@all x`\n@all hi `\n"


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[ServedRoom]:
    async with served(tmp_path) as room:
        yield room


async def _seq(room: ServedRoom, text: str, to: str = "all") -> int:
    await room.send(to, text)
    return int((await room.history("?limit=1"))[0]["seq"])


async def test_messages_and_notes_come_as_tokens(room: ServedRoom) -> None:
    await room.join("claude")
    first, second = await _seq(room, "# a"), await _seq(room, "`b` 😀")
    note = (await room.post("/board", {"text": "*c*"}))["note"]["id"]
    found = (await room.get(f"/markdown?ids={first},{second},{note}"))["items"]

    assert found == {
        str(first): {"length": 3, "tokens": [["h", 1], "a", None]},
        str(second): {"length": 6, "tokens": [["p"], ["code", "b"], " 😀", None]},
        note: {"length": 3, "tokens": [["p"], ["em"], "c", None, None]},
    }


async def test_what_cannot_be_read_is_left_out(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    seq = await _seq(room, "for claude alone", "claude")
    ids = f"{seq},99999,n-99999"

    assert list((await room.get(f"/markdown?ids={ids}", claude.token))["items"]) == [str(seq)]
    assert (await room.get(f"/markdown?ids={ids}", codex.token))["items"] == {}


async def test_what_is_no_message_is_left_out(room: ServedRoom) -> None:
    await room.join("claude")
    ids = ",".join(map(str, range(1, 9)))

    assert (await room.get(f"/markdown?ids={ids}"))["items"] == {}


async def test_of_many_long_messages_some_are_left_for_the_next_request(room: ServedRoom) -> None:
    await room.join("claude")
    seqs = [await _seq(room, "a " * MAX_CHARS) for _ in range(6)]
    found = (await room.get(f"/markdown?ids={','.join(map(str, seqs))}"))["items"]

    assert list(found) == [str(seq) for seq in seqs[:5]]
    assert all(text["length"] == MAX_CHARS for text in found.values())


@pytest.mark.parametrize("ids", ["", "x", "0", "1,", "m-1", ",".join(["1"] * 101)])
async def test_odd_ids_are_refused(room: ServedRoom, ids: str) -> None:
    assert (await room.call("GET", f"/markdown?ids={ids}")).status == 400


async def test_the_room_answers_while_the_dearest_texts_are_parsed(room: ServedRoom) -> None:
    claude = await room.join("claude")
    text = (DEAR * (MAX_TEXT_BYTES // len(DEAR)))[: MAX_TEXT_BYTES - 1]
    posted = asyncio.ensure_future(room.post("/agent-output", {"content": text}, claude.token))
    waits = []
    while not posted.done():
        began = time.monotonic()
        await room.get("/health")
        waits.append(time.monotonic() - began)
    await posted

    assert sorted(waits)[len(waits) // 2] < 0.1
