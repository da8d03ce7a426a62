"""Rooms with folders of their own: a real `csp gateway` process, or a gateway in a thread of this one."""

import asyncio
import contextlib
import errno
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from csp.config import GatewayOptions, Settings, load_settings
from csp.errors import CspError
from csp.fast_start.room_files import save_token
from csp.gateway.server import bind, serve
from csp.http_client import GatewayClient
from csp.protocol.events import AnyEvent, Unknown, decode_event
from csp.room_registry import RunningRoom, running_rooms
from tests.forks import Forked
from tests.waiting import wait_until_sync

ROOT: Final = Path(__file__).resolve().parent.parent
#: Below the ports that the kernel gives out, so that nobody takes ours while the gateway is down.
PORTS: Final = range(15_000, 30_000)
START_S: Final = 120.0


def save_agent_token(settings: Settings, room: str, agent: str, token: str) -> Path:
    """Write a token for the commands in an agent's pane; return its path."""
    return Path(save_token(str(settings.state_dir), room, agent, token))


class Room:
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
        self._token = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the gateway; return when it answers."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the gateway in order."""
        raise NotImplementedError

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
    def gateway(self) -> GatewayClient:
        """A blocking client with the room's token."""
        return GatewayClient(self.url, self.token)

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

    def _announced(self) -> RunningRoom | None:
        rooms = running_rooms(self.home.parent / "run" / "csp")
        return next((room for room in rooms if room.room == self.name), None)


class LiveRoom(Room):
    """A room whose gateway is a process, so that it can be killed."""

    _process: Forked | subprocess.Popen[bytes] | None = None

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

    def _start(self, command: Sequence[str]) -> None:
        """Start the gateway by a command instead of by a fork."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.dir,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
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
            return room if GatewayClient(self.url, "").get("/health") else None
        return None

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
            process.wait(START_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class ThreadRoom(Room):
    """A room whose gateway runs in a thread of this process: it is up in a moment and costs little.

    It is announced and found like any other, but it cannot be killed, and it takes no options.
    """

    _thread: threading.Thread | None = None

    def start(self) -> None:
        assert self._thread is None and not self._options
        is_ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(is_ready,), name=f"room {self.name}")
        self._thread.start()
        assert is_ready.wait(START_S) and self._failure is None, self._failure
        room = self._announced()
        assert room is not None
        self._token = room.token

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(START_S)
            assert not thread.is_alive()
            if self._failure is not None:
                raise self._failure

    def _run(self, is_ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(is_ready))
        except BaseException as failure:
            self._failure = failure
        finally:
            is_ready.set()

    async def _serve(self, is_ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        settings = load_settings({"port": str(self.port)}, env=self.env, cwd=self.dir)
        options = GatewayOptions(settings=settings, dir=self.dir)
        with bind(settings) as listener:
            await serve(options, listener, self._stop, on_ready=is_ready.set)


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
