"""The plain loop of lines without a room: when it begins, what ends it, what it comes to."""

import asyncio
import io
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from csp.errors import Unreachable
from csp.human.chat import ChatOrder
from csp.human.plain_chat import PATIENCE_S, PlainChat
from csp.human.saved_state import SavedState
from csp.human.theme import UNICODE, Theme
from csp.room_registry import Address
from tests.waiting import wait_until


class Joined:
    """Stands for the chat; `serve` ends when a test says so."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failures = 0
        self.over = asyncio.Event()
        self.problem: Exception | None = None

    async def __aenter__(self) -> None:
        self.done.append("begin")

    async def __aexit__(self, *_: object) -> None:
        self.done.append("end")

    async def serve(self) -> None:
        await self.over.wait()
        if self.problem:
            raise self.problem

    async def ready(self, serving: "asyncio.Future[None]") -> None:
        self.done.append("ready")

    def enter(self, line: str) -> None:
        self.done.append(line.strip())

    async def finish(self, patience_s: float) -> None:
        self.done.append(f"finish {patience_s}")


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> dict[int, Callable[[], None]]:
    """What would be done on each signal."""
    found: dict[int, Callable[[], None]] = {}
    monkeypatch.setattr(
        asyncio.SelectorEventLoop, "add_signal_handler", lambda loop, number, act: found.update({number: act})
    )
    return found


@pytest.fixture
def silent() -> Iterator[TextIO]:
    """A stdin that says nothing and does not end."""
    reading, writing = os.pipe()
    with open(reading) as stdin:
        yield stdin
        # Closed first: somebody may still be reading.
        os.close(writing)


def plain(folder: Path, stdin: TextIO) -> tuple[PlainChat, Joined]:
    order = ChatOrder(
        address=Address(url="http://127.0.0.1:9", token="t", room="default"),
        memory=SavedState(folder / "human"),
        env={},
        cwd=folder,
        is_person=False,
    )
    found = PlainChat(order, Theme(UNICODE, has_colour=False), stdin, io.StringIO(), io.StringIO())
    chat: Any = Joined()
    found.chat = chat
    return found, chat


@pytest.mark.parametrize(("failures", "code"), [(0, 0), (2, 1)])
async def test_every_line_is_done_and_followed_to_its_end(
    tmp_path: Path, handlers: object, failures: int, code: int
) -> None:
    here, chat = plain(tmp_path, io.StringIO("one\ntwo\n"))
    chat.failures = failures

    assert await here.run() == code
    assert chat.done == ["begin", "ready", "one", "two", f"finish {PATIENCE_S}", "end"]


async def test_a_signal_ends_it_with_what_was_typed_before_done(
    tmp_path: Path, handlers: dict[int, Callable[[], None]], silent: TextIO
) -> None:
    here, chat = plain(tmp_path, silent)
    running = asyncio.ensure_future(here.run())
    await wait_until(lambda: "ready" in chat.done)
    assert set(handlers) == {signal.SIGTERM, signal.SIGHUP}
    handlers[signal.SIGHUP]()
    await running

    assert chat.done == ["begin", "ready", f"finish {PATIENCE_S}", "end"]


async def test_a_room_that_is_lost_ends_it_with_the_reason(
    tmp_path: Path, handlers: object, silent: TextIO
) -> None:
    here, chat = plain(tmp_path, silent)
    chat.problem = Unreachable("away")
    running = asyncio.ensure_future(here.run())
    await wait_until(lambda: "ready" in chat.done)
    chat.over.set()
    with pytest.raises(Unreachable, match="away"):
        await running

    assert chat.done[-1] == "end"


def test_what_becomes_of_messages_is_waited_for_a_moment() -> None:
    assert PATIENCE_S == 1.5
