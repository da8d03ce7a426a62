"""The pane is shown to those who watch it, not too often, whole at first."""

import asyncio
import time
from typing import Any

import msgspec

from csp.client import Live
from csp.protocol.screen_frames import RunView, ScreenView, StyleView
from csp.sidecar.brain.screen_stream import ScreenStream, screen_view
from csp.terminal.screen import Screen, ScreenRow
from tests.sidecar.test_cli_state import sight
from tests.sidecar.virtual import on_virtual_time


class Room:
    """Takes the screens, with their times."""

    def __init__(self) -> None:
        self.shown: list[tuple[float, str]] = []

    async def show(self, *, screen: ScreenView) -> None:
        self.shown.append((time.monotonic(), "".join(run.text for run in screen.rows[0])))

    def texts(self) -> list[str]:
        return [text for _, text in self.shown]


def watch(is_watched: bool | None) -> Live:
    return Live(data=msgspec.Raw(msgspec.json.encode({"watch": is_watched})))


@on_virtual_time
async def test_a_screen_is_shown_whole_then_when_it_changes_while_somebody_watches() -> None:
    async with sight() as seen:
        room: Any = Room()
        shower = ScreenStream(seen, room)
        task = asyncio.ensure_future(shower.run())
        seen.pane.feed(b"one")
        await asyncio.sleep(5)
        assert room.shown == []
        shower.note_watchers(watch(True))
        await asyncio.sleep(5)
        assert room.texts() == ["one"]
        shower.note_watchers(Live(data=msgspec.Raw(b'{"watch": "nonsense"}')))
        shower.note_watchers(watch(None))
        for text in (b" two", b" three"):
            seen.pane.feed(text)
            seen.changed()
            await asyncio.sleep(0.01)
        await asyncio.sleep(5)
        assert room.texts() == ["one", "one two", "one two three"]
        assert room.shown[2][0] - room.shown[1][0] >= 0.1
        assert room.shown[2][0] - room.shown[1][0] < 0.2
        shower.note_watchers(watch(True))
        await asyncio.sleep(5)
        assert room.texts()[3:] == ["one two three"], "somebody else has come to watch"
        shower.note_watchers(watch(False))
        seen.pane.feed(b" four")
        seen.changed()
        await asyncio.sleep(5)
        task.cancel()

        assert len(room.shown) == 4


def test_a_screen_travels_with_all_that_it_shows() -> None:
    style = StyleView(fg="1", bg="#020304", bold=True, faint=True, italic=True, underline=True, reverse=True)
    row = ScreenRow((RunView("styled", style), RunView("plain")))
    screen = Screen(rows=(row,), cols=80, cursor_row=3, cursor_col=4, title="t" * 2000, alternate=True)
    view = screen_view(screen)
    styled = msgspec.structs.asdict(style)

    assert view == ScreenView(
        rows=((RunView("styled", StyleView(**styled)), RunView("plain")),),
        cols=80,
        cursor=(3, 4),
        title="t" * 1000,
        alternate=True,
    )
    assert screen_view(Screen(rows=(), cols=80, cursor_visible=False)).cursor is None
