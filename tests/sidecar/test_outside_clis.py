"""A CLI without a sidecar joins the room of its directory by the command that docs/programs/mcp.md gives."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from csp.cli.parser import parse
from csp.protocol.events import AgentCall
from tests.clis.bringup import CLIS, RealCli, SetUp
from tests.clis.passage import passage
from tests.models.rules import Rule, Text, say
from tests.rooms import ROOT, LiveRoom
from tests.sidecar.calling import tool, until_offered
from tests.sidecar.wired import Room, WiredCli

#: How its user allows the tools, else the CLI asks.
ALLOWED: Final = {
    "claude": ("--allowedTools", "mcp__csp"),
    "codex": ("-c", 'mcp_servers.csp.default_tools_approval_mode="approve"'),
    "gemini": (),
}


def documented_command(name: str) -> list[str]:
    """Return the documented arguments of a CLI that give it our server."""
    page = (ROOT / "docs" / "programs" / "mcp.md").read_text("utf-8")
    (line,) = re.findall(rf"^\$ ({name} mcp add.*--name.*)$", page, re.MULTILINE)
    return shlex.split(line)[1:]


def add_server(cli: RealCli, live: LiveRoom) -> None:
    """Run the documented command for this CLI; the room's announcement is where it looks by itself."""
    words = documented_command(cli.name)
    if cli.name == "gemini":
        words.insert(2, "--trust")
    (cli.home / ".cache").mkdir(exist_ok=True)
    (cli.home / ".cache" / "csp").symlink_to(live.home.parent / "run" / "csp")
    subprocess.run([cli.argv[0], *words], env=cli.env, cwd=cli.cwd, check=True, capture_output=True)


@pytest.mark.parametrize("name", CLIS)
def test_the_documented_command_gives_the_cli_a_name_of_its_own(name: str) -> None:
    words = documented_command(name)
    if words[-1].startswith("{"):
        ours = json.loads(words[-1])["args"]
    else:
        ours = words[len(words) - words[::-1].index("csp") :]
    _, args = parse([word for word in ours if word != "--"])

    assert (args.verb, args.name) == ("mcp", f"{name}-outside")


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CLIS)
async def test_a_cli_outside_joins_speaks_and_reads(name: str, tmp_path: Path) -> None:
    rules = [
        Rule(match="tell them", reply=[tool(name, "broadcast", text="from outside"), Text(text="Told.")]),
        Rule(match="what is new", reply=[tool(name, "read_messages"), Text(text="Read.")]),
        say("hello", "Hi."),
    ]
    with (
        LiveRoom(tmp_path / "room") as live,
        Room(rules, tmp_path) as room,
        passage(room.loopback, live.port),
    ):
        found = room.bring_up(name, SetUp(arguments=ALLOWED[name]), cwd=live.dir)
        path = f"{Path(sys.executable).parent}:{found.env['PATH']}"
        cli = replace(found, env=found.env | {"PATH": path})
        add_server(cli, live)
        async with WiredCli(cli, tmp_path) as run:
            number = await until_offered(room, run, name, "read_messages")
            await run.say(f"{number}", "tell them")
            await run.reply(f"{number}")
            live.gateway.post("/message", {"to": f"{name}-outside", "content": "welcome in"})
            await run.say(f"{number + 1}", "what is new")
            await run.reply(f"{number + 1}")
        results = [result for one in room.server.exchanges(name, "main") for result in one.ask.results]
        sent = [(event.sender, event.text) for event in live.journal() if isinstance(event, AgentCall)]

    assert sent == [(f"{name}-outside", "from outside")]
    assert any("welcome in" in result for result in results), results
