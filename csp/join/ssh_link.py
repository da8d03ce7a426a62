"""A link over ssh: it passes connections on, and starts ssh again whenever it is lost."""

import asyncio
import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Final

from csp.errors import CspError, Unreachable, UntrustedCertificate
from csp.fast_start.child_environment import USER, child_environment
from csp.http_client import GatewayClient
from csp.join.announcement import Announcement
from csp.join.forwarder import Forwarder
from csp.join.ssh import READY, RemoteRoom, Ssh, choose, last_line, refusal

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
#: macOS accepts 103 bytes, and ssh first binds a name that is 17 longer.
_MAX_SOCKET: Final = 85


def socket_path(state_dir: Path, name: str) -> Path:
    """Return the path for the socket of ssh, in a private folder; the kernel accepts only short paths."""
    path = state_dir / f"{name}.link.sock"
    if len(os.fsencode(path)) <= _MAX_SOCKET:
        return path
    return Path(tempfile.mkdtemp(prefix="csp-")) / "link.sock"


class SshLink:
    """The link to one room: the announcement, and one ssh after the other."""

    def __init__(self, ssh: Ssh, room: str, announcement: Announcement, path: Path, port: int) -> None:
        self._ssh = ssh
        self._room = room
        self._announcement = announcement
        self._socket = path
        self._port = port
        self._url = ""
        self.forwarder = Forwarder(path)
        self._there: RemoteRoom | None = None

    async def run(self) -> None:
        """Connect and reconnect; raise only if the first attempt fails."""
        pause_s = FIRST_S
        while True:
            try:
                await self._stay()
            except CspError as error:
                self.forwarder.cut()
                if not self._announcement.is_made:
                    raise
                was_up = self._announcement.note_loss(error.message)
                pause_s = FIRST_S if was_up else min(LAST_S, pause_s * 2)
            await asyncio.sleep(pause_s)

    def close(self) -> None:
        """End all connections and remove the socket."""
        self.forwarder.cut()
        self._socket.unlink(missing_ok=True)
        if self._socket.name == "link.sock":
            self._socket.parent.rmdir()

    async def _stay(self) -> None:
        """Forward connections until ssh ends, the machine sleeps or the gateway is no longer found."""
        if self._there is None:
            rooms = await asyncio.to_thread(self._ssh.rooms, is_attended=False)
            self._there = choose(rooms, self._room, self._ssh.destination)
        ssh = await asyncio.create_subprocess_exec(
            *self._ssh.forwarding(self._there.url, str(self._socket)),
            env=child_environment(USER, self._ssh.env),
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
            raise refusal(self._ssh.destination, last_line(bytes(said)))
        finally:
            with contextlib.suppress(ProcessLookupError):
                ssh.kill()
            for task in (*works, reading):
                task.cancel()
            await asyncio.gather(*works, reading, return_exceptions=True)
            await ssh.wait()

    async def _forward(self, ssh: asyncio.subprocess.Process) -> None:
        """Pass connections on once ssh is ready; return if ssh ends, raise if the way is of no use."""
        assert ssh.stdout is not None and self._there is not None
        try:
            async with asyncio.timeout(READY_S):
                while (line := await ssh.stdout.readline()) and line.strip() != READY:
                    pass
        except TimeoutError as exc:
            raise Unreachable(f"ssh {self._ssh.destination} was not ready in {READY_S:g} s") from exc
        if not line:
            await asyncio.get_running_loop().create_future()
        self.forwarder.open()
        self._url = f"{self._there.url.partition('://')[0]}://127.0.0.1:{self._port}"
        self._announcement.make(self._url, self._there.token)
        await self._watch()

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
                    raise Unreachable(f"the gateway of room {self._room!r} does not answer") from exc
            next_probe = time.monotonic() + PROBE_EVERY_S


async def _read(ssh: asyncio.subprocess.Process, said: bytearray) -> None:
    """Keep the end of what ssh says on stderr."""
    assert ssh.stderr is not None
    while data := await ssh.stderr.read(4096):
        said += data
        del said[:-4096]
