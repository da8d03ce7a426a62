"""The MCP server that a sidecar gives its CLI: a bridge to /mcp of the room's gateway."""

import asyncio
import json
import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csp.sidecar import mcp_bridge
from csp.sidecar.mcp_bridge import McpBridge
from csp.sidecar.record_file import write_record
from tests.client.proxy import Proxy
from tests.mcp.clients import AGENT_TOOLS, VERSIONS, as_agent, call, in_a_pane, join
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.xdist_group("mcp")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    """A gateway in a process of its own, which tests may kill."""
    with LiveRoom(tmp_path_factory.mktemp("bridge")) as running:
        yield running


class Client:
    """A bridge in this process, with the lines that it has written."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self._folder = folder
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.point_at(url, token)
        self.bridge = McpBridge(str(folder), self._lines.put)

    def point_at(self, url: str, token: str) -> None:
        """Write the sidecar's record, as a sidecar does whose room has moved."""
        write_record(str(self._folder), {"pid": os.getpid(), "url": url, "token": token})

    def say(self, line: str) -> None:
        self.bridge.accept(line.encode())

    def ask(self, id: int, method: str, **params: Any) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))

    def call(self, id: int, tool: str, **arguments: Any) -> None:
        self.ask(id, "tools/call", name=tool, arguments=arguments)

    def next(self) -> dict[str, Any]:
        """Return the next line."""
        found: dict[str, Any] = json.loads(self._lines.get(timeout=60))
        return found

    def has_line(self) -> bool:
        return not self._lines.empty()


def texts(room: LiveRoom, text: str) -> list[str]:
    """Return who has sent a text."""
    items = room.gateway.get("/history", limit=500)["items"]
    return [item["sender"] for item in items if item["text"] == text]


@pytest.mark.parametrize(("mode", "version"), VERSIONS.items())
async def test_a_client_of_either_protocol_lists_and_calls_the_tools(
    room: LiveRoom, tmp_path: Path, mode: str, version: str
) -> None:
    token = join(room, f"ada-{mode}")["CSP_AUTH_TOKEN"]
    async with in_a_pane(room.url, tmp_path, token, mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        await call(client, "broadcast", text=f"über {mode} \u2028 \U0001f600")
        first = (await client.read_resource("csp://transcript")).contents[0]

        assert client.protocol_version == version
    assert tools == AGENT_TOOLS
    assert texts(room, f"über {mode} \u2028 \U0001f600") == [f"ada-{mode}"]
    assert str(first.uri) == "csp://transcript"


async def test_a_call_whose_response_is_lost_is_carried_out_once(room: LiveRoom, tmp_path: Path) -> None:
    token = join(room, "lost")["CSP_AUTH_TOKEN"]
    async with Proxy(room.port) as proxy:
        client = Client(tmp_path, proxy.url, token)
        proxy.answers_only = b"GET "
        client.call(1, "broadcast", text="said once")
        await asyncio.to_thread(wait_until_sync, lambda: texts(room, "said once"))
        proxy.answers_only = b""
        answer = await asyncio.to_thread(client.next)

        assert answer["id"] == 1 and not answer["result"].get("isError")
    assert texts(room, "said once") == ["lost"]


def test_a_call_waits_for_a_gateway_that_restarts(room: LiveRoom, tmp_path: Path) -> None:
    client = Client(tmp_path, room.url, join(room, "patient")["CSP_AUTH_TOKEN"])
    room.kill9()
    client.call(1, "broadcast", text="after the restart")
    room.start()

    assert client.next()["id"] == 1
    assert texts(room, "after the restart") == ["patient"]


def test_the_same_text_in_two_calls_is_sent_twice(room: LiveRoom, tmp_path: Path) -> None:
    client = Client(tmp_path, room.url, join(room, "again")["CSP_AUTH_TOKEN"])
    for id in (1, 2):
        client.call(id, "broadcast", text="ping pong")
        assert client.next()["id"] == id

    assert texts(room, "ping pong") == ["again", "again"]


def test_the_address_and_the_token_are_those_of_the_record(room: LiveRoom, tmp_path: Path) -> None:
    client = Client(tmp_path, "http://127.0.0.1:9", "nothing")
    client.point_at(room.url, join(room, "moved")["CSP_AUTH_TOKEN"])
    client.call(1, "list_agents")

    assert client.next()["result"]["structuredContent"]["you"] == "moved"


def test_a_token_that_is_refused_is_an_error_that_says_so(room: LiveRoom, tmp_path: Path) -> None:
    client = Client(tmp_path, room.url, "bot.1.wrong")
    client.call(1, "list_agents")
    result = client.next()["result"]

    assert result["isError"] and "token" in result["content"][0]["text"]


def test_without_a_gateway_a_tool_says_that_none_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_bridge, "PATIENCE_S", 0.0)
    client = Client(tmp_path, "http://127.0.0.1:9", "x")
    client.call(1, "list_agents")
    client.ask(2, "tools/list")
    answers = {answer["id"]: answer for answer in (client.next(), client.next())}

    told = answers[1]["result"]
    assert told["isError"] and told["content"][0]["text"].startswith(
        "no gateway answers at http://127.0.0.1:9 ("
    )
    assert answers[2]["error"]["message"].startswith("no gateway answers at http://127.0.0.1:9 (")


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        ("{", -32700, None),
        ("[1]", -32600, None),
        ('{"id": 3}', -32600, 3),
        ('{"id": true}', -32600, None),
        ('{"id": 3, "method": 7}', -32600, 3),
    ],
)
def test_an_invalid_line_gets_an_error(tmp_path: Path, line: str, code: int, id: int | None) -> None:
    client = Client(tmp_path, "http://127.0.0.1:9", "x")
    client.say(line)
    answer = client.next()

    assert (answer["error"]["code"], answer["id"]) == (code, id)


@pytest.mark.parametrize("line", ["", "  ", '{"jsonrpc": "2.0", "method": "notifications/initialized"}'])
def test_what_needs_no_response_gets_none(tmp_path: Path, line: str) -> None:
    client = Client(tmp_path, "http://127.0.0.1:9", "x")
    client.say(line)
    client.say("{")

    assert client.next()["error"]["code"] == -32700


def test_a_cancelled_call_ends_without_a_response(room: LiveRoom, tmp_path: Path) -> None:
    env = join(room, "hasty")
    client = Client(tmp_path, room.url, env["CSP_AUTH_TOKEN"])
    client.call(1, "read_messages", wait=50, after=10**9)
    time_of_call = time.monotonic()
    client.say('{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}')
    wait_until_sync(lambda: not client.bridge._open)
    took_s = time.monotonic() - time_of_call
    client.ask(2, "ping")

    # The call itself would have waited longer.
    assert took_s < 45
    assert client.next()["id"] == 2
    assert as_agent(room, env).get("/me")["id"] == "hasty"
