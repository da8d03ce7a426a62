"""Routes and their handlers: what a handler gets and what it may answer."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec

from csp.errors import NotFound
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.protocol.enums import Role
from csp.protocol.requests import NoQuery
from csp.room.roles import ROUTES as ROLES
from csp.room.roles import RoleRow, row_of

E = TypeVar("E", bound=StrEnum)


class Call(NamedTuple):
    """A parsed request and its caller."""

    caller: Caller
    path: dict[str, str]
    query: Any
    body: Any

    @property
    def once(self) -> dict[str, Any]:
        """The fields that make a command idempotent: it is carried out once per id and caller."""
        return {"once": self.body.id, "caller": self.caller.id} if self.body.id else {}

    def choice(self, name: str, kind: type[E], what: str = "action") -> E:
        """Return the member of `kind` that the path names, or raise NotFound."""
        try:
            return kind(self.path[name])
        except ValueError as exc:
            hint = f"expected one of: {', '.join(kind)}"
            raise NotFound(f"unknown {what} {self.path[name]!r}", hint) from exc


async def answered(gateway: Gateway, call: Call) -> str | None:
    """Return the result of an earlier call with the same id, once it is on disk; None for a new call."""
    if call.body.id is None or call.body.id not in gateway.writer.room.calls.get(call.caller.id, {}):
        return None
    await gateway.writer.settle()
    return gateway.writer.room.calls.get(call.caller.id, {}).get(call.body.id)


class RawJson(NamedTuple):
    """An answer that is encoded already."""

    data: bytes


class PlainText(NamedTuple):
    text: str


Answer = msgspec.Struct | RawJson | PlainText
Handler = Callable[[Gateway, Call], Awaitable[Answer]]


class Route(NamedTuple):
    """A route; the table of roles says who may call it."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: Any
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] = NoQuery
    status: int = 200
    #: Whether /openapi.json lists it.
    is_listed: bool = True

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def row(self) -> RoleRow:
        return row_of(ROLES, self.name)

    @property
    def needs(self) -> Role:
        """The lowest role that may call it."""
        return self.row.needs
