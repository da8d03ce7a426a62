"""`csp mcp` with the SDK's own client, by the old protocol as by the new one."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, TextContent, TextResourceContents

from csp.cli.mcp import find
from csp.cli.verb_call import VerbCall
from csp.config import Settings
from csp.errors import Unreachable
from csp.fast_start import process_environment
from csp.mcp.outside_member import OutsideMember
from csp.room_registry import Address
from tests.mcp.clients import (
    AGENT_TOOLS,
    LEADER_TOOLS,
    VERSIONS,
    as_agent,
    call,
    join,
    over_http,
    over_stdio,
    refused,
)
from tests.rooms import LiveRoom

pytestmark = pytest.mark.xdist_group("mcp")


def history(room: LiveRoom, text: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = room.gateway.get("/history", limit=1000)["items"]
    return [item for item in items if item["text"] == text]


@pytest.mark.parametrize(("mode", "version"), VERSIONS.items())
async def test_an_agent_lists_and_calls_by_either_protocol(room: LiveRoom, mode: str, version: str) -> None:
    ada, bob = join(room, f"ada-{mode}"), join(room, f"bob-{mode}")
    async with over_stdio(room, mode=mode, env=ada) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        sent = await call(client, "send_message", to=f"bob-{mode}", text=f"hello by {mode}")
        again = await call(client, "send_message", to=f"bob-{mode}", text=f"hello by {mode}", id=sent["id"])
        await call(client, "broadcast", text=f"to all by {mode}")
        await call(client, "set_status", state="busy", detail="reading")
        listed = await call(client, "list_agents")
        log = await call(client, "query_log", search=f"to all by {mode}")
        mode_now = await call(client, "mode_status")
        kept = await call(client, "working", note="soon")
        read = await call(client, "read_messages", limit=5)

        assert client.protocol_version == version
    assert set(tools) == AGENT_TOOLS
    assert all(
        tool.description and tool.input_schema["additionalProperties"] is False for tool in tools.values()
    )
    assert again == sent and [item["sender"] for item in history(room, f"hello by {mode}")] == [f"ada-{mode}"]
    texts = [item["text"] for item in as_agent(room, bob).get(f"/inbox/bob-{mode}")["items"]]
    assert texts == [f"hello by {mode}", f"to all by {mode}"]
    own = next(agent for agent in listed["agents"] if agent["id"] == listed["you"])
    assert (own["id"], own["state"], own["detail"]) == (f"ada-{mode}", "busy", "reading")
    assert [(item["from"], item["to"]) for item in log["items"]] == [(f"ada-{mode}", "all")]
    assert mode_now["mode"] == "freeform" and kept == {"success": True, "extended": False}
    assert read["items"][-1]["text"] == f"to all by {mode}"


async def test_malformed_calls_get_errors_that_say_what_is_wrong(room: LiveRoom) -> None:
    async with over_http(room, join(room, "odd")["CSP_AUTH_TOKEN"], "legacy") as client:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("send_mesage", {"to": "all", "text": "x"})
        missing = await refused(client, "send_message", to="all")
        wrong = await refused(client, "read_messages", limit="many")
        extra = await refused(client, "broadcast", text="x", colour="red")
        nothing = await refused(client, "list_agents", all=True)
        empty = await refused(client, "broadcast", text="")
        huge = await refused(client, "broadcast", text="x" * 300_000)
        heavy = await refused(client, "broadcast", text="ü" * 200_000)
        nobody = await refused(client, "send_message", to="nobdy", text="x")
        forbidden = await refused(client, "start_mode", mode="debate", topic="x")
        with pytest.raises(MCPError) as no_resource:
            await client.read_resource("csp://nothing")
        with pytest.raises(MCPError) as no_board:
            await client.read_resource("csp://board/nothing")
        with pytest.raises(MCPError) as no_topic:
            await client.get_prompt("debate", {})
        with pytest.raises(MCPError) as no_prompt:
            await client.get_prompt("", {"topic": "x"})
        after = await call(client, "list_agents")

    assert (unknown.value.code, unknown.value.message) == (INVALID_PARAMS, "unknown tool 'send_mesage'")
    assert missing.startswith("object missing required field `text` (send_message accepts: to, text,")
    assert wrong.startswith("expected `int`, got `str` - at `$.limit`")
    assert extra.startswith("object contains unknown field `colour` (broadcast accepts: text, thread, id)")
    assert nothing.endswith("(list_agents accepts no arguments)")
    assert "length >= 1" in empty and "length <= 262144" in huge
    assert heavy == "text is over 262144 bytes (put it into a file and send its path)"
    assert nobody.startswith("unknown recipient 'nobdy' (")
    assert forbidden == "agent may not call 'start_mode' (it requires the orchestrator token)"
    assert no_resource.value.code == -32002 and no_board.value.code == INVALID_PARAMS
    assert no_topic.value.code == no_prompt.value.code == INVALID_PARAMS
    assert after["you"] == "odd"


async def test_an_orchestrator_sees_more_tools_which_work(room: LiveRoom) -> None:
    join(room, "worker")
    async with over_http(room, join(room, "orchestrator", "orchestrator")["CSP_AUTH_TOKEN"]) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        begun = await call(client, "start_mode", mode="single", topic="try it", agents=["worker"])
        session = begun["orchestration"]["sessionId"]
        seen = await call(client, "mode_status", session=session)
        stopped = await call(client, "stop")
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        prompt = await client.get_prompt("debate", {"topic": "tabs {mode}", "agents": "worker"})
        transcript = (await client.read_resource(f"csp://transcript/{session}")).contents[0]
        runs = (await client.read_resource("csp://runs")).contents[0]
        resources = [str(one.uri) for one in (await client.list_resources()).resources]
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]

    assert tools == LEADER_TOOLS
    assert seen["session"]["mode"] == "single" and stopped["stopped"] == [session]
    assert prompts == [
        *(
            "debate",
            "consensus",
            "collaborate",
            "autopilot",
            "round_robin",
            "orchestrator",
            "single",
            "review",
        )
    ]
    content = prompt.messages[0].content
    assert isinstance(content, TextContent)
    assert "`debate`" in content.text and "Topic: tabs {mode}\n" in content.text
    assert isinstance(transcript, TextResourceContents) and "Allstop" in transcript.text
    assert isinstance(runs, TextResourceContents) and runs.text == '{"items": []}'
    assert resources == ["csp://transcript", "csp://board", "csp://runs", "csp://catalogue"]
    assert templates == ["csp://transcript/{session}", "csp://board/{session}", "csp://runs/{run}"]


async def test_votes_and_handoffs_by_tool_move_a_mode(room: LiveRoom) -> None:
    members = {name: join(room, name) for name in ("eve", "fay")}
    begun = room.gateway.post(
        "/sessions", {"mode": "debate", "rounds": 1, "ballot": True, "agents": list(members), "topic": "x"}
    )
    for name, env in members.items():
        answer(room, env, begun["id"], f"position of {name}")
    async with over_http(room, members["eve"]["CSP_AUTH_TOKEN"]) as client:
        early = await refused(client, "vote", label="Z")
        await call(client, "vote", label="a", reason="shorter")
        other = await refused(client, "handoff", to="fay", task="go on")
    answer(room, members["eve"], begun["id"], "voted")
    room.gateway.post(f"/sessions/{begun['id']}/stop")
    votes = room.gateway.get("/history", types="vote", session=begun["id"])["items"]
    relay = room.gateway.post("/sessions", {"mode": "collaborate", "agents": list(members), "topic": "y"})
    async with over_http(room, members["eve"]["CSP_AUTH_TOKEN"]) as client:
        await call(client, "handoff", to="fay", task="go on")
    answer(room, members["eve"], relay["id"], "my part is done")

    assert early == "unknown label 'Z' (expected one of: A, B)"
    assert other == "you have no open turn that can be handed over (send a message instead)"
    assert [(vote["sender"], vote["text"]) for vote in votes] == [("eve", "VOTE: [A] REASON: shorter")]
    assert room.gateway.get(f"/sessions/{relay['id']}")["orchestration"]["currentTurn"] == "fay"


def answer(room: LiveRoom, env: dict[str, str], session: str, text: str) -> None:
    """Reply to the open turn of an agent."""
    turns = room.gateway.get(f"/sessions/{session}")["orchestration"]["turns"]
    body = {"content": text, "turn": turns[env["CSP_AGENT"]]}
    as_agent(room, env).post("/agent-output", body)


async def test_what_a_tool_sent_is_not_sent_again_by_words(room: LiveRoom) -> None:
    gus, hal = join(room, "gus"), join(room, "hal")
    async with over_http(room, gus["CSP_AUTH_TOKEN"]) as client:
        sent = await call(client, "send_message", to="hal", text="once")
        as_agent(room, gus).post("/agent-output", {"content": "told hal\n\n@send.hal once"})
        as_agent(room, gus).post("/agent-output", {"content": "hm\n\n@send.hal twice", "activity": True})
        again = await call(client, "send_message", to="hal", text="twice")
    items = as_agent(room, hal).get("/inbox/hal")["items"]

    assert [item["text"] for item in items] == ["once", "twice"]
    assert [item["id"] for item in items] == [sent["id"], again["id"]]


async def test_a_client_outside_joins_by_name_reads_its_messages_once_and_comes_back(room: LiveRoom) -> None:
    async with over_stdio(room, "--name", "Scout") as client:
        await call(client, "broadcast", text="I am here")
        room.gateway.post("/message", {"to": "scout", "content": "look around", "id": "look"})
        first = await call(client, "read_messages", wait=30)
        second = await call(client, "read_messages")
    gone = next(agent for agent in room.gateway.get("/agents") if agent["id"] == "scout")
    async with over_stdio(room, "--name", "Scout") as client:
        back = await call(client, "list_agents")

    assert [(item["from"], item["text"]) for item in first["items"]] == [("human", "look around")]
    assert second["items"] == []
    assert room.gateway.get("/messages/look")["recipients"]["scout"]["state"] == "confirmed"
    assert (gone["online"], gone["kind"]) == (False, "mcp")
    assert back["you"] == "scout"


async def test_without_a_room_the_tools_are_listed_and_each_call_says_why(tmp_path: Path) -> None:
    room = LiveRoom(tmp_path)
    async with over_stdio(room, "--name", "early", env={"CSP_ROOM": ""}) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        words = await refused(client, "list_agents")

    assert tools == AGENT_TOOLS
    assert words == "no room is running; start one with: csp up"


def calling(id: Any, text: str) -> dict[str, Any]:
    params = {"name": "broadcast", "arguments": {"text": text}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


class Raw:
    """One `csp mcp` that is sent lines as they are, after the handshake of before."""

    def __init__(self, room: LiveRoom) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "csp.cli", "mcp"],
            cwd=room.dir,
            env={**room.env, **join(room, "raw")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        (begun,) = self.answers(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        )
        assert begun["result"]["protocolVersion"] == "2025-06-18"
        self.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def answers(self, *lines: str) -> list[dict[str, Any]]:
        """Return what is answered to each of these lines."""
        found = []
        for line in lines:
            self.send(line)
            found.append(self.answer())
        return found

    def answer(self) -> dict[str, Any]:
        """Wait for the next answer."""
        assert self._server.stdout is not None
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer

    def send(self, line: str) -> None:
        """Send a line without waiting for what is answered to it."""
        assert self._server.stdin is not None
        print(line, file=self._server.stdin, flush=True)

    def close(self) -> None:
        with self._server as server:
            assert server.stdin is not None
            server.stdin.close()


@pytest.fixture(scope="module")
def raw(room: LiveRoom) -> Iterator[Raw]:
    running = Raw(room)
    yield running
    running.close()


def test_a_request_that_a_client_repeats_is_sent_once(room: LiveRoom, raw: Raw) -> None:
    once = json.dumps(calling("a/1", "only once"))

    first, again = raw.answers(once, once)

    assert first["result"] == again["result"]
    assert len(history(room, "only once")) == 1


def test_calls_of_a_client_with_odd_ids_are_all_sent(room: LiveRoom, raw: Raw) -> None:
    long = "a client that begins each of its ids alike "
    calls = [
        calling(7, "odd 1"),
        calling(7, "odd 2"),
        calling(f"{long}1", "odd 3"),
        calling(f"{long}2", "odd 3"),
    ]

    answers = raw.answers(*map(json.dumps, calls))

    assert [answer["id"] for answer in answers] == [one["id"] for one in calls]
    assert [len(history(room, text)) for text in ("odd 1", "odd 2", "odd 3")] == [1, 1, 2]


def test_lines_that_are_no_message_are_answered(raw: Raw) -> None:
    lines = [
        *("hello", '{"jsonrpc":', "5", '{"jsonrpc": "2.0", "id": true}'),
        *('{"id": 7, "method": "ping"}', '{"jsonrpc": "2.0", "id": "x"}'),
        '{"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": [1]}',
        '{"jsonrpc": "2.0", "id": 11, "result": 5}',
        '\n{"jsonrpc": "2.0", "id": 12, "method": "ping"}',
    ]

    answers = raw.answers(*lines)

    said = [(answer.get("id"), answer.get("error", {}).get("code")) for answer in answers]
    broken, wrong = (None, -32700), -32600
    assert said[:4] == [broken, broken, (None, wrong), (None, wrong)]
    assert said[4:] == [(7, wrong), ("x", wrong), (10, wrong), (None, wrong), (12, None)]


def test_a_call_outlives_the_gateway(room: LiveRoom, raw: Raw) -> None:
    raw.answers(json.dumps(calling(20, "before all")))
    room.kill9()
    raw.send(json.dumps(calling(21, "after all")))
    room.start()
    answer = raw.answer()

    assert answer["id"] == 21 and not answer["result"].get("isError"), answer
    assert [item["sender"] for item in history(room, "after all")] == ["raw"]


def test_two_that_start_at_once_under_one_name_are_one_agent(room: LiveRoom) -> None:
    state_dir = room.home.parent / "run" / "csp"
    address = Address(url=room.url, token=room.token, room=room.name)
    members = [OutsideMember("twin", lambda: address, state_dir) for _ in range(4)]
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(one.network.ask, lambda it: it.get("/me")) for one in members * 3]
        found = {one.result()["id"] for one in asked}

    assert found == {"twin"}
    assert [agent["id"] for agent in room.gateway.get("/agents") if "twin" in agent["id"]] == ["twin"]


def test_a_room_is_found_though_the_client_hides_the_runtime_folder(
    room: LiveRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = room.home.parent / "run"
    (run / str(os.getuid())).symlink_to(run)
    monkeypatch.setattr(process_environment, "RUNTIME_DIRS", str(run))

    assert process_environment.unnamed_runtime_dir({}) == str(run / str(os.getuid()) / "csp")
    assert process_environment.unnamed_runtime_dir({"XDG_RUNTIME_DIR": "/run/user/1"}) == ""
    call = VerbCall(args=Namespace(), settings=Settings(state_dir=room.home), cwd=room.dir)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert find(call).url == room.url
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(room.home))
    with pytest.raises(Unreachable):
        find(call)
