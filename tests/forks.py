"""Start `csp` commands quickly: a process that has loaded csp forks one for each of them.

What is started so is a process of its own, with its own directory, environment, streams and signals; it only
does not read and run the imports of csp once more, which is most of what a short command costs. Tests of what
a command loads, or of what its command line shows, start Python itself.
"""

import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

_ROOT: Final = Path(__file__).resolve().parent.parent
TIMEOUT_S: Final = 120.0
_LONGEST_REQUEST: Final = 1 << 20
#: The first start waits for the imports of the process that forks, which take minutes on a starved machine.
_LONGEST_START_S: Final = 600.0
#: Loaded before the first fork, beside every verb.
_PRELOADED: Final = (
    "csp.gateway.server",
    "csp.agents.demo.demo_program",
    "csp.http_client",
    "logging",
    "asyncio",
)


class Forked:
    """A running command; what it offers is what subprocess.Popen offers in text mode."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        *,
        stdin: int | None = None,
        output: int | None = None,
        is_leader: bool = False,
        before: tuple[str, Any] | None = None,
    ) -> None:
        """Start it.

        Without `stdin` and `output` its streams are pipes. A leader has a session of its own, with the
        terminal that its stdin is. `before` names a module whose `install` is called first, with what."""
        self.args = ["csp", *argv]
        self.returncode: int | None = None
        self.stdin: io.TextIOWrapper | None = None
        self.stdout: io.TextIOWrapper | None = None
        self.stderr: io.TextIOWrapper | None = None
        self._threads: list[threading.Thread] = []
        self._said = {"out": "", "err": ""}
        theirs: list[int] = []
        if stdin is None:
            read_fd, write_fd = os.pipe()
            self.stdin = os.fdopen(write_fd, "w", encoding="utf-8")
            theirs.append(read_fd)
        else:
            theirs.append(os.dup(stdin))
        if output is None:
            (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe()
            self.stdout, self.stderr = (os.fdopen(fd, "r", encoding="utf-8") for fd in (out_read, err_read))
            theirs += [out_write, err_write]
        else:
            theirs += [os.dup(output), os.dup(output)]
        self._status, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"argv": list(argv), "cwd": str(cwd), "env": dict(env), "is_leader": is_leader}
        request["before"] = before
        _ask_for(json.dumps(request).encode(), [*theirs, status.fileno()])
        status.close()
        for fd in theirs:
            os.close(fd)
        self.pid = int(self._read_status(_LONGEST_START_S) or 0)
        assert self.pid, "the process that forks has ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, if it has not ended by itself."""
        self.kill()
        self.communicate()

    def _read_status(self, timeout_s: float | None) -> str:
        if timeout_s is not None and not select.select([self._status], [], [], max(timeout_s, 0.0))[0]:
            raise subprocess.TimeoutExpired(self.args, timeout_s)
        return self._status.recv(64).decode()

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.returncode = int(self._read_status(timeout) or -signal.SIGKILL)
            self._status.close()
        return self.returncode

    def communicate(self, input: str | bytes | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Write and close its stdin, and read what it says until it ends.

        After a TimeoutExpired it may be called again: nothing that was read meanwhile is lost."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._write, args=(input,), daemon=True),
                threading.Thread(target=self._read, args=("out", self.stdout), daemon=True),
                threading.Thread(target=self._read, args=("err", self.stderr), daemon=True),
            ]
            for thread in self._threads:
                thread.start()
        for thread in self._threads:
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0.0))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.wait(None if deadline is None else max(deadline - time.monotonic(), 1.0))
        return self._said["out"], self._said["err"]

    def _write(self, input: str | bytes | None) -> None:
        if self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.buffer.write(input.encode() if isinstance(input, str) else input or b"")
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()

    def _read(self, name: str, stream: io.TextIOWrapper | None) -> None:
        if stream is not None and not stream.closed:
            with stream:
                self._said[name] = stream.read()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: str | bytes = "",
    timeout_s: float = TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as subprocess.run does."""
    process = Forked(argv, cwd, env)
    try:
        out, err = process.communicate(stdin, timeout_s)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.wait(), out, err)


# --- asking the process that forks ---------------------------------------------------------------


@cache
def _forker() -> tuple[socket.socket, threading.Lock]:
    """Start the process that forks, one for each process of tests; it ends when we do."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST_REQUEST)
    command = [sys.executable, "-m", "tests.forks", str(theirs.fileno())]
    # Nobody waits for it: it outlives every test, and the end of the socket is its end.
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
    process.returncode = 0
    theirs.close()
    return ours, threading.Lock()


def _ask_for(request: bytes, fds: list[int]) -> None:
    forker, lock = _forker()
    with lock:
        socket.send_fds(forker, [request], fds)


# --- the process that forks ----------------------------------------------------------------------


def serve(requests: socket.socket) -> None:
    """Fork for each request until nobody can ask any more."""
    import csp.cli

    for found in pkgutil.iter_modules(csp.cli.__path__, "csp.cli."):
        if found.name != "csp.cli.__main__":
            importlib.import_module(found.name)
    for name in _PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    ready = selectors.DefaultSelector()
    ready.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is requests:
                request, fds, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 8)
                if not request:
                    return
                _start(json.loads(request), fds, ready)
            else:
                pid, status_fd = key.data
                ready.unregister(key.fileobj)
                os.close(key.fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):
                    os.write(status_fd, f"{code}".encode())
                os.close(status_fd)


def _start(request: dict[str, Any], fds: list[int], ready: selectors.BaseSelector) -> None:
    *streams, status_fd = fds
    pid = os.fork()
    if pid == 0:
        _become(request, streams)
    for fd in streams:
        os.close(fd)
    try:
        os.write(status_fd, f"{pid}".encode())
    except BrokenPipeError:
        # Whoever asked has given up; the others still need this process.
        os.kill(pid, signal.SIGKILL)
    ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status_fd))


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run the command in this process, which was forked for it, and end."""
    code = 1
    try:
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        os.closerange(3, 1024)
        if request["is_leader"]:
            os.setsid()
            if os.isatty(0):
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        # Like the streams that Python opens itself, these are closed by the end of the process alone.
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", line_buffering=True
        )
        sys.argv = ["csp", *request["argv"]]
        from csp.cli import main

        if request["before"]:
            name, given = request["before"]
            importlib.import_module(name).install(given)
        code = main()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
