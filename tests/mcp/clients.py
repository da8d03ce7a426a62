"""The SDK's own client, over stdio or HTTP."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from csp.http_client import GatewayClient
from csp.sidecar.launch import mcp_server
from csp.sidecar.record_file import write_record
from tests.rooms import LiveRoom

#: With the handshake of before, without one as it is now; the version that each comes to.
VERSIONS: Final = {"legacy": "2025-11-25", "auto": "2026-07-28"}
AGENT_TOOLS: Final = {
    *("send_message", "broadcast", "read_messages", "list_agents", "set_status", "working", "handoff"),
    *("vote", "board_add", "board_search", "query_log", "mode_status"),
}
LEADER_TOOLS: Final = AGENT_TOOLS | {"start_mode", "stop", "chatter_collaborate", "chatter_poll"}


def over_stdio(
    room: LiveRoom, *words: str, mode: str = "auto", env: Mapping[str, str] | None = None
) -> Client:
    """Return a client of `csp mcp`, which has yet to be entered."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "csp.cli", "mcp", *words],
        env={**room.env, **(env or {})},
        cwd=str(room.dir),
    )
    return Client(stdio_client(server), mode=mode)


def in_a_pane(url: str, folder: Path, token: str, mode: str = "auto") -> Client:
    """Return a client of the server that a sidecar gives its CLI, with a record in `folder`."""
    write_record(str(folder), {"pid": os.getpid(), "url": url, "token": token})
    command, *args = mcp_server(str(folder))
    return Client(stdio_client(StdioServerParameters(command=command, args=args)), mode=mode)


def join(room: LiveRoom, name: str, role: str = "agent") -> dict[str, str]:
    """Register an agent; return the environment of its pane."""
    answer = room.gateway.post("/register", {"agentId": name, "role": role})
    return {
        "CSP_AGENT": answer["agentId"],
        "CSP_AUTH_TOKEN": answer["token"],
        "CSP_GATEWAY_URL": room.url,
    }


def as_agent(room: LiveRoom, env: Mapping[str, str]) -> GatewayClient:
    """Return the gateway to an agent that has joined."""
    return GatewayClient(room.url, env["CSP_AUTH_TOKEN"])


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must go well; return what it answers."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, said(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that must fail; return its words."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, said(result)
    return said(result)


def said(result: CallToolResult) -> str:
    """Return the text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@asynccontextmanager
async def over_http(room: LiveRoom, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    """Connect a client to /mcp."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(f"{room.url}/mcp", http_client=http), mode=mode) as client:
            yield client
