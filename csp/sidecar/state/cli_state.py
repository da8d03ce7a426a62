"""The state of one CLI: its screen, its transcript, the keys of the person, what was sent to it."""

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
from csp.terminal.prompt import Prompt
from csp.terminal.reply_tracker import Tracker
from csp.terminal.screen import Frame
from csp.terminal.submit_machine import SubmitRules

#: How long a busy CLI may take to say that it has a prompt of a person's.
AWAITED_S: Final = 4.0
#: Reading a screen takes milliseconds; the word of the CLI itself, which comes with its last drawing, must
#: not wait for that.
BLINK_S: Final = 0.01
_SPACES: Final = re.compile(r"\s+")


class CliState:
    """Joins the pane, the CLI's own record and the connection to the relay.

    `observe` brings the state up to date, and `wait` does so before it returns; all other questions are
    answered from what was observed last and change nothing.
    """

    def __init__(self, profile: Profile, pane: PaneState, port: RelayPort, tracker: Tracker) -> None:
        self.profile = profile
        self.pane = pane
        self.port = port
        self.tracker = tracker
        self.is_paused = False
        #: Whether a person was told that the disk is full, so that hooks may miss the end of a turn.
        self.is_disk_full = False
        #: The CLI itself said that its last turn has ended.
        self.is_end_known = False
        #: When the last turn began.
        self.turn_began: float | None = None
        self.injection_timeout_s = 10.0
        self.gate_rules = GateRules(
            typing_quiet_s=profile.delivery.typing_quiet_ms / 1000,
            settled_s=profile.delivery.idle_stands_ms / 1000,
            guesses_idle=profile.delivery.proof == "none",
        )
        #: When we last pressed the key that stops an answer.
        self.interrupted_at: float | None = None
        self._had_draft = False
        self._emptied_at: float | None = None
        self._change = asyncio.Event()
        self._blink: asyncio.TimerHandle | None = None

    # --- waiting ---------------------------------------------------------------------------------

    def changed(self) -> None:
        """Wake everybody who waits for a change."""
        if self._blink is not None:
            self._blink.cancel()
            self._blink = None
        self._change.set()
        self._change = asyncio.Event()

    def drawn(self) -> None:
        """Wake them for a new screen, once for those that follow each other closely."""
        if self._blink is None:
            self._blink = asyncio.get_running_loop().call_later(BLINK_S, self.changed)

    async def wait(self, until: float | None) -> None:
        """Return on the next change or at `until`, with the pane observed."""
        change = self._change
        timeout_s = None if until is None else max(0.0, until - time.monotonic())
        # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the change.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await change.wait()
        self.observe()

    # --- looking ---------------------------------------------------------------------------------

    def observe(self, now: float | None = None) -> None:
        """Read what has come in until `now`."""
        now = time.monotonic() if now is None else now
        self.pane.observe(now)
        draft = self.pane.draft(now)
        if draft is not False:
            self._emptied_at = None
        elif self._had_draft:
            self._emptied_at = now
        # A composer that cannot be read for a moment keeps what it held.
        self._had_draft = self._had_draft if draft is None else draft

    def snapshot(self, now: float) -> PaneFacts:
        """Return what the gates ask for, as of the last `observe`."""
        # A person may have queued a prompt of their own, which the CLI takes up by itself.
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
        """Tell whether a person has sent a prompt that the CLI has said nothing of yet."""
        sent = self.pane.ledger.last_sent
        if sent is None or self.profile.delivery.proof == "none" or now - sent > AWAITED_S:
            return False
        return self.turn_began is None or self.turn_began < sent

    def next_look(self, now: float) -> float | None:
        """Return when time alone may open a gate."""
        times = [next_look(self.snapshot(now), self.gate_rules, now)]
        if self._is_turn_awaited(now) and self.pane.ledger.last_sent is not None:
            times.append(self.pane.ledger.last_sent + AWAITED_S)
        return min((at for at in times if at is not None), default=None)

    @property
    def is_busy(self) -> bool:
        now = time.monotonic()
        return is_busy(self.snapshot(now), self.gate_rules, now)

    def is_waived(self, since: float, now: float) -> bool:
        """Tell whether rest has been waited for `since` so long ago that a guess of work counts no more."""
        return is_waived(self.snapshot(now), now, waited_s=now - since, timeout_s=self.injection_timeout_s)

    def disregard_work(self) -> None:
        """Let a sign of work count no more that has shown since before anybody asked anything."""
        facts = self.snapshot(time.monotonic())
        if facts.is_unasked and facts.worked_since is not None:
            self.pane.disregard_work()

    def works_too_long(self, now: float) -> bool:
        """Tell whether a mere guess of work has held for so long that nothing waits for its end."""
        is_guess = self.gate_rules.guesses_idle
        return is_guess and works_too_long(self.snapshot(now), now, timeout_s=self.injection_timeout_s)

    @property
    def is_working(self) -> bool:
        """Tell whether there is an answer that could be stopped."""
        return self.tracker.is_open or self.pane.looks_busy

    @property
    def is_at_rest(self) -> bool:
        """Tell whether the screen alone looks like the end of a turn."""
        now = time.monotonic()
        facts = replace(self.snapshot(now), is_turn_open=False, is_end_known=False)
        return not is_busy(facts, self.gate_rules, now) and not facts.has_dialog

    def place_of(self, prompt: Prompt, pasted_at: float) -> PastePlace:
        """Tell where our prompt stands: alone in the composer, or not, or whether that cannot be told.

        A long paste stands there as the CLI's marker; a tall one may have scrolled its first line away.
        """
        composer = self.pane.reading.composer
        if composer is None:
            return PastePlace.HERE if self.pane.ends_at_cursor(prompt.footer) else PastePlace.UNSEEN
        if composer.is_empty:
            return PastePlace.EMPTY
        marker = self.profile.rules.composer.paste_marker
        if marker is not None and marker.fullmatch(composer.text.strip()):
            # It is ours if no key of a person can have reached the composer since we pasted.
            last_key, now = self.pane.ledger.last_key, time.monotonic()
            is_ours = last_key is None or last_key < pasted_at or now - pasted_at < MAX_HOLD_S
            return PastePlace.HERE if is_ours else PastePlace.OTHER
        text = _SPACES.sub("", composer.text)
        header = _SPACES.sub("", prompt.header)
        # A brain before this one may have had other news for the last line.
        body, _, rest = text.rpartition(_SPACES.sub("", prompt.end))
        if not body or rest[:1] not in ("]", ";") or rest.find("]") != len(rest) - 1 or "]" + header in text:
            return PastePlace.OTHER
        is_scrolled = header not in text and composer.first_row != composer.last_row
        return PastePlace.HERE if is_scrolled or text.startswith(header) else PastePlace.OTHER

    def land(self, prompt: Prompt, *, is_resumed: bool = False) -> PasteLocator | None:
        """Return what follows `prompt` from its paste on, where no rule says how the composer is drawn."""
        if self.profile.rules.composer.frame not in (Frame.CURSOR, Frame.NONE):
            return None
        return PasteLocator(prompt.header, prompt.footer, None if is_resumed else self.pane.screen)

    def place_by(self, landing: PasteLocator, known: PasteContext, pasted_at: float) -> PastePlace:
        """Tell where a prompt stands that has been followed since it was pasted at `pasted_at`."""
        last_key = self.pane.ledger.last_key
        has_typed = last_key is not None and last_key > pasted_at
        known = replace(known, has_typed=has_typed, reads_lines=known.is_entered and self.pane.reads_lines())
        place = landing.look(self.pane.screen, known)
        composer = self.pane.reading.composer
        is_empty = composer is not None and composer.is_empty
        if place in (PastePlace.OTHER, PastePlace.UNSEEN) and is_empty and not known.is_entered:
            # The composer was not there yet at the time of the paste, which nobody has taken.
            return PastePlace.EMPTY
        return place

    def was_stopped(self, for_s: float) -> bool:
        """Tell whether an open turn has been stopped without a word: a stop key, then a long rest."""
        began = self.turn_began or 0.0
        stops = [at for at in (self.pane.ledger.last_stop, self.interrupted_at) if at and at > began]
        return bool(stops) and self.has_rested(for_s, max(stops))

    def has_rested(self, for_s: float, since: float | None = None) -> bool:
        """Tell whether a turn is open, but the screen has shown no work for so long, or `since` a moment."""
        now = time.monotonic()
        facts = self.snapshot(now)
        if not facts.is_turn_open or facts.has_dialog or facts.is_asking or facts.quiet_since is None:
            return False
        return now - max(facts.quiet_since, since or self.turn_began or 0.0) >= for_s

    def note_turn(self, *, is_open: bool) -> None:
        """Note that a turn has begun or ended, by the CLI's own word where it gives one."""
        self.is_end_known = not is_open and self.profile.delivery.proof != "none"
        if is_open:
            self.turn_began = time.monotonic()

    # --- acting ----------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Press the key that stops an answer."""
        self.interrupted_at = time.monotonic()
        self.port.write(self.profile.keys.interrupt.encode())

    def typing_rules(self, prompt: Prompt) -> SubmitRules:
        """Return how this profile wants `prompt` to be typed."""
        delivery = self.profile.delivery
        waits = tuple(wait / 1000 for wait in delivery.enter_retry_ms) or SubmitRules().enter_again_s
        return SubmitRules(
            gap_s=delivery.gap_s(len(prompt.text.encode())),
            enter_again_s=waits,
            proof_s=0.0 if delivery.proof == "none" else delivery.proof_s,
        )
