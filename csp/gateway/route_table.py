"""Define routes and the types of their handlers, and find the route for a path.

The signature of a handler names its types: `call: Posted[MessageBody]` is parsed from a body, `call:
Asked[HistoryParams]` from a query, and `-> SentView` is the response shown in /openapi.json.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from csp.errors import NotFound
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.protocol.enums import Role
from csp.protocol.requests import NoQuery
from csp.room.permissions import ROUTES as ROLES
from csp.room.permissions import RoleRow, row_of

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Q = TypeVar("Q")
B = TypeVar("B")


class Call(NamedTuple, Generic[Q, B]):
    """A parsed request and its caller."""

    caller: Caller
    path: dict[str, str]
    query: Q
    body: B

    def with_body(self, body: T, **path: str) -> "Call[Q, T]":
        """Return a call to another route by the same caller."""
        return Call(self.caller, path, self.query, body)

    @property
    def once(self) -> dict[str, Any]:
        """The fields that make a command idempotent: it is executed once per id and caller."""
        key = getattr(self.body, "id", None)
        return {"once": key, "caller": self.caller.id} if key else {}

    def choice(self, name: str, kind: type[E], what: str = "action") -> E:
        """Return the member of `kind` named in the path, or raise NotFound."""
        try:
            return kind(self.path[name])
        except ValueError as exc:
            hint = f"expected one of: {', '.join(kind)}"
            raise NotFound(f"unknown {what} {self.path[name]!r}", hint) from exc


def fill(kind: type[S], body: msgspec.Struct, **more: Any) -> S:
    """Return a `kind` with the fields that it shares with `body` and those in `more`."""
    names = set(kind.__struct_fields__) & set(body.__struct_fields__) - more.keys()
    return kind(**{name: getattr(body, name) for name in names}, **more)


AnyCall = Call[Any, Any]
Asked = Call[Q, Any]
Posted = Call[Any, B]


async def answered(gateway: Gateway, call: AnyCall) -> str | None:
    """Return the result of an earlier call with the same id, once it is on disk; None for a new call."""
    if call.body.id is None:
        return None
    if call.body.id not in gateway.writer.room.calls.get(call.caller.id, {}):
        # Another gateway may have carried it out just now.
        await gateway.writer.catch_up()
    if call.body.id not in gateway.writer.room.calls.get(call.caller.id, {}):
        return None
    await gateway.writer.settle()
    return gateway.writer.room.calls.get(call.caller.id, {}).get(call.body.id)


class RawJson(NamedTuple):
    """A response that is already encoded."""

    data: bytes


class PlainText(NamedTuple):
    text: str


class Unavailable(NamedTuple):
    """A response that says why the gateway cannot serve the room now."""

    view: msgspec.Struct


Answer = msgspec.Struct | RawJson | PlainText | Unavailable
Handler = Callable[[Gateway, Any], Awaitable[Answer]]


class Route(NamedTuple):
    """A route; the table of roles defines who may call it."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: Any
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] = NoQuery
    status: int = 200

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def row(self) -> RoleRow:
        return row_of(ROLES, self.name)

    @property
    def needs(self) -> Role:
        """The lowest role that may call the route."""
        return self.row.needs


def body_of(handler: Handler) -> type[msgspec.Struct] | None:
    """Return the type of the body that a handler expects."""
    body = get_args(get_type_hints(handler)["call"])[1]
    return None if body is Any else body


def route(
    method: str, path: str, handler: Handler, summary: str, answer: Any = None, status: int = 200
) -> Route:
    """Return a route with the types in its handler's signature; `answer` is the type of a raw response."""
    hints = get_type_hints(handler)
    query = get_args(hints["call"])[0]
    query = NoQuery if query is Any else query
    answer = answer or hints["return"]
    return Route(method, path, handler, summary, answer, body_of(handler), query, status)


class RouteTable(Generic[T]):
    """Targets by path and method; a path such as `/agents/{id}` is a pattern."""

    def __init__(self) -> None:
        self._plain: dict[str, dict[str, T]] = {}
        self._patterns: dict[tuple[str, ...], dict[str, T]] = {}

    def add(self, method: str, path: str, target: T) -> None:
        """Add a target; if two patterns match a path, the one added first is used."""
        if "{" in path:
            self._patterns.setdefault(tuple(path.split("/")), {})[method] = target
        else:
            self._plain.setdefault(path, {})[method] = target

    def find(self, path: str) -> tuple[dict[str, T], dict[str, str]]:
        """Return the targets of a path by method and the values in the path, or raise NotFound."""
        targets = self._plain.get(path)
        if targets is not None:
            return targets, {}
        words = path.split("/")
        for parts, targets in self._patterns.items():
            if len(parts) != len(words):
                continue
            pairs = list(zip(parts, words, strict=True))
            if all(part == word or part.startswith("{") for part, word in pairs):
                return targets, {part[1:-1]: word for part, word in pairs if part.startswith("{")}
        raise NotFound(f"no route {path!r}", "see /openapi.json")
