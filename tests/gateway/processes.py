"""Real gateways that a test starts in its own way: other programs, other disks, other options."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from csp.room_registry import RunningRoom, running_rooms
from tests.forks import Forked
from tests.namespaces import with_own_mounts
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

STOP_S: Final = 90.0


class Process(LiveRoom):
    """A gateway whose command line is up to the test; its exit code and its words can be asked."""

    prefix: Sequence[str] = ()
    program: Sequence[str] = ("-m", "csp.cli")
    has_port = True

    @property
    def process(self) -> Forked | subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def launch(self) -> None:
        """Start the gateway; return at once."""
        port = ["--port", str(self.port)] if self.has_port else []
        command = [*self.prefix, sys.executable, *self.program, "gateway", *port, *self._options]
        self._start(command)

    def announced(self) -> RunningRoom | None:
        """Return what the room says of itself to others, if it runs."""
        return self._announced()

    def wait_for_end(self) -> int:
        """Return the exit code of a gateway that ends by itself, or was told to."""
        return self.process.wait(STOP_S)

    def end(self) -> int:
        """Tell the gateway to end; return its exit code."""
        self.process.terminate()
        return self.wait_for_end()

    def lines(self) -> list[str]:
        """Return what it said, without its log records."""
        return [line for line in self.said().splitlines() if line.startswith("csp: ")]

    @property
    def state_dir(self) -> Path:
        return self.home.parent / "run" / "csp"


class SmallDisk(Process):
    """A supervised gateway whose history lies on a disk of one megabyte, seen by it alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "--supervise")
        self.history_dir.mkdir()
        mount = 'mount -t tmpfs -o size=1m,mode=700 tmpfs "$0" && exec "$@"'
        self.prefix = (*with_own_mounts(), "sh", "-c", mount, str(self.history_dir))

    @property
    def disk(self) -> Path:
        """The folder of the disk as seen from outside."""
        return Path(f"/proc/{self.process.pid}/root{self.history_dir}")

    def fill(self, but_bytes: int = 0) -> None:
        """Take all space there is, then give back `but_bytes`."""
        with (self.disk / "ballast").open("ab", buffering=0) as ballast:
            for piece in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while ballast.write(bytes(piece)) == piece:
                        pass
            ballast.truncate(ballast.tell() - but_bytes)

    def free(self) -> None:
        (self.disk / "ballast").unlink()


def refused(folder: Path, *options: str, env: dict[str, str] | None = None) -> tuple[int, list[str]]:
    """Return the exit code and the words of a gateway that does not start."""
    other = Process(folder, *options, env=env)
    other.has_port = False
    other.launch()
    try:
        return other.wait_for_end(), other.said().splitlines()
    finally:
        other.stop()


def children(pid: int) -> list[int]:
    """Return the processes that `pid` has started and not outlived."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


def is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def wait_for_room(state_dir: Path, name: str = "default") -> RunningRoom:
    """Return the room of this name once it is announced."""
    (found,) = wait_until_sync(
        lambda: [room for room in running_rooms(state_dir) if room.room == name], 60, "the room"
    )
    return found
