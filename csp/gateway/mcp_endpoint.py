"""/mcp: the room as an MCP server, over streamable HTTP."""

import asyncio
import contextlib
import importlib
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from csp.errors import NotFound
from csp.gateway.auth import read_token
from csp.gateway.gateway import Gateway
from csp.gateway.local_client import LocalClient
from csp.gateway.responses import HEADERS
from csp.mcp.sdk_check import how_to_install, is_installed
from csp.room.roles import ROUTES, check_call, row_of

if TYPE_CHECKING:
    from csp.mcp.asgi import App

_EVENTS: Final = "text/event-stream"
_LOOK_S: Final = 0.5
#: Headers with secrets, which are not passed on.
_SECRET: Final = frozenset({b"x-auth-token", b"authorization", b"cookie"})


class Bridge:
    """Connects aiohttp to the application of the SDK, which is loaded with the first request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._app: asyncio.Future[App] | None = None

    async def handle(self, request: web.BaseRequest, params: dict[str, str]) -> web.StreamResponse:
        """Answer one request of a participant."""
        caller = self._gateway.identify(read_token(request))
        await self._gateway.arrive(caller)
        check_call(row_of(ROUTES, "POST /mcp"), caller.party, "POST /mcp")
        body = await request.read()
        app = await self._loaded()
        # The token may have been revoked while the body was read and the SDK loaded.
        self._gateway.recheck(caller)
        headers = [
            (name.lower(), value) for name, value in request.raw_headers if name.lower() not in _SECRET
        ]
        answer = _Answer(request)
        with self._gateway.connected(caller):
            await _while_connected(
                request, app.answer(headers, body, LocalClient(self._gateway, caller), answer.send)
            )
        return answer.response()

    async def _loaded(self) -> "App":
        if not is_installed():
            hint = f"install it where the gateway runs: {how_to_install()}"
            raise NotFound("the package 'mcp' is not installed", hint)
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._gateway.spawn(self._run(self._app))
        # A caller that goes away must not cancel the application of the others.
        return await asyncio.shield(self._app)

    async def _run(self, loaded: "asyncio.Future[App]") -> None:
        """Load the SDK in a thread, which takes a second; serve until the gateway ends."""
        try:
            asgi = await asyncio.to_thread(importlib.import_module, "csp.mcp.asgi")
            app = await asyncio.to_thread(asgi.load)
            async with app.run():
                loaded.set_result(app)
                await asyncio.get_running_loop().create_future()
        except Exception as exc:
            self._app = None
            if not loaded.done():
                loaded.set_exception(exc)
            raise


class _Answer:
    """An answer of the application: collected, or streamed event by event."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._status = 500
        self._type = ""
        self._body = bytearray()
        self._stream: web.StreamResponse | None = None

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Handle the next ASGI message of the answer."""
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
        """Return the collected answer, or the stream that was sent."""
        if self._stream is not None:
            return self._stream
        return web.Response(status=self._status, body=bytes(self._body), headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return HEADERS | ({"Content-Type": self._type} if self._type else {})


async def _while_connected(request: web.BaseRequest, work: Any) -> None:
    """Do the work; cancel it when the caller has gone."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
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


async def _disconnected(request: web.BaseRequest) -> None:
    """Wait until the caller is gone; aiohttp does not report it once the request is read."""
    while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
