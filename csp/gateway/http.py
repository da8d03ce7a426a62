"""The HTTP border: requests in, parsed; answers out, encoded."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from csp.errors import BadInput, CspError, Forbidden, NotFound, TooLarge
from csp.gateway.auth import NOBODY, Caller, read_token
from csp.gateway.gateway import Gateway
from csp.gateway.routes import ROUTES, Answer, Call, PlainText, RawJson, Route, check_role
from csp.gateway.sockets import serve_socket
from csp.wire import MAX_BODY_BYTES, ErrorView, Role, WatchParams, encode, parse, parse_query

log = logging.getLogger(__name__)

_JSON: Final = "application/json"
Endpoint = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(gateway: Gateway) -> web.Application:
    """Return the web application of a gateway."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    endpoints = [(route.method, route.path, _endpoint(gateway, route)) for route in ROUTES]
    endpoints += [("GET", "/ws", _socket_endpoint(gateway)), ("*", r"/{path:[\s\S]*}", _no_such_route)]
    for method, path, endpoint in endpoints:
        app.router.add_route(method, path, _guarded(gateway, endpoint), expect_handler=_go_on)
    return app


async def _go_on(request: web.Request) -> None:
    """Let a caller that waits for it send its body; an Expect that says anything else is passed over."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # As aiohttp's own handler has it: the answer itself has not begun.
        request.writer.output_size = 0


def _guarded(gateway: Gateway, endpoint: Endpoint) -> Endpoint:
    """Check Host and Origin first, and turn every failure into one json answer."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            gateway.guard.check(request)
            response = await endpoint(request)
        except CspError as error:
            response = _error_response(error.status, error.message, error.hint)
        except web.HTTPRequestEntityTooLarge:
            hint = "put it into a file and send its path"
            response = _error_response(TooLarge.status, f"body is over {MAX_BODY_BYTES} bytes", hint)
        except (HttpProcessingError, web.RequestPayloadError, UnicodeDecodeError) as exc:
            response = _error_response(
                400, f"request is malformed: {exc.__class__.__name__}", "send plain json"
            )
        except (web.HTTPException, ConnectionError):
            raise
        except Exception:
            log.exception("request failed", extra={"method": request.method, "path": request.path})
            response = _error_response(500, "internal error", "see the gateway's log")
        gateway.metrics.requests[response.status] += 1
        return response

    return handle


def _endpoint(gateway: Gateway, route: Route) -> Endpoint:
    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await _caller(gateway, request, route.needs)
        check_role(caller, route)
        query = parse_query(route.query, request.query) if request.query_string else route.query()
        body = None
        if route.body is not None:
            body = parse(route.body, await request.read() or b"{}")
        elif request.can_read_body:
            await request.read()
        answer = await route.handler(gateway, Call(caller, dict(request.match_info), query, body))
        return _response(route.status, answer)

    return handle


def _socket_endpoint(gateway: Gateway) -> Endpoint:
    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await _caller(gateway, request, Role.AGENT)
        after = parse_query(WatchParams, request.query).after
        if not web.WebSocketResponse().can_prepare(request):
            raise BadInput("this route speaks WebSocket", "connect with a WebSocket client, or poll /history")
        return await serve_socket(gateway, caller, request, after)

    return handle


async def _caller(gateway: Gateway, request: web.Request, needs: Role) -> Caller:
    if needs is Role.NONE:
        return NOBODY
    caller = gateway.tokens.identify(read_token(request), gateway.writer.room)
    await gateway.arrive(caller)
    return caller


async def _no_such_route(request: web.Request) -> web.StreamResponse:
    methods = [route.method for route in ROUTES if _matches(route.path, request.path)]
    if methods and request.method not in methods:
        error = Forbidden(f"{request.method} is not allowed here", f"use {' or '.join(methods)}")
        response = _error_response(405, error.message, error.hint)
        response.headers["Allow"] = ", ".join(methods)
        return response
    raise NotFound(f"no route {request.path!r}", "see /openapi.json")


def _matches(pattern: str, path: str) -> bool:
    expected, got = pattern.split("/"), path.split("/")
    return len(expected) == len(got) and all(
        part.startswith("{") or part == word for part, word in zip(expected, got, strict=True)
    )


def _response(status: int, answer: Answer) -> web.Response:
    match answer:
        case RawJson():
            return web.Response(status=status, body=answer.data, content_type=_JSON)
        case PlainText():
            return web.Response(status=status, text=answer.text)
        case msgspec.Struct():
            return web.Response(status=status, body=encode(answer), content_type=_JSON)


def _error_response(status: int, message: str, hint: str) -> web.Response:
    return web.Response(status=status, body=encode(ErrorView(error=message, hint=hint)), content_type=_JSON)
