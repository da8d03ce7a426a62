"""Serve a room over standard input, standard output, until the client closes them."""

import anyio
from mcp.server.stdio import stdio_server

from csp.mcp.door import Door
from csp.mcp.server import Room


def serve(door: Door) -> None:
    """Serve one client."""
    anyio.run(_serve, door)


async def _serve(door: Door) -> None:
    server = Room(lambda ctx: door).server()
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
