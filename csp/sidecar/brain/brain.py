"""The brain of a sidecar: reads the pane, types messages in, brings replies out.

It may die at any time: the relay starts another one, with the note that this one left.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from csp.client import Client, Live
from csp.clis.profile import Profile
from csp.clis.registry import find_adapter
from csp.clis.version_check import ask_version, untested
from csp.clis.wiring import unwire
from csp.errors import CspError, Unreachable
from csp.protocol.enums import DeliverKind, DeliveryState, Ending, NoticeKind, ReportedState
from csp.protocol.events import AnyEvent, DeliveryMoved, Joined, StateChanged
from csp.protocol.responses import Deliver
from csp.sidecar.brain.agent_controls import AgentControls
from csp.sidecar.brain.brain_handover import BrainHandover
from csp.sidecar.brain.brain_init import BrainStart, follower_of, pane_of, stands_in
from csp.sidecar.brain.disk_space import is_full
from csp.sidecar.brain.limit_reset import until_time
from csp.sidecar.brain.pane_commands import PaneCommands
from csp.sidecar.brain.reconnect import has_moved, try_to_save
from csp.sidecar.brain.screen_stream import ScreenStream
from csp.sidecar.brain.state_reporter import StateReporter
from csp.sidecar.brain.turn_keepalive import Meter, TurnKeepalive
from csp.sidecar.brain_socket import RelayPort
from csp.sidecar.capture.reply_poster import ReplyPoster
from csp.sidecar.capture.screen_capture import ScreenCapture
from csp.sidecar.inject.injector import Injector
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.inject.roster_notice import RosterNotice
from csp.sidecar.relay import relay_frames
from csp.sidecar.run_record import SidecarRecord
from csp.sidecar.state.cli_state import CliState
from csp.terminal.prompt import Prompt, tag_at_end, tag_in, tag_of
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
    Tracker,
    TurnState,
)
from csp.terminal.screen import FRAME_S, Frames
from csp.terminal.submit_machine import UNKNOWN

log = logging.getLogger(__name__)

NOTE_S: Final = 0.1
#: A person may stop an answer without a word of it in any record; the screen has to say so for this long.
STOPPED_S: Final = 1.5
LAST_WORDS_S: Final = 5.0
RESTARTED_S: Final = 15.0
MOVED_S: Final = 3.0
SPACE_S: Final = 3.0
#: Asking a CLI for its version must not slow its start.
VERSION_S: Final = 5.0
INITIAL: Final = Deliver(
    id="", seq=0, kind=DeliverKind.MESSAGE, sender="csp", text="", urgent=False, state=DeliveryState.QUEUED
)


class Brain:
    """Everything between one relay and its room."""

    def __init__(
        self, run: SidecarRecord, profile: Profile, port: RelayPort, client: Client, start: BrainStart
    ) -> None:
        note = start.note or BrainHandover()
        self._run = run
        self._client = client
        self._start = start
        self._port = port
        self._pane = pane_of(start, profile, run.env)
        self._follower = follower_of(profile.capture, run, note.follower)
        self._tracker = self._follower.tracker if self._follower else Tracker()
        self._sight = CliState(profile, self._pane, port, self._tracker)
        self._sight.injection_timeout_s = run.injection_timeout_s
        self._sight.is_paused = note.is_paused
        self._progress = MessageProgress(note.tags)
        for tag in self._tracker.confirmed:
            self._progress.prove(tag)
        self._followed = note.follower
        self._is_begun = note.is_begun
        #: Whether a person has been told that the disk is full.
        self._is_disk_full = note.is_disk_full
        self._session = run.session_id
        self._settling: set[asyncio.Task[None]] = set()
        self._restarted: asyncio.Future[str] | None = None
        self._note_timer: asyncio.TimerHandle | None = None
        self._drawing = Frames()
        self._draw_timer: asyncio.TimerHandle | None = None
        self._company = RosterNotice(run)
        self._typist = Injector(self._sight, client, self._progress, self._company, self._leave_note)
        self._typist.on_entered = self._look_for_transcripts
        self._poster = ReplyPoster(client, self._progress, run.agent, self._on_posted)
        self._reporter = StateReporter(self._sight, client)
        self._shower = ScreenStream(self._sight, client)
        self._controls = AgentControls(
            self._sight,
            client,
            self._progress,
            self._typist,
            self._restart_cli,
            self._leave_note,
            note.controls,
        )
        self._settler = ScreenCapture(self._sight, self._take_items, note.unsettled, note.surround)
        self._unsettled = note.unsettled
        if profile.capture == "screen":
            self._typist.on_submitted = self._begin_settling
            self._typist.on_pasting = self._settler.note_paste
        self._own_words = PaneCommands(run, port.claim_words)
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._takers: dict[bytes, Callable[[bytes], None]] = {
            relay_frames.OUTPUT: self._take_output,
            relay_frames.GAP: lambda lost: self._pane.forget_screen(int.from_bytes(lost, "big")),
            relay_frames.KEYS: self._take_keys,
            relay_frames.SIZE: lambda size: self._pane.resize(*struct.unpack("!HH", size)),
            relay_frames.PHASE: self._take_phase,
            relay_frames.ENDED: self._take_end,
            relay_frames.WORD: self._own_words.take,
        }

    # --- from start to end -----------------------------------------------------------------------

    async def run(self) -> None:
        """Work until the child has ended or the relay has gone."""
        self._own_words.claim(is_paused=self._sight.is_paused)
        if self._run.initial_prompt and not self._is_begun:
            self._take_deliver(msgspec.structs.replace(INITIAL, text=self._run.initial_prompt))
        works = (
            self._listen(),
            self._typist.run(),
            self._poster.run(),
            self._reporter.run(),
            self._follow(),
            self._settler.run(),
            self._watch_for_stops(),
            self._shower.run(),
            TurnKeepalive(self._sight, self._client, self._progress).run(),
            Meter(self._sight, self._client, self._progress).run(),
            self._check_version(),
            self._watch_room(),
            self._watch_space(),
        )
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            over: set[asyncio.Future[Any]] = {*tasks, self._ended, self._port.closed}
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            # Nothing more goes to a CLI that has gone.
            tasks[1].cancel()
            await self._leave()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _leave(self) -> None:
        """Say the last words for a CLI that has ended: what it wrote, why its turn broke off."""
        if self._follower:
            self._take_outcomes(self._follower.catch_up())
        if self._ended.done():
            # A CLI that has only lost its pane may still write there; the next launch sees to that.
            await asyncio.to_thread(self._unwire)
        if self._tracker.is_open:
            why = self._ended.result() if self._ended.done() else "the pane was closed"
            self._take_items([Ended(how=Ending.FAILED, text=why)])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                while not self._poster.is_idle:
                    await self._sight.wait(time.monotonic() + 0.1)
        self._leave_note()
        await self._client.close(leave=True)

    def _unwire(self) -> None:
        try:
            unwire(Path(self._run.folder), self._run.pid)
        except OSError as exc:
            log.warning("files of the run were left to the next one", extra={"reason": str(exc)})

    # --- from the relay --------------------------------------------------------------------------

    def take_frame(self, kind: bytes, payload: bytes) -> None:
        """Take in what the relay tells."""
        taker = self._takers.get(kind)
        if taker is not None:
            if kind not in (relay_frames.OUTPUT, relay_frames.KEYS):
                self._draw(self._drawing.release())
            taker(payload)
            is_awaited = kind != relay_frames.OUTPUT or self._progress.is_touching
            self._sight.changed() if is_awaited else self._sight.drawn()

    def _take_output(self, data: bytes) -> None:
        self._draw(self._drawing.take(data, time.monotonic()))
        if self._drawing.due is not None and self._draw_timer is None:
            self._draw_timer = asyncio.get_running_loop().call_later(FRAME_S, self._draw_late)

    def _draw(self, data: bytes) -> None:
        if data:
            self._pane.take_output(data)

    def _draw_late(self) -> None:
        """Show a frame that the program does not end."""
        self._draw_timer, due = None, self._drawing.due
        if due is None:
            return
        left_s = due - time.monotonic()
        if left_s > 0:
            self._draw_timer = asyncio.get_running_loop().call_later(left_s, self._draw_late)
        else:
            self._draw(self._drawing.release())
            self._sight.changed()

    def _take_keys(self, keys: bytes) -> None:
        self._pane.take_keys(keys)
        if b"\r" in keys:
            self._look_for_transcripts()

    def _look_for_transcripts(self) -> None:
        """Look at once: an Enter may have begun a session."""
        if self._follower:
            self._follower.look()

    def _take_phase(self, phase: bytes) -> None:
        if phase in (relay_frames.STOPPED, relay_frames.CONTINUED, relay_frames.KEPT):
            self._pane.is_stopped = phase == relay_frames.STOPPED
        elif phase == relay_frames.RESTARTED:
            self._pane.begin_again()
            self._sight.is_end_known = False
            self._typist.start_over()
            self._note_restart("")
        elif phase.startswith(relay_frames.NOT_RESTARTED):
            self._note_restart(phase.removeprefix(relay_frames.NOT_RESTARTED).decode(errors="replace"))
        log.info("child changed", extra={"phase": phase.decode(errors="replace")})

    def _note_restart(self, problem: str) -> None:
        if self._restarted is not None and not self._restarted.done():
            self._restarted.set_result(problem)

    def _take_end(self, payload: bytes) -> None:
        end = json.loads(payload)
        why = f"killed by signal {end['signal']}" if "signal" in end else f"with code {end.get('code')}"
        if not self._ended.done():
            self._ended.set_result(f"the CLI ended, {why}")

    # --- from the room ---------------------------------------------------------------------------

    async def _listen(self) -> None:
        await self._company.look()
        async for item in self._client:
            match item:
                case Deliver(kind=DeliverKind.CONTROL):
                    self._controls.take(item)
                case Deliver():
                    self._take_deliver(item)
                case Live():
                    self._shower.take(item)
                case _:
                    self._take_event(item)

    def _take_deliver(self, item: Deliver) -> None:
        if self._sight.profile.is_shell and not self._run.allow_shell:
            self._report(item, ReportedState.FAILED, "it is a plain shell, which would run the message")
        elif self._may_type(item):
            self._typist.take(item)

    def _may_type(self, item: Deliver) -> bool:
        """Tell whether a message is ours to type; one that somebody before us had begun may stand there."""
        note, is_begun = self._start.note, item.state is DeliveryState.TYPED
        if not self._start.is_new_cli:
            is_unknown = note is None and is_begun
            if is_unknown or (note is not None and note.stands(item.id)):
                self._progress.left_standing = item.id
            return True
        known = stands_in(self._run.earlier, tag_of(item)) if is_begun else False
        if known is False:
            return True
        self._report(
            item, ReportedState.CONFIRMED if known else ReportedState.FAILED, "" if known else UNKNOWN
        )
        return False

    def _report(self, item: Deliver, state: ReportedState, reason: str) -> None:
        task = asyncio.ensure_future(self._settle(item, state, reason))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, item: Deliver, state: ReportedState, reason: str) -> None:
        with contextlib.suppress(CspError):
            await self._client.report(item.id, state, reason)

    def _take_event(self, event: AnyEvent) -> None:
        self._company.note(event)
        match event:
            case DeliveryMoved(agent=self._run.agent) if event.state not in (
                DeliveryState.QUEUED,
                DeliveryState.HELD,
                DeliveryState.TYPED,
            ):
                self._typist.drop(event.message)
            case StateChanged(sender=self._run.agent) if event.paused is not None:
                self._sight.is_paused = event.paused
                self._own_words.claim(is_paused=event.paused)
                self._leave_note()
                self._sight.changed()
            case Joined(sender=self._run.agent):
                self._reporter.forget()

    # --- from the CLI ----------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Take what the CLI writes down of itself, where it does."""
        if self._follower is None:
            await asyncio.get_running_loop().create_future()
            return
        async for outcomes in self._follower.outcomes():
            self._take_outcomes(outcomes)

    def _take_items(self, items: list[Item]) -> None:
        """Take what no record says."""
        tell = self._follower.tell if self._follower else self._tracker.feed
        for item in items:
            self._take_outcomes(tell(item))

    def _take_outcomes(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self._take_outcome(outcome)
        self._sight.changed()
        self._leave_note_soon()

    def _take_outcome(self, outcome: Outcome) -> None:
        match outcome:
            case Confirmed(tag=tag) if self._sight.profile.delivery.proof != "none":
                self._typist.prove(tag)
            case TurnState(is_open=is_open):
                self._note_turn(is_open=is_open)
            case Started():
                self._pane.has_session = True
            case CapturedActivity() | CapturedReply():
                if isinstance(outcome, CapturedReply):
                    self._note_reply(outcome)
                self._poster.post(outcome)
            case Asked():
                self._reporter.asked = outcome
                self._pane.note_asked()
            case Returned():
                self._pane.note_answered()
            case Switched(session=session):
                self._session = session
            case Attached() | Bypassed():
                self._reporter.take(outcome)

    def _note_turn(self, *, is_open: bool) -> None:
        self._sight.is_end_known = not is_open and self._sight.profile.delivery.proof != "none"
        if is_open:
            self._sight.turn_began = time.monotonic()

    def _note_reply(self, reply: CapturedReply) -> None:
        self._pane.note_answered()
        if reply.how is Ending.LIMITED:
            until = until_time(reply.until or "", time.time())
            self._reporter.limit = (reply.reason or reply.text, until)
        elif reply.how is Ending.DONE:
            self._reporter.limit = None

    def _begin_settling(self, prompt: Prompt) -> None:
        self._settler.begin(prompt)
        # Nobody but the note knows of this prompt, so it is left before anything else happens.
        self._leave_note()

    async def _watch_for_stops(self) -> None:
        """End a turn that was stopped before any record of it: by the screen, once it is at rest for long."""
        while True:
            await self._sight.wait(time.monotonic() + 0.5 if self._tracker.is_open else None)
            if self._sight.was_stopped(STOPPED_S):
                self._take_items([Ended(how=Ending.INTERRUPTED)])
                self._sight.is_end_known = False
                self._clear_returned_prompt()
            elif self._is_disk_full and self._sight.has_rested(STOPPED_S):
                # The hook that would have told the end could not be written.
                self._take_items([Ended()])

    def _clear_returned_prompt(self) -> None:
        """Take a prompt of ours out of the composer that the CLI has put back there."""
        composer = self._pane.reading.composer
        tag = tag_in(composer.text) or tag_at_end(composer.text) if composer else None
        keys = self._sight.profile.keys.clear
        if tag is not None and self._progress.is_proven(tag) and keys:
            self._port.write(keys[0].encode())

    async def _restart_cli(self) -> str:
        """Start the CLI again, with its conversation where it has one."""
        run, session = self._run, self._session
        is_begun = self._follower is not None and bool(self._follower.files)
        adapter = find_adapter(self._sight.profile.capture)
        argv = adapter.resume(run.argv, session) if session and is_begun else run.argv
        self._restarted = asyncio.get_running_loop().create_future()
        if self._tracker.is_open:
            self._take_items([Ended(how=Ending.INTERRUPTED, text="the CLI was started again")])
        self._pane.is_leaving = True
        self._port.start_again(list(argv))
        try:
            return await asyncio.wait_for(self._restarted, RESTARTED_S)
        except TimeoutError:
            return "the CLI did not end"
        finally:
            self._pane.is_leaving = False

    async def _watch_room(self) -> None:
        """End this brain when the room has moved: the next one will find it at its new address."""
        while True:
            await asyncio.sleep(MOVED_S)
            if not self._client.status.is_connected and has_moved(self._run):
                raise Unreachable("the room has moved to another address")

    async def _watch_space(self) -> None:
        """Tell a person of a full disk, again only after there was space on it."""
        while True:
            if self._is_disk_full != is_full(Path(self._run.folder)):
                self._is_disk_full = not self._is_disk_full
                if self._is_disk_full:
                    self._reporter.notify(NoticeKind.DISK_FULL, self._run.folder)
                self._leave_note()
            await asyncio.sleep(SPACE_S)

    async def _check_version(self) -> None:
        """Warn once about a version that the profile was not tested with, then rest for ever."""
        await asyncio.sleep(VERSION_S)
        profile, run = self._sight.profile, self._run
        version = await asyncio.to_thread(ask_version, profile, run.argv, run.env)
        problem = untested(profile, version)
        mark = (
            Path(run.folder).parent
            / f"{profile.name}-{hashlib.sha256(version.encode()).hexdigest()[:12]}.seen"
        )
        if problem and not mark.exists():
            log.warning("version was not tested", extra={"problem": problem})
            self._reporter.notify(NoticeKind.UNTESTED_VERSION, problem)
            with contextlib.suppress(OSError):
                mark.touch()
        await asyncio.get_running_loop().create_future()

    # --- the note --------------------------------------------------------------------------------

    def _on_posted(self) -> None:
        self._sight.changed()
        self._leave_note_soon()

    def _save_transcripts(self, files: list[str]) -> None:
        """Note what a sidecar after this one has to look into before it types a message again."""
        noted = replace(self._run, transcripts=files)
        if files != self._run.transcripts and try_to_save(noted):
            self._run = noted

    def _leave_note_soon(self) -> None:
        if self._note_timer is None:
            self._note_timer = asyncio.get_running_loop().call_later(NOTE_S, self._leave_note)

    def _leave_note(self) -> None:
        if self._note_timer is not None:
            self._note_timer.cancel()
            self._note_timer = None
        is_safe = self._poster.is_idle and self._reporter.is_idle and self._follower is not None
        if self._follower and is_safe:
            self._followed = self._follower.dump()
            self._save_transcripts(self._follower.files)
        # Until the room has an answer, a brain after this one has to find it again.
        self._unsettled = self._settler.awaited or (None if self._poster.is_idle else self._unsettled)
        note = BrainHandover(
            unsettled=self._unsettled,
            surround=self._settler.surround,
            follower=self._followed,
            tags=self._progress.sent,
            typing=self._progress.typing,
            is_disk_full=self._is_disk_full,
            is_paused=self._sight.is_paused,
            is_ready=self._pane.is_ready,
            has_had_composer=self._pane.has_had_composer,
            was_asked=self._pane.was_asked,
            idle_rows=self._pane.idle_rows,
            is_begun=self._is_begun or self._typist.is_begun,
            controls=tuple(self._controls.begun),
            modes=self._pane.modes,
            typed=self._pane.ledger.typed,
        )
        self._port.keep_note(note.dump())
        if self._follower and is_safe:
            self._follower.settle()
