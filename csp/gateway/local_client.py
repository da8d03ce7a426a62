"""Call the routes of the gateway in process, for a caller that is identified already."""

from typing import Any, Final
from urllib.parse import unquote

import msgspec

from csp.errors import NotFound
from csp.gateway.auth import Caller
from csp.gateway.connections import is_person
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Call, PlainText, RawJson, Route
from csp.gateway.route_table import RouteTable
from csp.gateway.routes import ROUTES, check_role
from csp.gateway.routes import answer as answer_of
from csp.protocol.codec import encode, parse, parse_query

_TABLE: Final = RouteTable[Route]()
for _route in ROUTES:
    _TABLE.add(_route.method, _route.path, _route)


class LocalClient:
    """A client of the room for one caller; its calls are checked like those over HTTP."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self._gateway = gateway
        self._caller = caller

    async def get(self, path: str, **query: str | int | float | None) -> Any:
        """Return the answer to a GET, or raise the error of the route."""
        return await self._ask("GET", path, query, None)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a POST, or raise the error of the route."""
        return await self._ask("POST", path, {}, body)

    async def _ask(self, method: str, path: str, query: dict[str, Any], body: Any) -> Any:
        routes, params = _TABLE.find(path)
        route = routes.get(method)
        if route is None:
            raise NotFound(f"no route {path!r} for {method}", "see /openapi.json")
        check_role(self._caller, route)
        self._gateway.recheck(self._caller)
        words = {key: str(value) for key, value in query.items() if value is not None}
        parsed = parse(route.body, encode(body)) if route.body is not None else None
        values = {name: unquote(value) for name, value in params.items()}
        call = Call(self._caller, values, parse_query(route.query, words), parsed)
        if is_person(self._caller):
            answer = await answer_of(self._gateway, route, call)
        else:
            self._gateway.throttle.check_rate(self._caller.id)
            async with self._gateway.throttle.turn(self._caller.id):
                answer = await answer_of(self._gateway, route, call)
        match answer:
            case RawJson():
                return msgspec.json.decode(answer.data)
            case PlainText():
                return answer.text
            case msgspec.Struct():
                return msgspec.json.decode(encode(answer))
