"""The MCP server over streamable HTTP, as a stateless ASGI application."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from csp.mcp.mcp_server import Context, ServedRoom
from csp.mcp.room_client import RoomClient

_DOOR: Final = "csp.door"
_EVENTS: Final = b"text/event-stream"
_WANTS_PROGRESS: Final = b'"progressToken"'

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


def load() -> "App":
    """Load the SDK and return the application; slow, so call it in a thread."""
    # anyio loads its backend on first use, which would block the event loop.
    anyio.run(anyio.sleep, 0)
    return App()


class App:
    """The application; it serves any number of callers while `run` is active."""

    def __init__(self) -> None:
        # The SDK logs each request at INFO, and malformed ones with their content above that.
        logging.getLogger("mcp").setLevel(logging.ERROR)

        def door_of(ctx: Context) -> RoomClient:
            assert ctx.request is not None
            door: RoomClient = ctx.request.scope[_DOOR]
            return door

        server = ServedRoom(door_of).server()
        # Progress needs an event stream; any other response is a single JSON document.
        self._plain = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._streaming = StreamableHTTPSessionManager(server, json_response=False, stateless=True)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve callers inside the context."""
        async with self._plain.run(), self._streaming.run():
            yield

    async def answer(self, headers: Headers, body: bytes, door: RoomClient, send: Send) -> None:
        """Respond to one POST from the caller that `door` belongs to."""
        is_heard = any(name == b"accept" and _EVENTS in value for name, value in headers)
        manager = self._streaming if is_heard and _WANTS_PROGRESS in body else self._plain
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            _DOOR: door,
        }
        await manager.handle_request(scope, _Body(body).receive, send)


class _Body:
    """An ASGI receive channel that delivers a body already read, then waits to be cancelled."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is None:
            await asyncio.get_running_loop().create_future()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}
