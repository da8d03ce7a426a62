"""A real room with agents that do what a test says, and the human pane in a real terminal."""

import asyncio
import contextlib
import io
import re
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pytest

from csp.errors import NotFound
from csp.http_client import GatewayClient
from csp.human.chat import ChatOrder
from csp.human.plain_chat import PlainChat
from csp.human.saved_state import SavedState
from csp.human.theme import UNICODE, Theme
from csp.room_registry import Address
from tests.clis.terminal import Terminal
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

CHAT: Final = (sys.executable, "-m", "csp.cli", "chat")


@dataclass(frozen=True)
class Agent:
    """An agent that does what a test says."""

    id: str
    gateway: GatewayClient

    def next_item(self, text: str = "") -> dict[str, Any]:
        """Wait for a message with this text in it."""

        def found() -> dict[str, Any] | None:
            items = self.gateway.get(f"/inbox/{self.id}")["items"]
            return next((item for item in items if text in item["text"]), None)

        item = wait_until_sync(found, 60.0, f"a message to {self.id} with {text!r}")
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

        item = wait_until_sync(found, 60.0, f"a turn of {self.id}")
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
    return Agent(answer["agentId"], GatewayClient(room.url, answer["token"]))


def empty(room: LiveRoom) -> None:
    """End what runs, send every agent away."""
    room.gateway.post("/stop", {"all": True})
    for agent in room.gateway.get("/agents"):
        # What was typed last may just be removing it too.
        with contextlib.suppress(NotFound):
            room.gateway.delete(f"/agents/{agent['id']}")


class Done(NamedTuple):
    """What was typed off a terminal left behind."""

    returncode: int
    stdout: str
    stderr: str


def script_order(room: LiveRoom) -> ChatOrder:
    """Return what a script in this room has around it."""
    return ChatOrder(
        address=Address(url=room.url, token=room.token, room=room.name),
        memory=SavedState(room.home / "human"),
        env=room.env,
        cwd=room.dir,
        is_person=False,
    )


def plain(room: LiveRoom, text: str, patience_s: float = 0.1) -> Done:
    """Talk to the room line by line, as csp chat does off a terminal, in this process."""
    order, look = script_order(room), Theme(UNICODE, has_colour=False)
    out, err = io.StringIO(), io.StringIO()

    async def run() -> int:
        return await PlainChat(order, look, io.StringIO(text), out, err).run()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("csp.human.plain_chat.PATIENCE_S", patience_s)
        code = asyncio.run(run())
    return Done(code, out.getvalue(), err.getvalue())


def csp_chat(room: LiveRoom, text: str, **env: str) -> Done:
    """Run csp chat off a terminal with these lines typed."""
    done = subprocess.run(
        CHAT,
        env=room.env | env,
        cwd=room.dir,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


class Pane(Terminal):
    """The human pane in a terminal."""

    _begun = 0

    def begin_anew(self) -> None:
        """Forget what was drawn before, aim at all, wait until nobody is left in the room."""
        self.send(b"\x03")
        self.wait_for("^no agents yet")
        self.send(b"\x0c")
        self.type("@all")
        self._begun += 1
        self.type(f"/begin-{self._begun}")
        self.wait_for(f"'/begin-{self._begun}' is not a command")
        self.wait_for("^(→|->)all>")
        with self._lock:
            self.raw.clear()

    def history(self) -> str:
        """Return all that was drawn since the pane was begun anew."""
        text = super().history()
        mark = f"'/begin-{self._begun}' is not a command"
        return text.rpartition(mark)[2].partition("\n")[2] if self._begun else text

    def wait_for(self, pattern: str, timeout_s: float = 60.0) -> str:
        return super().wait_for(pattern, timeout_s)

    def wait_gone(self, pattern: str, timeout_s: float = 60.0) -> None:
        super().wait_gone(pattern, timeout_s)

    def type(self, line: str) -> None:
        """Type a line with Enter behind it."""
        self.send(line.encode() + b"\r")

    def wait_history(self, pattern: str, timeout_s: float = 60.0) -> str:
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
        return self.process.wait(60)


def come(room: LiveRoom, pane: Pane, name: str) -> Agent:
    """Have an agent join a room whose pane is open; return when the pane knows it."""
    agent = join(room, name)
    pane.wait_for(rf"{name} joined$")
    return agent


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
