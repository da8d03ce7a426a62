"""Serve a room over standard input and output, until the client closes them."""

from typing import Any, Final, Self

import anyio
import mcp_types as types
from anyio.abc import AsyncResource
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from csp.mcp.mcp_server import ServedRoom
from csp.mcp.room_client import RoomClient

Item = SessionMessage | Exception
#: Fields that only an answer has.
_ANSWERS: Final = {"result", "error"}


def serve(door: RoomClient) -> None:
    """Serve one client."""
    anyio.run(_serve, door)


async def _serve(door: RoomClient) -> None:
    server = ServedRoom(lambda ctx: door).server()
    async with stdio_server() as (read_stream, write_stream):
        reading = _Answering(read_stream, write_stream)
        await server.run(reading, write_stream, server.create_initialization_options())


class _Answering(AsyncResource):
    """Reads a client's messages and answers invalid lines, which the SDK does only over HTTP.

    Without an answer, the sender of an unreadable call would wait for ever.
    """

    def __init__(self, read_stream: Any, write_stream: Any) -> None:
        self._read_stream = read_stream
        self._write_stream = write_stream

    async def receive(self) -> Item:
        while True:
            item: Item = await self._read_stream.receive()
            answer = _complaint(item) if isinstance(item, ValidationError) else None
            if answer is None:
                return item
            await self._write_stream.send(SessionMessage(answer))

    async def aclose(self) -> None:
        await self._read_stream.aclose()

    @property
    def last_context(self) -> Any:
        return self._read_stream.last_context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def _complaint(error: ValidationError) -> types.JSONRPCError | None:
    """Return the error for an invalid line; None for an empty one."""
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    if first["type"] == "json_invalid":
        if not str(first["input"]).strip():
            return None
        said = types.ErrorData(code=types.PARSE_ERROR, message=first["msg"])
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=said)
    said = types.ErrorData(code=types.INVALID_REQUEST, message="this is not a JSON-RPC message")
    # The id of an otherwise invalid call.
    calls = [one["input"] for one in problems if isinstance(one["input"], dict)]
    ids = (call.get("id") for call in calls if not _ANSWERS & call.keys())
    return types.JSONRPCError(
        jsonrpc="2.0", id=next((id for id in ids if type(id) in (int, str)), None), error=said
    )
