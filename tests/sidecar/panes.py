"""A terminal of the test's own with a real relay in it."""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from csp.sidecar.relay.relay_frames import Decoder, encode
from tests.waiting import wait_until_sync

ROOT: Final = Path(__file__).resolve().parents[2]
TIMEOUT_S: Final = 60.0
#: Reads all that it is told, does nothing.
IDLE_BRAIN: Final = ["/bin/sh", "-c", "exec cat <&3 >/dev/null"]


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs a piece of Python."""
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


def launcher(argv: Sequence[str], folder: Path, brain: Sequence[str] = IDLE_BRAIN) -> list[str]:
    """Return the command that starts `argv` behind a relay."""
    wanted = {
        "argv": list(argv),
        "cwd": str(folder),
        "brain": list(brain),
        "state": str(folder / "state"),
        "log": str(folder / "brain.log"),
    }
    return [sys.executable, "-m", "tests.sidecar.launcher", json.dumps(wanted)]


class Pane:
    """A terminal with a program in it, both gone at the end of the `with` block."""

    def __init__(self, command: Sequence[str], rows: int = 24, cols: int = 80) -> None:
        self.fd, self.slave = pty.openpty()
        self.seen = bytearray()
        self.resize(rows, cols, is_new=False)
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None
    ) -> None:
        if exc is not None:
            exc.add_note(f"the terminal has shown: {bytes(self.seen[-2000:])!r}")
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in {self.fd, self.slave} - {-1}:
            os.close(fd)

    def close_terminal(self) -> None:
        """Take the terminal away, as a window that is closed."""
        os.close(self.fd)
        os.close(self.slave)
        self.fd = self.slave = -1

    def resize(self, rows: int, cols: int, *, is_new: bool = True) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        if is_new:
            os.kill(self.process.pid, signal.SIGWINCH)

    def press(self, keys: bytes) -> None:
        while keys:
            keys = keys[os.write(self.fd, keys[:1024]) :]

    def read(self, timeout_s: float = 0.05) -> bytes:
        """Return what the terminal shows next, or nothing."""
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return b""
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return b""
        self.seen += data
        return data

    def expect(self, wanted: bytes, timeout_s: float = TIMEOUT_S) -> None:
        """Return once the terminal has shown this; then it counts as not shown yet."""
        deadline = time.monotonic() + timeout_s
        while wanted not in self.seen:
            if not self.read(0.1) and time.monotonic() > deadline:
                raise AssertionError(f"the terminal has not shown {wanted!r} in {timeout_s:g} s")
        self.seen = self.seen.partition(wanted)[2]

    def wait(self, timeout_s: float = TIMEOUT_S) -> int:
        """Return the exit code, with all that was shown until then in `seen`."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < deadline, "the relay has not ended"
        while self.read(0.0):
            pass
        return self.process.returncode

    @property
    def is_raw(self) -> bool:
        lflag: int = termios.tcgetattr(self.slave)[3]
        return not lflag & termios.ICANON

    def wait_raw(self) -> None:
        wait_until_sync(lambda: self.is_raw, TIMEOUT_S, what="the terminal is raw")


class Brain:
    """The test as the brain: one accepted proxy."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = Decoder()
        self._frames: list[tuple[bytes, bytes]] = []
        self.pid = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self._connection.sendall(encode(kind, payload))

    def next(self, timeout_s: float = TIMEOUT_S) -> tuple[bytes, bytes]:
        """Return the next frame."""
        while not self._frames:
            self._connection.settimeout(timeout_s)
            data = self._connection.recv(1 << 20)
            if not data:
                raise EOFError("the relay has closed the line")
            self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    def expect(self, *kinds: bytes) -> bytes:
        """Return the payload of the next frame of one of these kinds; the others before it are dropped."""
        while True:
            kind, payload = self.next()
            if kind in kinds:
                return payload

    def expect_json(self, kind: bytes) -> Any:
        return json.loads(self.expect(kind))

    def output_until(self, wanted: bytes) -> bytes:
        """Return the child's output up to the frame that brings this."""
        seen = b""
        while wanted not in seen:
            seen += self.expect(b"O")
        return seen

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._connection.close()


class Brains:
    """Where brains come to; use `command` as that of the brain."""

    def __init__(self, folder: Path) -> None:
        path = folder / "b"
        self.command = [sys.executable, "-I", "-S", str(ROOT / "tests/sidecar/proxy.py"), str(path)]
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._server.settimeout(TIMEOUT_S)
        self._accepted: list[Brain] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        for brain in self._accepted:
            brain.close()

    def next(self) -> Brain:
        """Return the next brain that starts."""
        connection, _ = self._server.accept()
        brain = Brain(connection)
        self._accepted.append(brain)
        return brain
