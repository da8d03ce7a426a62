"""Type the room's messages into the CLI's composer, one at a time."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

from csp.client import Client
from csp.errors import CspError, StorageFull, TooMany, Unreachable
from csp.protocol.enums import DeliveryState, HeldReason, ReportedState
from csp.protocol.responses import Deliver
from csp.sidecar.inject.message_progress import Injection, MessageProgress
from csp.sidecar.inject.roster_notice import RosterNotice
from csp.sidecar.state.cli_state import CliState
from csp.terminal.gates import PaneFacts, closed_gate
from csp.terminal.generic_screen import PasteContext, PastePlace
from csp.terminal.prompt_builder import Prompt, prompt_for
from csp.terminal.submit_machine import (
    ENDED,
    KeyAction,
    PasteObservation,
    ReportState,
    Step,
    SubmitMachine,
    SubmitPhase,
)

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5
RETRY_S: Final = 2.0
#: A placeholder in a profile's clear keys: one backspace for each character of the prompt.
BACKSPACES: Final = "{backspaces}"
GIVEN_UP: Final = "its turn is over"
#: The reason used if the screen of a CLI without a record has shown a busy indicator for too long.
WORKING: Final = (
    "its screen has shown {sign!r} continuously for {minutes:.0f} minutes, so the message was not typed"
)


class Injector:
    """A queue that delivers messages in journal order; an urgent message overtakes those still waiting."""

    def __init__(
        self,
        cli: CliState,
        client: Client,
        progress: MessageProgress,
        roster: RosterNotice,
        hand_over: Callable[[], None],
    ) -> None:
        self._cli = cli
        self._roster = roster
        self._client = client
        self._progress = progress
        self._hand_over = hand_over
        #: Called with each submitted prompt for which there will be no proof.
        self.on_submitted: Callable[[Prompt], None] = lambda _: None
        #: Called before each paste, while the screen still shows its earlier content.
        self.on_pasting: Callable[[], None] = lambda: None
        #: Called after each Enter.
        self.on_entered: Callable[[], None] = lambda: None
        self._queue: dict[str, Deliver] = {}
        self._arrived = asyncio.Event()
        self._late_reports: set[asyncio.Task[None]] = set()
        #: Whether the initial prompt has been typed.
        self.is_begun = False

    def enqueue(self, item: Deliver) -> None:
        """Queue a message, which is typed as soon as the gates are open."""
        self._queue[item.id] = item
        self._arrived.set()
        self._cli.changed()

    def drop(self, message: str) -> None:
        """Remove a message that the room has ended."""
        self._queue.pop(message, None)
        job = self._progress.current
        if job is not None and job.item.id == message:
            job.is_gone = True
            self._cli.changed()

    def give_up(self, turn: str) -> bool:
        """Stop sending the prompt of a turn that is over; return whether it was being typed."""
        job = self._progress.current
        if job is None or not self._progress.is_at(turn):
            return False
        job.typing.give_up(GIVEN_UP)
        self._cli.changed()
        return True

    def prove(self, tag: str) -> None:
        """Record that the CLI has received a prompt; report it if the room has the message as unproven."""
        late = self._progress.prove(tag)
        if late is not None:
            report = asyncio.ensure_future(self._report(late.id, ReportedState.CONFIRMED, ""))
            self._late_reports.add(report)
            report.add_done_callback(self._late_reports.discard)

    def start_over(self) -> None:
        """Retype the message that was in the composer of the ended CLI, unless that CLI had accepted it."""
        job = self._progress.current
        if job is not None and job.typing.has_touched and not self._progress.is_proven(job.prompt.tag):
            may_be_taken = job.typing.may_be_taken
            job.typing = SubmitMachine(rules=job.typing.rules)
            if may_be_taken and not job.typing.rules.proof_s:
                # It is unknown whether the CLI had accepted it; typing it again could deliver it twice.
                job.typing.give_up(ENDED)
            job.written = job.written_at = None
            job.is_refused = False

    async def run(self) -> None:
        """Type queued messages until cancelled."""
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            await self._deliver(self._next())

    def _next(self) -> Deliver:
        return min(self._queue.values(), key=lambda item: (not item.urgent, item.seq))

    async def _deliver(self, item: Deliver) -> None:
        cli = self._cli
        now = time.monotonic()
        delivery = cli.profile.delivery
        here = self._roster.news() if delivery.proof != "none" else ()
        prompt = prompt_for(item, after_at=delivery.neutralise_at, here=here)
        rules = cli.typing_rules(prompt)
        job = Injection(item=item, prompt=prompt, typing=SubmitMachine(rules=rules), begun=now)
        if self._progress.left_standing == item.id:
            job.typing = SubmitMachine.resumed(rules, now)
            job.pasted_at = now
            job.landing = cli.land(prompt, is_resumed=True)
            self._note_written(job, now)
        self._progress.current = job
        try:
            while not job.typing.is_done and not job.is_gone:
                if job.typing.phase is SubmitPhase.WAITING and self._next() is not job.item:
                    # An urgent message overtakes one that is still waiting.
                    self._roster.forget()
                    return
                await self._step(job)
        finally:
            self._progress.current = None
            if job.is_gone:
                self._cli.port.release_keys()
        if not self._progress.is_proven(job.prompt.tag):
            self._roster.forget()
        self._queue.pop(item.id, None)
        self.is_begun = self.is_begun or not item.id

    async def _step(self, job: Injection) -> None:
        now = time.monotonic()
        cli = self._cli
        cli.observe(now)
        facts = cli.snapshot(now)
        is_waived = cli.is_waived(job.begun, now)
        gate = closed_gate(facts, cli.gate_rules, now, is_urgent=job.item.urgent, is_waived=is_waived)
        if job.typing.phase is SubmitPhase.WAITING:
            if gate is None and job.item.urgent and cli.is_working:
                gate = HeldReason.BUSY
                if not job.was_interrupted:
                    job.was_interrupted = True
                    cli.interrupt()
            if gate is HeldReason.BUSY and cli.works_too_long(now):
                sign = next(iter(cli.pane.reading.work), "a busy title")
                minutes = (now - (facts.worked_since or now)) / 60
                job.typing.give_up(WORKING.format(sign=sign, minutes=minutes))
        steps = job.typing.step(self._observation(job, facts, gate, now), now)
        # Set before any handover records its end, so that the next brain does not type it again.
        self.is_begun = self.is_begun or (job.typing.is_done and not job.item.id)
        for step in steps:
            self._do(job, step)
        if job.typing.is_done:
            # The next message is typed only after the room has recorded the end of this one.
            with contextlib.suppress(CspError):
                await asyncio.gather(*job.reports)
            return
        # Also check at intervals, because a gate may open over time in more ways than can be predicted.
        times = (job.typing.wake_at, cli.next_look(now), job.see_at, now + LOOK_S)
        await cli.wait(min(at for at in times if at is not None and at > now))

    def _observation(
        self, job: Injection, facts: PaneFacts, gate: HeldReason | None, now: float
    ) -> PasteObservation:
        """Return the current input of the submit machine."""
        if job.landing is None:
            place = self._cli.place_of(job.prompt, job.pasted_at)
        else:
            known = PasteContext(
                is_entered=job.typing.has_entered,
                is_clearing=job.clears > 0,
                is_late=job.see_at is not None and now >= job.see_at,
            )
            place = self._cli.place_by(job.landing, known, job.pasted_at)
        last_output = self._cli.pane.last_output
        return PasteObservation(
            gate=gate,
            is_announced=job.announced is not None and job.announced.done() and not job.announced.cancelled(),
            written_at=job.written_at,
            is_in_composer=place is PastePlace.HERE,
            is_composer_empty=place is PastePlace.EMPTY,
            has_left=place is PastePlace.GONE,
            is_unseen=job.landing is not None and place is PastePlace.UNSEEN,
            is_accepted=self._cli.pane.reading.is_accepted,
            has_dialog=facts.has_dialog or facts.is_asking,
            is_proven=self._progress.is_proven(job.prompt.tag),
            is_refused=job.is_refused,
            has_reacted=job.written_at is None or (last_output is not None and last_output > job.written_at),
        )

    def _do(self, job: Injection, step: Step) -> None:
        if isinstance(step, KeyAction):
            log.info("keys", extra={"message_id": job.item.id, "action": step.name.lower()})
        match step:
            case ReportState(state=state, reason=reason):
                report = asyncio.ensure_future(self._report(job.item.id, ReportedState(state), reason, job))
                job.reports.append(report)
                if state is DeliveryState.TYPED:
                    job.announced = report
                if state is DeliveryState.SUBMITTED:
                    self._progress.note_submitted(job.prompt.tag)
                    self.on_submitted(job.prompt)
                log.info(
                    "delivery state changed",
                    extra={"message_id": job.item.id, "state": state, "why": reason},
                )
            case KeyAction.PASTE:
                self._paste(job)
            case KeyAction.ENTER:
                self._press(job, self._cli.profile.keys.submit)
                self.on_entered()
            case KeyAction.CLEAR if keys := self._cli.profile.keys.clear:
                # If there are several, use a different one each time: a key that failed once will fail again.
                chosen = keys[job.clears % len(keys)]
                self._press(job, chosen.replace(BACKSPACES, "\x7f" * len(job.prompt.text)))
                job.clears += 1
            case KeyAction.RELEASE:
                self._cli.port.release_keys()

    def _paste(self, job: Injection) -> None:
        cli = self._cli
        self._progress.remember(job.item)
        job.pasted_at = time.monotonic()
        self._progress.note_pasted(job.prompt, job.pasted_at)
        cli.disregard_work()
        cli.pane.was_asked = True
        job.landing, job.see_at = cli.land(job.prompt), None
        self.on_pasting()
        # Save the handover before the paste, so that it tells the next brain what may be in the composer.
        self._hand_over()
        cli.port.hold_keys()
        keys = job.prompt.keys(is_pasted=cli.pane.screen.bracketed_paste)
        self._await_written(job, cli.port.write_unless(cli.pane.keys_seen, keys))

    def _press(self, job: Injection, keys: str) -> None:
        self._await_written(job, self._cli.port.write(keys.encode()))

    def _await_written(self, job: Injection, written: "asyncio.Future[bool]") -> None:
        job.written, job.written_at, job.is_refused = written, None, False

        def note(done: "asyncio.Future[bool]") -> None:
            if done is not job.written or done.cancelled():
                return
            if done.result():
                self._note_written(job, time.monotonic())
            else:
                job.is_refused = True
            self._cli.changed()

        written.add_done_callback(note)

    def _note_written(self, job: Injection, at: float) -> None:
        """Record when the CLI read our keys; a paste must appear on its screen some time after that."""
        job.written_at = at
        if job.landing is not None and job.see_at is None and not job.typing.has_entered:
            job.see_at = at + self._cli.profile.delivery.shown_s

    async def _report(
        self, message: str, state: ReportedState, reason: str, job: Injection | None = None
    ) -> None:
        """Report a delivery state until the room has stored it; if the room refuses it, end the injection."""
        # The initial prompt is not a message from the room.
        is_reported = not message
        try:
            while not is_reported:
                try:
                    await self._client.report(message, state, reason)
                    is_reported = True
                except (StorageFull, TooMany) as error:
                    log.warning("report was not stored", extra={"message_id": message, "why": error.message})
                    await asyncio.sleep(RETRY_S)
        except Unreachable:
            raise
        except CspError as error:
            # The room has ended the message in the meantime.
            log.warning("report was refused", extra={"message_id": message, "why": error.message})
            if job is not None and state is not ReportedState.HELD:
                job.is_gone = not job.typing.is_done
        finally:
            self._cli.changed()
