"""The scripted TUI itself: what keys, timers and turns do."""

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from argparse import Namespace
from pathlib import Path
from typing import Final

from tests.tui.composer import framed
from tests.tui.drawing import Drawing
from tests.tui.keys import Key, Keyboard
from tests.tui.knobs import FOREVER
from tests.tui.wiring import Wiring

_ESCAPE_S: Final = 0.03
_TICK_S: Final = 0.1
_BLOCKED: Final = {
    "trust": ["Do you trust the files in this folder?", "❯ 1. Yes, I trust this folder", "  2. No, exit"],
    "login": ["Not logged in. Select login method:", "❯ 1. Account with subscription", "  2. API key"],
}
_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STATES: Final = {"idle": "idle", "busy": "working", "dialog": "blocked:kind=permission"}


class Program:
    """One run: keys go to the start screen, else to the dialog, else to the composer."""

    def __init__(
        self, knobs: Namespace, drawing: Drawing | None = None, wiring: Wiring | None = None
    ) -> None:
        self._knobs = knobs
        self._wiring = wiring or Wiring(knobs)
        self._drawing = drawing or Drawing(sys.stdout.fileno())
        self._keyboard = Keyboard()
        self._draft: str = knobs.draft
        self._has_paste = False
        self._queue: list[str] = []
        self._blocked: str = knobs.blocked
        self._dialog: str = ""
        self._asking = ""
        self._turn: str | None = None
        self._turn_ends = 0.0
        self._turns = 0
        self._swallow_until = 0.0
        self._swallow_left = 0
        self._breaks_left = 0
        self._blank_until = 0.0
        self._said: list[str] = []
        self._timers: list[tuple[float, str]] = []
        self._draw_at: float | None = 0.0
        self._exit: int | None = None
        self._kept = b""
        self._deaf_until = 0.0

    def run(self) -> int:
        before = termios.tcgetattr(sys.stdin)
        signal.signal(signal.SIGWINCH, lambda *_: self._dirty())
        try:
            tty.setraw(sys.stdin)
            self._load()
            if self._knobs.start_ms:
                time.sleep(self._knobs.start_ms / 1000)
            self._start()
            while self._exit is None:
                self._step()
        finally:
            self._drawing.write(
                "\x1b[?2004l" + ("\x1b[?1049l" if self._knobs.alternate or self._knobs.at_top else "\r\n")
            )
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        self._wiring.log("exited", code=self._exit)
        return self._exit

    def _load(self) -> None:
        if self._knobs.loading:
            self._drawing.write(f"{self._knobs.loading}\r\n")

    def _start(self) -> None:
        knobs = self._knobs
        self._deaf_until = time.monotonic() + knobs.deaf_ms / 1000
        self._drawing.write("\x1b[?1049h\x1b[H" if knobs.alternate or knobs.at_top else "")
        self._drawing.write("" if knobs.no_paste else "\x1b[?2004h")
        self._drawing.has_cursor = not (knobs.drawn_caret or knobs.no_caret)
        self._wiring.log("started", unknown=knobs.unknown, pid=os.getpid())
        # Not before the log has it: what comes by the clock is measured from there.
        now = time.monotonic()
        self._wiring.hook("SessionStart", source="startup")
        self._drawing.settle(["Scripted TUI 1.0", ""])
        for seconds, what in (
            (knobs.dialog_after_s, "dialog"),
            (knobs.exit_after_s, "exit"),
            (knobs.crash_after_s, "crash"),
        ):
            if seconds:
                self._timers.append((now + seconds, what))
        if knobs.dialog_at_start:
            self._open_dialog("")
        self._show_state("dialog" if self._dialog else "idle")

    def _step(self) -> None:
        readable, _, _ = select.select([sys.stdin], [], [], self._wait_s())
        data = os.read(sys.stdin.fileno(), 65536) if readable else b""
        if readable and not data:
            self._exit = 0
        self.take(data)

    def take(self, data: bytes) -> None:
        """Take keys, none if there were none for as long as it waits; do what is due."""
        self._kept += data
        is_deaf = time.monotonic() < self._deaf_until
        data, self._kept = (b"", self._kept) if is_deaf else (self._kept, b"")
        if data:
            self._press(self._keyboard.feed(data))
        elif self._keyboard.is_waiting:
            self._press(self._keyboard.flush())
        self._fire_timers()
        self._draw_if_due()

    def _wait_s(self) -> float:
        if self._keyboard.is_waiting:
            return _ESCAPE_S
        now = time.monotonic()
        times = [at for at, _ in self._timers] + ([self._draw_at] if self._draw_at is not None else [])
        if self._turn is not None and not self._dialog:
            times.append(self._turn_ends)
        if self._kept:
            times.append(self._deaf_until)
        return max(0.0, min([_TICK_S, *(at - now for at in times)]))

    def _fire_timers(self) -> None:
        now = time.monotonic()
        due = [what for at, what in self._timers if at <= now]
        self._timers = [timer for timer in self._timers if timer[0] > now]
        for what in due:
            self._fire(what)
        if self._turn is not None and not self._dialog and now >= self._turn_ends:
            self._finish_turn()
        if self._knobs.chatter_ms and self._draw_at is None:
            self._draw_at = now + self._knobs.chatter_ms / 1000
        if self._knobs.spinner_ms and self._shows_work and self._draw_at is None:
            self._draw_at = now + self._knobs.spinner_ms / 1000

    def _fire(self, what: str) -> None:
        if what == "dialog":
            self._open_dialog("")
        elif what == "exit":
            self._exit = self._knobs.exit_code
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    def _press(self, keys: list[Key]) -> None:
        for key in keys:
            if self._exit is not None:
                return
            if self._blocked:
                self._press_blocked(key)
            elif self._dialog:
                self._press_dialog(key)
            else:
                self._press_composer(key)
            self._dirty()

    def _press_blocked(self, key: Key) -> None:
        if key.kind == "enter" or key.text == "1":
            self._wiring.log("passed", screen=self._blocked)
            self._blocked = ""
        elif key.kind in ("escape", "interrupt") or key.text == "2":
            self._exit = 1

    def _press_dialog(self, key: Key) -> None:
        """Take 1 or Enter as yes, 2 or Esc as no; all else, pasted text too, is lost here."""
        if key.kind == "enter" or (key.kind == "text" and key.text == "1"):
            self._close_dialog("approved")
        elif key.kind in ("escape", "interrupt") or (key.kind == "text" and key.text == "2"):
            self._close_dialog("denied")
        else:
            self._wiring.log("lost", kind=key.kind, text=key.text)

    def _press_composer(self, key: Key) -> None:
        if key.kind in ("text", "paste"):
            self._draft += key.text
            if key.kind == "paste":
                self._has_paste = True
                self._swallow_until = time.monotonic() + self._knobs.swallow_ms / 1000
                self._swallow_left = self._knobs.swallow_first
                self._breaks_left = self._knobs.break_first
        elif key.kind == "erase":
            self._draft = self._draft[:-1]
        elif key.kind == "kill":
            self._draft, self._has_paste = "", False
        elif key.kind == "enter":
            self._press_enter()
        elif key.kind in ("escape", "interrupt"):
            self._press_stop(key)

    def _press_stop(self, key: Key) -> None:
        if self._turn is not None:
            self._turn = None
            self._wiring.interrupted()
            self._drawing.settle(["[interrupted]", ""])
            self._show_state("idle")
        elif self._draft and key.kind == "interrupt":
            self._draft, self._has_paste = "", False

    def _press_enter(self) -> None:
        if self._is_swallowed():
            self._wiring.log("swallowed")
            return
        if not self._draft.strip():
            return
        if self._breaks_left:
            self._breaks_left -= self._knobs.break_first != FOREVER
            self._draft += "\n"
            return
        if self._draft.endswith("\\"):
            self._draft = self._draft[:-1] + "\n"
            return
        if self._turn is None:
            self._submit(self._take_draft())
        elif self._knobs.busy_enter == "queue":
            self._queue.append(self._take_draft())
        elif self._knobs.busy_enter == "abort":
            self._wiring.log("aborted", text=self._turn)
            self._submit(self._take_draft())

    def _is_swallowed(self) -> bool:
        if not self._has_paste:
            return False
        if self._swallow_left > 0:
            self._swallow_left -= 1
            return True
        return self._knobs.swallow_ms == FOREVER or time.monotonic() < self._swallow_until

    def _take_draft(self) -> str:
        draft, self._draft, self._has_paste = self._draft, "", False
        return draft

    def _submit(self, text: str) -> None:
        if self._knobs.clear_on_submit:
            self._drawing.clear()
            self._said.clear()
        if not self._knobs.no_echo:
            self._say([f"> {line}" for line in text.split("\n")] + [""])
        self._blank_until = time.monotonic() + self._knobs.blank_ms / 1000
        self._wiring.prompt(text)
        self._turn, self._turn_ends = text, time.monotonic() + self._knobs.busy_s
        self._turns += 1
        self._show_state("busy")
        if self._knobs.exit_on is not None and self._knobs.exit_on.search(text):
            self._exit = self._knobs.exit_code
        elif self._knobs.dialog_on is not None and self._knobs.dialog_on.search(text):
            self._open_dialog(text)

    def _finish_turn(self) -> None:
        text = self._reply_text(self._turn or "")
        self._turn = None
        self._say([f"* {text.partition(chr(10))[0]}", *(f"  {line}" for line in text.split("\n")[1:]), ""])
        self._wiring.reply(text)
        self._show_state("idle")
        if self._knobs.dialog_after_idle_ms != FOREVER and self._turns == 1:
            self._timers.append((time.monotonic() + self._knobs.dialog_after_idle_ms / 1000, "dialog"))
        elif self._queue:
            self._submit(self._queue.pop(0))

    def _reply_text(self, prompt: str) -> str:
        if self._knobs.reply_file:
            return Path(self._knobs.reply_file).read_text("utf-8")
        template = str(self._knobs.reply).replace("\\n", "\n")
        first = prompt.partition("\n")[0]
        return template.replace("{prompt}", prompt).replace("{first}", first).replace("{n}", str(self._turns))

    def _open_dialog(self, asking: str) -> None:
        self._dialog, self._asking = self._knobs.dialog_command, asking
        self._wiring.log("asked", command=self._dialog)
        tool_input = {"command": self._dialog}
        self._wiring.hook("PermissionRequest", tool_name="Bash", tool_input=tool_input)
        self._show_state("dialog")

    def _close_dialog(self, answer: str) -> None:
        command, self._dialog = self._dialog, ""
        self._wiring.log(answer, command=command)
        if answer == "approved":
            self._wiring.hook("PostToolUse", tool_name="Bash", tool_input={"command": command})
        elif self._asking and self._turn is not None:
            self._turn = None
            self._wiring.interrupted()
        self._drawing.settle([f"[{answer}: {command}]", ""])
        self._show_state("idle" if self._turn is None else "busy")
        if self._turn is None and self._queue:
            self._submit(self._queue.pop(0))

    def _show_state(self, state: str) -> None:
        if self._knobs.title:
            # While it asks the title is the idle one, as Claude's is.
            self._drawing.write(f"\x1b]0;{'* working' if state == 'busy' else 'ready'}\x07")
        if self._knobs.osc:
            self._drawing.write(f"\x1b]7501;state={_STATES[state]}\x07")
        self._dirty()

    def _dirty(self) -> None:
        due = time.monotonic() + self._knobs.echo_ms / 1000
        self._draw_at = due if self._draw_at is None else min(self._draw_at, due)

    def _draw_if_due(self) -> None:
        if self._draw_at is None or time.monotonic() < self._draw_at or self._exit is not None:
            return
        self._draw_at = None
        with contextlib.suppress(OSError):
            self._drawing.columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
        if time.monotonic() < self._blank_until:
            self._drawing.clear()
            self._draw_at = self._blank_until
        elif self._knobs.at_top:
            self._drawing.clear()
            self._drawing.page([*self._live_rows(), "─" * 40, *self._said])
        else:
            self._drawing.live(self._live_rows())

    def _say(self, lines: list[str]) -> None:
        """Put lines into the conversation."""
        if self._knobs.at_top:
            self._said += lines
        else:
            self._drawing.settle(lines)

    @property
    def _shows_work(self) -> bool:
        return self._turn is not None or bool(self._knobs.works_always)

    def _live_rows(self) -> list[str]:
        if self._blocked:
            return _BLOCKED[self._blocked]
        if self._dialog:
            question = ["Bash command", "", f"  {self._dialog}", "", "Do you want to proceed?"]
            return [*question, "❯ 1. Yes", "  2. No", "", "Esc to cancel"]
        queued = [f"  queued: {text.partition(chr(10))[0]}" for text in self._queue]
        composer = [*([self._knobs.path] if self._knobs.path else []), *self._composer_rows()]
        if not self._shows_work:
            return [*queued, *composer]
        period_s = (self._knobs.spinner_ms or 1000) / 1000
        spinner = _SPINNER[int(time.monotonic() / period_s) % len(_SPINNER)]
        sign = str(self._knobs.working).replace("{spinner}", spinner)
        return [*queued, *composer, "", sign] if self._knobs.work_below else [sign, "", *queued, *composer]

    def _composer_rows(self) -> list[str]:
        return framed(self._knobs, self._draft)
