"""The brain of a sidecar: it reads the pane, types messages and posts replies.

It may die at any time: the relay then starts a new one with the handover that this one left.
"""

import asyncio
import contextlib
import logging
import socket
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from csp.client import Client, Live
from csp.clis.profile import Profile
from csp.clis.registry import find_adapter
from csp.clis.wiring import unwire
from csp.errors import CspError
from csp.protocol.enums import DeliverKind, DeliveryState, Ending, ReportedState
from csp.protocol.events import DeliveryMoved, Joined, StateChanged
from csp.protocol.responses import Deliver
from csp.sidecar.brain.agent_controls import AgentControls
from csp.sidecar.brain.brain_init import BrainHandover, BrainStart, follower_of, pane_of, stands_in
from csp.sidecar.brain.cli_outcomes import CliOutcomes
from csp.sidecar.brain.health_checks import HealthChecks
from csp.sidecar.brain.reconnect import try_to_save
from csp.sidecar.brain.relay_events import PaneCommands, RelayEvents
from csp.sidecar.brain.screen_stream import ScreenStream
from csp.sidecar.brain.state_reporter import Meter, StateReporter, TurnKeepalive
from csp.sidecar.brain.worktree_watch import WorktreeWatch
from csp.sidecar.brain_socket import RelayPort
from csp.sidecar.capture.reply_poster import ReplyPoster
from csp.sidecar.capture.screen_capture import ScreenCapture
from csp.sidecar.inject.injector import Injector
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.inject.roster_notice import RosterNotice
from csp.sidecar.relay import relay_frames
from csp.sidecar.run_record import SidecarRecord
from csp.sidecar.state.cli_state import CliState
from csp.terminal.prompt_builder import Prompt, tag_of
from csp.terminal.reply_tracker import Ended, Tracker
from csp.terminal.submit_machine import UNKNOWN

log = logging.getLogger(__name__)

GREETING_S: Final = 0.01
HANDOVER_S: Final = 0.1
LAST_WORDS_S: Final = 5.0
INITIAL: Final = Deliver(
    id="", seq=0, kind=DeliverKind.MESSAGE, sender="csp", text="", urgent=False, state=DeliveryState.QUEUED
)
_PENDING: Final = (DeliveryState.QUEUED, DeliveryState.HELD, DeliveryState.TYPED)


async def run_brain(run: SidecarRecord, profile: Profile, link: socket.socket) -> None:
    """Wait for the relay's greeting, connect to the room, then work until the child has ended."""
    early: list[tuple[bytes, bytes]] = []
    greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(kind: bytes, payload: bytes) -> None:
        if brains:
            brains[0].handle_frame(kind, payload)
            return
        early.append((kind, payload))
        if kind == relay_frames.START and not greeted.done():
            greeted.set_result(None)

    brains: list[Brain] = []
    port = RelayPort(link, take)
    await port.open()
    await asyncio.wait((greeted, port.closed), return_when=asyncio.FIRST_COMPLETED)
    async with Client(run.url, run.token) as client:
        if not greeted.done():
            # The relay has gone without a greeting, so there is no CLI to represent.
            await client.close(leave=True)
            return
        # The handover note follows right after the greeting.
        await asyncio.sleep(GREETING_S)
        brains.append(Brain(run, profile, port, client, BrainStart.read(early)))
        for kind, payload in early:
            brains[0].handle_frame(kind, payload)
        await brains[0].run()


class Brain:
    """The composition of all parts between one relay and its room, including the handover."""

    def __init__(
        self, run: SidecarRecord, profile: Profile, port: RelayPort, client: Client, start: BrainStart
    ) -> None:
        note = start.note or BrainHandover()
        self._run, self._client, self._port, self._start = run, client, port, start
        self._pane = pane_of(start, profile, run.env)
        self._follower = follower_of(profile.capture, run, note.follower)
        tracker = self._follower.tracker if self._follower else Tracker()
        cli = self._cli = CliState(profile, self._pane, port, tracker)
        cli.injection_timeout_s = run.injection_timeout_s
        cli.is_paused, cli.is_disk_full = note.is_paused, note.is_disk_full
        progress = self._progress = MessageProgress(note.tags)
        for tag in tracker.confirmed:
            progress.prove(tag)
        self._roster = RosterNotice(run)
        self._injector = Injector(cli, client, progress, self._roster, self._hand_over)
        self._poster = ReplyPoster(client, progress, run.agent, self._on_posted)
        self._reporter = StateReporter(cli, client)
        self._outcomes = CliOutcomes(
            cli,
            self._follower,
            progress,
            self._injector,
            self._poster,
            self._reporter,
            self._hand_over_soon,
            run.session_id,
        )
        self._injector.on_entered = self._outcomes.look_for_transcripts
        self._screen_capture = ScreenCapture(cli, self._outcomes.feed, note.unsettled, note.surround)
        if profile.capture == "screen":
            self._injector.on_submitted = self._await_reply
            self._injector.on_pasting = self._screen_capture.note_paste
            self._injector.on_entered = self._screen_capture.note_enter
        self._controls = AgentControls(
            cli,
            client,
            progress,
            self._injector,
            self._restart_cli,
            self._hand_over,
            lambda: self._reporter.asked_command,
            note.controls,
        )
        self._screen_stream = ScreenStream(cli, client)
        self._pane_commands = PaneCommands(run, port.claim_words)
        self._relay = RelayEvents(
            cli, progress, self._injector, self._pane_commands, self._outcomes.look_for_transcripts
        )
        self._health = HealthChecks(run, cli, client, self._reporter, self._hand_over)
        self._is_begun = note.is_begun
        self._followed = note.follower
        self._unsettled = note.unsettled
        self._handover_timer: asyncio.TimerHandle | None = None
        self._reports: set[asyncio.Task[None]] = set()

    # --- from start to end -----------------------------------------------------------------------

    def handle_frame(self, kind: bytes, payload: bytes) -> None:
        """Handle a frame from the relay."""
        self._relay.handle(kind, payload)

    async def run(self) -> None:
        """Work until the child has ended or the relay has gone."""
        self._pane_commands.claim(is_paused=self._cli.is_paused)
        if self._run.initial_prompt and not self._is_begun:
            self._accept(msgspec.structs.replace(INITIAL, text=self._run.initial_prompt))
        injecting = asyncio.ensure_future(self._injector.run())
        works = (
            self._listen(),
            self._poster.run(),
            self._reporter.run(),
            self._outcomes.follow(),
            self._outcomes.watch_for_stops(),
            self._screen_capture.run(),
            self._screen_stream.run(),
            TurnKeepalive(self._cli, self._client, self._progress).run(),
            Meter(self._cli, self._client, self._progress).run(),
            self._health.check_version(),
            self._health.watch_room(),
            self._health.watch_space(),
            WorktreeWatch(self._run, self._reporter).run(),
        )
        tasks = [injecting, *(asyncio.ensure_future(work) for work in works)]
        try:
            over: set[asyncio.Future[Any]] = {*tasks, self._relay.ended, self._port.closed}
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            # Nothing can be typed into a CLI that has ended.
            injecting.cancel()
            await self._leave()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _leave(self) -> None:
        """Post the last output of a CLI that has ended and the reason why its turn was cut short."""
        self._outcomes.catch_up()
        ended = self._relay.ended
        if ended.done():
            # A CLI that has only lost its pane may still write there; in that case the next launch cleans up.
            try:
                await asyncio.to_thread(unwire, Path(self._run.folder), self._run.pid)
            except OSError as exc:
                log.warning(
                    "files of the run were left for the next launch to clean up", extra={"reason": str(exc)}
                )
        if self._cli.tracker.is_open:
            why = ended.result() if ended.done() else "the pane was closed"
            self._outcomes.feed([Ended(how=Ending.FAILED, text=why)])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                while not self._poster.is_idle:
                    await self._cli.wait(time.monotonic() + 0.1)
        self._hand_over()
        await self._client.close(leave=True)

    async def _restart_cli(self) -> str:
        """Restart the CLI, resuming its conversation if it has one; return the problem, or ""."""
        argv, session = self._run.argv, self._outcomes.session
        if session and self._follower is not None and self._follower.files:
            argv = find_adapter(self._cli.profile.capture).resume(argv, session)
        if self._cli.tracker.is_open:
            self._outcomes.feed([Ended(how=Ending.INTERRUPTED, text="the CLI was restarted")])
        return await self._relay.restart_child(list(argv))

    # --- from the room ---------------------------------------------------------------------------

    async def _listen(self) -> None:
        await self._roster.look()
        async for item in self._client:
            self._roster.note(item)
            match item:
                case Deliver(kind=DeliverKind.CONTROL):
                    self._controls.obey(item)
                case Deliver():
                    self._accept(item)
                case Live():
                    self._screen_stream.note_watchers(item)
                case DeliveryMoved(agent=self._run.agent) if item.state not in _PENDING:
                    self._injector.drop(item.message)
                case StateChanged(sender=self._run.agent) if item.paused is not None:
                    self._cli.is_paused = item.paused
                    self._pane_commands.claim(is_paused=item.paused)
                    self._hand_over()
                    self._cli.changed()
                case Joined(sender=self._run.agent):
                    self._reporter.forget()

    def _accept(self, item: Deliver) -> None:
        """Enqueue a message for typing, unless an earlier brain or sidecar may have typed it."""
        is_begun = item.state is DeliveryState.TYPED
        if self._cli.profile.is_shell and not self._run.allow_shell:
            self._report(item, ReportedState.FAILED, "it is a plain shell, which would execute the message")
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
        """Report the final state of a message that will not be typed."""

        async def report() -> None:
            with contextlib.suppress(CspError):
                await self._client.report(item.id, state, reason)

        task = asyncio.ensure_future(report())
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    # --- the handover ----------------------------------------------------------------------------

    def _await_reply(self, prompt: Prompt) -> None:
        self._screen_capture.begin(prompt)
        # Only the handover records this prompt, so it is written before anything else happens.
        self._hand_over()

    def _on_posted(self) -> None:
        self._cli.changed()
        self._hand_over_soon()

    def _hand_over_soon(self) -> None:
        if self._handover_timer is None:
            self._handover_timer = asyncio.get_running_loop().call_later(HANDOVER_S, self._hand_over)

    def _hand_over(self) -> None:
        """Save this brain's state at the relay for the next brain."""
        if self._handover_timer is not None:
            self._handover_timer.cancel()
            self._handover_timer = None
        # The next brain must find output that the room does not have yet in the CLI's record again.
        is_safe = self._poster.is_idle and self._reporter.is_idle
        if self._follower and is_safe:
            self._followed = self._follower.dump()
            # The next sidecar must check these files before it retypes a message.
            noted = replace(self._run, transcripts=self._follower.files)
            if noted != self._run and try_to_save(noted):
                self._run = noted
        is_settled = self._poster.is_idle
        self._unsettled = self._screen_capture.awaited or (None if is_settled else self._unsettled)
        note = BrainHandover(
            unsettled=self._unsettled,
            surround=self._screen_capture.surround,
            follower=self._followed,
            tags=self._progress.sent,
            typing=self._progress.typing,
            is_disk_full=self._cli.is_disk_full,
            is_paused=self._cli.is_paused,
            is_ready=self._pane.is_ready,
            has_had_composer=self._pane.has_had_composer,
            was_asked=self._pane.was_asked,
            idle_rows=self._pane.idle_rows,
            is_begun=self._is_begun or self._injector.is_begun,
            controls=tuple(self._controls.begun),
            modes=self._pane.modes,
            typed=self._pane.ledger.typed,
        )
        self._port.keep_note(note.dump())
        if self._follower and is_safe:
            self._follower.settle()
