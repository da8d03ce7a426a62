"""A terminal with a program in it, driven by a test as a person would."""

import contextlib
import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from pyghostty import Terminal as Ghostty  # type: ignore[import-untyped]  # it ships no types

from tests.forks import Forked
from tests.waiting import wait_until_sync

ENTER: Final = b"\r"
BACKSPACE: Final = b"\x7f"
ESCAPE: Final = b"\x1b"
CTRL_C: Final = b"\x03"
_CLUSTERS: Final = b"\x1b[?2027h"


class Terminal:
    """Runs a program in a PTY of its own, draws what it writes, answers its questions to the terminal."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, *, rows: int = 40, columns: int = 120
    ) -> None:
        self._lock = threading.Lock()
        self._emulator = Ghostty(cols=columns, rows=rows)
        self._emulator.feed(_CLUSTERS)
        self.raw = bytearray()
        self._master, slave = os.openpty()
        self._other_end = os.ttyname(slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._emulator.on_reply(self.send)
        self.process = self._start(argv, env, cwd, slave)
        os.close(slave)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def _start(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, slave: int
    ) -> "subprocess.Popen[bytes] | Forked":
        return subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(5)
        os.close(self._master)

    def send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._master, data) :]

    def has_read(self) -> bool:
        """Tell whether the program has read all that was sent; keys that it reads at once act together."""
        other_end = os.open(self._other_end, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            return not any(fcntl.ioctl(other_end, termios.FIONREAD, bytes(4)))
        finally:
            os.close(other_end)

    def paste(self, text: str) -> None:
        self.send(b"\x1b[200~" + text.encode() + b"\x1b[201~")

    def resize(self, rows: int, columns: int) -> None:
        with self._lock:
            self._emulator.resize(columns, rows)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def screen(self) -> str:
        """Return the visible rows as text."""
        with self._lock:
            return str(self._emulator.text())

    def history(self) -> str:
        """Return all that was drawn: what scrolled off, then the screen."""
        with self._lock:
            return str(self._emulator.contents())

    def wait_for(self, pattern: str, timeout_s: float = 120.0) -> str:
        """Wait until the screen shows a pattern; return the screen."""

        def shown() -> str:
            screen = self.screen()
            return screen if re.search(pattern, screen, re.MULTILINE) else ""

        try:
            return wait_until_sync(shown, timeout_s, pattern)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen shows:\n{self.screen()}") from None

    def wait_gone(self, pattern: str, timeout_s: float = 120.0) -> None:
        """Wait until the screen shows a pattern no more."""
        wait_until_sync(
            lambda: not re.search(pattern, self.screen(), re.MULTILINE), timeout_s, f"no {pattern}"
        )

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self.raw += data
                self._emulator.feed(data)


class CspTerminal(Terminal):
    """Runs a command of csp instead, forked from a process that has loaded csp already."""

    def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, slave: int) -> Forked:
        return Forked(argv, cwd, env, stdin=slave, output=slave, is_leader=True)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
