"""Reports progress in a turn to the room: that the CLI works, and what that has used so far."""

import asyncio
import logging
import time
from typing import Final

from csp.client import Client
from csp.errors import CspError, Unreachable
from csp.protocol.requests import Usage
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.state.cli_state import CliState

log = logging.getLogger(__name__)

PERIOD_S: Final = 5.0
#: How often the tokens of a turn are told, at most.
METER_S: Final = 1.0


class TurnKeepalive:
    """Extends the turn while a tool runs or text comes; a model that is silent gets no more time."""

    def __init__(self, cli: CliState, client: Client, progress: MessageProgress) -> None:
        self._cli = cli
        self._client = client
        self._progress = progress
        self._looked_at = time.monotonic()

    async def run(self) -> None:
        """Report work on a turn of the room, until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            if self.check_progress() and self._is_in_turn:
                await self._report()

    def check_progress(self) -> bool:
        """Tell whether there was work since the last check; a CLI that waits for a person does not work."""
        since, self._looked_at = self._looked_at, time.monotonic()
        self._cli.observe(self._looked_at)
        facts = self._cli.snapshot(self._looked_at)
        if facts.has_dialog or facts.is_asking:
            return False
        # On the screen of a CLI that nobody knows, new text may be a mere sign of work.
        said_at, is_known = self._cli.pane.said_at, self._cli.profile.delivery.proof != "none"
        was_written = is_known and said_at is not None and said_at > since
        return self._cli.tracker.runs_tool or was_written

    @property
    def _is_in_turn(self) -> bool:
        asked = [self._progress.find(tag) for tag in self._cli.tracker.tags]
        return any(one is not None and one.turn is not None for one in asked)

    async def _report(self) -> None:
        try:
            await self._client.working()
        except Unreachable:
            raise
        except CspError as error:
            log.warning("room gave no more time", extra={"why": error.message})


class Meter:
    """Reports what a turn has used so far, as the CLI's own record grows."""

    def __init__(self, cli: CliState, client: Client, progress: MessageProgress) -> None:
        self._cli = cli
        self._client = client
        self._progress = progress
        self._reported: tuple[str, Usage] | None = None

    async def run(self) -> None:
        """Report each change, until cancelled."""
        while True:
            news = self.news()
            if news is not None:
                await self._report(*news)
            await asyncio.sleep(METER_S)

    def news(self) -> tuple[str, Usage] | None:
        """Return the turn of the room that is under way with what it has used, if that has changed."""
        usage, tags = self._cli.tracker.usage, self._cli.tracker.tags
        asked = self._progress.find(tags[-1]) if tags else None
        if usage is None or asked is None or asked.turn is None or (asked.turn, usage) == self._reported:
            return None
        return asked.turn, usage

    async def _report(self, turn: str, usage: Usage) -> None:
        self._reported = turn, usage
        try:
            await self._client.working(turn=turn, usage=usage)
        except Unreachable:
            raise
        except CspError as error:
            log.warning("room did not count what was used", extra={"why": error.message})
