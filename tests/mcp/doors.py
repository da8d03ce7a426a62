"""A door that leads nowhere: it notes what is asked and answers what it was told to."""

from typing import Any

from csp.mcp.tools import ToolCall
from csp.protocol.enums import ParticipantKind, Role

ME = {"id": "ada", "kind": "cli", "role": "agent", "room": "r"}


class Door:
    """Answers by path; a list is given out one answer after the other, an error is raised."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"/me": ME}
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def tell(self, path: str, answer: Any) -> "Door":
        self.answers[path] = answer
        return self

    async def get(self, path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._answer("GET", path, given)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._answer("POST", path, body)

    def _answer(self, method: str, path: str, given: dict[str, Any]) -> Any:
        self.asked.append((method, path, given))
        answer = self.answers.get(path, {"success": True})
        if isinstance(answer, list) and path.startswith("/collaborations/"):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def me(kind: ParticipantKind = ParticipantKind.CLI, role: Role = Role.AGENT) -> dict[str, Any]:
    return {**ME, "kind": kind, "role": role}


class Call:
    """One call of a tool, with the progress that it tells."""

    def __init__(self, door: Door) -> None:
        self.told: list[tuple[float, float, str]] = []
        self.asked = ToolCall(door, "key-of-the-call", self._tell)

    async def _tell(self, step: float, of: float, message: str) -> None:
        self.told.append((step, of, message))
