"""Start the servers CSP is held against."""

import shutil
import socket
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from csp.errors import Broken, NotFound
from tests.bench.machine.plans import HOST, TEXT
from tests.bench.machine.process import Process, Server, start, stop

_START_S: Final = 30.0
NATS_PATHS: Final = "/usr/sbin:/usr/local/bin:/usr/bin:/opt/homebrew/bin"
NATS_GREETING: Final = b'CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n'
NATS_SUBSCRIPTION: Final = b"SUB room 1\r\n" + NATS_GREETING
NATS_GREETED: Final = b"PONG\r\n"
#: As long as an event of ours on its way to a watcher.
NATS_PAYLOAD: Final = TEXT.ljust(250, ".").encode()
NATS_PUBLISH: Final = b"PUB room %d\r\n%b\r\n" % (len(NATS_PAYLOAD), NATS_PAYLOAD)


def start_bare(folder: Path) -> Server:
    """Start a bare asyncio.Protocol that answers every request."""
    return _start(folder, lambda port: [sys.executable, "-m", "tests.bench.servers.bare", str(port)])


def start_fastapi(folder: Path) -> Server:
    """Start a room written with FastAPI."""
    if find_spec("fastapi") is None:
        raise NotFound("FastAPI is not installed", "run: uv sync --group dev --group bench")
    return _start(folder, lambda port: [sys.executable, "-m", "tests.bench.servers.fastapi_room", str(port)])


def start_nats(folder: Path) -> Server:
    """Start a NATS server."""
    program = shutil.which("nats-server") or shutil.which("nats-server", path=NATS_PATHS)
    if program is None:
        raise NotFound("nats-server is not installed", "run: apt-get install nats-server")
    if find_spec("nats") is None:
        raise NotFound("nats-py is not installed", "run: uv sync --group dev --group bench")
    return _start(folder, lambda port: [program, "--addr", HOST, "--port", str(port)])


def _start(folder: Path, command: Callable[[int], list[str]]) -> Server:
    folder.mkdir(exist_ok=True)
    port = _free_port()
    process = start(command(port), folder)
    try:
        _wait_for(port, process, folder)
    except BaseException:
        stop(process)
        raise
    return Server(process, port)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        return int(taken.getsockname()[1])


def _wait_for(port: int, process: Process, folder: Path) -> None:
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise Broken(f"a server did not start, see {folder / 'server.log'}")
