"""The state of the pane: its screen, its signals, and the keys of the person."""

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

#: A permission that was asked for has its dialog on the screen within this time.
ASKING_S: Final = 5.0

#: A hook that never comes must not keep a composer from being used.
SESSION_S: Final = 15.0
#: A CLI without such a hook may draw its composer for a moment before it asks for a login.
DRAWN_S: Final = 1.0
#: A sign of work is redrawn at least this often.
ANIMATED_S: Final = 2.5

#: A program that has drawn nothing since a key may not have read it yet; after this time it draws nothing.
UNREAD_S: Final = 10.0

#: So many texts are remembered as placeholders; a CLI may show another one each time.
PLACEHOLDERS: Final = 20
_NOTHING: Final = Reading()
_TITLE: Final = 0
_TITLES: Final = frozenset({0, 2})


class PaneState:
    """The pane of the CLI. `observe` reads what has come in; `snapshot` returns what is known of it."""

    def __init__(self, profile: Profile, rows: int, cols: int) -> None:
        self.profile = profile
        self.ledger = DraftTracker()
        self.is_stopped = False
        self.is_ready = False
        #: Another child is about to take the place of this one.
        self.is_leaving = False
        #: Whether the CLI says by a hook that it has a session; whether it has said so.
        self.tells_session = profile.delivery.proof == "hook"
        self.has_session = False
        #: Else the place on the screen that would say otherwise has to be seen first.
        self.is_login_known = False
        self.last_output: float | None = None
        #: How many bytes the program has written so far; what its history was when they were `_mark`.
        self.written = 0
        self.remembered: list[str] = []
        self._mark: int | None = None
        #: How many bytes of the person's keys are known here, for keys that cross ours on their way.
        self.keys_seen = 0
        self._emulator: Emulator = make_emulator(rows, cols)
        self._reading = _NOTHING
        self._read_at = -1
        #: When the conversation on the screen last changed.
        self.said_at: float | None = None
        #: When anything on the screen did, where no more is known than that.
        self._changed_at: float | None = None
        self._shown = ""
        #: What each source of signals said last: the title, an OSC of the CLI's own.
        self._signs: dict[int, str] = {}
        self._quiet_since: float | None = None
        self._worked_since: float | None = None
        #: Whether anybody may have asked the program anything.
        self.was_asked = False
        #: The rows that show a sign of work whatever the program does, by their words.
        self.idle_rows: tuple[str, ...] = ()
        self._asked_at: float | None = None
        self._was_dialog_shown = False
        self._drawn_at: float | None = None
        self._began = time.monotonic()
        #: A composer was on the screen, so one that is not there now has gone.
        self.has_had_composer = False
        # Without a rule for its composer or a word of its own, a CLI at rest is one that writes nothing.
        self._placeholders: dict[str, None] = {}
        #: The child's end of its terminal; empty where that is not known.
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
        """Remember the history as it is when the program has written so many bytes."""
        is_now = mark <= self.written
        self.remembered = self.history() if is_now else []
        self._mark = None if is_now else mark

    def count_keys(self, data: bytes) -> bool:
        """Count the person's keys; tell whether there were any."""
        self.keys_seen += len(data)
        return self.ledger.feed(data, time.monotonic())

    def forget_screen(self, lost: int) -> None:
        """Begin with an empty screen, since so much output was lost; modes set once stay as they were."""
        modes = self.modes
        self._emulator.feed(b"\x1bc")
        self.set_modes(modes)
        self.written += lost
        if self._mark is not None:
            self.remember_at(self._mark)

    @property
    def modes(self) -> tuple[bool, bool]:
        """Bracketed paste, alternate screen: a CLI sets them once, at its start."""
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
        """Forget the child before, whose screen and draft have gone with it."""
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
        """Note that the CLI asked for a permission, before its dialog is on the screen."""
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
        """Read the screen if anything came in since the last time, and note what has changed by now."""
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
        # The screen must have had the time to show the last key.
        last_key = self.ledger.last_key
        is_echoed = last_key is None or (now - last_key >= ECHO_S and not self._is_unread(now))
        if composer is not None and composer.is_empty and is_echoed:
            self.ledger.clear()

    def _read(self) -> Reading:
        """Read the screen; where no rule helps, a text behind the caret that nobody has typed is no draft."""
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
        """Tell whether the child reads whole lines now, so that one that it was sent is one it has taken."""
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
        # A composer may be drawn before anybody reads what is typed into it.
        takes_paste = self.screen.bracketed_paste or not self.profile.delivery.multiline
        if self._reading.composer is None or not takes_paste:
            self._drawn_at = None
            return False
        self._drawn_at = now if self._drawn_at is None else self._drawn_at
        needed_s = 0.0 if self.has_session else SESSION_S if self.tells_session else DRAWN_S
        return now - self._drawn_at >= needed_s

    @property
    def looks_busy(self) -> bool:
        """Tell whether a sign of work shows.

        Where the CLI itself tells of its turns, one on a screen that stands still is a leftover.
        """
        is_alive = self.last_output is not None and time.monotonic() - self.last_output < ANIMATED_S
        is_sign = self._reading.is_busy and (is_alive or self.profile.delivery.proof == "none")
        return is_sign or "busy" in self._signs.values()

    def disregard_work(self) -> None:
        """Take the signs of work that show now for none from now on."""
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
        """End a wait for an answer that was given without any word of it."""
        if self._asked_at is None:
            return
        is_shown = self._reading.dialog is not None
        if (self._was_dialog_shown and not is_shown) or (not is_shown and now - self._asked_at > ASKING_S):
            self._asked_at = None
        self._was_dialog_shown = is_shown

    def snapshot(self, now: float, *, is_turn_open: bool, is_end_known: bool, is_paused: bool) -> PaneFacts:
        """Return all that the gates ask for, as of the last `observe`."""
        reading = self._reading
        # Something else has taken the composer's place; where that is a guess, the cursor is hidden too.
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
        """Tell whether the composer shows a draft; None: nothing is known by the screen."""
        composer = self._reading.composer
        if composer is None or (composer.is_empty and self._is_unread(now)):
            return None
        return not composer.is_empty

    def _is_unread(self, now: float) -> bool:
        """Tell whether the screen is still the one from before a draft: a busy machine shows keys late."""
        last_key, last_output = self.ledger.last_key, self.last_output
        if last_key is None or last_output is None or not self.ledger.may_hold_draft:
            return False
        return last_output < last_key and now - last_key < UNREAD_S

    def ends_at_cursor(self, text: str) -> bool:
        """Tell whether `text` stands right before the cursor, however it is wrapped."""
        screen = self.screen
        row = min(screen.cursor_row, len(screen.rows) - 1)
        above = "".join(line.text for line in screen.rows[max(0, row - 3) : row])
        here = "".join(run.text for run in screen.rows[row].runs)[: screen.cursor_col]
        return "".join((above + here).split()).endswith("".join(text.split()))
