"""A room whose gateway lives several lives, each with faults of its own."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from csp.errors import CspError, Unreachable
from csp.http_client import GatewayClient
from tests.chaos.faults import Plan
from tests.forks import Forked
from tests.rooms import Room, free_port
from tests.waiting import wait_until_sync

#: No life takes so long to begin or to end; what does, hangs.
HANGS_S: Final = 180.0
_PAUSE_S: Final = 0.005


class ChaosRoom(Room):
    """One room; `begin` starts a life of its gateway, `ended` says how the last one ended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._process: Forked | None = None
        self._synced = folder / "synced"

    @property
    def token(self) -> str:
        """The room's token; the room keeps it from life to life."""
        if not self._token:
            room = self._announced()
            self._token = room.token if room else ""
        return self._token

    def begin(self, plan: Plan | None = None) -> None:
        """Start the gateway; return at once."""
        plan = replace(plan or Plan(), synced=str(self._synced))
        words = ["gateway", "--port", str(self.port)]
        before = ("tests.chaos.faults", msgspec.to_builtins(plan))
        with self.log.open("ab") as log, open(os.devnull, "rb") as nothing:
            self._process = Forked(
                words,
                self.dir,
                self.env,
                stdin=nothing.fileno(),
                output=log.fileno(),
                is_leader=True,
                before=before,
            )

    def start(self) -> None:
        self.begin()
        if not self.comes_up():
            raise AssertionError(f"the gateway did not start: {self.said()[-2000:]}")

    def comes_up(self) -> bool:
        """Wait until the gateway answers; tell whether it did before it ended."""
        deadline = time.monotonic() + HANGS_S
        while self.ended() is None:
            with contextlib.suppress(CspError):
                if self.token and GatewayClient(self.url, "").get("/health"):
                    return True
            if time.monotonic() > deadline:
                raise AssertionError("the gateway neither answers nor ends")
            time.sleep(_PAUSE_S)
        return False

    def synced_bytes(self) -> int:
        """Return how much of the journal was ever synced."""
        return int(self._synced.read_bytes().strip() or 0) if self._synced.exists() else 0

    def ended(self) -> int | None:
        """Return the exit code of the last life, None while it lasts."""
        assert self._process is not None
        return self._process.poll()

    def wait_for_end(self, timeout_s: float = HANGS_S) -> int | None:
        """Return the exit code, None if the gateway has not ended in time."""
        deadline = time.monotonic() + timeout_s
        while (code := self.ended()) is None and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return code

    @property
    def pid(self) -> int:
        """The process of this life."""
        assert self._process is not None
        return self._process.pid

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the gateway stand still meanwhile, as a suspended laptop or a debugger does."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            wait_until_sync(self._is_frozen, what="a gateway that stands still")
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def _is_frozen(self) -> bool:
        threads = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads)

    def intrude(self) -> str:
        """Start a second gateway on the same folder, from another session; return what is wrong about it."""
        log = self.log.with_name("intruder.log")
        elsewhere = self.home.parent / "elsewhere"
        elsewhere.mkdir(mode=0o700, exist_ok=True)
        env = self.env | {"XDG_RUNTIME_DIR": str(elsewhere)}
        with log.open("wb") as output, open(os.devnull, "rb") as nothing:
            words = ["gateway", "--port", str(free_port())]
            intruder = Forked(
                words, self.dir, env, stdin=nothing.fileno(), output=output.fileno(), is_leader=True
            )
        try:
            code = intruder.wait(HANGS_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(intruder.pid, signal.SIGKILL)
        said = log.read_text(errors="replace")
        is_told = "is already served by" in said and "Traceback" not in said
        return "" if code == 1 and is_told else f"a second gateway ended with {code}: {said[-300:]!r}"

    def kill(self) -> None:
        """Kill the gateway from outside."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(HANGS_S)

    def end(self) -> int:
        """End the gateway in order; return its exit code."""
        assert self._process is not None
        self._process.terminate()
        code = self.wait_for_end()
        if code is None:
            self.kill()
            raise AssertionError("the gateway does not end when it is told to")
        return code

    def stop(self) -> None:
        """See that nothing is left."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(HANGS_S)

    def client(self, token: str = "") -> GatewayClient:
        """Return a client for one who has this token, else the room's."""
        return GatewayClient(self.url, token or self.token)

    def traceback(self) -> str:
        """Return the last lines of the first traceback in the log, if there is one."""
        _, mark, rest = self.said().partition("Traceback (most recent call last)")
        lines = rest.splitlines()
        end = next((n for n, line in enumerate(lines) if n and line and not line.startswith(" ")), len(lines))
        return " | ".join(line.strip() for line in lines[max(0, end - 3) : end + 1]) if mark else ""


def is_away(error: CspError) -> bool:
    """Tell whether a caller should simply ask again: the gateway is down, or its disk is full."""
    return isinstance(error, Unreachable) or error.status in (429, 500, 503, 507)
