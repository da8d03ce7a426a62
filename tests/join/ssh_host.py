"""A host with a real sshd, on loopback or in a network namespace of its own."""

import contextlib
import getpass
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from csp.panes.processes import family
from tests.join.sshd import Sshd, find_sshd
from tests.rooms import Room, free_port
from tests.waiting import wait_until_sync


class SshHost:
    """An sshd that admits one key; its sessions find the rooms of `room`'s user.

    `enter` are the words before a command that has to run on the host.
    """

    def __init__(
        self,
        folder: Path,
        room: Room,
        address: str = "127.0.0.1",
        enter: Sequence[str] = (),
        sshd: Sshd | None = None,
    ) -> None:
        self._folder = folder
        self._room = room
        self._address = address
        self._enter = enter
        self._sshd = sshd or find_sshd()
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._config = folder / "sshd_config"
        folder.mkdir(mode=0o700)
        for name in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        self._config.write_text(
            f"ListenAddress {address}\nPort {self._port}\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nLogLevel VERBOSE\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"{self._sshd.config}"
        )
        host_key = (folder / "host.pub").read_text().rsplit(" ", 1)[0]
        (folder / "known").write_text(f"[{address}]:{self._port} {host_key}\n")
        (folder / "client").write_text(
            f"Host server\n HostName {address}\n Port {self._port}\n User {getpass.getuser()}\n"
            f" IdentityFile {folder}/user\n IdentitiesOnly yes\n UserKnownHostsFile {folder}/known\n"
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def options(self) -> list[str]:
        """The options of `csp join` that reach this host as `server`."""
        wanted = ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "PYTHONPATH")
        env = " ".join(f"{name}={self._room.env[name]}" for name in wanted)
        csp = f"env {env} {sys.executable} -P -m csp.cli"
        return ["--ssh", f"ssh -F {self._folder}/client", "--remote-csp", csp]

    def start(self) -> None:
        """Start sshd; return when it listens."""
        with (self._folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._sshd.words(self._config, self._enter),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until_sync(lambda: "Server listening" in self.said(), what="sshd")

    def said(self) -> str:
        """Return what sshd has logged."""
        return (self._folder / "sshd.log").read_text(errors="replace")

    def stop(self) -> None:
        """End sshd with its sessions."""
        process, self._process = self._process, None
        if process is not None:
            for pid in (*self.sessions(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(60)
            (self._folder / "sshd.log").unlink()

    def sessions(self, listener: int | None = None) -> list[int]:
        """Return the processes that serve the present connections."""
        pid = listener or (self._process.pid if self._process else 0)
        return [process.pid for process in family([pid]) if process.pid != pid] if pid else []

    def signal_sessions(self, number: int) -> None:
        """Send a signal to everything that serves the present connections."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
