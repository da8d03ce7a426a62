"""Many messages while somebody types: every line is there, none is garbled, every key arrives."""

import asyncio
import re
import threading
from typing import Final

from csp.client import Client
from tests.human.scene import join, open_pane
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

_MESSAGES: Final = 1500
_PADDING: Final = "x" * 50


async def _flood(room: LiveRoom, token: str) -> None:
    async with Client(room.url, token) as client:
        await asyncio.gather(
            *(client.send("human", f"flood {number} {_PADDING}.") for number in range(_MESSAGES))
        )


def test_a_flood_neither_garbles_the_room_nor_what_is_typed(room: LiveRoom) -> None:
    claude = join(room, "claude")
    token = room.gateway.post("/register", {"agentId": "noisy"})["token"]
    sentence = "the quick brown fox jumps over the lazy dog " * 4
    with open_pane(room) as pane:
        flood = threading.Thread(target=lambda: asyncio.run(_flood(room, token)))
        flood.start()
        for key in f"@claude {sentence}":
            pane.send(key.encode())
        pane.paste("and a paste\nof two lines")
        pane.send(b"\r")
        item = claude.next_item()
        flood.join()
        wait_until_sync(lambda: f"flood {_MESSAGES - 1} ".encode() in pane.raw, 30.0, "the last message")
        pane.wait_for("^→claude>")

        written = plain_text(pane.raw)
        found = re.findall(rf"\d\d:\d\d #\d+ noisy: flood (\d+) {_PADDING}\.\n", written)
        drawn = [line for line in pane.history().splitlines() if "flood" in line]
        assert [int(number) for number in found] == [*range(_MESSAGES)]
        assert [
            line for line in drawn if not re.fullmatch(rf"\S+ #\d+ noisy: flood \d+ {_PADDING}\.", line)
        ] == []
        assert item["text"] == sentence + "and a paste\nof two lines"
        assert pane.raw.count(b"\x1b[?2004l") == 0


def plain_text(raw: bytes | bytearray) -> str:
    """Return what was written without its escape sequences."""
    text = raw.decode(errors="replace").replace("\r", "")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]| \x08", "", text)
