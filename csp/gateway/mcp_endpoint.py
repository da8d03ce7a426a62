"""/mcp: the room as an MCP server over streamable HTTP; its tools call the routes in process."""

import asyncio
import contextlib
import importlib
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
from aiohttp import web

from csp.errors import NotFound
from csp.fast_start.garbage_collection import paused_collector
from csp.gateway.auth import Caller, read_token
from csp.gateway.connections import is_person
from csp.gateway.gateway import Gateway
from csp.gateway.responses import HEADERS
from csp.gateway.route_table import Call, PlainText, RawJson, Route, RouteTable, Unavailable
from csp.gateway.routes import ROUTES, check_role
from csp.gateway.routes import answer as answer_of
from csp.protocol.codec import encode, parse, parse_query
from csp.room.permissions import ROUTES as ROLES
from csp.room.permissions import check_call, row_of

if TYPE_CHECKING:
    from csp.mcp.asgi import App

_EVENTS: Final = "text/event-stream"
_LOOK_S: Final = 0.5
#: Headers with secrets, which are not passed to the SDK.
_SECRET: Final = frozenset({b"x-auth-token", b"authorization", b"cookie"})
_TABLE: Final = RouteTable[Route]()
for _route in ROUTES:
    _TABLE.add(_route.method, _route.path, _route)


class LocalClient:
    """An in-process client of the room for one caller; its calls are checked like those over HTTP."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self._gateway = gateway
        self._caller = caller

    async def get(self, path: str, **query: str | int | float | None) -> Any:
        """Return the response to a GET, or raise the route's error."""
        return await self._ask("GET", path, query, None)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the response to a POST, or raise the route's error."""
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
            case Unavailable():
                return msgspec.json.decode(encode(answer.view))
            case msgspec.Struct():
                return msgspec.json.decode(encode(answer))


class Bridge:
    """Connects aiohttp to the SDK's ASGI application, which is loaded at the first request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._app: asyncio.Future[App] | None = None

    async def handle(self, request: web.BaseRequest, params: dict[str, str]) -> web.StreamResponse:
        """Respond to a participant's request."""
        caller = await self._gateway.identify_at_latest(read_token(request))
        await self._gateway.arrive(caller)
        check_call(row_of(ROLES, "POST /mcp"), caller.party, "POST /mcp")
        body = await request.read()
        app = await self._loaded()
        # The token may have been revoked while the body was being read or the SDK loaded.
        self._gateway.recheck(caller)
        given = [(name.lower(), value) for name, value in request.raw_headers]
        headers = [(name, value) for name, value in given if name not in _SECRET]
        answer = _Answer(request)
        with self._gateway.connected(caller):
            await _while_connected(
                request, app.answer(headers, body, LocalClient(self._gateway, caller), answer.send)
            )
        return answer.response()

    async def _loaded(self) -> "App":
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._gateway.spawn(self._run(self._app))
        # A caller that disconnects must not cancel the application, which all callers share.
        return await asyncio.shield(self._app)

    async def _run(self, loaded: "asyncio.Future[App]") -> None:
        """Load the SDK in a thread, because it takes a second, and serve until the gateway ends."""
        try:
            app = await asyncio.to_thread(_load)
            async with app.run():
                loaded.set_result(app)
                await asyncio.get_running_loop().create_future()
        except Exception as exc:
            self._app = None
            if not loaded.done():
                loaded.set_exception(exc)
            raise


def _load() -> "App":
    with paused_collector():
        app: App = importlib.import_module("csp.mcp.asgi").load()
    return app


class _Answer:
    """A response from the application, either collected or streamed event by event."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._status = 500
        self._type = ""
        self._body = bytearray()
        self._stream: web.StreamResponse | None = None

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Handle the next ASGI message of the response."""
        if message["type"] == "http.response.start":
            headers = {name.decode().lower(): value.decode() for name, value in message.get("headers", [])}
            self._status, self._type = message["status"], headers.get("content-type", "")
            if self._type.startswith(_EVENTS):
                self._stream = web.StreamResponse(status=self._status, headers=self._headers())
                await self._stream.prepare(self._request)
        elif self._stream is not None:
            await self._stream.write(message.get("body", b""))
        else:
            self._body += message.get("body", b"")

    def response(self) -> web.StreamResponse:
        """Return the collected or the streamed response."""
        if self._stream is not None:
            return self._stream
        return web.Response(status=self._status, body=bytes(self._body), headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return HEADERS | ({"Content-Type": self._type} if self._type else {})


async def _while_connected(request: web.BaseRequest, work: Any) -> None:
    """Await the work; cancel it if the caller disconnects."""

    async def disconnected() -> None:
        # aiohttp does not report a disconnect once the request has been read.
        while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)

    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ConnectionResetError("the caller is gone")
        await task
    finally:
        for one in (task, gone):
            one.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
