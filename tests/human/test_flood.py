"""Many messages while somebody types: every line is there, none is garbled, every key arrives."""

import asyncio
import re
import threading
import time
from typing import Final

from csp.client import Client
from tests.human.scene import Pane, join, open_pane
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

_MESSAGES: Final = 1500
_PADDING: Final = "x" * 50
#: Letters that no message has, so that each is seen first as the echo of its key.
_KEYS: Final = "".join(map(chr, range(0x410, 0x450)))
_PER_S: Final = 500
_KEY_S: Final = 0.05


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


async def _steady(room: LiveRoom, token: str, is_over: threading.Event) -> int:
    """Send so many messages a second until it is over; return how many there were."""
    start, sent = time.monotonic(), 0
    async with Client(room.url, token) as client:
        while not is_over.is_set():
            due = int((time.monotonic() - start) * _PER_S) - sent
            await asyncio.gather(*(client.send("human", f"flood {sent + n} .") for n in range(due)))
            sent += due
            await asyncio.sleep(0.01)
    return sent


def _echo_p95(pane: Pane, keys: str) -> float:
    """Type keys one after the other; return within which time nearly all of them were seen."""
    times = []
    for key in keys:
        seen, sent_at = len(pane.raw), time.monotonic()
        pane.send(key.encode())
        while key.encode() not in pane.raw[seen:]:
            assert time.monotonic() - sent_at < 10, f"{key!r} was not shown"
            time.sleep(0.001)
        times.append(time.monotonic() - sent_at)
        time.sleep(max(0.0, _KEY_S - times[-1]))
    return sorted(times)[int(len(times) * 0.95)]


def test_keys_are_shown_at_once_in_a_flood(room: LiveRoom) -> None:
    token = room.gateway.post("/register", {"agentId": "noisy"})["token"]
    is_over = threading.Event()
    sent: list[int] = []
    with open_pane(room) as pane:
        quiet_s = _echo_p95(pane, _KEYS[:32])
        flood = threading.Thread(target=lambda: sent.append(asyncio.run(_steady(room, token, is_over))))
        flood.start()
        wait_until_sync(lambda: b"flood 200 " in pane.raw, 30.0, "the flood")
        flooded_s = _echo_p95(pane, _KEYS[32:])
        is_over.set()
        flood.join()
        wait_until_sync(lambda: f"flood {sent[0] - 1} ".encode() in pane.raw, 30.0, "the last message")

        found = re.findall(r"noisy: flood (\d+) \.\n", plain_text(pane.raw))
        assert [int(number) for number in found] == [*range(sent[0])]
        # On a machine that others use too, a key takes longer without any flood as well.
        assert flooded_s - quiet_s < 0.15, f"{flooded_s:.3f} s, without a flood {quiet_s:.3f} s"
