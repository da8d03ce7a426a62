"""Run a demo agent in a terminal.

It reads two environment variables. CSP_DEMO_SPEED is a factor for its thinking speed; with 0, replies
appear immediately. CSP_TRANSCRIPT is the path of a transcript in the format of csp.clis.plain.transcript.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from prompt_toolkit.filters import Condition
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from csp.agents.demo.demo_pane import DemoPane
from csp.agents.demo.personas import PERSONAS
from csp.errors import BadInput

SPEED: Final = "CSP_DEMO_SPEED"
TRANSCRIPT: Final = "CSP_TRANSCRIPT"
AGENT: Final = "CSP_AGENT"
#: Set by users who want no colours; see no-color.org.
NO_COLOUR: Final = "NO_COLOR"

STREAM_S: Final = 0.06
WORDS_AT_ONCE: Final = 3
LEAVE_S: Final = 2.0
_FRAME_S: Final = 0.12
_SPINNER: Final = "·✢✳✶✻✽✻✶✳✢"
_WORDS: Final = re.compile(rf"(?:\s*\S+){{1,{WORDS_AT_ONCE}}}\s*")


@dataclass(slots=True, kw_only=True)
class _Answer:
    """A reply in progress; `shown` is the number of its characters on the screen."""

    prompt: str
    what: str
    began: float
    text: str = ""
    shown: int = 0


class Record:
    """The transcript in the format of csp.clis.plain.transcript.

    It appends one line per event to this run's file; without a file, it does nothing.
    """

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600) if path else -1

    def write(self, kind: str, **fields: object) -> None:
        """Add an event with a single write, so that a reader hardly ever sees part of it."""
        if self._fd < 0:
            return
        line = json.dumps({"type": kind, "ts": time.time(), **fields}, ensure_ascii=False)
        data = (line + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class Program:
    """One run, from the first screen to the exit code."""

    def __init__(self, persona: str, env: Mapping[str, str]) -> None:
        if persona not in PERSONAS:
            raise BadInput(f"unknown persona {persona!r}, expected one of: {', '.join(PERSONAS)}")
        if not os.isatty(0) or not os.isatty(1):
            raise BadInput("a demo agent needs a terminal", "run it in a terminal or with csp sidecar")
        self._env = env
        self._persona = PERSONAS[persona]
        self._name = env.get(AGENT) or persona
        self._speed = _speed(env.get(SPEED, ""))
        self._record = Record(env.get(TRANSCRIPT, ""))
        self._answer: _Answer | None = None
        self._answering: asyncio.Future[None] | None = None
        self._prompts: asyncio.Queue[str] = asyncio.Queue()
        self._turns = 0
        self._leave_until = 0.0

    def run(self) -> int:
        """Run until the user quits or the terminal is gone; return the exit code."""
        try:
            return asyncio.run(self._run())
        except OSError:
            # The terminal is gone, so there is no user any more.
            return 128 + signal.SIGHUP
        finally:
            if self._answer:
                self._tell(self._answer, "interrupted")
            self._record.close()

    async def _run(self) -> int:
        loop = asyncio.get_running_loop()
        colour = None if self._env.get(NO_COLOUR) else self._persona.colour
        self._pane = DemoPane(
            self._name,
            colour,
            self._keys(),
            self._busy,
            self._hint,
            self._env.get("TERM"),
            sys.stdout,
            create_input(sys.stdin),
        )
        app = self._pane.app
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._exit, 128 + number)
        loop.add_signal_handler(signal.SIGCONT, self._continue)
        persona = self._persona
        who = persona.name if self._name == persona.name else f"{self._name} ({persona.name})"
        self._pane.add(
            "plain",
            f"{who}: {persona.motto}\n"
            "A scripted demo agent of CSP. It needs no model, key or network: fixed rules derive "
            "its replies from your words.",
        )
        # The composer accepts keys as soon as the first screen appears.
        app.after_render += self._started
        worker = asyncio.ensure_future(self._answer_all())
        worker.add_done_callback(lambda task: self._exit(1))
        try:
            code = await app.run_async(set_exception_handler=False)
        except EOFError:
            code = 0
        finally:
            worker.cancel()
        self._pane.add("plain", f"{self._name} has left.")
        if worker.done() and not worker.cancelled():
            worker.result()
        return code

    def _started(self, app: object) -> None:
        self._pane.app.after_render -= self._started
        self._write("start", model="demo")

    def _exit(self, code: int) -> None:
        if self._pane.app.is_running and not self._pane.app.is_done:
            self._pane.app.exit(result=code)

    def _continue(self) -> None:
        """Restore the terminal modes, which a shell may have changed in the meantime."""
        self._pane.app.input.raw_mode().__enter__()
        self._pane.show_again()

    # --- the rows below the conversation ---------------------------------------------------------

    def _busy(self) -> str:
        if self._answer is None:
            return ""
        elapsed_s = time.monotonic() - self._answer.began
        mark = _SPINNER[int(elapsed_s / _FRAME_S) % len(_SPINNER)]
        return f"{mark} {self._answer.what}… ({int(elapsed_s)}s · esc to interrupt)"

    def _hint(self) -> str:
        if self._leave_until > time.monotonic():
            return "press ctrl-c again to leave"
        waiting = f"{self._prompts.qsize()} waiting · " if self._prompts.qsize() else ""
        return f"{waiting}{self._name} · scripted demo, no model · ctrl-d leaves"

    # --- keys ------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        is_empty = Condition(lambda: not self._pane.composer.text)

        @keys.add("enter")
        def enter(event: KeyPressEvent) -> None:
            prompt = event.current_buffer.text
            event.current_buffer.reset(append_to_history=bool(prompt.strip()))
            if prompt.strip():
                self._prompts.put_nowait(prompt)

        @keys.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            """Insert pasted text without characters that could control a terminal."""
            text = event.data.replace("\r\n", "\n").replace("\r", "\n")
            kept = (char for char in text if char in "\n\t" or (char >= " " and not "\x7f" <= char <= "\x9f"))
            event.current_buffer.insert_text("".join(kept))

        for newline in (["c-j"], ["escape", "enter"], ["escape", "c-j"]):
            keys.add(*newline)(lambda event: event.current_buffer.insert_text("\n"))
        keys.add("escape")(lambda event: self._interrupt())
        keys.add("c-c")(self._ctrl_c)
        keys.add("<sigint>")(self._ctrl_c)
        keys.add("c-d", filter=is_empty)(lambda event: self._exit(0))
        keys.add("c-l")(lambda event: self._pane.show_again())
        keys.add("c-z")(lambda event: event.app.suspend_to_background())
        return keys

    def _ctrl_c(self, event: KeyPressEvent) -> None:
        """Clear the composer, else interrupt the reply, else exit on the second press."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif self._answer:
            self._interrupt()
        elif self._leave_until > time.monotonic():
            self._exit(0)
        else:
            self._leave_until = time.monotonic() + LEAVE_S
            asyncio.get_running_loop().call_later(LEAVE_S, self._pane.app.invalidate)

    def _interrupt(self) -> None:
        if self._answering:
            self._answering.cancel()

    # --- replies ---------------------------------------------------------------------------------

    async def _answer_all(self) -> None:
        """Answer the prompts one at a time."""
        while True:
            prompt = await self._prompts.get()
            what = self._persona.busy[self._turns % len(self._persona.busy)]
            self._answer = answer = _Answer(prompt=prompt, what=what, began=time.monotonic())
            self._turns += 1
            # Show it before its event appears in the transcript.
            self._pane.add("prompt", prompt)
            self._write("prompt", id=str(self._turns), text=prompt)
            self._answering = asyncio.ensure_future(self._give(answer))
            while not self._answering.done():
                await asyncio.wait([self._answering], timeout=_FRAME_S)
                self._pane.app.invalidate()
            is_whole = not self._answering.cancelled()
            if is_whole:
                self._answering.result()
            self._answer = self._answering = None
            self._pane.finish()
            if not is_whole:
                self._pane.add("note", "Interrupted by you")
            self._tell(answer, "done" if is_whole else "interrupted")

    async def _give(self, answer: _Answer) -> None:
        """Compute a reply, do the work that it describes, and show it at typing speed."""
        # Imported late, because the first screen does not need it.
        from csp.agents.demo.demo_prompt import read_prompt
        from csp.agents.demo.responder import reply
        from csp.agents.demo.review_script import work_of

        asked = await asyncio.to_thread(read_prompt, answer.prompt, self._name, self._env)
        work = work_of(asked.run) if asked.run else None
        if work is not None:
            with contextlib.suppress(OSError):
                work.path.write_text(work.text, "utf-8")
        answer.text = reply(self._persona.name, asked, self._turns - 1)
        if self._speed:
            await asyncio.sleep(self._persona.think_s / self._speed)
        while answer.shown < len(answer.text):
            words = _WORDS.match(answer.text, answer.shown) if self._speed else None
            answer.shown = words.end() if words else len(answer.text)
            self._pane.stream(answer.text[: answer.shown])
            if self._speed:
                await asyncio.sleep(STREAM_S / self._speed)

    def _tell(self, answer: _Answer, how: str) -> None:
        """Record the result of a reply."""
        said = answer.text[: answer.shown]
        if said:
            self._write("text", id=str(self._turns), text=said)
        # Words are counted instead of a model's tokens.
        self._write("usage", input=len(answer.prompt.split()), output=len(said.split()), model="demo")
        self._write("end", how=how)

    def _write(self, kind: str, **fields: object) -> None:
        try:
            self._record.write(kind, **fields)
        except OSError as error:
            self._record.close()
            self._pane.add("note", f"the transcript ends here: {error.strerror or error}")


def _speed(text: str) -> float:
    try:
        speed = float(text or 1)
    except ValueError:
        speed = -1.0
    if not 0 <= speed <= 1000:
        raise BadInput(f"{SPEED} is {text!r}, expected a number from 0 to 1000", "0 replies immediately")
    return speed
