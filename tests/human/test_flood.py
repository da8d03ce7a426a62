"""Many messages while somebody types: every line is there, none is garbled, every key arrives."""

import asyncio
import io
import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from prompt_toolkit.input import create_pipe_input

from csp.client import Client
from csp.human import chat_pane as pane_module
from csp.human.chat import ChatOrder
from csp.human.chat_pane import _MAX_WRITE as MAX_WRITE
from csp.human.saved_state import SavedState
from csp.human.theme import UNICODE, Theme
from csp.protocol.events import Unknown
from csp.room_registry import Address
from tests.human.fakes import Modes
from tests.human.scene import Pane, join, open_pane
from tests.rooms import LiveRoom
from tests.waiting import wait_until, wait_until_sync

_MESSAGES: Final = 1500
_PADDING: Final = "x" * 50
#: Letters that no message has, so that each is seen first as the echo of its key.
_KEYS: Final = "".join(map(chr, range(0x410, 0x430)))
_PER_S: Final = 500


async def _flood(room: LiveRoom, token: str) -> None:
    async with Client(room.url, token) as client:
        await asyncio.gather(
            *(client.send("human", f"flood {number} {_PADDING}.") for number in range(_MESSAGES))
        )


def test_a_flood_neither_garbles_the_room_nor_what_is_typed(room: LiveRoom) -> None:
    claude = join(room, "claude")
    token = room.gateway.post("/register", {"agentId": "noisy"})["token"]
    sentence = "the quick brown fox jumps over the lazy dog " * 4
    with open_pane(room, columns=100) as pane:
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


def _echo(pane: Pane, key: str) -> bytes:
    """Type a key; return all that was written until it was seen."""
    seen = len(pane.raw)
    pane.send(key.encode())
    wait_until_sync(lambda: key.encode() in pane.raw[seen:], 60.0, f"the echo of {key!r}")
    return bytes(pane.raw[seen:])


def test_keys_are_shown_in_the_midst_of_a_flood(room: LiveRoom) -> None:
    token = room.gateway.post("/register", {"agentId": "noisy"})["token"]
    is_over = threading.Event()
    sent: list[int] = []
    with open_pane(room) as pane:
        flood = threading.Thread(target=lambda: sent.append(asyncio.run(_steady(room, token, is_over))))
        flood.start()
        wait_until_sync(lambda: b"flood 200 " in pane.raw, 60.0, "the flood")
        # The flood does not end before each of them is shown.
        between = [_echo(pane, key) for key in _KEYS]
        is_over.set()
        flood.join()
        wait_until_sync(lambda: f"flood {sent[0] - 1} ".encode() in pane.raw, 60.0, "the last message")

        found = re.findall(r"noisy: flood (\d+) \.\n", plain_text(pane.raw))
        assert [int(number) for number in found] == [*range(sent[0])]
        assert min(map(len, between)) < 4 * MAX_WRITE


class Screen(io.StringIO):
    """A slow terminal that somebody types at as soon as the first line is on it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = ""
        self.type_key: Callable[[], None] = lambda: None

    def write(self, text: str) -> int:
        before, self.written = self.written, self.written + text
        if "row 0." in self.written and "row 0." not in before:
            self.type_key()
        return len(text)


async def test_a_key_does_not_wait_for_all_that_is_to_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_module, "FLUSH_S", 0.0)
    order = ChatOrder(
        address=Address(url="http://127.0.0.1:9", token="t", room="default"),
        memory=SavedState(tmp_path / "human"),
        env={"TERM": "xterm"},
        cwd=tmp_path,
        is_person=True,
    )
    screen = Screen()
    with create_pipe_input() as keyboard:
        pane = pane_module.ChatPane(order, Theme(UNICODE, has_colour=False), screen, keyboard)
        screen.type_key = lambda: keyboard.send_text("Ж")
        running = asyncio.ensure_future(pane._app.run_async())
        flushing = asyncio.ensure_future(pane.flush_batches())
        for number in range(40):
            pane.put(f"row {number}. " + "x" * MAX_WRITE)
        await wait_until(lambda: "row 39." in screen.written and "Ж" in screen.written, 60.0)
        pane.leave()
        await running
        flushing.cancel()

    assert screen.written.index("Ж") < screen.written.index("row 39.")


async def test_a_key_does_not_wait_for_all_that_has_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.human.chat.SLICE_S", 0.0)
    chat = Modes(tmp_path)
    taken: list[int] = []
    shown_at_key: list[int] = []

    async def items() -> AsyncIterator[Unknown]:
        asyncio.get_running_loop().call_soon(lambda: shown_at_key.append(len(taken)))
        for number in range(1000):
            yield Unknown(seq=number, ts=0.0, type="new")

    class Rushing:
        """A client with a thousand events at hand."""

        seq = 0
        status = SimpleNamespace(is_connected=True)

        async def connected(self) -> None:
            pass

        def __aiter__(self) -> AsyncIterator[Unknown]:
            return items()

    monkeypatch.setattr(chat, "_client", Rushing())
    monkeypatch.setattr(chat, "_take", lambda event: taken.append(event.seq))
    await chat.serve()

    assert len(taken) == 1000
    assert shown_at_key[0] < 10
