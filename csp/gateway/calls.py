"""What a handler of a route gets, what it may answer."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway


class Call(NamedTuple):
    """A request past the border: who, and what, already parsed."""

    caller: Caller
    path: dict[str, str]
    query: Any
    body: Any


class RawJson(NamedTuple):
    """An answer that is json already."""

    data: bytes


class PlainText(NamedTuple):
    text: str


Answer = msgspec.Struct | RawJson | PlainText
Handler = Callable[[Gateway, Call], Awaitable[Answer]]
