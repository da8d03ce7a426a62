"""A real `csp gateway` process in a home of its own, to be killed or started again on its port."""

import contextlib
import errno
import os
import random
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from csp.errors import CspError
from csp.events import AnyEvent, Unknown, decode_event
from csp.oneshot import Gateway
from csp.rooms import RunningRoom, running_rooms
from tests.forks import Forked
from tests.waiting import wait_until_sync

ROOT: Final = Path(__file__).resolve().parent.parent
#: Below the ports that the kernel gives out, so that nobody takes ours while the gateway is down.
PORTS: Final = range(15_000, 30_000)
START_S: Final = 60.0


class LiveRoom:
    """One room: its folders and its port stay, its gateway may come and go.

    All calls block; in a test with an event loop use `await asyncio.to_thread(room.start)`.
    """

    def __init__(
        self, folder: Path, *options: str, name: str = "default", env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.home = folder / "home"
        self.dir = folder / "project"
        self.history_dir = folder / "history"
        self.log = folder / "gateway.log"
        for path in (self.home, self.dir, folder / "run"):
            path.mkdir(mode=0o700, parents=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._options = options
        self._env = dict(env or {})
        self._process: Forked | None = None
        self._token = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- what commands and clients need ----------------------------------------------------------

    @property
    def env(self) -> dict[str, str]:
        """The environment of everything that runs in this room; it finds the room by its state file."""
        folder = self.home.parent
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "CSP_HISTORY_DIR": str(self.history_dir),
            "CSP_ROOM": self.name,
            **self._env,
        }

    @property
    def token(self) -> str:
        """The room's token, known after the first start."""
        return self._token

    @property
    def gateway(self) -> Gateway:
        """A blocking client with the room's token."""
        return Gateway(self.url, self.token)

    @property
    def folder(self) -> Path:
        """The room's own folder of history."""
        return self.history_dir / self.name

    def journal(self) -> list[AnyEvent]:
        """Return every event on the disk."""
        return [decode_event(line) for line in (self.folder / "journal.jsonl").read_bytes().splitlines()]

    def journal_texts(self) -> list[str]:
        """Return the text of every event on the disk."""
        return ["" if isinstance(event, Unknown) else event.text for event in self.journal()]

    def said(self) -> str:
        """Return what the gateway has written to its log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # --- the process -----------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process that serves; under --supervise a child of the one that was started."""
        room = self._announced()
        assert room is not None, self.said()
        return room.pid

    def start(self) -> None:
        """Start the gateway; return when it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the gateway; return at once."""
        assert self._process is None or self._process.poll() is not None
        words = ["gateway", "--port", str(self.port), *self._options]
        with self.log.open("ab") as log, open(os.devnull, "rb") as nothing:
            self._process = Forked(
                words, self.dir, self.env, stdin=nothing.fileno(), output=log.fileno(), is_leader=True
            )

    def wait(self) -> None:
        """Return when the gateway answers."""
        room = wait_until_sync(self._ready, START_S, "the gateway")
        assert room is not None
        self._token = room.token

    def _ready(self) -> RunningRoom | None:
        assert self._process is not None and self._process.poll() is None, self.said()
        room = self._announced()
        if room is None or self._process.pid not in (room.pid, room.supervisor) or not _is_alive(room.pid):
            return None
        with contextlib.suppress(CspError):
            return room if Gateway(self.url, "").get("/health") else None
        return None

    def _announced(self) -> RunningRoom | None:
        rooms = running_rooms(self.home.parent / "run" / "csp")
        return next((room for room in rooms if room.room == self.name), None)

    def kill9(self) -> None:
        """Kill the serving process as a crash would; a supervisor will start the next one."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        if self._process is not None and self._process.pid == pid:
            self._process.wait()
        else:
            wait_until_sync(lambda: not _is_alive(pid), what="the death of the gateway")

    def stop(self) -> None:
        """End the gateway in order; whatever is left of its processes is killed."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def restart(self) -> None:
        """Stop in order, then start again."""
        self.stop()
        self.start()

    def move(self) -> None:
        """Stop in order, then start again at another port."""
        self.stop()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def free_port() -> int:
    """Return a port nobody listens on."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as exc:
                if exc.errno != errno.EADDRINUSE:
                    raise
                continue
            return port
