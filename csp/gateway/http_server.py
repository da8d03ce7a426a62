"""The HTTP server: parses requests, calls their routes in their rooms, and encodes the responses.

It uses aiohttp's low-level server. Roles and /openapi.json need our own route table anyway, and its
dictionary lookup takes a tenth of the time of aiohttp's router.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from csp.errors import BadInput, CspError, LogLost, TooLarge, TooMany, Unsupported
from csp.gateway.acceptor import HttpConnection, HttpServer
from csp.gateway.auth import NOBODY, SUBPROTOCOL, Caller, read_offered_token, read_token
from csp.gateway.connections import Connections, is_person
from csp.gateway.entrance import Entrance, OnlyRoom, RoomEntrance
from csp.gateway.gateway import Gateway
from csp.gateway.page_routes import serve_file, serve_index
from csp.gateway.responses import (
    error_response,
    for_friend,
    json_response,
    preflight_response,
    refused,
    text_response,
)
from csp.gateway.route_table import Answer, Call, PlainText, RawJson, Route, RouteTable, Unavailable
from csp.gateway.routes import ROUTES, answer, check_role
from csp.gateway.websocket import serve_socket
from csp.protocol.codec import encode, parse_query, parse_request
from csp.protocol.enums import MAX_BODY_BYTES, Role
from csp.protocol.requests import WatchParams
from csp.room.caller_limits import places_for
from csp.room.permissions import ROUTES as ROLES
from csp.room.permissions import row_of

log = logging.getLogger(__name__)

#: A search of a thousand characters must fit in the request line, at up to twelve bytes per character.
MAX_LINE_BYTES: Final = 32 * 1024
#: How long to read and discard the rest of a refused body, so that its sender sees the response.
LINGERING_S: Final = 1.0
Params = dict[str, str]
Endpoint = Callable[[RoomEntrance, web.BaseRequest, Params], Awaitable[web.StreamResponse]]
FileEndpoint = Callable[[web.BaseRequest, Params, tuple[str, ...]], Awaitable[web.StreamResponse]]


class _Target(NamedTuple):
    """The target of a method of a path: a route of a room, or a file, which is the same in every room."""

    serve: Endpoint | None = None
    serve_file: FileEndpoint | None = None


class _Visit:
    """A request, and the room that it has entered."""

    room: RoomEntrance | None = None


def make_runner(entrance: Gateway | Entrance, *, shutdown_timeout_s: float = 1.0) -> web.ServerRunner:
    """Return a server for a gateway, or for many rooms; it can listen on any number of sockets."""
    if isinstance(entrance, Gateway):
        entrance = OnlyRoom(entrance)

    def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)

    guests = Connections(entrance.identify, entrance.too_fast)
    guests.places = places_for(entrance.max_files)
    server = HttpServer(
        _Border(entrance, guests).handle,
        guests,
        make_request,
        access_log=None,
        max_line_size=MAX_LINE_BYTES,
        # A small body could be decompressed into a huge one before its sender is known.
        auto_decompress=False,
        lingering_time=LINGERING_S,
    )
    return web.ServerRunner(server, shutdown_timeout=shutdown_timeout_s)


class _Border:
    """Finds the route for a request, calls it, and turns every failure into a JSON response."""

    def __init__(self, entrance: Entrance, guests: Connections) -> None:
        self._entrance = entrance
        self._table: RouteTable[_Target] = RouteTable()
        for route in ROUTES:
            self._add(route.method, route.path, _Target(_endpoint(guests, route)))
        self._add("GET", "/ws", _Target(_socket_endpoint(guests)))
        self._add("POST", "/mcp", _Target(_serve_mcp))
        self._add("GET", "/", _Target(serve_file=serve_index))
        self._add("GET", "/page/{file}", _Target(serve_file=serve_file))

    def _add(self, method: str, path: str, target: _Target) -> None:
        # Fail at the start if a route has no row in the table of roles.
        row_of(ROLES, f"{method} {path}")
        self._table.add(method, path, target)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = _connection(request)
        connection.guest.is_busy, connection.guest.since = True, None
        connection.work = asyncio.current_task()
        response: web.StreamResponse
        visit = _Visit()
        try:
            response = await self._answer(request, visit)
        except CspError as error:
            response = refused(error)
            if isinstance(error, TooMany) and error.after_s is not None:
                connection.guest.hold(error.after_s)
        except web.HTTPRequestEntityTooLarge:
            hint = "put it into a file and send its path"
            response = error_response(TooLarge.status, f"body is over {MAX_BODY_BYTES} bytes", hint)
        except (HttpProcessingError, web.RequestPayloadError, UnicodeDecodeError) as exc:
            problem = f"request is malformed: {exc.__class__.__name__}"
            response = error_response(BadInput.status, problem, "send plain JSON")
        except ConnectionError:
            # Nobody reads this response, but an exception here would be logged as our failure.
            response = error_response(BadInput.status, "the caller is gone", "try again")
        except Exception:
            log.exception("request failed", extra={"method": request.method, "path": request.path})
            response = error_response(500, "internal error", "see the gateway's log")
        finally:
            connection.work = None
            connection.guest.end_request()
            if visit.room is not None:
                self._entrance.leave(visit.room)
        if "Origin" in request.headers and (origin := self._entrance.host_guard.friend_of(request)):
            response = for_friend(response, origin)
        requests = self._entrance.requests if visit.room is None else visit.room.gateway.metrics.requests
        requests[response.status] += 1
        return response

    async def _answer(self, request: web.BaseRequest, visit: _Visit) -> web.StreamResponse:
        self._entrance.host_guard.check(request)
        if request.method == "OPTIONS" and (origin := self._entrance.host_guard.friend_of(request)):
            return preflight_response(origin)
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise Unsupported(f"body is encoded: {encoding[:40]!r}", "send it without encoding")
        if (own := self._entrance.own_answer(request)) is not None:
            return own
        name, path = self._entrance.split(request.path)
        targets, params = self._table.find(path)
        target = targets.get(request.method)
        if target is None:
            allowed = ", ".join(targets)
            problem = f"{request.method} is not allowed here"
            return error_response(405, problem, f"use {allowed}", {"Allow": allowed})
        # Any other Expect is ignored.
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            # Reset as in aiohttp's own handler, because the response itself has not begun.
            request.writer.output_size = 0
        if target.serve is None:
            assert target.serve_file is not None
            return await target.serve_file(request, params, self._entrance.host_guard.friends())
        visit.room = await self._entrance.enter(name, request)
        return await target.serve(visit.room, request, params)


def _connection(request: web.BaseRequest) -> HttpConnection:
    assert isinstance(request.protocol, HttpConnection)
    return request.protocol


async def _serve_mcp(room: RoomEntrance, request: web.BaseRequest, params: Params) -> web.StreamResponse:
    return await room.mcp.handle(request, params)


def _endpoint(guests: Connections, route: Route) -> Endpoint:
    has_needs = any(field.required for field in msgspec.structs.fields(route.query))
    needs = route.needs

    async def handle(room: RoomEntrance, request: web.BaseRequest, params: Params) -> web.StreamResponse:
        gateway = room.gateway
        caller = await _caller(room, guests, request, needs)
        check_role(caller, route)
        is_asked = bool(request.query_string) or has_needs
        query = parse_query(route.query, request.query) if is_asked else route.query()
        body = await request.read() if route.body is not None or request.can_read_body else b""
        if caller is NOBODY or is_person(caller):
            return _response(route.status, await answered(gateway, request, caller, params, query, body))
        async with gateway.throttle.turn(caller.id):
            done = await answered(gateway, request, caller, params, query, body)
        return _response(route.status, done)

    async def answered(
        gateway: Gateway, request: web.BaseRequest, caller: Caller, params: Params, query: Any, body: bytes
    ) -> Answer:
        parsed = None if route.body is None else parse_request(route.body, body or b"{}")
        if needs is not Role.NONE:
            # The token may have been revoked while the body was being read.
            gateway.recheck(caller)
        if route.method != "GET":
            # A request that changes the room is not cancelled when its caller disconnects.
            _connection(request).work = None
        return await answer(gateway, route, Call(caller, params, query, parsed))

    return handle


def _socket_endpoint(guests: Connections) -> Endpoint:
    async def handle(room: RoomEntrance, request: web.BaseRequest, params: Params) -> web.StreamResponse:
        caller = await _caller(room, guests, request, Role.AGENT, read_offered_token(request))
        # Not cancelled either: the reader of the WebSocket notices that it closes and cleans up in order.
        _connection(request).work = None
        after = parse_query(WatchParams, request.query).after
        if not web.WebSocketResponse(protocols=(SUBPROTOCOL,)).can_prepare(request):
            raise BadInput("this route is a WebSocket", "connect with a WebSocket client, or poll /history")
        return await serve_socket(room.gateway, caller, request, after)

    return handle


async def _caller(
    room: RoomEntrance, guests: Connections, request: web.BaseRequest, needs: Role, offered: str = ""
) -> Caller:
    if needs is Role.NONE:
        return NOBODY
    gateway = room.gateway
    caller = await gateway.identify_at_latest(offered or read_token(request))
    guests.place(_connection(request).guest, room.as_guest(caller))
    if not is_person(caller):
        gateway.throttle.check_rate(caller.id)
    await gateway.arrive(caller)
    return caller


def _response(status: int, answer: Answer) -> web.StreamResponse:
    match answer:
        case RawJson():
            return json_response(status, answer.data)
        case PlainText():
            return text_response(status, answer.text)
        case Unavailable():
            return json_response(LogLost.status, encode(answer.view))
        case msgspec.Struct():
            return json_response(status, encode(answer))
