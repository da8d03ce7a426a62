"""The HTTP border: requests in, parsed; answers out, encoded.

It stands on aiohttp's low-level server: the table of routes is ours anyway, for the roles and for
/openapi.json, and a dictionary finds a route in a tenth of the time of aiohttp's own router.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from csp.errors import BadInput, CspError, NotFound, TooLarge, TooMany, Unsupported
from csp.gateway.auth import NOBODY, SUBPROTOCOL, Caller, read_offered_token, read_token
from csp.gateway.connection_protocol import HttpConnection, HttpServer
from csp.gateway.connections import Connections, is_person
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call, PlainText, RawJson
from csp.gateway.mcp_endpoint import Bridge
from csp.gateway.page_files import serve_file, serve_index
from csp.gateway.responses import error_response, json_response, refused, text_response
from csp.gateway.routes import ROUTES, Route, answer, check_role
from csp.gateway.websocket import serve_socket
from csp.protocol.codec import encode, parse_query, parse_request
from csp.protocol.enums import MAX_BODY_BYTES, Role
from csp.protocol.requests import WatchParams
from csp.room.roles import ROUTES as ROLES
from csp.room.roles import row_of

log = logging.getLogger(__name__)

#: A search of a thousand characters, each of them up to twelve in a URL, is one line of a request.
MAX_LINE_BYTES: Final = 32 * 1024
#: How long the rest of a refused body is read and dropped, so that its sender sees the answer.
LINGERING_S: Final = 1.0
Params = dict[str, str]
Endpoint = Callable[[web.BaseRequest, Params], Awaitable[web.StreamResponse]]


def make_runner(gateway: Gateway, *, shutdown_timeout_s: float = 1.0) -> web.ServerRunner:
    """Return what serves a gateway on any number of sockets."""
    guests = Connections(gateway.identify, gateway.throttle.refusal)
    server = HttpServer(
        _Border(gateway, guests).handle,
        guests,
        _make_request,
        access_log=None,
        max_line_size=MAX_LINE_BYTES,
        # A small body may inflate to a huge one, before anybody knows who sent it.
        auto_decompress=False,
        lingering_time=LINGERING_S,
    )
    return web.ServerRunner(server, shutdown_timeout=shutdown_timeout_s)


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)


class _Border:
    """Find the route of a request; turn every failure into one json answer."""

    def __init__(self, gateway: Gateway, guests: Connections) -> None:
        self._gateway = gateway
        self._plain: dict[tuple[str, str], Endpoint] = {}
        self._plain_paths: set[str] = set()
        self._patterns: list[tuple[str, list[str], Endpoint]] = []
        for route in ROUTES:
            self._add(route.method, route.path, _endpoint(gateway, guests, route))
        self._add("GET", "/ws", _socket_endpoint(gateway, guests))
        self._add("POST", "/mcp", Bridge(gateway).handle)
        self._add("GET", "/", serve_index)
        self._add("GET", "/page/{file}", serve_file)

    def _add(self, method: str, path: str, endpoint: Endpoint) -> None:
        row_of(ROLES, f"{method} {path}")
        if "{" in path:
            self._patterns.append((method, path.split("/"), endpoint))
        else:
            self._plain[method, path] = endpoint
            self._plain_paths.add(path)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = _connection(request)
        connection.guest.is_busy, connection.guest.since = True, None
        connection.work = asyncio.current_task()
        try:
            self._gateway.guard.check(request)
            _check_encoding(request)
            endpoint, params = self._find(request.method, request.path)
            if "Expect" in request.headers:
                await _go_on(request)
            response = await endpoint(request, params)
        except CspError as error:
            response = refused(error)
            if isinstance(error, TooMany) and error.after_s is not None:
                connection.guest.hold(error.after_s)
        except web.HTTPRequestEntityTooLarge:
            hint = "put it into a file and send its path"
            response = error_response(TooLarge.status, f"body is over {MAX_BODY_BYTES} bytes", hint)
        except (HttpProcessingError, web.RequestPayloadError, UnicodeDecodeError) as exc:
            problem = f"request is malformed: {exc.__class__.__name__}"
            response = error_response(BadInput.status, problem, "send plain json")
        except ConnectionError:
            # Nobody reads it; what is raised past here is logged as if we had failed.
            response = error_response(BadInput.status, "the caller is gone", "try again")
        except Exception:
            log.exception("request failed", extra={"method": request.method, "path": request.path})
            response = error_response(500, "internal error", "see the gateway's log")
        finally:
            connection.work = None
            connection.guest.end_request()
        self._gateway.metrics.requests[response.status] += 1
        return response

    def _find(self, method: str, path: str) -> tuple[Endpoint, Params]:
        endpoint = self._plain.get((method, path))
        if endpoint is not None:
            return endpoint, {}
        owner: list[str] | None = None
        if path in self._plain_paths:
            return self._nothing_here(path, owner)
        words = path.split("/")
        for known, parts, endpoint in self._patterns:
            params = _match(parts, words)
            # A path belongs to the first row that fits, whatever the method: /agents/x/screen is no button.
            if params is not None and (owner or parts) == parts:
                owner = parts
                if known == method:
                    return endpoint, params
        return self._nothing_here(path, owner)

    def _nothing_here(self, path: str, owner: list[str] | None) -> tuple[Endpoint, Params]:
        allowed = [known for known, plain in self._plain if plain == path]
        allowed += [known for known, parts, _ in self._patterns if parts == owner]
        if not allowed:
            raise NotFound(f"no route {path!r}", "see /openapi.json")
        return _not_allowed, {"allowed": ", ".join(allowed)}


def _match(parts: list[str], words: list[str]) -> Params | None:
    if len(parts) != len(words):
        return None
    params: Params = {}
    for part, word in zip(parts, words, strict=True):
        if part.startswith("{"):
            params[part[1:-1]] = word
        elif part != word:
            return None
    return params


async def _not_allowed(request: web.BaseRequest, params: Params) -> web.StreamResponse:
    allowed = params["allowed"]
    problem = f"{request.method} is not allowed here"
    return error_response(405, problem, f"use {allowed}", {"Allow": allowed})


def _check_encoding(request: web.BaseRequest) -> None:
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise Unsupported(f"body is encoded: {encoding[:40]!r}", "send it as it is")


async def _go_on(request: web.BaseRequest) -> None:
    """Let a caller that waits for it send its body; an Expect that says anything else is passed over."""
    if request.headers["Expect"].lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # As aiohttp's own handler has it: the answer itself has not begun.
        request.writer.output_size = 0


def _connection(request: web.BaseRequest) -> HttpConnection:
    assert isinstance(request.protocol, HttpConnection)
    return request.protocol


def _endpoint(gateway: Gateway, guests: Connections, route: Route) -> Endpoint:
    has_needs = any(field.required for field in msgspec.structs.fields(route.query))
    needs = route.needs

    async def handle(request: web.BaseRequest, params: Params) -> web.StreamResponse:
        caller = await _caller(gateway, guests, request, needs)
        check_role(caller, route)
        is_asked = bool(request.query_string) or has_needs
        query = parse_query(route.query, request.query) if is_asked else route.query()
        body = await request.read() if route.body is not None or request.can_read_body else b""
        if caller is NOBODY or is_person(caller):
            return _response(route.status, await answered(request, caller, params, query, body))
        async with gateway.throttle.turn(caller.id):
            done = await answered(request, caller, params, query, body)
        return _response(route.status, done)

    async def answered(
        request: web.BaseRequest, caller: Caller, params: Params, query: Any, body: bytes
    ) -> Answer:
        parsed = None if route.body is None else parse_request(route.body, body or b"{}")
        if needs is not Role.NONE:
            # A body may take its time, and a token may die meanwhile.
            gateway.recheck(caller)
        if route.method != "GET":
            # A request that changes the room is not cancelled when its caller hangs up.
            _connection(request).work = None
        return await answer(gateway, route, Call(caller, params, query, parsed))

    return handle


def _socket_endpoint(gateway: Gateway, guests: Connections) -> Endpoint:
    async def handle(request: web.BaseRequest, params: Params) -> web.StreamResponse:
        caller = await _caller(gateway, guests, request, Role.AGENT, read_offered_token(request))
        # Its end is seen by who reads from it, who then lets go of everything in order.
        _connection(request).work = None
        after = parse_query(WatchParams, request.query).after
        if not web.WebSocketResponse(protocols=(SUBPROTOCOL,)).can_prepare(request):
            raise BadInput("this route speaks WebSocket", "connect with a WebSocket client, or poll /history")
        return await serve_socket(gateway, caller, request, after)

    return handle


async def _caller(
    gateway: Gateway, guests: Connections, request: web.BaseRequest, needs: Role, offered: str = ""
) -> Caller:
    if needs is Role.NONE:
        return NOBODY
    caller = gateway.identify(offered or read_token(request))
    guests.place(_connection(request).guest, caller)
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
        case msgspec.Struct():
            return json_response(status, encode(answer))
