"""Calls of MCP tools by the real CLIs."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from tests.clis.bringup import RealCli
from tests.models.exchange import Exchange
from tests.models.rules import Call
from tests.rooms import ROOT
from tests.sidecar.wired import Room, WiredCli

_OWN: Final = [sys.executable, "-P", str(ROOT / "tests" / "mcp" / "own_server.py")]


def tool(client: str, name: str, server: str = "csp", **arguments: Any) -> Call:
    """Return a call of a server's tool, by its name at that CLI."""
    if client == "codex":
        return Call(name=name, namespace=f"mcp__{server}", arguments=arguments)
    full = f"mcp__{server}__{name}" if client == "claude" else f"mcp_{server}_{name}"
    return Call(name=full, arguments=arguments)


def is_offered(exchange: Exchange, *tools: str) -> bool:
    """Tell whether a model was offered these tools; one that Claude only names cannot be called yet."""
    body = exchange.body
    asked = json.dumps(body["tools"] if exchange.ask.dialect == "anthropic" else body)
    return all(tool in asked for tool in tools)


async def until_offered(room: Room, run: WiredCli, name: str, *tools: str) -> int:
    """Ask the model until the CLI, which waits for no server, offers it these tools.

    A rule has to answer `hello`. Returns the number of the next prompt.
    """
    for number in range(1, 60):
        await run.say(f"{number}", f"hello {number}")
        await run.reply(f"{number}")
        if is_offered(room.server.exchanges(name, "main")[-1], *tools):
            return number + 1
    raise AssertionError(f"{name} is not offered: {', '.join(tools)}")


def add_own_server(cli: RealCli) -> list[Path]:
    """Give a user an MCP server of their own, which they trust; return the files that say so.

    Its only tool is `echo`.
    """
    entry = {"command": _OWN[0], "args": _OWN[1:]}
    if cli.name == "codex":
        file = cli.home / "codex" / "config.toml"
        lines = ["[mcp_servers.mine]", f"command = {json.dumps(_OWN[0])}", f"args = {json.dumps(_OWN[1:])}"]
        lines += ['default_tools_approval_mode = "approve"', "startup_timeout_sec = 60"]
        file.write_text(file.read_text("utf-8") + "\n".join(lines) + "\n", "utf-8")
        return [file]
    if cli.name == "gemini":
        file = cli.home / "gemini" / ".gemini" / "settings.json"
        _update(file, {"mcpServers": {"mine": entry | {"trust": True}}, "mcp": {"allowed": ["mine"]}})
        return [file]
    settings, state = cli.home / "config" / "settings.json", cli.home / "config" / ".claude.json"
    permissions = json.loads(settings.read_text("utf-8"))["permissions"]
    _update(settings, {"permissions": permissions | {"allow": ["mcp__mine"]}})
    _update(state, {"mcpServers": {"mine": entry | {"type": "stdio", "alwaysLoad": True}}})
    return [settings]


def _update(file: Path, more: dict[str, Any]) -> None:
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | more), "utf-8")
