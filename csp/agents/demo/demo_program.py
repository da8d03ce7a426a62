"""Be a demo agent in a terminal.

Two variables of the environment matter: CSP_DEMO_SPEED says how many times as fast as usual it thinks; with 0
its answers are there at once. CSP_TRANSCRIPT names a file that gets a transcript in the form that
csp.clis.plain.transcript describes.
"""

import contextlib
import os
import re
import select
import signal
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from csp.agents.demo.composer import Composer
from csp.agents.demo.conversation import Busy, Conversation
from csp.agents.demo.demo_screen import Screen
from csp.agents.demo.key_decoder import ESCAPE_S, Key, Keys, Text
from csp.agents.demo.personas import PERSONAS
from csp.agents.demo.transcript import Record
from csp.errors import BadInput

SPEED: Final = "CSP_DEMO_SPEED"
TRANSCRIPT: Final = "CSP_TRANSCRIPT"
AGENT: Final = "CSP_AGENT"
#: Set by people who want none, see no-color.org.
NO_COLOUR: Final = "NO_COLOR"

STREAM_S: Final = 0.06
WORDS_AT_ONCE: Final = 3
LEAVE_S: Final = 2.0
_TICK_S: Final = 0.12
_READ_BYTES: Final = 65536
_WORD: Final = re.compile(r"\s*\S+")
_ENDED_BY: Final = (signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True, kw_only=True)
class _Answer:
    """An answer on its way: `shown` of its characters are on the screen."""

    prompt: str
    text: str
    what: str
    began: float
    next_at: float
    shown: int = 0

    @property
    def is_whole(self) -> bool:
        return self.shown >= len(self.text)

    def reveal(self) -> None:
        """Show a few words more."""
        for _ in range(WORDS_AT_ONCE):
            word = _WORD.match(self.text, self.shown)
            self.shown = word.end() if word else len(self.text)


class Program:
    """One run, from the first screen to the exit code."""

    def __init__(self, persona: str, env: Mapping[str, str], fd: int = 0) -> None:
        if persona not in PERSONAS:
            raise BadInput(f"unknown persona {persona!r}, expected one of: {', '.join(PERSONAS)}")
        if not os.isatty(fd) or not os.isatty(1):
            raise BadInput("a demo agent needs a terminal", "run it in one, or behind csp sidecar")
        self._fd = fd
        self._persona = PERSONAS[persona]
        self._name = env.get(AGENT) or persona
        self._speed = _speed(env.get(SPEED, ""))
        self._record = Record(env.get(TRANSCRIPT, ""))
        self._keys = Keys()
        self._composer = Composer()
        self._screen = Screen(1)
        has_colour = not env.get(NO_COLOUR)
        self._conversation = Conversation(self._persona, self._name, self._screen, has_colour=has_colour)
        self._answer: _Answer | None = None
        self._waiting: deque[str] = deque()
        self._turns = 0
        self._leave_until = 0.0
        self._escape_at: float | None = None
        self._exit_code: int | None = None
        self._mode: list[Any] = []

    def run(self) -> int:
        """Talk until the person leaves or the terminal has gone; return the exit code."""
        self._mode = termios.tcgetattr(self._fd)
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGWINCH, signal.SIGCONT, *_ENDED_BY):
            signal.signal(number, lambda *_: None)
        try:
            self._take_terminal()
            self._conversation.greet()
            self._draw()
            self._write("start", model="demo")
            while self._exit_code is None:
                self._step(woken)
        except OSError:
            # The terminal has gone, so there is nobody to talk to.
            self._exit_code = 128 + signal.SIGHUP
        finally:
            self._leave()
        return self._exit_code or 0

    # --- the terminal ----------------------------------------------------------------------------

    def _take_terminal(self) -> None:
        tty.setraw(self._fd, termios.TCSANOW)
        self._screen.open()
        self._fit()

    def _fit(self) -> None:
        size = os.get_terminal_size(1)
        self._conversation.fit(size.lines or 24, size.columns or 80)

    def _give_terminal_back(self, last: str) -> None:
        try:
            self._screen.close(last)
            termios.tcsetattr(self._fd, termios.TCSANOW, self._mode)
        except (OSError, termios.error):
            pass  # it has gone

    def _leave(self) -> None:
        if self._answer:
            self._tell(self._answer, "interrupted")
        self._give_terminal_back(f"{self._name} has left.")
        self._record.close()

    def _stop(self) -> None:
        """Stop as Ctrl-Z asks; go on when somebody says so."""
        self._give_terminal_back("")
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._take_terminal()
        self._conversation.show_again()

    # --- one step --------------------------------------------------------------------------------

    def _step(self, woken: int) -> None:
        ready, _, _ = select.select([self._fd, woken], [], [], self._pause_s())
        if woken in ready:
            self._take_signals(os.read(woken, 64))
        if self._fd in ready:
            data = os.read(self._fd, _READ_BYTES)
            if not data:
                self._exit_code = 0
            for key in self._keys.feed(data):
                self._take(key)
            self._escape_at = time.monotonic() + ESCAPE_S if self._keys.is_waiting else None
        if self._escape_at is not None and time.monotonic() >= self._escape_at:
            self._escape_at = None
            for key in self._keys.flush():
                self._take(key)
        self._go_on()
        self._draw()

    def _pause_s(self) -> float | None:
        """Return how long nothing happens by itself."""
        now = time.monotonic()
        times = [self._escape_at] if self._escape_at is not None else []
        if self._answer:
            times += [self._answer.next_at, now + _TICK_S]
        if self._leave_until > now:
            times.append(self._leave_until)
        return max(0.0, min(times) - now) if times else None

    def _take_signals(self, numbers: bytes) -> None:
        if signal.SIGCONT in numbers:
            # A shell may have used the terminal meanwhile.
            self._take_terminal()
        if signal.SIGWINCH in numbers or signal.SIGCONT in numbers:
            self._show_again()
        ended = [number for number in numbers if number in _ENDED_BY]
        if ended:
            self._exit_code = 128 + ended[0]

    def _draw(self) -> None:
        now, busy = time.monotonic(), None
        if self._answer:
            busy = Busy(what=self._answer.what, elapsed_s=now - self._answer.began)
        hint = f"{self._name} · scripted demo, no model · ctrl-d leaves"
        if self._leave_until > now:
            hint = "press ctrl-c again to leave"
        elif self._waiting:
            hint = f"{len(self._waiting)} waiting · {hint}"
        self._conversation.draw(self._composer, busy, hint)

    # --- keys ------------------------------------------------------------------------------------

    def _take(self, key: Text | Key) -> None:
        act = self._acts.get(key.name) if isinstance(key, Key) else None
        if act is not None:
            act(self)
            return
        self._leave_until = 0.0
        self._composer.take(key)

    def _enter(self) -> None:
        prompt = self._composer.send()
        if prompt.strip():
            self._waiting.append(prompt)
        self._go_on()

    def _escape(self) -> None:
        if self._answer:
            self._interrupt()

    def _ctrl_c(self) -> None:
        """Clear, else interrupt, else leave at the second time."""
        if self._composer.text:
            self._composer.clear()
        elif self._answer:
            self._interrupt()
        elif self._leave_until > time.monotonic():
            self._exit_code = 0
        else:
            self._leave_until = time.monotonic() + LEAVE_S

    def _ctrl_d(self) -> None:
        if self._composer.text:
            self._composer.take(Key("delete"))
        else:
            self._exit_code = 0

    def _show_again(self) -> None:
        self._fit()
        self._conversation.show_again()

    _acts: Final[Mapping[str, Callable[["Program"], None]]] = {
        "enter": _enter,
        "escape": _escape,
        "ctrl-c": _ctrl_c,
        "ctrl-d": _ctrl_d,
        "ctrl-l": _show_again,
        "ctrl-z": _stop,
    }

    # --- answers ---------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Do what is due of the answer, then of those that wait."""
        while True:
            if self._answer is None:
                if not self._waiting:
                    return
                self._begin(self._waiting.popleft())
            elif not self._is_due(self._answer):
                return

    def _begin(self, prompt: str) -> None:
        # The first screen does not wait for what only an answer needs.
        from csp.agents.demo.responder import reply

        now = time.monotonic()
        think_s = self._persona.think_s / self._speed if self._speed else 0.0
        self._build(prompt)
        text = reply(self._persona.name, prompt, self._turns, self._name)
        busy = self._persona.busy
        self._answer = _Answer(
            prompt=prompt, text=text, what=busy[self._turns % len(busy)], began=now, next_at=now + think_s
        )
        self._turns += 1
        self._conversation.ask(prompt)
        # Whoever reads of it shall find it done on the screen, too.
        self._draw()
        self._write("prompt", id=str(self._turns), text=prompt)

    @staticmethod
    def _build(prompt: str) -> None:
        """Write the file that the builder of a run says it has written."""
        from csp.agents.demo.review_script import work_of

        work = work_of(prompt)
        if work is not None:
            with contextlib.suppress(OSError):
                work.path.write_text(work.text, "utf-8")

    def _is_due(self, answer: _Answer) -> bool:
        """Show more of an answer when it is time to; tell whether there was anything to do."""
        now = time.monotonic()
        if now < answer.next_at:
            return False
        if not self._speed:
            answer.shown = len(answer.text)
        else:
            answer.reveal()
            answer.next_at = now + STREAM_S / self._speed
        self._conversation.stream(answer.text[: answer.shown])
        if answer.is_whole:
            self._end("done")
        return True

    def _interrupt(self) -> None:
        self._end("interrupted")
        self._conversation.note("Interrupted by you")

    def _end(self, how: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            self._conversation.finish()
            self._draw()
            self._tell(answer, how)

    def _tell(self, answer: _Answer, how: str) -> None:
        """Write down what an answer has come to."""
        said = answer.text[: answer.shown]
        if said:
            self._write("text", id=str(self._turns), text=said)
        # Words stand in for the tokens of a model.
        self._write("usage", input=len(answer.prompt.split()), output=len(said.split()), model="demo")
        self._write("end", how=how)

    def _write(self, kind: str, **fields: object) -> None:
        try:
            self._record.write(kind, **fields)
        except OSError as error:
            self._record.close()
            self._conversation.note(f"the transcript ends here: {error.strerror or error}")


def _speed(text: str) -> float:
    try:
        speed = float(text or 1)
    except ValueError:
        speed = -1.0
    if not 0 <= speed <= 1000:
        raise BadInput(f"{SPEED} is {text!r}, expected a number from 0 to 1000", "0 answers at once")
    return speed
