"""Decides which messages of the room are typed into the CLI."""

import asyncio
import contextlib

from csp.client import Client
from csp.errors import CspError
from csp.protocol.enums import DeliveryState, ReportedState
from csp.protocol.responses import Deliver
from csp.sidecar.brain.brain_init import BrainStart, stands_in
from csp.sidecar.inject.injector import Injector
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.run_record import SidecarRecord
from csp.terminal.prompt import tag_of
from csp.terminal.submit_machine import UNKNOWN


class MessageIntake:
    """Hands a message to the injector, or reports at once how it ends."""

    def __init__(
        self,
        run: SidecarRecord,
        start: BrainStart,
        client: Client,
        progress: MessageProgress,
        injector: Injector,
        *,
        is_shell: bool,
    ) -> None:
        self._run, self._start, self._client = run, start, client
        self._progress, self._injector = progress, injector
        self._is_refused = is_shell and not run.allow_shell
        self._reports: set[asyncio.Task[None]] = set()

    def accept(self, item: Deliver) -> None:
        """Have a message typed, unless a brain or a sidecar before this one may have done so."""
        is_begun = item.state is DeliveryState.TYPED
        if self._is_refused:
            self._report(item, ReportedState.FAILED, "it is a plain shell, which would run the message")
        elif not self._start.is_new_cli:
            note = self._start.note
            if is_begun if note is None else note.stands(item.id):
                self._progress.left_standing = item.id
            self._injector.enqueue(item)
        else:
            is_taken = stands_in(self._run.earlier, tag_of(item)) if is_begun else False
            if is_taken is False:
                self._injector.enqueue(item)
            elif is_taken:
                self._report(item, ReportedState.CONFIRMED, "")
            else:
                self._report(item, ReportedState.FAILED, UNKNOWN)

    def _report(self, item: Deliver, state: ReportedState, reason: str) -> None:
        async def report() -> None:
            with contextlib.suppress(CspError):
                await self._client.report(item.id, state, reason)

        task = asyncio.ensure_future(report())
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)
