"""A real gateway in a home of its own, with agents that answer as a test wants."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pexpect

from csp.http_client import GatewayClient
from csp.room_registry import RunningRoom, running_rooms
from tests.forks import Forked
from tests.waiting import wait_until_sync

_LEFT_OUT = ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
TIMEOUT_S = 120.0


@dataclass
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Place:
    """A home with a directory to work in; everything that runs there is ended by `close`."""

    folder: Path
    running: list[Forked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)

    @property
    def home(self) -> Path:
        """The room is named after it."""
        return self.folder / "default"

    @property
    def state(self) -> Path:
        return self.home / ".cache/csp"

    @property
    def history(self) -> Path:
        return self.home / "history"

    def env(self, **more: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}
        return kept | {"HOME": str(self.home)} | more

    def start(self, *argv: str, **env: str) -> Forked:
        """Start `csp` and leave it running."""
        process = Forked(argv, self.home, self.env(**env))
        self.running.append(process)
        return process

    def python(self, *argv: str, **env: str) -> Done:
        """Run `csp` to its end as its user does, by starting Python."""
        command = [sys.executable, "-m", "csp.cli", *argv]
        done = subprocess.run(
            command,
            cwd=self.home,
            env=self.env(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def csp(self, *argv: str, stdin: str = "", **env: str) -> Done:
        """Run `csp` to its end."""
        process = self.start(*argv, **env)
        out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        return Done(process.wait(), out, err)

    def gateway(self, *argv: str) -> Forked:
        """Start a gateway and wait until its room is announced."""
        before = {room.pid for room in running_rooms(self.state)}
        where = () if "--port" in argv else ("--port", "0")
        process = self.start("gateway", *where, "--history", str(self.history), *argv)
        wait_until_sync(lambda: self._has_new_room(process, before), TIMEOUT_S, "the gateway")
        return process

    def _has_new_room(self, process: Forked, before: set[int]) -> bool:
        assert process.poll() is None, process.communicate()
        return any(room.pid not in before for room in running_rooms(self.state))

    def room(self) -> RunningRoom:
        (room,) = running_rooms(self.state)
        return room

    def room_port(self, agent: "Agent") -> str:
        """Return the port an agent was told, be the gateway there or not."""
        return agent.gateway.url.rpartition(":")[2]

    def agent(self, name: str) -> "Agent":
        room = self.room()
        answer = GatewayClient(room.url, room.token).post("/register", {"agentId": name})
        return Agent(answer["agentId"], answer["token"], GatewayClient(room.url, answer["token"]))

    def terminal(self, *argv: str) -> "pexpect.spawn[str]":
        """Start `csp` in a terminal of its own."""
        words = ["-m", "csp.cli", *argv]
        return pexpect.spawn(sys.executable, words, cwd=self.home, env=self.env(), encoding="utf-8")

    def empty(self) -> None:
        """Send every agent away."""
        room = self.room()
        gateway = GatewayClient(room.url, room.token)
        for agent in gateway.get("/agents"):
            gateway.delete(f"/agents/{agent['id']}")

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()


@dataclass
class Agent:
    """An agent that does what a test tells it to."""

    id: str
    token: str
    gateway: GatewayClient

    def next_item(self) -> dict[str, Any]:
        """Wait for the next message."""
        items = wait_until_sync(lambda: self.gateway.get(f"/inbox/{self.id}", wait=1)["items"], 90)
        item: dict[str, Any] = items[0]
        return item

    def reply(self, item: dict[str, Any], text: str) -> None:
        self.gateway.post("/agent-output", {"content": text, "replyTo": item["id"]})

    def report(self, item: dict[str, Any], state: str, reason: str = "") -> None:
        self.gateway.post("/delivery", {"id": item["id"], "state": state, "reason": reason})
