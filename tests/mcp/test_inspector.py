"""The inspector from npm, a client of another make, lists and calls what is there."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import pytest

from tests.clis.install import INSPECTOR, node_path
from tests.mcp.clients import AGENT_TOOLS, join
from tests.rooms import LiveRoom

pytestmark = pytest.mark.xdist_group("mcp")

#: The inspector's own 30 s are too few for two interpreters on a busy machine.
PATIENCE_MS: Final = "600000"


class Answer(NamedTuple):
    code: int
    data: Any
    error: str


def inspect(room: LiveRoom, target: list[str], *words: str) -> Answer:
    program = str(INSPECTOR / "node_modules" / ".bin" / "mcp-inspector")
    command = [program, "--cli", *target, *words, "--connect-timeout", PATIENCE_MS]
    env = {"PATH": node_path(), "HOME": str(room.home)}
    run = subprocess.run(command, env=env, cwd=room.dir, capture_output=True, text=True, check=False)
    return Answer(run.returncode, json.loads(run.stdout) if run.stdout else None, run.stderr)


def stdio(env: dict[str, str]) -> list[str]:
    given = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
    return [*given, sys.executable, "-P", "-m", "csp.cli", "mcp"]


def http(room: LiveRoom, env: dict[str, str]) -> list[str]:
    token = f"Authorization: Bearer {env['CSP_AUTH_TOKEN']}"
    return [f"{room.url}/mcp", "--transport", "http", "--header", token]


def ask_all(room: LiveRoom, target: list[str], calls: dict[str, tuple[str, ...]]) -> dict[str, Answer]:
    """Make some calls, each of which takes a second, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda words: inspect(room, target, *words), calls.values())
        return dict(zip(calls, answers, strict=True))


CALL = ("--method", "tools/call", "--tool-name")


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_inspector_calls_a_tool(room: LiveRoom, way: str) -> None:
    env = join(room, f"inspector-{way}")
    target = stdio(env) if way == "stdio" else http(room, env)
    sent = inspect(room, target, *CALL, "broadcast", "--tool-arg", f"text=seen by {way}")

    assert sent.data and sent.data["structuredContent"]["success"] is True, sent.error
    said = room.gateway.get("/history", q=f"seen by {way}")["items"]
    assert [item["sender"] for item in said] == [f"inspector-{way}"]


@pytest.mark.parametrize("way", [pytest.param("stdio", marks=pytest.mark.full), "http"])
def test_the_inspector_lists_the_tools(room: LiveRoom, way: str) -> None:
    env = join(room, f"inspector-lists-{way}")
    target = stdio(env) if way == "stdio" else http(room, env)
    listed = inspect(room, target, "--method", "tools/list")

    assert listed.data, listed.error
    assert {tool["name"] for tool in listed.data["tools"]} == AGENT_TOOLS


@pytest.mark.full
def test_the_inspector_reads_resources_and_prompts(room: LiveRoom) -> None:
    calls = {
        "nobody": (*CALL, "send_message", "--tool-arg", "to=nobdy", "text=x"),
        "wrong": (*CALL, "broadcast", "--tool-arg", "colour=red"),
        "resources": ("--method", "resources/list"),
        "runs": ("--method", "resources/read", "--uri", "csp://runs"),
        "prompt": ("--method", "prompts/get", "--prompt-name", "debate", "--prompt-args", "topic=tabs"),
    }
    found = ask_all(room, http(room, join(room, "inspector-reads")), calls)

    assert found["nobody"].code != 0 and found["nobody"].data["isError"] is True
    assert "unknown recipient 'nobdy'" in found["nobody"].data["content"][0]["text"]
    assert found["wrong"].code != 0 and found["wrong"].data["isError"] is True
    listed = [one["uri"] for one in found["resources"].data["resources"]]
    assert listed == ["csp://transcript", "csp://board", "csp://runs", "csp://catalogue"]
    assert json.loads(found["runs"].data["contents"][0]["text"]) == {"items": []}
    assert "Topic: tabs" in found["prompt"].data["messages"][0]["content"]["text"]


@pytest.mark.full
def test_the_inspector_calls_the_other_tools_of_an_agent(room: LiveRoom) -> None:
    env = join(room, "inspector-calls")
    room.gateway.post("/message", {"to": "inspector-calls", "content": "for the inspector"})
    given = {
        "read_messages": (),
        "list_agents": (),
        "set_status": ("state=busy",),
        "query_log": (),
        "mode_status": (),
        "board_add": ("text=the okapi of the inspector",),
        "board_search": ("query=okapi",),
        "working": (),
        "handoff": ("to=nobdy", "task=go on"),
        "vote": ("label=A",),
    }
    calls = {name: (*CALL, name, *(("--tool-arg", *words) if words else ())) for name, words in given.items()}
    found = ask_all(room, http(room, env), calls)

    # Who is in no session has no turn to prolong, to hand over or to vote in; each is told so.
    refused = {name: one.data["content"][0]["text"] for name, one in found.items() if one.data.get("isError")}
    assert sorted(refused) == ["handoff", "vote"]
    assert found["working"].data["structuredContent"] == {"success": True, "extended": False}
    assert all("(" in text for text in refused.values()), refused
    assert "for the inspector" in json.dumps(found["read_messages"].data)
    assert found["board_add"].data["structuredContent"]["note"]["author"] == "inspector-calls"
