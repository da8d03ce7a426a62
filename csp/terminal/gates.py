"""Decide whether a message may be typed into a pane now, or why it has to wait."""

from dataclasses import dataclass
from typing import Final

from csp.protocol.enums import HeldReason

#: The screen shows a key that late at most; until then only the ledger knows of it.
ECHO_S: Final = 0.7
#: So many injection timeouts a conversation may go on changing without any sign of work: a clock in it never
#: ends.
MOST_WAITS: Final = 12
#: So many a sign of work may show in a program that has been asked nothing, while nothing else changes.
UNASKED_WAITS: Final = 6
#: After so many in which the sign never went, nothing is held for its sake.
MOST_WORK: Final = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneFacts:
    """What is known of a pane at one moment; times are seconds of one monotonic clock, None is never."""

    is_alive: bool = True
    is_stopped: bool = False
    is_ready: bool = True
    #: A start-up, login or trust screen stands there.
    is_blocked: bool = False
    #: The CLI itself (hook, transcript) said that a turn is open, or that the last one ended.
    is_turn_open: bool = False
    is_end_known: bool = False
    #: Since when neither screen nor title showed work; None while they do.
    quiet_since: float | None = 0.0
    #: When the screen last changed while it showed work; else when the conversation on it did.
    moved_at: float | None = None
    #: When the conversation on the screen last changed.
    said_at: float | None = None
    #: Since when a sign of work has shown; None while there is none.
    worked_since: float | None = None
    #: Nobody has asked the program anything yet.
    is_unasked: bool = False
    has_dialog: bool = False
    #: A permission was asked for and nothing says that it was answered.
    is_asking: bool = False
    last_key: float | None = None
    #: A composer was there before, but now it is not: something else takes the keys.
    is_composer_gone: bool = False
    #: None: the screen shows no composer that could be read.
    draft: bool | None = False
    may_hold_draft: bool = False
    #: When the composer on the screen turned empty; None while it is not, or if it was never seen otherwise.
    emptied_at: float | None = None
    is_paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """How strict the gates are for one profile."""

    typing_quiet_s: float = 0.5
    #: How long a sign of rest on the screen or in the title must stand: an idle title can precede a dialog.
    settled_s: float = 0.3
    #: The end of a turn can only be guessed from the screen, so a guess that never comes true may be waived.
    guesses_idle: bool = False


def closed_gate(
    facts: PaneFacts, rules: GateRules, now: float, *, is_urgent: bool = False, is_waived: bool = False
) -> HeldReason | None:
    """Return why nothing may be typed now: the first gate that is closed, or None.

    `is_waived` says that the wait for a sign of rest took so long that a mere guess counts no more.
    """
    if not facts.is_alive or facts.is_blocked or not facts.is_ready:
        return HeldReason.STARTING
    if facts.is_stopped:
        return HeldReason.PAUSED
    # A dialog belongs to an open turn, but it is what a person must act on, so it is named first.
    if facts.has_dialog or facts.is_asking:
        return HeldReason.DIALOG
    if not (is_urgent or (is_waived and rules.guesses_idle)) and is_busy(facts, rules, now):
        return HeldReason.BUSY
    if facts.is_composer_gone:
        return HeldReason.DIALOG
    if facts.last_key is not None and now - facts.last_key < rules.typing_quiet_s:
        return HeldReason.TYPING
    if holds_draft(facts, now):
        return HeldReason.DRAFT
    return HeldReason.PAUSED if facts.is_paused else None


def is_busy(facts: PaneFacts, rules: GateRules, now: float) -> bool:
    """Tell whether a turn is open, or the pane has not been at rest for long enough to believe it."""
    if facts.is_turn_open or facts.quiet_since is None:
        return True
    return not facts.is_end_known and now - facts.quiet_since < rules.settled_s


def is_waived(facts: PaneFacts, now: float, *, waited_s: float, timeout_s: float) -> bool:
    """Tell whether the wait for a sign of rest took so long that a mere guess of work counts no more.

    A sign of work on a screen that still changes is no mere guess, unless nothing has been asked for.
    """
    if waited_s < timeout_s:
        return False
    if is_always_shown(facts, now, timeout_s=timeout_s):
        return True
    is_still = facts.moved_at is None or now - facts.moved_at >= timeout_s
    return is_still or (facts.quiet_since is not None and waited_s >= MOST_WAITS * timeout_s)


def is_always_shown(facts: PaneFacts, now: float, *, timeout_s: float) -> bool:
    """Tell whether a sign of work means nothing, since it shows in a program that nobody has asked."""
    if not facts.is_unasked or facts.worked_since is None:
        return False
    since = max(facts.worked_since, facts.said_at or 0.0)
    return now - since >= UNASKED_WAITS * timeout_s


def works_too_long(facts: PaneFacts, now: float, *, timeout_s: float) -> bool:
    """Tell whether a sign of work has shown for so long that nothing waits for its end any more."""
    return facts.worked_since is not None and now - facts.worked_since >= MOST_WORK * timeout_s


def holds_draft(facts: PaneFacts, now: float) -> bool:
    """Tell whether a person's words stand in the composer, by the keys first, then by the screen."""
    if facts.draft is None:
        return facts.may_hold_draft
    is_unseen = facts.last_key is not None and now - facts.last_key < ECHO_S
    return facts.draft or (facts.may_hold_draft and is_unseen and not _was_emptied(facts))


def _was_emptied(facts: PaneFacts) -> bool:
    """Tell whether the last key took the draft away: not each such key can be counted, but its work shows."""
    return facts.emptied_at is not None and facts.emptied_at > (facts.last_key or 0.0)


def next_look(facts: PaneFacts, rules: GateRules, now: float) -> float | None:
    """Return when a closed gate may open by the mere passing of time."""
    times = []
    if facts.quiet_since is not None:
        times.append(facts.quiet_since + rules.settled_s)
    if facts.last_key is not None:
        times += [facts.last_key + rules.typing_quiet_s, facts.last_key + ECHO_S]
    return min((at for at in times if at > now), default=None)
