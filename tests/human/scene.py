"""A real room with agents that do what a test says, and the human pane in a real terminal."""

import re
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from csp.oneshot import Gateway
from tests.clis.terminal import Terminal
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

CHAT: Final = (sys.executable, "-m", "csp.cli", "chat")


@dataclass(frozen=True)
class Agent:
    """An agent that does what a test says."""

    id: str
    gateway: Gateway

    def next_item(self, text: str = "") -> dict[str, Any]:
        """Wait for a message with this text in it."""

        def found() -> dict[str, Any] | None:
            items = self.gateway.get(f"/inbox/{self.id}")["items"]
            return next((item for item in items if text in item["text"]), None)

        item = wait_until_sync(found, 20.0, f"a message to {self.id} with {text!r}")
        assert item is not None
        return item

    def report(self, item: dict[str, Any], state: str, reason: str = "") -> None:
        self.gateway.post("/delivery", {"id": item["id"], "state": state, "reason": reason})

    def reply(self, item: dict[str, Any], text: str) -> None:
        self.gateway.post("/agent-output", {"content": text, "replyTo": item["id"]})

    def next_turn(self) -> dict[str, Any]:
        """Wait until the agent is asked for its turn."""

        def found() -> dict[str, Any] | None:
            items = self.gateway.get(f"/inbox/{self.id}")["items"]
            return next((item for item in items if item["kind"] == "turn"), None)

        item = wait_until_sync(found, 20.0, f"a turn of {self.id}")
        assert item is not None
        return item

    def take_turn(self, text: str) -> None:
        """Answer the turn that the agent is asked for, as soon as it is."""
        self.gateway.post("/agent-output", {"content": text, "turn": self.next_turn()["turn"]})

    def say(self, to: str, text: str) -> None:
        self.gateway.post("/message", {"to": to, "content": text})

    def set_state(self, state: str, **more: Any) -> None:
        self.gateway.post("/state", {"state": state, **more})


def join(room: LiveRoom, name: str, **more: str) -> Agent:
    answer = room.gateway.post("/register", {"agentId": name, **more})
    return Agent(answer["agentId"], Gateway(room.url, answer["token"]))


def empty(room: LiveRoom) -> None:
    """End what runs, send every agent away."""
    room.gateway.post("/stop", {"all": True})
    for agent in room.gateway.get("/agents"):
        room.gateway.delete(f"/agents/{agent['id']}")


def plain(room: LiveRoom, text: str, *argv: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run csp chat off a terminal with these lines typed."""
    return subprocess.run(
        [*CHAT, *argv],
        env=room.env | env,
        cwd=room.dir,
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Pane(Terminal):
    """The human pane in a terminal."""

    def type(self, line: str) -> None:
        """Type a line with Enter behind it."""
        self.send(line.encode() + b"\r")

    def wait_history(self, pattern: str, timeout_s: float = 20.0) -> str:
        """Wait until a pattern stands anywhere in what was drawn; return all of it."""

        def shown() -> str:
            text = self.history()
            return text if re.search(pattern, text, re.MULTILINE) else ""

        try:
            return wait_until_sync(shown, timeout_s, pattern)
        except AssertionError as error:
            raise AssertionError(f"{error}; the terminal shows:\n{self.history()}") from None

    @property
    def is_cooked(self) -> bool:
        """Tell whether the terminal echoes lines again, as a shell expects it to."""
        flags = termios.tcgetattr(self._master)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)

    def end(self) -> int:
        """Return the exit code once the program has ended."""
        return self.process.wait(20)


@contextmanager
def open_pane(
    room: LiveRoom, *, rows: int = 24, columns: int = 80, env: Mapping[str, str] | None = None
) -> Iterator[Pane]:
    """Run csp chat in a terminal; return when it knows the room."""
    given = {"TERM": "xterm-256color", "LANG": "C.UTF-8"} | dict(env or {})
    with Pane(CHAT, room.env | given, room.dir, rows=rows, columns=columns) as pane:
        pane.wait_for(r"^(→|->)all>")
        pane.wait_gone("joining the room")
        yield pane
