"""Apply the outcomes found in the CLI's record: accepted prompts, turns, replies, questions and limits."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from csp.protocol.enums import Ending
from csp.sidecar.brain.state_reporter import StateReporter
from csp.sidecar.capture.follower import Follower
from csp.sidecar.capture.reply_poster import ReplyPoster
from csp.sidecar.inject.injector import Injector
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.state.cli_state import CliState
from csp.terminal import reply_tracker as tracker
from csp.terminal.returned_prompt import PastedPrompt, returned_tag

#: A person may stop an answer without a trace in any record; the screen must then be idle for this long.
STOPPED_S: Final = 1.5
#: How long after that the CLI may take to put the prompt back into its composer.
RETURNED_S: Final = 10.0
LOOK_S: Final = 0.5


class CliOutcomes:
    """A follower of the CLI's record, which also ends turns whose end is not recorded."""

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
        #: The current session of the CLI.
        self.session = session
        #: The prompts of a turn that was just stopped, and until when the CLI may put one of them back.
        self._stopped: tuple[list[PastedPrompt], float] | None = None

    async def follow(self) -> None:
        """Apply the CLI's record, if there is one, as it is written, until cancelled."""
        if self._follower is None:
            await asyncio.get_running_loop().create_future()
            return
        async for outcomes in self._follower.outcomes():
            self.apply(outcomes)

    def look_for_transcripts(self) -> None:
        """Look for transcripts now, because an Enter may have started a session."""
        if self._follower:
            self._follower.look()

    def catch_up(self) -> None:
        """Apply everything that the CLI has written so far."""
        if self._follower:
            self.apply(self._follower.catch_up())

    def feed(self, items: list[tracker.Item]) -> None:
        """Apply items that are missing from the record."""
        feed = self._follower.feed if self._follower else self._cli.tracker.feed
        for item in items:
            self.apply(feed(item))

    def apply(self, outcomes: list[tracker.Outcome]) -> None:
        """Apply outcomes of the CLI's record."""
        for outcome in outcomes:
            self._apply(outcome)
        self._cli.changed()
        self._on_applied()

    def _apply(self, outcome: tracker.Outcome) -> None:
        cli, reporter = self._cli, self._reporter
        match outcome:
            case tracker.Confirmed() if cli.profile.delivery.proof != "none":
                self._injector.prove(outcome.tag)
            case tracker.TurnState():
                cli.note_turn(is_open=outcome.is_open)
            case tracker.Started():
                cli.pane.has_session = True
            case tracker.CapturedActivity():
                reporter.note_tool(outcome)
                self._poster.post(outcome)
            case tracker.CapturedReply():
                cli.pane.note_answered()
                reporter.note_reply(outcome)
                self._poster.post(outcome)
            case tracker.Asked():
                reporter.note_asked(outcome)
                cli.pane.note_asked()
            case tracker.Returned():
                cli.pane.note_answered()
                reporter.note_returned(outcome)
            case tracker.Switched():
                self.session = outcome.session
            case tracker.Attached() | tracker.Bypassed():
                reporter.warn(outcome)

    async def watch_for_stops(self) -> None:
        """End turns that were stopped without a record, once the screen has been idle for long enough."""
        cli, progress = self._cli, self._progress
        while True:
            is_looking = cli.tracker.is_open or self._stopped is not None
            await cli.wait(time.monotonic() + LOOK_S if is_looking else None)
            if cli.was_stopped(STOPPED_S):
                pasted = [progress.pasted[tag] for tag in cli.tracker.tags if tag in progress.pasted]
                self._stopped = pasted, time.monotonic() + RETURNED_S
                self.feed([tracker.Ended(how=Ending.INTERRUPTED)])
                cli.is_end_known = False
            elif self._is_end_missing() and cli.has_rested(STOPPED_S):
                self.catch_up()
                if cli.tracker.is_open:
                    self.feed([tracker.Ended()])
            if self._stopped is not None:
                self._clear_returned(*self._stopped)

    def _is_end_missing(self) -> bool:
        """Return whether the end of a turn is not reported, because hooks do not run or cannot write."""
        return self._cli.is_disk_full or (self._follower is not None and self._follower.lacks_ends)

    def _clear_returned(self, pasted: list[PastedPrompt], until: float) -> None:
        """Clear the composer if the CLI has put a prompt of the stopped turn back into it."""
        cli, composer = self._cli, self._cli.pane.reading.composer
        if cli.tracker.is_open or self._progress.is_touching or time.monotonic() >= until:
            self._stopped = None
            return
        if composer is None or composer.is_empty:
            return
        marker, ledger = cli.profile.rules.composer.paste_marker, cli.pane.ledger
        tag = returned_tag(composer.text, marker, pasted, ledger, stopped_at=cli.stopped_at)
        keys = cli.profile.keys.clear
        if tag is not None and self._progress.is_proven(tag) and keys:
            # Pressed once: a second one could end the CLI. A key of the person on its way comes first.
            cli.port.write_unless(cli.pane.keys_seen, keys[0].encode())
            self._stopped = None
