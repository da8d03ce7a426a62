"""Stream the pane's screen to the room while somebody is watching it."""

import asyncio
import logging
import time
from typing import Final

from csp.client import Client, Live
from csp.errors import BadInput
from csp.protocol.codec import parse
from csp.protocol.screen_frames import LiveView, ScreenView
from csp.sidecar.state.cli_state import CliState
from csp.terminal.screen import Screen

log = logging.getLogger(__name__)

#: The minimum time between two screens.
PERIOD_S: Final = 0.1


class ScreenStream:
    """A sender of the screen, which sends every change while somebody is watching."""

    def __init__(self, cli: CliState, client: Client) -> None:
        self._cli = cli
        self._client = client
        self._is_watched = False
        self._shown = -1
        self._wanted = asyncio.Event()

    def note_watchers(self, live: Live) -> None:
        """Record whether anybody is watching, as reported by the room."""
        try:
            view = parse(LiveView, bytes(live.data))
        except BadInput:
            return
        if view.watch is not None:
            self._is_watched = view.watch
            # Send the screen again, because a new watcher has not seen it.
            self._shown = -1
            self._wanted.set() if view.watch else self._wanted.clear()

    async def run(self) -> None:
        """Send changed screens until cancelled."""
        while True:
            await self._wanted.wait()
            if self._cli.pane.generation == self._shown:
                await self._cli.wait(time.monotonic() + 1.0)
                continue
            self._shown = self._cli.pane.generation
            await self._client.show(screen=screen_view(self._cli.pane.screen))
            await asyncio.sleep(PERIOD_S)


def screen_view(screen: Screen) -> ScreenView:
    """Return a screen in its wire format."""
    cursor = (screen.cursor_row, screen.cursor_col) if screen.cursor_visible else None
    return ScreenView(
        rows=tuple(row.runs for row in screen.rows),
        cols=screen.cols,
        cursor=cursor,
        title=screen.title[:1000],
        alternate=screen.alternate,
    )
