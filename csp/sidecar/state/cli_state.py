"""The state of one CLI: its screen, its transcript, the person's keys, and the prompts sent to it."""

import asyncio
import contextlib
import re
import time
from typing import Final

from msgspec.structs import replace

from csp.clis.profile import Profile
from csp.sidecar.brain_socket import MAX_HOLD_S, RelayPort
from csp.sidecar.state.pane_state import PaneState
from csp.terminal.gates import GateRules, PaneFacts, is_busy, is_waived, next_look, works_too_long
from csp.terminal.generic_screen import PasteContext, PasteLocator, PastePlace
from csp.terminal.prompt_builder import Prompt
from csp.terminal.reply_tracker import Tracker
from csp.terminal.screen import Frame
from csp.terminal.submit_machine import SubmitRules

#: How long a busy CLI may take to report a prompt that a person has sent.
AWAITED_S: Final = 4.0
#: The delay before a new screen is read. Reading takes milliseconds, and the CLI's own report, which
#: arrives with its last output, must not wait for it.
BLINK_S: Final = 0.01
_SPACES: Final = re.compile(r"\s+")


class CliState:
    """The combined state of the pane, the CLI's own record and the connection to the relay.

    `observe` updates the state, and `wait` does so before it returns. All other queries use the last observed
    state and change nothing.
    """

    def __init__(self, profile: Profile, pane: PaneState, port: RelayPort, tracker: Tracker) -> None:
        self.profile = profile
        self.pane = pane
        self.port = port
        self.tracker = tracker
        self.is_paused = False
        #: Whether the disk is full and a person was notified; hooks may then miss the end of a turn.
        self.is_disk_full = False
        #: Whether the CLI itself reported the end of its last turn.
        self.is_end_known = False
        #: The start of the last turn.
        self.turn_began: float | None = None
        self.injection_timeout_s = 10.0
        self.gate_rules = GateRules(
            typing_quiet_s=profile.delivery.typing_quiet_ms / 1000,
            settled_s=profile.delivery.idle_stands_ms / 1000,
            guesses_idle=profile.delivery.proof == "none",
        )
        #: The last time that we pressed the key that stops an answer.
        self.interrupted_at: float | None = None
        self._had_draft = False
        self._emptied_at: float | None = None
        self._change = asyncio.Event()
        self._blink: asyncio.TimerHandle | None = None

    # --- waiting ---------------------------------------------------------------------------------

    def changed(self) -> None:
        """Wake all tasks that wait for a change."""
        if self._blink is not None:
            self._blink.cancel()
            self._blink = None
        self._change.set()
        self._change = asyncio.Event()

    def drawn(self) -> None:
        """Wake all tasks for a new screen, but only once for several screens in quick succession."""
        if self._blink is None:
            self._blink = asyncio.get_running_loop().call_later(BLINK_S, self.changed)

    async def wait(self, until: float | None) -> None:
        """Wait for the next change or until `until`, then observe the pane."""
        change = self._change
        timeout_s = None if until is None else max(0.0, until - time.monotonic())
        # Not wait_for, because in Python 3.11 it loses a cancellation that coincides with the change.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await change.wait()
        self.observe()

    # --- observing -------------------------------------------------------------------------------

    def observe(self, now: float | None = None) -> None:
        """Update the state with everything received until `now`."""
        now = time.monotonic() if now is None else now
        self.pane.observe(now)
        draft = self.pane.draft(now)
        if draft is not False:
            self._emptied_at = None
        elif self._had_draft:
            self._emptied_at = now
        # A composer that is briefly unreadable keeps its last state.
        self._had_draft = self._had_draft if draft is None else draft

    def snapshot(self, now: float) -> PaneFacts:
        """Return the input of the gates, as of the last `observe`."""
        # A person may have queued a prompt, which the CLI starts on its own.
        last_key, began = self.pane.ledger.last_key, self.turn_began
        was_typed_in_turn = last_key is not None and began is not None and last_key >= began
        facts = self.pane.snapshot(
            now,
            is_turn_open=self.tracker.is_open or self._is_turn_awaited(now),
            is_end_known=self.is_end_known and not was_typed_in_turn,
            is_paused=self.is_paused,
        )
        return replace(facts, emptied_at=self._emptied_at)

    def _is_turn_awaited(self, now: float) -> bool:
        """Return whether a person has sent a prompt that the CLI has not reported yet."""
        sent = self.pane.ledger.last_sent
        if sent is None or self.profile.delivery.proof == "none" or now - sent > AWAITED_S:
            return False
        return self.turn_began is None or self.turn_began < sent

    def next_look(self, now: float) -> float | None:
        """Return the next time at which a gate may open without any other change."""
        times = [next_look(self.snapshot(now), self.gate_rules, now)]
        if self._is_turn_awaited(now) and self.pane.ledger.last_sent is not None:
            times.append(self.pane.ledger.last_sent + AWAITED_S)
        return min((at for at in times if at is not None), default=None)

    @property
    def is_busy(self) -> bool:
        now = time.monotonic()
        return is_busy(self.snapshot(now), self.gate_rules, now)

    def is_waived(self, since: float, now: float) -> bool:
        """Return whether a message has waited so long since `since` that apparent work no longer holds it."""
        return is_waived(self.snapshot(now), now, waited_s=now - since, timeout_s=self.injection_timeout_s)

    def disregard_work(self) -> None:
        """Ignore a busy indicator that has been on the screen since before the first prompt."""
        facts = self.snapshot(time.monotonic())
        if facts.is_unasked and facts.worked_since is not None:
            self.pane.disregard_work()

    def works_too_long(self, now: float) -> bool:
        """Return whether apparent work has lasted too long to wait for its end."""
        is_guess = self.gate_rules.guesses_idle
        return is_guess and works_too_long(self.snapshot(now), now, timeout_s=self.injection_timeout_s)

    @property
    def is_working(self) -> bool:
        """Return whether an answer is in progress that could be stopped."""
        return self.tracker.is_open or self.pane.looks_busy

    @property
    def is_at_rest(self) -> bool:
        """Return whether, judging by the screen alone, the turn has ended."""
        now = time.monotonic()
        facts = replace(self.snapshot(now), is_turn_open=False, is_end_known=False)
        return not is_busy(facts, self.gate_rules, now) and not facts.has_dialog

    def place_of(self, prompt: Prompt, pasted_at: float) -> PastePlace:
        """Return whether the composer contains only our prompt, contains something else or cannot be read.

        A long paste appears there as the CLI's marker; the first line of a tall paste may have scrolled away.
        """
        composer = self.pane.reading.composer
        if composer is None:
            return PastePlace.HERE if self.pane.ends_at_cursor(prompt.footer) else PastePlace.UNSEEN
        if composer.is_empty:
            return PastePlace.EMPTY
        marker = self.profile.rules.composer.paste_marker
        if marker is not None and marker.fullmatch(composer.text.strip()):
            # The marker is ours if no key from a person can have reached the composer since our paste.
            last_key, now = self.pane.ledger.last_key, time.monotonic()
            is_ours = last_key is None or last_key < pasted_at or now - pasted_at < MAX_HOLD_S
            return PastePlace.HERE if is_ours else PastePlace.OTHER
        text = _SPACES.sub("", composer.text)
        header = _SPACES.sub("", prompt.header)
        # An earlier brain may have put another notice in the last line.
        body, _, rest = text.rpartition(_SPACES.sub("", prompt.end))
        if not body or rest[:1] not in ("]", ";") or rest.find("]") != len(rest) - 1 or "]" + header in text:
            return PastePlace.OTHER
        is_scrolled = header not in text and composer.first_row != composer.last_row
        return PastePlace.HERE if is_scrolled or text.startswith(header) else PastePlace.OTHER

    def land(self, prompt: Prompt, *, is_resumed: bool = False) -> PasteLocator | None:
        """Return a locator for `prompt`, created when it is pasted; None if rules describe the composer."""
        if self.profile.rules.composer.frame not in (Frame.CURSOR, Frame.NONE):
            return None
        return PasteLocator(prompt.header, prompt.footer, None if is_resumed else self.pane.screen)

    def place_by(self, landing: PasteLocator, known: PasteContext, pasted_at: float) -> PastePlace:
        """Return the location of a prompt that `landing` has followed since its paste at `pasted_at`."""
        last_key = self.pane.ledger.last_key
        has_typed = last_key is not None and last_key > pasted_at
        known = replace(known, has_typed=has_typed, reads_lines=known.is_entered and self.pane.reads_lines())
        place = landing.look(self.pane.screen, known)
        composer = self.pane.reading.composer
        is_empty = composer is not None and composer.is_empty
        if place in (PastePlace.OTHER, PastePlace.UNSEEN) and is_empty and not known.is_entered:
            # The composer was not there yet at the time of the paste, so the paste is lost.
            return PastePlace.EMPTY
        return place

    def was_stopped(self, for_s: float) -> bool:
        """Return whether an open turn was stopped without a report: by a stop key and then a long rest."""
        stopped_at = self.stopped_at
        return stopped_at > (self.turn_began or 0.0) and self.has_rested(for_s, stopped_at)

    @property
    def stopped_at(self) -> float:
        """When the key that stops an answer was last pressed, by us or by a person; 0 for never."""
        return max(self.pane.ledger.last_stop or 0.0, self.interrupted_at or 0.0)

    def has_rested(self, for_s: float, since: float | None = None) -> bool:
        """Return whether a turn is open but the screen has shown no work for `for_s` since `since`."""
        now = time.monotonic()
        facts = self.snapshot(now)
        if not facts.is_turn_open or facts.has_dialog or facts.is_asking or facts.quiet_since is None:
            return False
        return now - max(facts.quiet_since, since or self.turn_began or 0.0) >= for_s

    def note_turn(self, *, is_open: bool) -> None:
        """Record that a turn has begun or ended; an end is certain only if the CLI reports its turns."""
        self.is_end_known = not is_open and self.profile.delivery.proof != "none"
        if is_open:
            self.turn_began = time.monotonic()

    # --- acting ----------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Press the key that stops an answer."""
        self.interrupted_at = time.monotonic()
        self.port.write(self.profile.keys.interrupt.encode())

    def typing_rules(self, prompt: Prompt) -> SubmitRules:
        """Return the profile's rules for typing `prompt`."""
        delivery = self.profile.delivery
        waits = tuple(wait / 1000 for wait in delivery.enter_retry_ms) or SubmitRules().enter_again_s
        return SubmitRules(
            gap_s=delivery.gap_s(len(prompt.text.encode())),
            enter_again_s=waits,
            proof_s=0.0 if delivery.proof == "none" else delivery.proof_s,
        )
