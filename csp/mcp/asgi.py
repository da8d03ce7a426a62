"""The server over streamable HTTP, as an ASGI application that keeps nothing between two requests."""

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
    """Return the application with all that it needs to run; this takes a while, so do it in a thread."""
    # anyio loads its backend when it is first used, which would be on the event loop.
    anyio.run(anyio.sleep, 0)
    return App()


class App:
    """The application, good for any number of callers once `run` has been entered."""

    def __init__(self) -> None:
        # The SDK logs each request at INFO, what is malformed with all that was sent above that.
        logging.getLogger("mcp").setLevel(logging.ERROR)
        server = ServedRoom(_door_of).server()
        # Progress can only be told in a stream of events; everything else is one answer of json.
        self._plain = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._streaming = StreamableHTTPSessionManager(server, json_response=False, stateless=True)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve while the context lasts."""
        async with self._plain.run(), self._streaming.run():
            yield

    async def answer(self, headers: Headers, body: bytes, door: RoomClient, send: Send) -> None:
        """Answer one POST of somebody whose way to the room is `door`."""
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
    """A body that has come already; who asks for more waits to be cancelled, as when the caller goes."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is None:
            await asyncio.get_running_loop().create_future()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _door_of(ctx: Context) -> RoomClient:
    assert ctx.request is not None
    door: RoomClient = ctx.request.scope[_DOOR]
    return door
