"""Two machines that can reach each other only over one link, which can be cut."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from csp.http_client import GatewayClient
from csp.room_registry import RunningRoom
from tests.panes.place import Done, Place
from tests.rooms import LiveRoom

T = TypeVar("T")

IP: Final = shutil.which("ip", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
_ROOT: Final = () if os.geteuid() == 0 else ("sudo", "-n", "--preserve-env")


def _sudo(*words: str) -> None:
    subprocess.run([*_ROOT, *words], check=True, capture_output=True)


class Namespace:
    """A network namespace with an address; it lasts as long as a process that sleeps in it."""

    def __init__(self, address: str) -> None:
        self.address = address
        words = [*_ROOT, "unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"]
        self._sleeper = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self._sleeper.stdout is not None
        # From now on the process is in its namespace.
        with self._sleeper.stdout as said:
            said.readline()
        self.pid = self._pid()

    def _pid(self) -> int:
        if not _ROOT:
            return self._sleeper.pid
        words = ["ps", "-o", "pid=", "--ppid", str(self._sleeper.pid)]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    @property
    def enter(self) -> tuple[str, ...]:
        """The words before a command that has to run in the namespace."""
        return (*_ROOT, "nsenter", f"--net=/proc/{self.pid}/ns/net", "--")

    def ip(self, *words: str) -> None:
        assert IP is not None, "iproute2 is not installed"
        _sudo(*self.enter[len(_ROOT) :], IP, *words)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError, subprocess.CalledProcessError):
            _sudo("kill", "-9", str(self.pid))
        self._sleeper.wait(60)


class TwoMachines:
    """A server and a laptop in network namespaces of their own, with a cable between them."""

    def __enter__(self) -> Self:
        assert IP is not None, "iproute2 is not installed"
        self.server, self.laptop = Namespace("10.99.0.1"), Namespace("10.99.0.2")
        try:
            name = f"c{os.getpid() % 100_000}"
            _sudo(IP, "link", "add", f"{name}s", "type", "veth", "peer", "name", f"{name}l")
            for machine, end in ((self.server, f"{name}s"), (self.laptop, f"{name}l")):
                _sudo(IP, "link", "set", end, "netns", str(machine.pid))
                machine.ip("link", "set", end, "name", "cable")
                machine.ip("address", "add", f"{machine.address}/24", "dev", "cable")
                machine.ip("link", "set", "cable", "up")
                machine.ip("link", "set", "lo", "up")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for machine in (self.server, self.laptop):
            machine.close()

    def cut(self) -> None:
        """Pull the cable: nothing passes, and no connection is told."""
        self.server.ip("link", "set", "cable", "down")

    def mend(self) -> None:
        """Plug the cable in again."""
        self.server.ip("link", "set", "cable", "up")


def inside(machine: Namespace, function: Callable[[], T]) -> T:
    """Return what a function returns in a namespace; its sockets belong there."""

    def call() -> T:
        fd = os.open(f"/proc/{machine.pid}/ns/net", os.O_RDONLY)
        try:
            # Only this thread enters it, and no other work is done in the thread.
            if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(fd)
        return function()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


class ServerRoom(LiveRoom):
    """A room whose gateway runs on the server; it is called from there."""

    machine: Namespace

    def launch(self) -> None:
        words = [*self.machine.enter, sys.executable, "-P", "-m", "csp.cli", "gateway"]
        words += ["--port", str(self.port), *self._options]
        self._start(words)

    def _ready(self) -> RunningRoom | None:
        return inside(self.machine, super()._ready)

    @property
    def gateway(self) -> GatewayClient:
        return _InsideClient(self.url, self.token, self.machine)


class _InsideClient(GatewayClient):
    def __init__(self, url: str, token: str, machine: Namespace) -> None:
        super().__init__(url, token)
        self._machine = machine

    def exchange(self, *given: Any, **more: Any) -> tuple[int, bytes]:
        ask = super().exchange
        return inside(self._machine, lambda: ask(*given, **more))


class LaptopPlace(Place):
    """A home on the laptop; its commands run there."""

    machine: Namespace

    def csp(self, *argv: str) -> Done:
        words = [*self.machine.enter, *self.command, *argv]
        done = subprocess.run(
            words, cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=300, check=False
        )
        self.watch()
        return Done(done.returncode, done.stdout, done.stderr)
