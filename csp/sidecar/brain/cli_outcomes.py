"""Applies what the CLI says of itself: prompts it has, turns, replies, questions, limits."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from csp.protocol.enums import Ending
from csp.sidecar.brain.limit_reset import until_time
from csp.sidecar.brain.state_reporter import StateReporter
from csp.sidecar.capture.follower import Follower
from csp.sidecar.capture.reply_poster import ReplyPoster
from csp.sidecar.inject.injector import Injector
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.state.cli_state import CliState
from csp.terminal.prompt import tag_at_end, tag_in
from csp.terminal.reply_tracker import (
    Asked,
    Attached,
    Bypassed,
    CapturedActivity,
    CapturedReply,
    Confirmed,
    Ended,
    Item,
    Outcome,
    Returned,
    Started,
    Switched,
    TurnState,
)

#: A person may stop an answer without a word of it in any record; the screen has to say so for this long.
STOPPED_S: Final = 1.5


class CliOutcomes:
    """Follows the CLI's record, and ends turns of which the record says nothing."""

    def __init__(
        self,
        cli: CliState,
        follower: Follower | None,
        progress: MessageProgress,
        injector: Injector,
        poster: ReplyPoster,
        reporter: StateReporter,
        on_applied: Callable[[], None],
        session: str,
    ) -> None:
        self._cli, self._follower = cli, follower
        self._progress, self._injector = progress, injector
        self._poster, self._reporter = poster, reporter
        self._on_applied = on_applied
        #: The session that the CLI is in.
        self.session = session
        #: Whether hooks cannot be written, so that they may miss the end of a turn.
        self.is_disk_full = False

    async def follow(self) -> None:
        """Apply what the CLI writes down of itself, if it does, until cancelled."""
        if self._follower is None:
            await asyncio.get_running_loop().create_future()
            return
        async for outcomes in self._follower.outcomes():
            self.apply(outcomes)

    def look_for_transcripts(self) -> None:
        """Look at once: an Enter may have begun a session."""
        if self._follower:
            self._follower.look()

    def catch_up(self) -> None:
        """Apply all that the CLI has written until now."""
        if self._follower:
            self.apply(self._follower.catch_up())

    def feed(self, items: list[Item]) -> None:
        """Apply what no record says."""
        feed = self._follower.feed if self._follower else self._cli.tracker.feed
        for item in items:
            self.apply(feed(item))

    def apply(self, outcomes: list[Outcome]) -> None:
        """Apply what follows from the CLI's record."""
        for outcome in outcomes:
            self._apply(outcome)
        self._cli.changed()
        self._on_applied()

    def _apply(self, outcome: Outcome) -> None:
        cli, has_proof = self._cli, self._cli.profile.delivery.proof != "none"
        match outcome:
            case Confirmed(tag=tag) if has_proof:
                self._injector.prove(tag)
            case TurnState(is_open=is_open):
                cli.note_turn(is_open=is_open)
            case Started():
                cli.pane.has_session = True
            case CapturedActivity():
                self._poster.post(outcome)
            case CapturedReply():
                self._note_reply(outcome)
                self._poster.post(outcome)
            case Asked():
                self._reporter.asked = outcome
                cli.pane.note_asked()
            case Returned():
                cli.pane.note_answered()
            case Switched(session=session):
                self.session = session
            case Attached() | Bypassed():
                self._reporter.warn(outcome)

    def _note_reply(self, reply: CapturedReply) -> None:
        self._cli.pane.note_answered()
        if reply.how is Ending.LIMITED:
            until = until_time(reply.until or "", time.time())
            self._reporter.limit = (reply.reason or reply.text, until)
        elif reply.how is Ending.DONE:
            self._reporter.limit = None

    async def watch_for_stops(self) -> None:
        """End a turn that was stopped before any record of it: by the screen, once it is at rest for long."""
        while True:
            await self._cli.wait(time.monotonic() + 0.5 if self._cli.tracker.is_open else None)
            if self._cli.was_stopped(STOPPED_S):
                self.feed([Ended(how=Ending.INTERRUPTED)])
                self._cli.is_end_known = False
                self._clear_returned_prompt()
            elif self.is_disk_full and self._cli.has_rested(STOPPED_S):
                # The hook that reports the end could not be written.
                self.feed([Ended()])

    def _clear_returned_prompt(self) -> None:
        """Clear the composer of a prompt of ours that the CLI has put back there."""
        composer = self._cli.pane.reading.composer
        tag = tag_in(composer.text) or tag_at_end(composer.text) if composer else None
        keys = self._cli.profile.keys.clear
        if tag is not None and self._progress.is_proven(tag) and keys:
            self._cli.port.write(keys[0].encode())
