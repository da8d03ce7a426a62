"""A user's own MCP server works beside ours; the files that name it stay as they are.

test_real_scenes has a shorter version of this for every day.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.clis.bringup import CLIS
from tests.models.rules import Rule, Text, say
from tests.sidecar.calling import add_own_server, tool, until_offered
from tests.sidecar.wired import Room, WiredCli

OURS = [sys.executable, "-P", "-m", "csp.cli", "mcp"]
#: What a model is told of a tool of ours.
OUR_TOOL = {"claude": "mcp__csp__board_search", "codex": "board_search", "gemini": "mcp_csp_board_search"}


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CLIS)
async def test_a_users_own_server_works_beside_ours(name: str, tmp_path: Path) -> None:
    rule = Rule(match="use it", reply=[tool(name, "echo", "mine", text="hello"), Text(text="It was echoed.")])
    with Room([rule, say("hello", "Hi.")], tmp_path) as room:
        cli = room.bring_up(name)
        files = add_own_server(cli)
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
