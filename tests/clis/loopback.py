"""A network namespace that has only loopback, for programs that must not reach the world."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final, Self

_HOLDER: Final = Path(__file__).parent / "loopback_holder.py"


class Loopback:
    """Holds the namespace open; a socket made in it serves programs in it from outside of it.

    Where the system gives no namespace (macOS, a container without the right), `is_isolated` is false,
    the listener is an ordinary one, and the CLIs are only kept off the world by a closed proxy.
    """

    def __init__(self) -> None:
        self._holder: subprocess.Popen[bytes] | None = None
        self._ways: list[str] = []
        self.is_isolated = False
        self.listener = _listener()

    def __enter__(self) -> Self:
        if sys.platform == "linux" and shutil.which("nsenter"):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

    def wrap(self, argv: list[str]) -> list[str]:
        """Return the command that runs a command inside; it execs, so the process id stays."""
        if self._holder is None:
            return argv
        return ["nsenter", "--target", str(self._holder.pid), *self._ways, "--", *argv]

    def listen(self, port: int) -> socket.socket | None:
        """Return one more listener inside, at a port; None where what listens outside can be reached."""
        if self._holder is None:
            return None
        ours, theirs = socket.socketpair()
        code = (
            "import socket, sys; parent = socket.socket(fileno=int(sys.argv[1]));"
            "listener = socket.create_server(('127.0.0.1', int(sys.argv[2])), backlog=128);"
            "socket.send_fds(parent, [b'.'], [listener.fileno()])"
        )
        command = self.wrap([sys.executable, "-I", "-S", "-c", code, str(theirs.fileno()), str(port)])
        with ours, theirs:
            subprocess.run(command, pass_fds=[theirs.fileno()], check=True)
            ours.settimeout(10)
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        return socket.socket(fileno=descriptors[0])

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-S", str(_HOLDER), str(theirs.fileno())]
        holder = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        with ours:
            ours.settimeout(10)
            ways, descriptors, _, _ = socket.recv_fds(ours, 100, 1)
        if not descriptors:
            holder.wait()
            return
        self.listener.close()
        self.listener = socket.socket(fileno=descriptors[0])
        self.listener.setblocking(False)
        self._holder, self._ways, self.is_isolated = holder, ways.decode().split(), True


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    listener.setblocking(False)
    return listener
