"""Start what is measured, each server a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from csp.errors import Broken
from csp.fast_start.child_environment import HELPER, child_environment
from csp.fast_start.process_environment import process_environment
from tests.bench.machine.peers import Client
from tests.bench.machine.plans import Found, Plan

TOKEN: Final = "bench-token"
ROOM: Final = "bench"
_ROOT: Final = Path(__file__).resolve().parents[3]
_START_S: Final = 120.0
_STOP_S: Final = 60.0
_POLL_S: Final = 0.001
_LOAD_S: Final = 300.0

Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs until the end of the `with` block; `ready_s` is what its first answer took."""

    process: Process
    port: int
    ready_s: float = 0.0

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.process)

    def ask(self, path: str) -> Any:
        """Return the JSON that a path answers."""
        client = Client(self.port, TOKEN)
        try:
            return json.loads(client.get(path))
        finally:
            client.close()

    def settle(self) -> None:
        """Return when the gateway has read its journal through, so that this is not measured too."""
        deadline = time.monotonic() + _START_S
        while self.ask("/health")["journal"]["scrub"] == "running":
            if time.monotonic() > deadline:
                raise Broken("the gateway is still reading its journal")
            time.sleep(0.02)


def stop(process: Process) -> None:
    """End a process in order, or else by force."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start(command: Sequence[str], folder: Path) -> Process:
    """Start a program that sees nothing of the user's own rooms; what it says goes to a file in `folder`."""
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "CSP_AUTH_TOKEN": TOKEN,
        "PYTHONPATH": str(_ROOT),
    }
    with (folder / "server.log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=child_environment(HELPER, {}, environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def start_gateway(folder: Path, durability: str = "fsync") -> Server:
    """Start a gateway on the journal in `folder`; return when it has answered."""
    announcement = folder / "csp" / f"{ROOM}.json"
    announcement.unlink(missing_ok=True)
    options = ["--port", "0", "--room", ROOM, "--history", str(folder), "--durability", durability]
    began = time.perf_counter()
    process = start([sys.executable, "-m", "csp.cli", "gateway", *options], folder)
    try:
        server = Server(process, _announced_port(process, announcement))
        server.ask("/history?limit=1")
    except BaseException:
        stop(process)
        raise
    return Server(process, server.port, time.perf_counter() - began)


def _announced_port(process: Process, announcement: Path) -> int:
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return int(json.loads(announcement.read_bytes())["url"].rpartition(":")[2])
        except (FileNotFoundError, ValueError):
            time.sleep(_POLL_S)
    said = (announcement.parents[1] / "server.log").read_text(errors="replace").strip().splitlines()
    raise Broken(f"the gateway did not start: {said[-1] if said else 'it said nothing'}")


def start_load(plan: Plan, *generator: str) -> Process:
    """Start a load generator, by default the one of tests.bench.machine.load."""
    command = [sys.executable, "-m", *(generator or ["tests.bench.machine.load"])]
    with tempfile.TemporaryFile() as written:
        written.write(msgspec.json.encode(plan))
        written.seek(0)
        pipe = subprocess.PIPE
        own = child_environment(HELPER, process_environment())
        return subprocess.Popen(command, cwd=_ROOT, env=own, stdin=written, stdout=pipe, stderr=pipe)


def finish_load(load: Process) -> Found:
    """Return what a load generator has found, once it is done."""
    try:
        out, err = load.communicate(timeout=_LOAD_S)
    except BaseException:
        load.kill()
        load.communicate()
        raise
    if load.returncode != 0:
        said = err.decode(errors="replace").strip().splitlines()
        raise Broken(f"the load generator failed: {said[-1] if said else 'it said nothing'}")
    return msgspec.json.decode(out, type=Found)


def run_load(plan: Plan, *generator: str) -> Found:
    """Run a load generator to its end."""
    return finish_load(start_load(plan, *generator))
