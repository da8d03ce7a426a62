"""Decide whether a message may be typed into a pane now, or why it is held, and track the person's draft."""

import re
from typing import Final

import msgspec

from csp.protocol.enums import HeldReason, ReportedAgentState
from csp.terminal.screen_reader import ScreenDialog

#: Maximum delay before a keystroke appears on the screen; until then only the draft tracker has counted it.
ECHO_S: Final = 0.7
#: Number of injection timeouts during which a conversation may change without a busy indicator: it may
#: contain a clock that never stops.
MOST_WAITS: Final = 12
#: Number of injection timeouts after which an unprompted program's busy indicator is ignored if nothing else
#: changes.
UNASKED_WAITS: Final = 6
#: Number of injection timeouts after which a permanent busy indicator no longer holds messages.
MOST_WORK: Final = 180


class PaneFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The known state of a pane at one moment; times are seconds on one monotonic clock, None means never."""

    is_alive: bool = True
    is_stopped: bool = False
    is_ready: bool = True
    #: A start-up, login or trust screen is shown.
    is_blocked: bool = False
    #: The CLI itself (hook, transcript) reported that a turn is open, or that the last one ended.
    is_turn_open: bool = False
    is_end_known: bool = False
    #: When the screen and the title last stopped showing work; None while either does.
    quiet_since: float | None = 0.0
    #: When the screen last changed while it showed work; otherwise when the conversation on it last changed.
    moved_at: float | None = None
    #: When the conversation on the screen last changed.
    said_at: float | None = None
    #: When the current busy indicator appeared; None if there is none.
    worked_since: float | None = None
    #: The program has not been prompted yet.
    is_unasked: bool = False
    has_dialog: bool = False
    #: A permission request is believed to be open.
    is_asking: bool = False
    last_key: float | None = None
    #: The composer has disappeared, so something else receives the keys.
    is_composer_gone: bool = False
    #: None if the screen shows no readable composer.
    draft: bool | None = False
    may_hold_draft: bool = False
    #: When the composer on the screen became empty; None while it contains text, or if it never has.
    emptied_at: float | None = None
    is_paused: bool = False


class GateRules(msgspec.Struct, frozen=True, kw_only=True):
    """The strictness of the gates for one profile."""

    typing_quiet_s: float = 0.5
    #: How long the screen or the title must look idle: an idle title can precede a dialog.
    settled_s: float = 0.3
    #: The end of a turn can only be guessed from the screen, so a long wait for it may be waived.
    guesses_idle: bool = False


def closed_gate(
    facts: PaneFacts, rules: GateRules, now: float, *, is_urgent: bool = False, is_waived: bool = False
) -> HeldReason | None:
    """Return the reason why nothing may be typed now, from the first closed gate, or None.

    `is_waived` means that the message has waited for so long that apparent work no longer holds it.
    """
    if not facts.is_alive or facts.is_blocked or not facts.is_ready:
        return HeldReason.STARTING
    if facts.is_stopped:
        return HeldReason.PAUSED
    # A dialog belongs to an open turn, but a person must act on it, so it is reported first.
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
    """Return whether a turn is open, or the pane has not looked idle for long enough."""
    if facts.is_turn_open or facts.quiet_since is None:
        return True
    return not facts.is_end_known and now - facts.quiet_since < rules.settled_s


def is_waived(facts: PaneFacts, now: float, *, waited_s: float, timeout_s: float) -> bool:
    """Return whether a message has waited for so long that apparent work no longer holds it.

    A busy indicator on a screen that still changes does hold it, unless the program was never prompted.
    """
    if waited_s < timeout_s:
        return False
    if is_always_shown(facts, now, timeout_s=timeout_s):
        return True
    is_still = facts.moved_at is None or now - facts.moved_at >= timeout_s
    return is_still or (facts.quiet_since is not None and waited_s >= MOST_WAITS * timeout_s)


def is_always_shown(facts: PaneFacts, now: float, *, timeout_s: float) -> bool:
    """Return whether a busy indicator is meaningless because an unprompted program shows it."""
    if not facts.is_unasked or facts.worked_since is None:
        return False
    since = max(facts.worked_since, facts.said_at or 0.0)
    return now - since >= UNASKED_WAITS * timeout_s


def works_too_long(facts: PaneFacts, now: float, *, timeout_s: float) -> bool:
    """Return whether a busy indicator has been shown for so long that messages no longer wait for its end."""
    return facts.worked_since is not None and now - facts.worked_since >= MOST_WORK * timeout_s


def holds_draft(facts: PaneFacts, now: float) -> bool:
    """Return whether the composer contains a person's draft, judged by recent keys, then by the screen."""
    if facts.draft is None:
        return facts.may_hold_draft
    if facts.last_key is None:
        return facts.draft
    is_unseen = now - facts.last_key < ECHO_S
    # The last key may have removed the draft. Not every such key can be counted, but its effect is visible.
    was_emptied = facts.emptied_at is not None and facts.emptied_at > facts.last_key
    return facts.draft or (facts.may_hold_draft and is_unseen and not was_emptied)


def next_look(facts: PaneFacts, rules: GateRules, now: float) -> float | None:
    """Return the next time at which a closed gate may open without any other change."""
    times = []
    if facts.quiet_since is not None:
        times.append(facts.quiet_since + rules.settled_s)
    if facts.last_key is not None:
        times += [facts.last_key + rules.typing_quiet_s, facts.last_key + ECHO_S]
    return min((at for at in times if at > now), default=None)


def agent_state(
    facts: PaneFacts, rules: GateRules, now: float, *, is_limited: bool = False, is_permission: bool = False
) -> ReportedAgentState:
    """Return the state to show in the room; states that need a person take precedence.

    `is_limited` means that an account limit is active. `is_permission` means that the dialog asks about a
    tool, which can be answered even then, unlike a menu such as one that offers to lift the limit.
    """
    if facts.is_blocked:
        return ReportedAgentState.NEEDS_HUMAN
    if is_limited and not is_permission:
        return ReportedAgentState.LIMITED
    if facts.has_dialog or facts.is_asking:
        return ReportedAgentState.NEEDS_APPROVAL
    if not facts.is_ready:
        return ReportedAgentState.STARTING
    if is_busy(facts, rules, now):
        return ReportedAgentState.BUSY
    # Something that cannot be answered from outside receives the keys: a menu without numbers or a stopped
    # program.
    is_lost = facts.is_composer_gone or facts.is_stopped
    return ReportedAgentState.NEEDS_HUMAN if is_lost else ReportedAgentState.IDLE


def asks_permission(dialog: ScreenDialog | None, *, is_told: bool, is_asking: bool) -> bool:
    """Return whether a tool is waiting for permission: as the CLI reports if `is_told`, or by its dialog."""
    return is_asking if is_told else dialog is not None and dialog.kind == "permission"


# --- the person's draft --------------------------------------------------------------------------

#: Reports that a terminal sends by itself: cursor, focus, mouse, colours, versions, modes and key releases.
_REPORTS: Final = re.compile(
    rb"\x1b\[M[\s\S]{3}"
    rb"|\x1b\[<[\d;]*[Mm]"
    rb"|\x1b\[[IO]"
    rb"|\x1b\[[?>=]?[\d;]*[Rcntxy]"
    rb"|\x1b\[\?[\d;]*(?:\$y|u)"
    rb"|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)"
    rb"|\x1b\[[\d;:]*:3[u~A-HPQS]"
)
_PASTE: Final = re.compile(rb"\x1b\[200~([\s\S]*?)(?:\x1b\[201~|\Z)")
#: Keys as encoded by newer keyboard protocols: CSI code ; modifiers u, CSI 27 ; modifiers ; code ~.
_SPELT: Final = re.compile(rb"\x1b\[(\d{1,7})(?::\d*)*(?:;(\d{1,3})(?::\d)?)?u|\x1b\[27;(\d{1,3});(\d{1,7})~")
#: Keys that may restore an older draft: up, down, their equivalents in a line editor, search and yank.
_RECALLS: Final = re.compile(rb"\x1b[\[O][\d;:]*[AB]|[\x0e\x10\x12\x19]")
_FUNCTION_KEYS: Final = re.compile(rb"\x1b[\[O][\d;:]*[A-Za-z~^$]|\x1b[\x20-\x7e]")
#: Enter with a modifier, which inserts a line break in a composer.
_LINE_BREAKS: Final = re.compile(rb"\x1b\r|\x1b\[13;[2-9]\d*u|\x1b\[27;[2-9]\d*;13~")
#: A sequence that is split between two reads.
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[\d;:?<>=]*|[\]P_^X][^\x07\x1b]+\x1b?)\Z")
_MAX_UNFINISHED: Final = 4096
_CTRL: Final = 4

_ENTER: Final = "\r"
_ESCAPE: Final = "\x1b"
#: The first characters of drafts that are not for the model.
_COMMANDS: Final = frozenset("/!?#")
_STOPS: Final = frozenset("\x1b\x03")
_STOP_BYTES: Final = b"\x1b\x03"
#: Keys typed one by one; a longer piece or another control character may insert a whole text.
_TYPING: Final = re.compile(rb"[\x20-\xff\x08\r]{1,64}")
_WIPES: Final = frozenset("\r\x03\x15")
_BACKSPACES: Final = frozenset("\x7f\x08")


class DraftTracker(msgspec.Struct, kw_only=True):
    """A count of the characters typed by the person at the pane since the composer was last empty.

    The screen shows a draft only after the CLI has drawn it; the keys are known earlier. They are only
    counted, for privacy: their content is not stored.
    """

    typed: int = 0
    #: When the person last pressed any key, and last pressed one that interrupts the CLI's answer.
    last_key: float | None = None
    last_stop: float | None = None
    #: When the person last pressed a key that is not just a stop, and last pasted or recalled text.
    last_edit: float | None = None
    last_insert: float | None = None
    #: When Enter was last pressed on a draft that is not one of the CLI's commands, so that a turn follows.
    last_sent: float | None = None
    _rest: bytes = b""
    _is_command: bool = False
    _was_escape: bool = False

    @property
    def may_hold_draft(self) -> bool:
        return self.typed > 0

    def feed(self, data: bytes, now: float) -> bool:
        """Process input from the terminal; return whether a person pressed a key."""
        data = _REPORTS.sub(b"", self._rest + data)
        self._rest = b""
        cut = _UNFINISHED.search(data)
        if cut and len(cut[0]) < _MAX_UNFINISHED:
            self._rest, data = cut[0], data[: cut.start()]
        if not data:
            return False
        self.last_key = now
        spelt = _SPELT.sub(_spell, data)
        if spelt.strip(_STOP_BYTES):
            self.last_edit = now
            if _TYPING.fullmatch(spelt) is None:
                self.last_insert = now
        end = 0
        for paste in _PASTE.finditer(data):
            self._count_keys(data[end : paste.start()], now)
            if not self.typed:
                self._is_command = paste[1][:1].decode("ascii", "replace") in _COMMANDS
            self.typed += max(1, len(paste[1]))
            end = paste.end()
        self._count_keys(data[end:], now)
        return True

    def clear(self) -> None:
        """Forget the draft, because the screen shows an empty composer."""
        self.typed = 0

    def _count_keys(self, data: bytes, now: float) -> None:
        if _RECALLS.search(data):
            self.typed = max(1, self.typed)
        data = _LINE_BREAKS.sub(b"\n", data)
        plain = _FUNCTION_KEYS.sub(b"", _SPELT.sub(_spell, data))
        for char in plain.decode("utf-8", "replace"):
            if char in _STOPS:
                self.last_stop = now
            if char == _ENTER and self.typed and not self._is_command:
                self.last_sent = now
            is_second_escape = char == _ESCAPE and self._was_escape
            self._was_escape = char == _ESCAPE and not self._was_escape
            # The first Escape may only close a menu; the second clears the composer.
            if char in _WIPES or is_second_escape:
                self.typed = 0
            elif char in _BACKSPACES:
                self.typed = max(0, self.typed - 1)
            elif char >= " " or char in "\t\n":
                if not self.typed:
                    self._is_command = char in _COMMANDS
                self.typed += 1


def _spell(key: re.Match[bytes]) -> bytes:
    """Convert a key of the newer protocols to its plain byte; drop keys that have none."""
    code = int(key[1] or key[4])
    is_ctrl = bool(int(key[2] or key[3] or 1) - 1 & _CTRL)
    if code < 128:
        return bytes([code & 0x1F if is_ctrl else code])
    return b"" if 0xE000 <= code <= 0xF8FF else b"?"
