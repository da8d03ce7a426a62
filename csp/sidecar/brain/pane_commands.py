"""Runs the commands that a person types in the agent's own pane: /share, /noshare, /pause and /resume."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from csp.errors import CspError
from csp.http_client import GatewayClient, segment
from csp.sidecar.brain.reconnect import running_room
from csp.sidecar.run_record import SidecarRecord

log = logging.getLogger(__name__)

_ALWAYS: Final = ("/share", "/noshare", "/pause")
#: Claude Code and Codex have a /resume of their own, so it is ours only where there is a pause to end.
_PAUSED: Final = (*_ALWAYS, "/resume")


class PaneCommands:
    """Tells the relay which words are commands now, and runs them."""

    def __init__(self, run: SidecarRecord, claim: Callable[[tuple[str, ...]], None]) -> None:
        self._run = run
        self._claim = claim
        self._tasks: set[asyncio.Task[None]] = set()

    def claim(self, *, is_paused: bool) -> None:
        self._claim(_PAUSED if is_paused else _ALWAYS)

    def handle(self, word: bytes) -> None:
        """Run a command; the person at the pane is the room's human, whose token lies on this machine."""
        task = asyncio.ensure_future(asyncio.to_thread(self._obey, word.decode().removeprefix("/")))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _obey(self, verb: str) -> None:
        room = running_room(self._run)
        if room is None:
            log.warning("room is not running, so nobody obeyed", extra={"word": verb})
            return
        try:
            GatewayClient(room.url, room.token).post(f"/agents/{segment(self._run.agent)}/{verb}")
        except CspError as error:
            log.warning("room refused", extra={"word": verb, "why": error.message})
