"""The state of the pane: its screen, its signals, and the person's keys."""

import os
import termios
import time
from typing import Final

from msgspec.structs import replace

from csp.clis.profile import Profile
from csp.sidecar.emulator import Emulator, make_emulator
from csp.terminal.gates import ECHO_S, DraftTracker, PaneFacts
from csp.terminal.generic_screen import find_caret, is_blank, stands_behind
from csp.terminal.screen import Frame, Screen
from csp.terminal.screen_reader import Reading, find_dialog, read_screen, without_work

#: The time within which the dialog of a permission request appears on the screen.
ASKING_S: Final = 5.0

#: How long to wait for the hook that reports a session; a missing hook must not block the composer.
SESSION_S: Final = 15.0
#: The same for a CLI without such a hook, which may briefly draw its composer before it asks for a login.
DRAWN_S: Final = 1.0
#: The maximum time between two redraws of a busy indicator.
ANIMATED_S: Final = 2.5

#: A program that has drawn nothing since a key may not have read it yet; after this time it is assumed to
#: draw nothing for that key.
UNREAD_S: Final = 10.0

#: The number of texts remembered as placeholders; a CLI may show a different one each time.
PLACEHOLDERS: Final = 20
_NOTHING: Final = Reading()
_TITLE: Final = 0
_TITLES: Final = frozenset({0, 2})


class PaneState:
    """The pane of the CLI. `observe` reads new output; `snapshot` returns the state."""

    def __init__(self, profile: Profile, rows: int, cols: int) -> None:
        self.profile = profile
        self.ledger = DraftTracker()
        self.is_stopped = False
        self.is_ready = False
        #: Whether a new child is about to replace this one.
        self.is_leaving = False
        #: Whether the CLI reports its session with a hook, and whether it has done so.
        self.tells_session = profile.delivery.proof == "hook"
        self.has_session = False
        #: Whether a login is known; if not, the screen must first show where a missing login would appear.
        self.is_login_known = False
        self.last_output: float | None = None
        #: The number of bytes the program has written, and its history when that number was `_mark`.
        self.written = 0
        self.remembered: list[str] = []
        self._mark: int | None = None
        #: The number of bytes of the person's keys received here, to detect keys that cross ours.
        self.keys_seen = 0
        self._emulator: Emulator = make_emulator(rows, cols)
        self._reading = _NOTHING
        self._read_at = -1
        #: The time of the last change of the conversation on the screen.
        self.said_at: float | None = None
        #: The time of the last change of anything on the screen, for CLIs without better signals.
        self._changed_at: float | None = None
        self._shown = ""
        #: The last signal from each source: the title or the CLI's own OSC.
        self._signs: dict[int, str] = {}
        self._quiet_since: float | None = None
        self._worked_since: float | None = None
        #: Whether the program may have been prompted.
        self.was_asked = False
        #: The texts of rows that show a busy indicator regardless of the program's activity.
        self.idle_rows: tuple[str, ...] = ()
        self._asked_at: float | None = None
        self._was_dialog_shown = False
        self._drawn_at: float | None = None
        self._began = time.monotonic()
        #: Whether a composer was ever on the screen, so that a missing one has disappeared.
        self.has_had_composer = False
        # A CLI without a rule for its composer and without signals is idle when it writes nothing.
        self._placeholders: dict[str, None] = {}
        #: The path of the child's end of its terminal; empty if unknown.
        self.tty = ""
        self._has_signs = profile.rules.composer.frame not in (Frame.NONE, Frame.CURSOR)

    # --- in --------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        if self._mark is not None and self._mark - self.written <= len(data):
            early, data = data[: self._mark - self.written], data[self._mark - self.written :]
            self._feed(early)
            self.remember_at(self.written)
        self._feed(data)
        self.last_output = time.monotonic()

    def _feed(self, data: bytes) -> None:
        self._emulator.feed(data)
        self.written += len(data)

    def remember_at(self, mark: int) -> None:
        """Remember the history at the moment when the program has written `mark` bytes."""
        is_now = mark <= self.written
        self.remembered = self.history() if is_now else []
        self._mark = None if is_now else mark

    def count_keys(self, data: bytes) -> bool:
        """Count the bytes from the person's terminal; return whether the person pressed a key."""
        self.keys_seen += len(data)
        return self.ledger.feed(data, time.monotonic())

    def forget_screen(self, lost: int) -> None:
        """Start with an empty screen after a loss of output; keep the modes, which are set only once."""
        modes = self.modes
        self._emulator.feed(b"\x1bc")
        self.set_modes(modes)
        self.written += lost
        if self._mark is not None:
            self.remember_at(self._mark)

    @property
    def modes(self) -> tuple[bool, bool]:
        """The modes bracketed paste and alternate screen, which a CLI sets only once, at its start."""
        screen = self.screen
        return screen.bracketed_paste, screen.alternate

    def set_modes(self, modes: tuple[bool, bool]) -> None:
        is_pasting, is_alternate = modes
        self._emulator.feed(
            (b"\x1b[?1049h" if is_alternate else b"") + (b"\x1b[?2004h" if is_pasting else b"")
        )

    def resize(self, rows: int, cols: int) -> None:
        self._emulator.resize(rows, cols)

    def begin_again(self) -> None:
        """Forget the previous child, including its screen and draft."""
        self._emulator.feed(b"\x1bc")
        self._began = time.monotonic()
        self.ledger = DraftTracker()
        self.is_ready = self.is_stopped = self.is_leaving = self.has_session = False
        self._drawn_at = None
        self.has_had_composer = False
        self._quiet_since = self._asked_at = self._worked_since = None
        self.was_asked = False
        self.idle_rows = ()
        self._signs.clear()

    def note_asked(self) -> None:
        """Record that the CLI asked for permission, before its dialog is on the screen."""
        self._asked_at = time.monotonic()
        self._was_dialog_shown = False

    def note_answered(self) -> None:
        self._asked_at = None

    # --- out -------------------------------------------------------------------------------------

    @property
    def screen(self) -> Screen:
        return self._emulator.screen()

    @property
    def generation(self) -> int:
        return self._emulator.dirty

    @property
    def reading(self) -> Reading:
        return self._reading

    @property
    def is_asking(self) -> bool:
        return self._asked_at is not None

    def history(self) -> list[str]:
        return self._emulator.history(unwrap=True)

    def observe(self, now: float) -> None:
        """Read the screen if there has been output since the last time, and record any changes."""
        if self._emulator.dirty != self._read_at:
            self._read_at = self._emulator.dirty
            for number, text in self._emulator.drain_osc():
                if state := self.profile.state_of(number, text):
                    self._signs[_TITLE if number in _TITLES else number] = state
            before, self._reading = self._reading, without_work(self._read(), self.idle_rows)
            if self._reading.dialog is None and self._reading.said != before.said:
                self.said_at = now
            if self.profile.delivery.proof == "none" and (shown := self.screen.text) != self._shown:
                self._shown, self._changed_at = shown, now
        self._note_rest(now)
        self._note_dialog(now)
        if not self.is_ready:
            self.is_ready = self._looks_ready(now)
        composer = self._reading.composer
        self.has_had_composer = self.has_had_composer or composer is not None
        # The screen must have had time to show the last key.
        last_key = self.ledger.last_key
        is_echoed = last_key is None or (now - last_key >= ECHO_S and not self._is_unread(now))
        if composer is not None and composer.is_empty and is_echoed:
            self.ledger.clear()

    def _read(self) -> Reading:
        """Read the screen; without a rule, text after the caret that nobody has typed is not a draft."""
        screen, rules = self.screen, self.profile.rules
        caret = None if self._has_signs else find_caret(screen)
        if caret is None:
            return read_screen(screen, rules)
        screen = replace(screen, cursor_row=caret.row, cursor_col=caret.col)
        reading = read_screen(screen, rules)
        composer = reading.composer
        if composer is None or composer.is_empty or not stands_behind(screen, caret, composer.text):
            return reading
        is_typed = self.ledger.may_hold_draft and composer.text not in self._placeholders
        if is_typed or find_dialog(screen, rules.dialog) is not None:
            return reading
        self._placeholders[composer.text] = None
        if len(self._placeholders) > PLACEHOLDERS:
            del self._placeholders[next(iter(self._placeholders))]
        return replace(reading, composer=replace(composer, text="", is_empty=True))

    def reads_lines(self) -> bool:
        """Return whether the child is reading whole lines, so that a line sent to it counts as accepted."""
        try:
            other_end = os.open(self.tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            return bool(termios.tcgetattr(other_end)[3] & termios.ICANON)
        except termios.error:
            return False
        finally:
            os.close(other_end)

    def _looks_ready(self, now: float) -> bool:
        is_late = now - self._began >= self.profile.ready_s
        is_starting = self._reading.is_starting and not self.is_login_known and not is_late
        if self._reading.blocked is not None or is_starting:
            return False
        if not self._has_signs:
            screen = self.screen
            if is_blank(screen):
                return False
            stands_s = self.profile.delivery.idle_stands_ms / 1000
            is_quiet = self._quiet_since is not None and now - self._quiet_since >= stands_s
            return is_late or (is_quiet and find_caret(screen) is not None)
        # A composer may be drawn before the program reads input.
        takes_paste = self.screen.bracketed_paste or not self.profile.delivery.multiline
        if self._reading.composer is None or not takes_paste:
            self._drawn_at = None
            return False
        self._drawn_at = now if self._drawn_at is None else self._drawn_at
        needed_s = 0.0 if self.has_session else SESSION_S if self.tells_session else DRAWN_S
        return now - self._drawn_at >= needed_s

    @property
    def looks_busy(self) -> bool:
        """Return whether the screen shows a busy indicator.

        If the CLI itself reports its turns, an indicator on an unchanging screen is a leftover, unless it
        is shown before the first turn.
        """
        is_alive = self.last_output is not None and time.monotonic() - self.last_output < ANIMATED_S
        is_alive = is_alive or self._reading.is_preparing
        is_sign = self._reading.is_busy and (is_alive or self.profile.delivery.proof == "none")
        return is_sign or "busy" in self._signs.values()

    def disregard_work(self) -> None:
        """Ignore the current busy indicators from now on."""
        self.idle_rows += self._reading.work
        self._read_at = -1

    def _note_rest(self, now: float) -> None:
        if not self.looks_busy:
            self._worked_since = None
        elif self._worked_since is None:
            self._worked_since = now
        if self.looks_busy:
            self._quiet_since = None
        elif not self._has_signs:
            self._quiet_since = self.last_output or self._began
        elif self._quiet_since is None:
            self._quiet_since = now

    def _note_dialog(self, now: float) -> None:
        """Stop waiting for an answer to a permission request, because it was given without a report."""
        if self._asked_at is None:
            return
        is_shown = self._reading.dialog is not None
        if (self._was_dialog_shown and not is_shown) or (not is_shown and now - self._asked_at > ASKING_S):
            self._asked_at = None
        self._was_dialog_shown = is_shown

    def snapshot(self, now: float, *, is_turn_open: bool, is_end_known: bool, is_paused: bool) -> PaneFacts:
        """Return the input of the gates, as of the last `observe`."""
        reading = self._reading
        # Something else has replaced the composer; if that is a guess, the cursor must also be hidden.
        is_gone = self.has_had_composer and reading.composer is None
        return PaneFacts(
            is_stopped=self.is_stopped,
            is_ready=self.is_ready and not self.is_leaving,
            is_blocked=reading.blocked is not None,
            is_turn_open=is_turn_open,
            is_end_known=is_end_known,
            quiet_since=self._quiet_since,
            moved_at=self._changed_at if self._quiet_since is None else self.said_at,
            said_at=self.said_at,
            worked_since=self._worked_since,
            is_unasked=not self.was_asked and self.ledger.last_sent is None,
            has_dialog=reading.dialog is not None or "dialog" in self._signs.values(),
            is_asking=self._asked_at is not None,
            is_composer_gone=is_gone and (self._has_signs or not self.screen.cursor_visible),
            last_key=self.ledger.last_key,
            draft=self.draft(now),
            may_hold_draft=self.ledger.may_hold_draft,
            is_paused=is_paused,
        )

    def draft(self, now: float) -> bool | None:
        """Return whether the composer shows a draft; None if the screen does not show it."""
        composer = self._reading.composer
        if composer is None or (composer.is_empty and self._is_unread(now)):
            return None
        return not composer.is_empty

    def _is_unread(self, now: float) -> bool:
        """Return whether the screen is older than a possible draft; a busy machine shows keys late."""
        last_key, last_output = self.ledger.last_key, self.last_output
        if last_key is None or last_output is None or not self.ledger.may_hold_draft:
            return False
        return last_output < last_key and now - last_key < UNREAD_S

    def ends_at_cursor(self, text: str) -> bool:
        """Return whether `text` is right before the cursor, however it is wrapped."""
        screen = self.screen
        row = min(screen.cursor_row, len(screen.rows) - 1)
        above = "".join(line.text for line in screen.rows[max(0, row - 3) : row])
        here = "".join(run.text for run in screen.rows[row].runs)[: screen.cursor_col]
        return "".join((above + here).split()).endswith("".join(text.split()))
