"""What programs and people rely on from outside: the HTTP description, the MCP tools, the help texts."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from csp.cli import main
from csp.config import Settings
from tests.gateway.served import Clock, ServedRoom


async def http_description(folder: Path) -> dict[str, Any]:
    async with ServedRoom(folder, Settings(), Clock()) as room:
        found: dict[str, Any] = await room.get("/openapi.json")
    return found


async def mcp_tools(folder: Path) -> list[dict[str, Any]]:
    """Return the tools that a person's client is offered, as the server lists them."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with ServedRoom(folder, Settings(), Clock()) as room:
        answer = await room.call("POST", "/mcp", call, headers=headers)
    assert answer.status == 200, answer.raw
    tools: list[dict[str, Any]] = answer.data["result"]["tools"]
    return sorted(tools, key=lambda tool: str(tool["name"]))


def help_texts() -> str:
    """Return what `csp --help` and the help of every verb in it print, 80 columns wide."""
    first = _printed("--help")
    verbs = re.findall(r"^  ([a-z][a-z-]+)  ", first, re.MULTILINE)
    assert len(verbs) > 20, first
    return "\n".join([first, *(_printed(verb, "--help") for verb in verbs)])


def _printed(*words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([*words])
    return f"$ csp {' '.join(words)}\n{out.getvalue()}"
