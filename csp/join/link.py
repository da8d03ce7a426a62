"""The link process: it announces a room on another machine, and keeps the way to it open."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from csp.errors import Broken, CspError, Unreachable, UntrustedCertificate
from csp.fast_start.child_environment import USER, child_environment
from csp.fast_start.room_files import make_private_dir
from csp.gateway.server import OnReady, supervise
from csp.http_client import GatewayClient
from csp.join.forwarder import Forwarder
from csp.join.link_state import LinkState
from csp.join.ssh import READY, RemoteRoom, Ssh, choose, last_line, refusal
from csp.room_registry import RoomFile, RunningRoom, announce_again, remove_room, write_room

log = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: The shortest and the longest pause between two attempts.
FIRST_S: Final = 0.2
LAST_S: Final = 5.0
READY_S: Final = 30.0
TICK_S: Final = 1.0
#: A clock that has advanced so much more than it should: the machine has slept.
SLEPT_S: Final = 10.0
PROBE_EVERY_S: Final = 3.0
PROBE_S: Final = 10.0
#: How many probes in a row may fail before the room is looked for again.
MAX_FAILED: Final = 2
_LISTEN: Final = 128
#: macOS accepts 103 bytes, and ssh first binds a name that is 17 longer.
_MAX_SOCKET: Final = 85


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOrder:
    """A room to join over ssh; `name` is its name here, `room` its name there."""

    name: str
    room: str
    target: str
    ssh: Ssh
    state_dir: Path
    dir: Path
    history: Path
    project: str


def run_link(order: LinkOrder) -> int:
    """Keep the link until a stop signal arrives; return the exit code."""
    make_private_dir(order.state_dir)
    before = LinkState.load(order.state_dir, order.name)
    with listen(before.port if before and before.target == order.target else 0) as listener:
        return supervise(lambda ready: asyncio.run(_serve(order, listener, ready)), "link")


def listen(port: int) -> socket.socket:
    """Return a listening socket on loopback; at the port of an earlier link, where clients still look."""
    for number in dict.fromkeys((port, 0)):
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", number))
            listener.listen(_LISTEN)
        except OSError as exc:
            listener.close()
            problem = exc
        else:
            return listener
    raise Broken(f"cannot listen on 127.0.0.1: {(problem.strerror or '').lower()}") from problem


def socket_path(state_dir: Path, name: str) -> Path:
    """Return the path for the socket of ssh, in a private folder; the kernel accepts only short paths."""
    path = state_dir / f"{name}.link.sock"
    if len(os.fsencode(path)) <= _MAX_SOCKET:
        return path
    return Path(tempfile.mkdtemp(prefix="csp-")) / "link.sock"


async def _serve(order: LinkOrder, listener: socket.socket, on_ready: OnReady) -> int:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    link = Link(order, listener.getsockname()[1], on_ready)
    server = await asyncio.start_server(link.forwarder.serve, sock=listener.dup())
    running = asyncio.ensure_future(link.run())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        for task in (running, stopping):
            task.cancel()
        await asyncio.gather(running, stopping, return_exceptions=True)
        server.close()
        link.close()
    return 0


class Link:
    """The link of one room: the announcement, and one ssh after the other."""

    def __init__(self, order: LinkOrder, port: int, on_ready: OnReady) -> None:
        self._order = order
        self._port = port
        self._url = ""
        self._on_ready = on_ready
        self._socket = socket_path(order.state_dir, order.name)
        self.forwarder = Forwarder(self._socket)
        self._there: RemoteRoom | None = None
        self._file: RoomFile | None = None

    async def run(self) -> None:
        """Connect and reconnect; raise only if the first attempt fails."""
        pause_s = FIRST_S
        while True:
            try:
                await self._stay()
            except CspError as error:
                if self._file is None:
                    raise
                was_up = self._lose(error.message)
                pause_s = FIRST_S if was_up else min(LAST_S, pause_s * 2)
            await asyncio.sleep(pause_s)

    def close(self) -> None:
        """Withdraw the announcement."""
        self.forwarder.cut()
        if self._file is not None:
            remove_room(self._file)
        self._socket.unlink(missing_ok=True)
        if self._socket.parent != self._order.state_dir:
            self._socket.parent.rmdir()

    async def _stay(self) -> None:
        """Forward connections until ssh ends, the machine sleeps or the gateway is no longer found."""
        order = self._order
        if self._there is None:
            rooms = await asyncio.to_thread(order.ssh.rooms, is_attended=False)
            self._there = choose(rooms, order.room, order.ssh.destination)
        ssh = await asyncio.create_subprocess_exec(
            *order.ssh.forwarding(self._there.url, str(self._socket)),
            env=child_environment(USER, order.ssh.env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said = bytearray()
        reading = asyncio.ensure_future(_read(ssh, said))
        works = {asyncio.ensure_future(work) for work in (ssh.wait(), self._forward(ssh))}
        try:
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for work in done:
                if (error := work.exception()) is not None:
                    raise error
            await reading
            raise refusal(order.ssh.destination, last_line(bytes(said)))
        finally:
            with contextlib.suppress(ProcessLookupError):
                ssh.kill()
            for task in (*works, reading):
                task.cancel()
            await asyncio.gather(*works, reading, return_exceptions=True)
            await ssh.wait()

    async def _forward(self, ssh: asyncio.subprocess.Process) -> None:
        """Pass connections on once ssh is ready; return if ssh ends, raise if the way is of no use."""
        assert ssh.stdout is not None
        try:
            async with asyncio.timeout(READY_S):
                while (line := await ssh.stdout.readline()) and line.strip() != READY:
                    pass
        except TimeoutError as exc:
            raise Unreachable(f"ssh {self._order.ssh.destination} was not ready in {READY_S:g} s") from exc
        if not line:
            await asyncio.get_running_loop().create_future()
        self.forwarder.open()
        self._announce()
        await self._watch()

    def _announce(self) -> None:
        order, there = self._order, self._there
        assert there is not None
        self._url = f"{there.url.partition('://')[0]}://127.0.0.1:{self._port}"
        room = RunningRoom(
            room=order.name,
            url=self._url,
            token=there.token,
            pid=os.getpid(),
            supervisor=os.getppid(),
            dir=order.dir,
            history=order.history,
            started=time.time(),
            project=order.project,
            joined=order.target,
        )
        LinkState(order.target, self._port).save(order.state_dir, order.name)
        log.info("link is up", extra={"room": order.room, "at": order.ssh.destination})
        if self._file is not None:
            announce_again(self._file, room)
            return
        self._file = write_room(order.state_dir, room)
        self._on_ready()

    async def _watch(self) -> None:
        """Watch the link while it is up; raise Unreachable if ssh has to be restarted."""
        gateway = GatewayClient(self._url, "")
        failed, next_probe, wall = 0, time.monotonic() + PROBE_EVERY_S, time.time()
        while True:
            await asyncio.sleep(TICK_S)
            before, wall = wall, time.time()
            if wall - before > SLEPT_S:
                raise Unreachable("this machine has slept")
            if time.monotonic() < next_probe:
                continue
            try:
                with contextlib.suppress(UntrustedCertificate):
                    await asyncio.to_thread(gateway.exchange, "GET", "/health", None, PROBE_S)
                failed = 0
            except Unreachable as exc:
                failed += 1
                if failed >= MAX_FAILED:
                    self._there = None
                    raise Unreachable(f"the gateway of room {self._order.room!r} does not answer") from exc
            next_probe = time.monotonic() + PROBE_EVERY_S

    def _lose(self, problem: str) -> bool:
        """Note why there is no connection; return whether there was one."""
        self.forwarder.cut()
        order = self._order
        before = LinkState.load(order.state_dir, order.name)
        was_up = before is None or not before.problem
        if was_up:
            log.warning("link is down", extra={"room": order.room, "why": problem})
        if was_up or before is None or before.problem != problem:
            LinkState(order.target, self._port, problem).save(order.state_dir, order.name)
        return was_up


async def _read(ssh: asyncio.subprocess.Process, said: bytearray) -> None:
    """Keep the end of what ssh says on stderr."""
    assert ssh.stderr is not None
    while data := await ssh.stderr.read(4096):
        said += data
        del said[:-4096]
