"""A user's own MCP server works beside ours; the files that name it stay as they are."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clis.bringup import CLIS, RealCli
from tests.models.rules import Rule, Text, say
from tests.rooms import ROOT
from tests.sidecar.calling import tool, until_offered
from tests.sidecar.wired import Room, WiredCli

OWN = [sys.executable, "-P", str(ROOT / "tests" / "mcp" / "own_server.py")]
OURS = [sys.executable, "-P", "-m", "csp.cli", "mcp"]
#: What a model is told of a tool of ours.
OUR_TOOL = {"claude": "mcp__csp__board_search", "codex": "board_search", "gemini": "mcp_csp_board_search"}


def configure(cli: RealCli) -> list[Path]:
    """Give the user a server that they trust; return the files that say so."""
    entry = {"command": OWN[0], "args": OWN[1:]}
    if cli.name == "codex":
        file = cli.home / "codex" / "config.toml"
        lines = ["[mcp_servers.mine]", f"command = {json.dumps(OWN[0])}", f"args = {json.dumps(OWN[1:])}"]
        lines += ['default_tools_approval_mode = "approve"', "startup_timeout_sec = 60"]
        file.write_text(file.read_text("utf-8") + "\n".join(lines) + "\n", "utf-8")
        return [file]
    if cli.name == "gemini":
        file = cli.home / "gemini" / ".gemini" / "settings.json"
        update(file, {"mcpServers": {"mine": entry | {"trust": True}}, "mcp": {"allowed": ["mine"]}})
        return [file]
    settings, state = cli.home / "config" / "settings.json", cli.home / "config" / ".claude.json"
    update(settings, {"permissions": {"allow": ["mcp__mine"]}})
    update(state, {"mcpServers": {"mine": entry | {"type": "stdio"}}})
    return [settings]


def update(file: Path, more: dict[str, Any]) -> None:
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | more), "utf-8")


@pytest.mark.parametrize("name", CLIS)
async def test_a_users_own_server_works_beside_ours(name: str, tmp_path: Path) -> None:
    rule = Rule(match="use it", reply=[tool(name, "echo", "mine", text="hello"), Text(text="It was echoed.")])
    with Room([rule, say("hello", "Hi.")], tmp_path) as room:
        cli = room.bring_up(name)
        files = configure(cli)
        before = [file.read_text("utf-8") for file in files]
        async with WiredCli(cli, tmp_path, server=OURS) as run:
            tags = await until_offered(room, run, name, OUR_TOOL[name], "echo")
            await run.say(f"{tags}", "use it")
            reply = await run.reply(f"{tags}")
        results = [result for one in room.server.exchanges(name, "main") for result in one.ask.results]
        bodies = [json.dumps(one.body) for one in room.server.exchanges(name, "main")]

        assert reply.text == "It was echoed."
        assert any("echoed hello" in result for result in results), results
        assert OUR_TOOL[name] in bodies[-1]
        for file, text in zip(files, before, strict=True):
            assert file.read_text("utf-8").startswith(text.rstrip()) and "csp.cli" not in file.read_text(
                "utf-8"
            )
