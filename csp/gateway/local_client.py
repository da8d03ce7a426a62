"""Ask the routes of the gateway from inside, as a caller whose token is known already."""

from typing import Any, Final
from urllib.parse import unquote

import msgspec

from csp.errors import NotFound
from csp.gateway.auth import Caller
from csp.gateway.connections import is_person
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call, PlainText, RawJson
from csp.gateway.routes import ROUTES, Route, check_role
from csp.gateway.routes import answer as answer_of
from csp.protocol.codec import encode, parse, parse_query

_SPLIT: Final = tuple((route, route.path.split("/")) for route in ROUTES)


class LocalClient:
    """One caller's way to the room; each question is checked as one that comes by HTTP is."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self._gateway = gateway
        self._caller = caller

    async def get(self, path: str, **query: str | int | float | None) -> Any:
        """Return the answer to a GET, or raise what the route says."""
        return await self._ask("GET", path, query, None)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a POST, or raise what the route says."""
        return await self._ask("POST", path, {}, body)

    async def _ask(self, method: str, path: str, query: dict[str, Any], body: Any) -> Any:
        route, params = _find(method, path)
        check_role(self._caller, route)
        self._gateway.recheck(self._caller)
        words = {key: str(value) for key, value in query.items() if value is not None}
        parsed = parse(route.body, encode(body)) if route.body is not None else None
        call = Call(self._caller, params, parse_query(route.query, words), parsed)
        answer = await self._answer(route, call)
        match answer:
            case RawJson():
                return msgspec.json.decode(answer.data)
            case PlainText():
                return answer.text
            case msgspec.Struct():
                return msgspec.json.decode(encode(answer))

    async def _answer(self, route: Route, call: Call) -> Answer:
        if is_person(call.caller):
            return await answer_of(self._gateway, route, call)
        self._gateway.throttle.check_rate(call.caller.id)
        async with self._gateway.throttle.turn(call.caller.id):
            return await answer_of(self._gateway, route, call)


def _find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    words = path.split("/")
    for route, parts in _SPLIT:
        if route.method == method and len(parts) == len(words):
            pairs = list(zip(parts, words, strict=True))
            if all(part == word or part.startswith("{") for part, word in pairs):
                return route, {part[1:-1]: unquote(word) for part, word in pairs if part.startswith("{")}
    raise NotFound(f"no route {path!r}", "see /openapi.json")
