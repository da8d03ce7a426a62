"""Measure what stands before a program's terminal: flood, key echo, start, memory."""

import fcntl
import os
import pty
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final, Literal, Protocol, Self

from csp.errors import Broken, NotFound
from csp.fast_start.child_environment import HELPER, TOOL, child_environment
from csp.fast_start.process_environment import process_environment
from tests.bench.machine.usage import memory_mb

#: What stands between the program and the terminal: nothing, a relay whose brain only reads, or one whose
#: brain keeps the screen.
Kind = Literal["direct", "relay", "screen"]
KINDS: Final[tuple[Kind, ...]] = ("direct", "relay", "screen")

ROWS: Final = 50
COLUMNS: Final = 200
_ROOT: Final = Path(__file__).resolve().parents[3]
_TIMEOUT_S: Final = 60.0
_GLANCE_S: Final = 0.02
#: A brain without a room does not say that it is there.
_BRAIN_STARTS_S: Final = 0.5
_REST_S: Final = 0.3
_KEY: Final = b"~"

_READY: Final = b"READY"
_GO: Final = b"!"
_RAW: Final = """
import os, sys, termios, time
mode = termios.tcgetattr(0)
mode[0] = mode[1] = mode[3] = 0
termios.tcsetattr(0, termios.TCSANOW, mode)
os.write(1, b"READY")
"""
#: Ends when the terminal, which answers in its turn, has taken everything.
_FLOOD: Final = (
    _RAW
    + """
line = b"".join(b"\\x1b[3%dm%s\\x1b[0m " % (n % 8, b"word" * (n % 3 + 1)) for n in range(20)) + b"\\r\\n"
block = line * (65536 // len(line))
left = int(sys.argv[1])
os.read(0, 1)
began = time.perf_counter()
while left > 0: left -= os.write(1, block)
os.write(1, b"\\x1b[5n")
answer = b""
while not answer.endswith(b"n"): answer += os.read(0, 100)
seconds = time.perf_counter() - began
with open(sys.argv[2] + ".new", "w") as file: file.write(str(seconds))
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""
)
_ECHO: Final = _RAW + "while (keys := os.read(0, 100)) and keys != b'!': os.write(1, keys)"
_LAUNCH: Final = (
    "import sys; sys.path.append({root!r})\n"
    "from tests.bench.machine.launch import become_relay; become_relay({folder!r}, {argv!r}, {brain!r})"
)
#: Reads what it is told, does nothing with it.
_READER: Final = ["/bin/sh", "-c", "exec cat <&3"]
_SCREEN: Final = [sys.executable, "-c", "from tests.bench.machine.launch import keep_screen; keep_screen()"]


def command(kind: Kind, folder: Path, argv: list[str]) -> list[str]:
    """Return the command that runs `argv` with or without a relay."""
    if kind == "direct":
        return argv
    brain = _SCREEN if kind == "screen" else _READER
    return _python(_LAUNCH.format(root=str(_ROOT), folder=str(folder), argv=argv, brain=brain))


class Way(Protocol):
    """How a program gets to its terminal."""

    def command(self, argv: list[str]) -> list[str]:
        """Return the command that runs a program in this way."""

    def wait_ready(self, tmux: "Tmux") -> None:
        """Return when all that stands between has started too."""

    def wait_gone(self, tmux: "Tmux") -> None:
        """Return when nothing of it is left, after the program has ended."""


class Alone:
    """A way without a room."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self._kind: Kind = kind
        self._folder = folder

    def command(self, argv: list[str]) -> list[str]:
        return command(self._kind, self._folder, argv)

    def wait_ready(self, tmux: "Tmux") -> None:
        if self._kind != "direct":
            tmux.read_for(_BRAIN_STARTS_S)

    def wait_gone(self, tmux: "Tmux") -> None:
        """Nobody is there to be waited for."""


def _python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


class Tmux:
    """A tmux server of its own with one client, in a terminal that is read; gone after the `with` block."""

    def __init__(self, folder: Path) -> None:
        self._path = shutil.which("tmux") or ""
        if not self._path:
            raise NotFound("tmux is not installed", "install it with the system's package manager")
        self._folder = folder
        self._socket = folder / "tmux"
        self._client = self._fd = -1

    def __enter__(self) -> Self:
        (self._folder / "tmux.conf").write_text(
            "set -g status off\nset -g remain-on-exit on\nset -g default-terminal tmux-256color\n"
        )
        self._client, self._fd = pty.fork()
        if self._client == 0:
            env = {"PATH": os.defpath, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(_ROOT)}
            size = ["-x", str(COLUMNS), "-y", str(ROWS)]
            arguments = [*self._base(), "new-session", "-s", "bench", *size, "exec sleep 3600"]
            os.execve(self._path, arguments, child_environment(TOOL, {}, env))
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._wait(lambda: self._run("has-session", "-t", "bench"))
        return self

    def __exit__(self, *_: object) -> None:
        self._run("kill-server")
        self._wait(lambda: os.waitpid(self._client, os.WNOHANG)[0] != 0)
        os.close(self._fd)
        self._socket.unlink(missing_ok=True)

    def _base(self) -> list[str]:
        return [self._path, "-S", str(self._socket), "-f", str(self._folder / "tmux.conf")]

    def _run(self, *arguments: str) -> bool:
        command, own = [*self._base(), *arguments], child_environment(TOOL, process_environment())
        return subprocess.run(command, env=own, check=False, capture_output=True).returncode == 0

    def start(self, argv: list[str]) -> None:
        """Run a program in the only pane, in place of the one before."""
        if not self._run("respawn-pane", "-k", "-t", "bench", "-c", str(_ROOT), f"exec {shlex.join(argv)}"):
            raise Broken("tmux cannot start a program in its pane")

    def read(self, timeout_s: float = 0.05) -> bytes:
        """Return what the client shows next, or nothing."""
        if select.select([self._fd], [], [], timeout_s)[0]:
            try:
                return os.read(self._fd, 1 << 16)
            except OSError:
                return b""
        return b""

    def fileno(self) -> int:
        return self._fd

    def read_for(self, seconds: float) -> None:
        """Read on for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.read(left)

    def press(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def expect(self, wanted: bytes) -> None:
        """Read until the client shows this."""
        seen = b""
        deadline = time.monotonic() + _TIMEOUT_S
        while wanted not in seen:
            seen = seen[-100:] + self.read(1.0)
            if time.monotonic() > deadline:
                raise Broken(f"the pane has not shown {wanted!r}")

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not condition():
            self.read_for(_GLANCE_S)
            if time.monotonic() > deadline:
                raise Broken("tmux does not do what it should")

    def wait_for(self, path: Path) -> None:
        """Read on until a file is there."""
        self._wait(path.exists)


def flood_mb_s(tmux: Tmux, kind: Kind, folder: Path, megabytes: int = 20) -> float:
    """Return how fast a pane takes a flood, with or without a relay."""
    return flood(tmux, Alone(kind, folder), folder, megabytes)


def flood(tmux: Tmux, way: Way, folder: Path, megabytes: int) -> float:
    """Return how fast a pane takes a flood, in MB a second."""
    result = folder / f"flood-{time.monotonic_ns()}"
    argv = _python(_FLOOD, str(megabytes * 1_000_000), str(result))
    _start(tmux, way, argv)
    tmux.press(_GO)
    tmux.wait_for(result)
    way.wait_gone(tmux)
    return megabytes / float(result.read_text())


def echo_us(tmux: Tmux, kind: Kind, folder: Path, keys: int = 500) -> float:
    """Return how long a key takes, with or without a relay."""
    return echo(tmux, Alone(kind, folder), keys)


def echo(tmux: Tmux, way: Way, keys: int) -> float:
    """Return how long a key takes from the client's terminal through the pane and back, at the median."""
    _start(tmux, way, _python(_ECHO))
    times = []
    for _ in range(keys):
        began = time.perf_counter()
        tmux.press(_KEY)
        tmux.expect(_KEY)
        times.append(time.perf_counter() - began)
    tmux.press(_GO)
    way.wait_gone(tmux)
    return median(times) * 1e6


def _start(tmux: Tmux, way: Way, argv: list[str]) -> None:
    """Start a program in the pane; return when everything is at rest."""
    tmux.start(way.command(argv))
    tmux.expect(_READY)
    way.wait_ready(tmux)
    while tmux.read(_REST_S):
        pass


def first_byte_s(argv: list[str]) -> float:
    """Return the time from the start of a command in a terminal to its first byte there."""
    began = time.perf_counter()
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(_ROOT)
        os.execve(argv[0], argv, child_environment(HELPER, process_environment()))
    try:
        select.select([fd], [], [], _TIMEOUT_S)
        return time.perf_counter() - began
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def child_first_byte_s(kind: Kind, folder: Path) -> float:
    """Return when the first byte of a child that is quick to start comes."""
    return first_byte_s(command(kind, folder, ["/bin/echo", "x"]))


def bare_start_s() -> float:
    """Return how long a Python takes that only says a byte."""
    return first_byte_s([sys.executable, "-I", "-c", "print(1)"])


def relay_memory_mb(folder: Path) -> float:
    """Return the memory of a relay at work."""
    return _memory(command("relay", folder, _python(_ECHO)))


def bare_memory_mb() -> float:
    """Return the memory of an interpreter that does nothing, started as for `bare_start_s`."""
    code = "import posix; posix.write(1, b'READY'); posix.read(0, 1)"
    return _memory([sys.executable, "-I", "-c", code])


def _memory(argv: list[str]) -> float:
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(_ROOT)
        os.execve(argv[0], argv, child_environment(HELPER, process_environment()))
    try:
        seen = b""
        while _READY not in seen:
            seen += os.read(fd, 100)
        return memory_mb(pid) or float("nan")
    finally:
        os.close(fd)
        os.waitpid(pid, 0)
