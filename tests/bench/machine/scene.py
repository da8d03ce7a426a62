"""Run real sidecars in a room of a bench's own, hearing every event with the time at which it came."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from csp.errors import Broken
from csp.fast_start.child_environment import HELPER, child_environment
from csp.http_client import GatewayClient
from tests.bench.machine.peers import connect
from tests.bench.machine.plans import watch_request
from tests.bench.machine.process import ROOM, TOKEN, start_gateway
from tests.bench.machine.usage import memory_mb

ROWS: Final = 40
COLUMNS: Final = 120
_ROOT: Final = Path(__file__).resolve().parents[3]
_TIMEOUT_S: Final = 60.0
_READ_BYTES: Final = 1 << 16
_SHOWN_BYTES: Final = 300
_TEXT: Final = 0x81
_PING: Final = 0x89
_BRAIN: Final = b"csp.cli.brain"

Event = dict[str, Any]
Wanted = Callable[[Event], bool]


class Ear:
    """A watcher of a room; keeps what it has heard, each event with the time at which it was read."""

    def __init__(self, port: int, token: str = TOKEN) -> None:
        self._port, self._token = port, token
        self.socket, self._data = connect(port, watch_request("/ws", token), b"\r\n\r\n")
        self._heard: list[tuple[float, Event]] = []
        self._shown = b""

    def close(self) -> None:
        self.socket.close()

    def wait(self, wanted: Wanted, drained: Sequence[int] = (), timeout_s: float = _TIMEOUT_S) -> float:
        """Return when the first such event came; meanwhile `drained` terminals are read, and may not end."""
        return self.find(wanted, drained, timeout_s)[0]

    def find(
        self, wanted: Wanted, drained: Sequence[int] = (), timeout_s: float = _TIMEOUT_S
    ) -> tuple[float, Event]:
        """Return the first such event with the time at which it came."""
        deadline = time.monotonic() + timeout_s
        at = 0
        while True:
            for when, event in self._heard[at:]:
                if wanted(event):
                    return when, event
            at = len(self._heard)
            left = deadline - time.monotonic()
            if left <= 0:
                last = self._heard[-1][1] if self._heard else None
                raise Broken(f"an event did not come in {timeout_s:g} s, the last was {last}")
            self._hear(drained, left)

    def _hear(self, drained: Sequence[int], timeout_s: float) -> None:
        own = self.socket.fileno()
        for ready in select.select([own, *drained], [], [], timeout_s)[0]:
            if ready == own:
                self._take(self.socket.recv(_READ_BYTES))
            elif data := drain(ready):
                self._shown = (self._shown + data)[-_SHOWN_BYTES:]
            else:
                raise Broken(f"a terminal has closed, having shown {self._shown!r}")

    def _take(self, data: bytes) -> None:
        now = time.time()
        if not data:
            self._come_back()
        self._data += data
        while (frame := _cut_frame(self._data)) is not None:
            kind, payload, self._data = frame
            if kind == _TEXT:
                self._heard.append((now, json.loads(payload)))
            elif kind == _PING:
                self.socket.sendall(bytes((0x8A, 0x80 | len(payload))) + bytes(4) + payload)

    def _come_back(self) -> None:
        """Go on listening: nobody here answers the gateway's pings while something else is measured."""
        self.socket.close()
        last = max((event.get("seq", 0) for _, event in self._heard), default=0)
        request = watch_request(f"/ws?after={last}", self._token)
        self.socket, self._data = connect(self._port, request, b"\r\n\r\n")


def _cut_frame(data: bytes) -> tuple[int, bytes, bytes] | None:
    """Return the first frame of a server: its kind, its payload, what follows; None if it is not whole."""
    if len(data) < 2:
        return None
    size, start = data[1], 2
    if size >= 126:
        start = 4 if size == 126 else 10
        size = int.from_bytes(data[2:start], "big")
    if len(data) < start + size:
        return None
    return data[0], data[start : start + size], data[start + size :]


def drain(fd: int) -> bytes:
    """Return what a terminal has to show, nothing if its program has ended."""
    try:
        return os.read(fd, _READ_BYTES)
    except OSError:
        return b""


class Seat:
    """A program in a terminal of its own, gone with its family after the `with` block."""

    def __init__(self, argv: Sequence[str], env: dict[str, str], cwd: Path) -> None:
        self.began = time.time()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
                os.chdir(cwd)
                os.execve(argv[0], list(argv), child_environment(HELPER, {}, env))
            finally:
                os._exit(127)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        deadline = time.monotonic() + _TIMEOUT_S
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.001)

    def expect(self, wanted: bytes) -> float:
        """Return when the terminal showed this; nothing may come before it."""
        seen = b""
        while wanted not in seen:
            if not select.select([self.fd], [], [], _TIMEOUT_S)[0] or not (data := drain(self.fd)):
                raise Broken(f"the terminal has not shown {wanted!r} but {seen[-300:]!r}")
            now = time.time()
            seen += data
        return now


class Scene:
    """A room with a gateway of its own, in a folder of its own; gone after the `with` block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd = folder / "project"
        self.cwd.mkdir()
        self._server = start_gateway(folder)
        self._server.settle()
        self.ear = Ear(self._server.port)
        self.gateway = GatewayClient(f"http://127.0.0.1:{self._server.port}", TOKEN)
        self._names = 0
        self._script = shutil.which("csp", path=os.path.dirname(sys.executable))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ear.close()
        self._server.__exit__()

    @property
    def env(self) -> dict[str, str]:
        """What a sidecar's pane has in its environment: bytecode is kept, as an installed package has it."""
        env = {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder),
            "CSP_ROOM": ROOM,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        return env if self._script else env | {"PYTHONPATH": str(_ROOT)}

    def new_name(self) -> str:
        """Return a name nobody has had."""
        self._names += 1
        return f"agent-{self._names}"

    def sidecar(self, name: str, command: Sequence[str]) -> list[str]:
        """Return the command line of a sidecar, by the console script where there is one."""
        csp = [self._script] if self._script else [sys.executable, "-m", "csp.cli"]
        return [*csp, "sidecar", "--name", name, "--", *command]

    def seat(self, name: str, command: Sequence[str], **env: str) -> Seat:
        """Start a sidecar in a terminal."""
        return Seat(self.sidecar(name, command), self.env | env, self.cwd)

    def script(self, name: str, code: str) -> str:
        """Return the path of a shell script of this name, by which a profile is found."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{code}\n")
        path.chmod(0o755)
        return str(path)


def state_of(agent: str, *states: str) -> Wanted:
    """Look for what an agent's sidecar itself has told: any state, or one of these."""
    return lambda event: (
        event.get("type") == "state"
        and event.get("sender") == agent
        and event.get("state") is not None
        and (not states or event["state"] in states)
    )


def left(agent: str) -> Wanted:
    """Look for an agent's last word."""
    return lambda event: event.get("type") == "left" and event.get("sender") == agent


def delivered(message: str, state: str) -> Wanted:
    """Look for a message that has come so far."""
    return lambda event: (
        event.get("type") == "delivery" and event.get("message") == message and event.get("state") == state
    )


def answered(message: str) -> Wanted:
    """Look for the answer to a message."""
    return lambda event: event.get("type") == "agent_response" and event.get("replyTo") == message


def family_memory_mb(relay: int) -> tuple[float, float]:
    """Return the resident memory of a relay with that of its brain; not a number where nobody says."""
    brain = brain_of(relay)
    found = [memory_mb(relay), memory_mb(brain) if brain else None]
    relay_mb, brain_mb = (float("nan") if value is None else value for value in found)
    return relay_mb, brain_mb


def brain_of(relay: int) -> int | None:
    """Return the process id of a relay's brain."""
    try:
        children = Path(f"/proc/{relay}/task/{relay}/children").read_text().split()
    except OSError:
        return None
    for pid in map(int, children):
        if _BRAIN in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None
