"""A human before a gateway that answers what a test says."""

from pathlib import Path
from typing import Any

from csp.errors import CspError
from csp.human import command_table
from csp.human.chat import Chat, ChatOrder
from csp.human.saved_state import SavedState
from csp.human.theme import UNICODE, Theme
from csp.room.human_input import CommandLine, ModeLine, read_line
from csp.room_registry import Address

RUNNING = {
    "mode": "consensus",
    "round": 0,
    "maxRounds": 2,
    "sessionId": "s-4",
    "status": "running",
    "topic": "which\nname",
    "currentTurn": "codex",
    "waitingFor": ["codex", "claude"],
    "proposals": {"A": {"agent": "codex", "text": "one\ntwo"}},
    "votes": {"claude": {"label": "A", "reason": "\x1b[1mgood"}},
}
AGENTS = [
    {"id": name, "state": "idle", "kind": "cli", "role": "agent", "queued": 0, "online": True}
    for name in ("claude", "codex")
]


class Shown:
    """Keeps what would be shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def put(self, text: str) -> None:
        self.lines.append(text)

    async def page(self, title: str, lines: list[str]) -> None:
        self.lines += lines

    def talk(self, text: str) -> None:
        self.lines.append(text)

    def bell(self) -> None:
        pass

    def refresh(self) -> None:
        pass

    def leave(self) -> None:
        self.lines.append("left")


class Modes(Chat):
    """A human before a gateway with modes, of which this keeps what it is asked."""

    def __init__(self, folder: Path, env: dict[str, str] | None = None, *, is_person: bool = True) -> None:
        self.shown = Shown()
        self.queries: list[dict[str, Any]] = []
        self.items: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: dict[str, Any] = {
            "/agents": AGENTS,
            "/mode": RUNNING,
            "/stop": {"stopped": ["s-4"]},
            "/usage": {"items": [], "prices": None},
        }
        order = ChatOrder(
            address=Address(url="http://127.0.0.1:9", token="t", room="default"),
            memory=SavedState(folder / "human"),
            env=env or {},
            cwd=folder,
            is_person=is_person,
        )
        super().__init__(order, self.shown, Theme(UNICODE, has_colour=False))

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        if method != "GET":
            self.asked.append((method, path, body))
        answer = self.answers.get(path, {})
        if isinstance(answer, CspError):
            raise answer
        return answer

    async def page(self, **query: str | int | None) -> list[dict[str, Any]]:
        self.queries.append(query)
        return self.items

    async def do(self, line: str) -> list[str]:
        """Do a line; return what is shown of it."""
        await self.roster.look()
        what = read_line(line)
        if isinstance(what, ModeLine):
            await command_table.set_mode(self, what)
        else:
            assert isinstance(what, CommandLine), what
            await command_table.run(self, what)
        return self.shown.lines
