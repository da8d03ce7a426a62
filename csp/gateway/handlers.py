"""What a handler of a route gets, what it may answer."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec

from csp.errors import NotFound
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway

E = TypeVar("E", bound=StrEnum)


class Call(NamedTuple):
    """A request past the border: who, and what, already parsed."""

    caller: Caller
    path: dict[str, str]
    query: Any
    body: Any

    @property
    def once(self) -> dict[str, Any]:
        """The fields of a command that is carried out once, however often it comes with the same id."""
        return {"once": self.body.id, "caller": self.caller.id} if self.body.id else {}

    def chosen(self, name: str, kind: type[E], what: str = "action") -> E:
        """Return the member of an enum that a segment of the path names; NotFound where there is none."""
        try:
            return kind(self.path[name])
        except ValueError as exc:
            problem = f"unknown {what} {self.path[name]!r}"
            raise NotFound(problem, f"expected one of: {', '.join(kind)}") from exc


async def answered(gateway: Gateway, call: Call) -> str | None:
    """Return what came of the same call before, once that is safe; None if it is a new one."""
    if call.body.id is None or call.body.id not in gateway.writer.room.calls.get(call.caller.id, {}):
        return None
    await gateway.writer.settle()
    return gateway.writer.room.calls.get(call.caller.id, {}).get(call.body.id)


class RawJson(NamedTuple):
    """An answer that is json already."""

    data: bytes


class PlainText(NamedTuple):
    text: str


Answer = msgspec.Struct | RawJson | PlainText
Handler = Callable[[Gateway, Call], Awaitable[Answer]]
