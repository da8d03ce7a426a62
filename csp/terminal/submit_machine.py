"""State machine that types one message into a CLI, checks and submits it, and waits for its confirmation.

The machine uses no clock, terminal or room. Its shell reports timed observations, performs the
returned steps, and calls again after every change or at `wake_at`.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Self

import msgspec

from csp.protocol.enums import DeliveryState, HeldReason

#: Time limits for the CLI to read its input, to show it in its composer, and to clear the composer.
WRITE_S: Final = 10.0
SHOW_S: Final = 4.0
CLEAR_S: Final = 1.5
MAX_CLEARS: Final = 3
MAX_LOST: Final = 3
#: How long to wait before pressing Enter again while the CLI has drawn nothing, and how long in all. On a
#: busy machine a CLI may have read Enter and be slow to act on it; a second one may submit the message twice.
UNREAD_S: Final = 4.0
ENTER_S: Final = 12.0
#: How many times longer than the paste took to be shown an Enter may take: with and without anything drawn.
SLOW: Final = 2.0
SLOWER: Final = 5.0
#: How long the message must be shown in the composer before Enter is pressed again: a screen that is being
#: drawn may look like that, and the key would go into whatever a person types meanwhile.
STANDS_S: Final = 0.3
#: How long nothing else is typed after a message that has left the composer without a confirmation: a CLI may
#: first search its files for each name in it, and a later message would overtake it.
LATE_S: Final = 45.0
#: How long an empty composer, or a screen without the message, must be shown if there is no other proof: a
#: composer that is being redrawn looks the same.
LEFT_S: Final = 0.6
GONE_S: Final = 3.0
#: Reason given if the screen has not shown whether the message was submitted.
UNSURE: Final = "the screen did not show whether it was submitted"
#: Reasons given for a message that was typed but that no composer has shown since.
UNSHOWN: Final = "the composer did not show the message"
MAYBE: Final = "the composer did not show the message, which may still have arrived"
#: Reason given if the CLI ended after Enter and has no record that shows whether it accepted the message.
ENDED: Final = "the CLI ended after Enter was pressed; the message may have arrived"
#: Reason given if it is unknown after a crash whether the message was submitted.
UNKNOWN: Final = "unknown"


class SubmitRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for typing into the CLI of a profile."""

    gap_s: float = 0.1
    #: Delays between one Enter and the next while the text is still in the composer.
    enter_again_s: tuple[float, ...] = (0.4, 0.8, 1.2, 2.0, 3.0, 4.0)
    #: How soon after the composer is empty the CLI usually confirms a prompt; 0 if it never does.
    proof_s: float = 6.0
    #: Whether the composer can be read at all; otherwise a single Enter must suffice.
    reads_composer: bool = True


class SubmitPhase(Enum):
    WAITING = auto()  # for the gates
    ANNOUNCED = auto()  # `typed` is being written to the journal
    PASTED = auto()  # the text is on its way into the composer
    SHOWN = auto()  # Enter was pressed
    SENT = auto()  # the composer is empty again; waiting for proof
    CLEARING = auto()
    STUCK = auto()
    DONE = auto()


class PasteObservation(msgspec.Struct, frozen=True, kw_only=True):
    """An observation of one message in one pane."""

    gate: HeldReason | None = None
    #: The journal records that the message is being typed.
    is_announced: bool = False
    #: When the CLI had read all bytes of the last keys; None while it has not.
    written_at: float | None = None
    #: Our header, or the CLI's marker for a long paste, is in the composer.
    is_in_composer: bool = False
    is_composer_empty: bool = False
    #: It is no longer where it was, although no empty composer is shown.
    has_left: bool = False
    #: The screen shows neither a composer nor the message, and may not have been drawn yet.
    is_unseen: bool = False
    #: The CLI has accepted Enter and submits the text later; another key would withdraw it.
    is_accepted: bool = False
    has_dialog: bool = False
    #: The CLI itself has reported that it accepted the prompt.
    is_proven: bool = False
    #: A person pressed a key just before the text was written, so nothing was written.
    is_refused: bool = False
    #: The CLI has written something since it read the last keys.
    has_reacted: bool = True


class KeyAction(Enum):
    """An action that the shell performs on its pane."""

    PASTE = auto()
    ENTER = auto()
    CLEAR = auto()
    RELEASE = auto()


class ReportState(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery state to report to the room."""

    state: DeliveryState
    reason: str = ""


Step = KeyAction | ReportState


class SubmitMachine(msgspec.Struct, kw_only=True):
    """One message on its way into one composer."""

    rules: SubmitRules = SubmitRules()
    phase: SubmitPhase = SubmitPhase.WAITING
    wake_at: float | None = None
    _held: HeldReason | None = None
    _since: float = 0.0
    _entered: int = 0
    #: Since when the text has been in the composer without interruption.
    _stands_since: float | None = None
    #: Whether the text was in a composer that was drawn after the last Enter.
    _has_stayed: bool = False
    _first_enter: float = 0.0
    #: When the CLI first showed that it has accepted the last Enter and submits the text later.
    _accepted_at: float | None = None
    _cleared: int = 0
    _lost: int = 0
    _shown_at: float | None = None
    #: How long the CLI took from reading the text to showing it.
    _echo_s: float = 0.0
    #: Whether a dialog was open after the paste and may have received it.
    _was_covered: bool = False
    #: Whether an earlier paste, which was not shown in time, may still appear.
    _may_come: bool = False
    _problem: str = ""
    _is_resumed: bool = False
    _given_up: str = ""

    @classmethod
    def resumed(cls, rules: SubmitRules, now: float) -> Self:
        """Continue with a message that a previous process began to type into the same composer."""
        return cls(rules=rules, phase=SubmitPhase.PASTED, _since=now, _is_resumed=True)

    @property
    def is_done(self) -> bool:
        return self.phase is SubmitPhase.DONE

    @property
    def has_touched(self) -> bool:
        """Return whether a part of the message may be in the composer."""
        return self.phase in (SubmitPhase.PASTED, SubmitPhase.SHOWN, SubmitPhase.CLEARING, SubmitPhase.STUCK)

    @property
    def has_entered(self) -> bool:
        """Return whether Enter was pressed since the last paste."""
        return self._entered > 0

    @property
    def may_be_taken(self) -> bool:
        """Return whether the CLI may have accepted the message, as far as the screen has shown."""
        return self._entered > 0 and not self._has_stayed

    def give_up(self, reason: str) -> None:
        """Stop pressing Enter and remove the message from the composer; it may have been sent already."""
        self._given_up = reason

    def step(self, seen: PasteObservation, now: float) -> list[Step]:
        """Return the next steps; an empty list means to wait."""
        self.wake_at = None
        if self.is_done:
            return []
        if not seen.is_in_composer:
            self._stands_since = None
        elif self._stands_since is None:
            self._stands_since = now
        is_unpasted = self.phase in (SubmitPhase.WAITING, SubmitPhase.ANNOUNCED) and not self._may_come
        if seen.is_proven and not is_unpasted:
            return self._end(DeliveryState.CONFIRMED)
        return _STEPS[self.phase](self, seen, now)

    def _enter_phase(self, phase: SubmitPhase, now: float, *, for_s: float | None = None) -> None:
        self.phase, self._since = phase, now
        self.wake_at = None if for_s is None else now + for_s

    def _over(self, for_s: float, now: float) -> bool:
        """Return whether the phase has lasted `for_s`; otherwise set `wake_at` to that moment."""
        return self._is_past(self._since + for_s, now)

    def _is_past(self, at: float, now: float) -> bool:
        self.wake_at = at
        return now >= at

    def _stands(self, now: float) -> bool:
        """Return whether the message is really in the composer: a screen that is being drawn may mislead."""
        return self._stands_since is not None and self._is_past(self._stands_since + STANDS_S, now)

    def _wait(self, seen: PasteObservation, now: float) -> list[Step]:
        if self._may_come and seen.is_in_composer:
            return self._accept_late(seen, now)
        if self._given_up:
            return self._end(DeliveryState.FAILED, self._given_up)
        if seen.gate is not None:
            return self._hold(seen.gate)
        self._held = None
        self._enter_phase(SubmitPhase.ANNOUNCED, now)
        return [ReportState(state=DeliveryState.TYPED)]

    def _hold(self, reason: HeldReason) -> list[Step]:
        if reason is self._held:
            return []
        self._held = reason
        return [ReportState(state=DeliveryState.HELD, reason=reason)]

    def _accept_late(self, seen: PasteObservation, now: float) -> list[Step]:
        """Continue with an earlier paste that is shown after all; a second one would double the message."""
        self._enter_phase(SubmitPhase.PASTED, now)
        return self._check(seen, now)

    def _paste(self, seen: PasteObservation, now: float) -> list[Step]:
        if self._may_come and seen.is_in_composer:
            return self._accept_late(seen, now)
        if self._given_up:
            return self._end(DeliveryState.FAILED, self._given_up)
        if seen.gate is not None:
            # The gate closed while the room wrote its event; nothing has been typed yet.
            self._enter_phase(SubmitPhase.WAITING, now)
            return self._hold(seen.gate)
        if not seen.is_announced:
            return []
        self._enter_phase(SubmitPhase.PASTED, now)
        self._entered = self._cleared = 0
        self._shown_at = None
        self._was_covered = False
        return [KeyAction.PASTE]

    def _check(self, seen: PasteObservation, now: float) -> list[Step]:
        if seen.is_refused:
            self._enter_phase(SubmitPhase.WAITING, now)
            return [*self._hold(HeldReason.TYPING), KeyAction.RELEASE]
        if seen.written_at is None:
            return self._get_stuck(seen, now) if self._over(WRITE_S, now) else []
        if seen.has_dialog:
            return self._get_stuck(seen, now)
        if not self.rules.reads_composer:
            return self._press_enter(now) if self._is_past(seen.written_at + self.rules.gap_s, now) else []
        if not seen.is_in_composer:
            self._shown_at = None
            show_s = self._show_s(seen)
            shows_by = max(self._since, seen.written_at) + self.rules.gap_s + show_s
            return self._miss(seen, now) if self._is_past(shows_by, now) else []
        # On a busy machine the CLI may read the text long after it was written; an Enter right after it would
        # be part of the paste.
        self._shown_at = now if self._shown_at is None else self._shown_at
        self._echo_s = max(0.0, self._shown_at - seen.written_at)
        return self._press_enter(now) if self._is_past(self._shown_at + self.rules.gap_s, now) else []

    def _show_s(self, seen: PasteObservation) -> float:
        """Return how long to wait for a text before it counts as dropped, or as covered by something else."""
        if self._is_resumed:
            # A message of an earlier brain is never typed again.
            return SHOW_S
        would_repeat = seen.is_composer_empty and self.rules.proof_s > 0
        # A CLI on a busy machine may have read the text, and draw other things before it shows it.
        return LATE_S if would_repeat or not seen.has_reacted else SHOW_S

    def _miss(self, seen: PasteObservation, now: float) -> list[Step]:
        """Handle text that is no longer where it was put: it is gone, or covered by something not ours."""
        self._problem = UNKNOWN if self._is_resumed else UNSHOWN
        if self._is_resumed:
            return self._end(DeliveryState.FAILED, self._problem)
        if not (seen.is_composer_empty and self.rules.proof_s):
            return self._get_stuck(seen, now)
        self._lost += 1
        if self._lost >= MAX_LOST:
            return self._end(DeliveryState.FAILED, self._problem)
        # A CLI that was not reading yet has dropped it. Nothing was submitted without an Enter.
        self._may_come = True
        self._enter_phase(SubmitPhase.WAITING, now)
        return [KeyAction.RELEASE, *self._wait(seen, now)]

    def _press_enter(self, now: float) -> list[Step]:
        if self._given_up:
            self._problem = self._given_up
            return self._clear(now)
        wait = self.rules.enter_again_s[min(self._entered, len(self.rules.enter_again_s) - 1)]
        self._first_enter = self._first_enter if self._entered else now
        self._entered += 1
        self._has_stayed = False
        self._accepted_at = None
        self._enter_phase(SubmitPhase.SHOWN, now, for_s=wait)
        return [KeyAction.ENTER]

    def _watch_enter(self, seen: PasteObservation, now: float) -> list[Step]:
        self._has_stayed = seen.is_in_composer and seen.has_reacted
        if seen.written_at is None:
            return self._get_stuck(seen, now) if self._over(WRITE_S, now) else []
        if seen.is_composer_empty or seen.has_left or not self.rules.reads_composer:
            return self._sent(now)
        if seen.is_unseen and not seen.has_dialog:
            return self._get_stuck(seen, now) if self._over(LATE_S, now) else []
        if seen.is_accepted:
            self._accepted_at = now if self._accepted_at is None else self._accepted_at
            self._since = self._first_enter = now
            return self._get_stuck(seen, now) if self._is_past(self._accepted_at + LATE_S, now) else []
        # A CLI that has not drawn anything may not have acted on the last Enter yet, and would act on both.
        wait = max(self.rules.enter_again_s[self._entered - 1], SLOW * self._echo_s)
        wait = wait if seen.has_reacted else max(wait, UNREAD_S, SLOWER * self._echo_s)
        if not self._is_past(max(self._since, seen.written_at) + wait, now):
            return []
        if seen.has_dialog or not seen.is_in_composer:
            return self._get_stuck(seen, now)
        return self._try_again(now) if self._stands(now) else []

    def _try_again(self, now: float) -> list[Step]:
        is_late = now - self._first_enter >= max(ENTER_S, 2 * SLOWER * self._echo_s)
        if self._entered < len(self.rules.enter_again_s) and not is_late:
            return self._press_enter(now)
        self._problem = f"Enter was swallowed {self._entered} times"
        return self._clear(now)

    def _sent(self, now: float) -> list[Step]:
        if not self.rules.reads_composer:
            return self._end(DeliveryState.SUBMITTED)
        self._enter_phase(SubmitPhase.SENT, now, for_s=self._proof_wait_s if self.rules.proof_s else LEFT_S)
        return [KeyAction.RELEASE]

    @property
    def _proof_wait_s(self) -> float:
        # If a message was swallowed before, its sender should be notified soon.
        return self.rules.proof_s if self._cleared else max(self.rules.proof_s, LATE_S)

    def _await_proof(self, seen: PasteObservation, now: float) -> list[Step]:
        is_unsent = seen.is_in_composer and not seen.has_dialog and not seen.is_accepted
        # A person's keys are no longer held back, and a turn that has begun shows that it was submitted.
        if is_unsent and seen.gate in (None, HeldReason.DRAFT):
            # The composer was only being redrawn: the last Enter did nothing.
            if not self._stands(now):
                return []
            may_enter = self._entered < len(self.rules.enter_again_s)
            return self._press_enter(now) if may_enter else self._clear(now)
        if not self.rules.proof_s:
            return self._watch_screen(seen, now)
        if seen.has_dialog or seen.is_accepted:
            # A CLI may ask a question before it accepts the prompt; the answer decides.
            self._since = now
        if not self._over(self._proof_wait_s, now):
            return []
        if self._cleared:
            return self._end(DeliveryState.FAILED, self._problem)
        return self._end(DeliveryState.SUBMITTED)

    def _watch_screen(self, seen: PasteObservation, now: float) -> list[Step]:
        """Treat the message as submitted once the screen has shown for a while that it left the composer."""
        if not (seen.is_composer_empty or seen.has_left):
            self._since = now
            is_late = self._is_past(self._first_enter + LATE_S, now)
            return self._end(DeliveryState.FAILED, UNSURE) if is_late else []
        is_believed = self._over(LEFT_S if seen.is_composer_empty else GONE_S, now)
        return self._end(DeliveryState.SUBMITTED) if is_believed else []

    def _clear(self, now: float) -> list[Step]:
        self._cleared += 1
        self._enter_phase(SubmitPhase.CLEARING, now, for_s=CLEAR_S)
        return [KeyAction.CLEAR]

    def _watch_clear(self, seen: PasteObservation, now: float) -> list[Step]:
        if (seen.is_composer_empty or seen.has_left) and not seen.has_dialog:
            return self._end(DeliveryState.FAILED, self._problem)
        if not self._over(CLEAR_S, now):
            return []
        # In anything but a composer, the key that clears it may do harm.
        if self._cleared < MAX_CLEARS and seen.is_in_composer and not seen.has_dialog:
            return self._clear(now)
        return self._get_stuck(seen, now)

    def _get_stuck(self, seen: PasteObservation, now: float) -> list[Step]:
        """Wait for a person; in any case the room must know that the message may be in the composer."""
        self._enter_phase(SubmitPhase.STUCK, now)
        self._was_covered = self._was_covered or seen.has_dialog
        reason = HeldReason.COVERED if seen.has_dialog else HeldReason.STUCK
        return [*self._hold(reason), KeyAction.RELEASE]

    def _watch_stuck(self, seen: PasteObservation, now: float) -> list[Step]:
        """Wait while our text may be in the composer; only an empty composer proves that it is not."""
        is_at_rest = seen.gate in (None, HeldReason.DRAFT) and not seen.is_accepted
        if not is_at_rest or seen.has_dialog or seen.written_at is None:
            # Keys that have not been read yet would act twice if they were typed again.
            return self._hold(HeldReason.COVERED) if seen.has_dialog else []
        if seen.is_in_composer and not self._cleared:
            if not self._is_past(seen.written_at + self.rules.enter_again_s[0], now):
                return []
            self._first_enter = now
            return self._try_again(now)
        if not seen.is_composer_empty:
            return self._hold(HeldReason.STUCK)
        if self._entered and not self.rules.proof_s:
            # A person has sent it or removed it.
            return self._end(DeliveryState.FAILED, self._problem or UNSURE)
        if self._entered:
            # It may have been submitted, and typing it again could duplicate it, so only proof counts.
            return self._sent(now)
        if not self.rules.proof_s:
            # A starting program may have read it long before it shows it: typed again, it would be
            # duplicated.
            is_late = self._is_past(max(self._since, seen.written_at) + LATE_S, now)
            return self._end(DeliveryState.FAILED, MAYBE) if is_late else []
        # A dialog has received what was typed before it was closed.
        show_s = SHOW_S if self._was_covered and seen.has_reacted else LATE_S
        if not self._is_past(seen.written_at + self.rules.gap_s + show_s, now):
            return []
        self._may_come = True
        self._enter_phase(SubmitPhase.WAITING, now)
        return self._wait(seen, now)

    def _end(self, state: DeliveryState, reason: str = "") -> list[Step]:
        self.phase, self.wake_at = SubmitPhase.DONE, None
        return [ReportState(state=state, reason=reason), KeyAction.RELEASE]


_STEPS: Final[dict[SubmitPhase, Callable[[SubmitMachine, PasteObservation, float], list[Step]]]] = {
    SubmitPhase.WAITING: SubmitMachine._wait,
    SubmitPhase.ANNOUNCED: SubmitMachine._paste,
    SubmitPhase.PASTED: SubmitMachine._check,
    SubmitPhase.SHOWN: SubmitMachine._watch_enter,
    SubmitPhase.SENT: SubmitMachine._await_proof,
    SubmitPhase.CLEARING: SubmitMachine._watch_clear,
    SubmitPhase.STUCK: SubmitMachine._watch_stuck,
}
