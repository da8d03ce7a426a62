"""Real NATS servers, each a process with a folder of its own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from csp.cluster.config_files import MONITOR_ABOVE
from tests.rooms import free_port
from tests.waiting import wait_until_sync

#: The wheel of the tests brings it along.
SERVER: Final = shutil.which("nats-server", path=str(Path(sys.executable).parent))


class ConfiguredServer:
    """A server with a configuration file that is there; it may be killed and started again."""

    def __init__(self, config: Path, port: int, *, program: str | None = SERVER) -> None:
        self.port = port
        self._config = config
        self._log = config.with_suffix(".log")
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server; return when it answers."""
        assert self._program is not None, "the group dev is not installed"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([self._program, "-c", str(self._config)], stdout=log, stderr=log)
        wait_until_sync(self._is_up, what="the NATS server")

    def kill(self) -> None:
        """Kill the server as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server in order."""
        self._end(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Stop or continue the process."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            # One that was stopped has to go on in order to end.
            process.send_signal(signal.SIGCONT)
            process.wait(60)

    def _is_up(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self._log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
            return probe.recv(5) == b"INFO "
        return False


class NatsServer(ConfiguredServer):
    """One server that keeps its port and its files."""

    def __init__(
        self,
        folder: Path,
        name: str = "n1",
        more: str = "",
        *,
        scheme: str = "nats",
        program: str | None = SERVER,
        sync: str = "sync_interval: always",
        has_monitor: bool = False,
    ) -> None:
        super().__init__(folder / f"{name}.conf", _port_with_monitor(), program=program)
        self.name = name
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        folder.mkdir(parents=True, exist_ok=True)
        store = f'jetstream {{ store_dir: "{folder / name}"\n{sync} }}'
        listen = f'server_name: {name}\nlisten: "127.0.0.1:{self.port}"'
        if has_monitor:
            listen += f'\nhttp: "127.0.0.1:{self.port + MONITOR_ABOVE}"'
        self._config.write_text(f"{listen}\n{store}\n{more}\n")


def _port_with_monitor() -> int:
    """Return a free port; that for the state of the server exists as well."""
    while (port := free_port()) + MONITOR_ABOVE > 65535:
        pass
    return port


class NatsCluster:
    """Three servers that replicate their streams."""

    def __init__(self, folder: Path) -> None:
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        self.servers = [
            NatsServer(
                folder,
                f"n{number}",
                f'cluster {{ name: c1, listen: "127.0.0.1:{port}", routes: [{routes}] }}',
            )
            for number, port in enumerate(ports, 1)
        ]
        self.urls = [server.url for server in self.servers]

    def __enter__(self) -> Self:
        with ThreadPoolExecutor() as pool:
            list(pool.map(NatsServer.start, self.servers))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self.servers:
            server.stop()

    def named(self, name: str) -> NatsServer:
        """Return a server by its name."""
        return next(server for server in self.servers if server.name == name)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One server for all tests of a process that do it no harm."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server
