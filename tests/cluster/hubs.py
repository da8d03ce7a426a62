"""Real hubs, each a process with a folder of its own, over real NATS servers."""

import contextlib
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from csp.cluster.node import room_key
from csp.errors import CspError
from csp.gateway.auth import TokenStore
from csp.http_client import GatewayClient
from tests.forks import Forked
from tests.rooms import ROOT, START_S, free_port
from tests.waiting import wait_until_sync

SECRET: Final = b"a secret that all hubs share"


def room_token(room: str) -> str:
    """Return the token of a room, as everybody with the secret can derive it."""
    return TokenStore(room_key(SECRET, room)).room_token


class LiveHub:
    """One hub that may be killed and started again on its port."""

    def __init__(self, folder: Path, servers: Sequence[str], *options: str) -> None:
        self.folder = folder
        self.history = folder / "history"
        folder.mkdir(parents=True)
        secret = folder / "secret"
        secret.write_bytes(SECRET)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._words = ["hub", "--port", str(self.port), "--journal", ",".join(servers)]
        self._words += ["--secret-file", str(secret), "--history", str(self.history), *options]
        self._process: Forked | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def launch(self) -> None:
        """Start the hub; return at once."""
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(self.folder)}
        with (self.folder / "log").open("ab") as log, open(os.devnull, "rb") as nothing:
            self._process = Forked(
                self._words, self.folder, env, stdin=nothing.fileno(), output=log.fileno(), is_leader=True
            )

    def wait(self) -> None:
        """Return when the hub answers."""
        wait_until_sync(self.health, START_S, "the hub")

    def health(self) -> dict[str, Any]:
        """Return what the hub says of itself; nothing if it does not answer."""
        assert self._process is not None and self._process.poll() is None, self.said()
        with contextlib.suppress(CspError):
            found: dict[str, Any] = GatewayClient(self.url, "").get("/health")
            return found
        return {}

    def said(self) -> str:
        """Return the log."""
        return (self.folder / "log").read_text(errors="replace")

    def at(self, room: str, token: str = "") -> GatewayClient:
        """Return a client of a room at this hub."""
        return GatewayClient(f"{self.url}/r/{room}", token or room_token(room))

    def kill9(self) -> None:
        """Kill the hub as a crash would."""
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> None:
        """End the hub in order."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            process.wait(START_S)


class Hubs:
    """Several hubs of one cluster."""

    def __init__(self, folder: Path, servers: Sequence[str], count: int = 3, *options: str) -> None:
        self.all = [LiveHub(folder / f"h{number}", servers, *options) for number in range(count)]

    def __enter__(self) -> Self:
        try:
            for hub in self.all:
                hub.launch()
            for hub in self.all:
                hub.wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(LiveHub.stop, self.all))
