"""Calls of MCP tools by the real CLIs."""

import json
from typing import Any

from tests.models.rules import Call
from tests.sidecar.wired import Room, WiredCli


def tool(client: str, name: str, server: str = "csp", **arguments: Any) -> Call:
    """Return a call of a server's tool, by its name at that CLI."""
    if client == "codex":
        return Call(name=name, namespace=f"mcp__{server}", arguments=arguments)
    full = f"mcp__{server}__{name}" if client == "claude" else f"mcp_{server}_{name}"
    return Call(name=full, arguments=arguments)


async def until_offered(room: Room, run: WiredCli, name: str, *tools: str) -> int:
    """Ask the model until the CLI, which waits for no server, offers it these tools.

    A rule has to answer `hello`. Returns the number of the next prompt.
    """
    for number in range(1, 60):
        await run.say(f"{number}", f"hello {number}")
        await run.reply(f"{number}")
        asked = json.dumps(room.server.exchanges(name, "main")[-1].body)
        if all(tool in asked for tool in tools):
            return number + 1
    raise AssertionError(f"{name} is not offered: {', '.join(tools)}")
