"""/mcp with the SDK's own client, by the old protocol as by the new one, and with requests of our own."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR

from csp.protocol.enums import AgentId
from tests.gateway.served import Clock, served
from tests.mcp.clients import AGENT_TOOLS, LEADER_TOOLS, VERSIONS, call, join, over_http, refused
from tests.rooms import LiveRoom
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("mcp")

JSON = {"Content-Type": "application/json"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(room: LiveRoom, token: str, body: object, **headers: str) -> requests.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    own = {"X-Auth-Token": token, "Content-Type": "application/json"} if token else {}
    return requests.post(f"{room.url}/mcp", data=data, headers=own | ACCEPT | headers, timeout=60)


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(("mode", "version"), VERSIONS.items())
async def test_an_agent_lists_and_calls_over_http(room: LiveRoom, mode: str, version: str) -> None:
    ada = join(room, f"web-ada-{mode}")
    join(room, f"web-bob-{mode}")
    async with over_http(room, ada["CSP_AUTH_TOKEN"], mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        sent = await call(client, "send_message", to=f"web-bob-{mode}", text=f"over http by {mode}")
        again = await call(
            client, "send_message", to=f"web-bob-{mode}", text=f"over http by {mode}", id=sent["id"]
        )
        other = await call(client, "send_message", to=f"web-bob-{mode}", text=f"over http by {mode}")
        log = await call(client, "query_log", search=f"over http by {mode}")
        nobody = await refused(client, "send_message", to="nobdy", text="x")
        forbidden = await refused(client, "stop")
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("nothing", {})
        prompts = (await client.list_prompts()).prompts
        resources = (await client.list_resources()).resources

        assert client.protocol_version == version
    assert tools == AGENT_TOOLS
    assert again == sent and other["id"] != sent["id"]
    assert [item["from"] for item in log["items"]] == [f"web-ada-{mode}"] * 2
    assert nobody.startswith("unknown recipient 'nobdy' (")
    assert forbidden == "agent may not call 'stop' (it requires the orchestrator token)"
    assert unknown.value.code == INVALID_PARAMS
    assert len(prompts) == 8 and len(resources) == 4


async def test_the_rooms_token_sees_all_tools(room: LiveRoom) -> None:
    async with over_http(room, room.token) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        listed = await call(client, "list_agents")

    assert tools == LEADER_TOOLS and listed["you"] == "human"


def test_requests_are_guarded_as_on_every_other_route(room: LiveRoom) -> None:
    token = join(room, "guarded")["CSP_AUTH_TOKEN"]
    link = room.gateway.post("/page/link")
    page = requests.post(f"{room.url}/page/enter", json={"code": link["code"]}, timeout=60).json()["token"]
    listing = request("tools/list")

    assert post(room, "", listing).status_code == 401
    assert post(room, "wrong", listing).status_code == 401
    assert post(room, page, listing).status_code == 403
    assert post(room, token, listing, Origin="http://evil.example").status_code == 403
    assert post(room, token, listing, Host="evil.example").status_code == 403
    assert post(room, token, b"x" * 2_000_000).status_code == 413
    assert requests.get(f"{room.url}/mcp", headers={"X-Auth-Token": token}, timeout=60).status_code == 405
    answer = post(room, token, listing)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert {tool["name"] for tool in answer.json()["result"]["tools"]} == AGENT_TOOLS


def test_malformed_requests_get_errors_of_the_protocol(room: LiveRoom) -> None:
    token = join(room, "malformed")["CSP_AUTH_TOKEN"]

    def code(body: object, **headers: str) -> int:
        return int(post(room, token, body, **headers).json()["error"]["code"])

    assert code(b"{") == PARSE_ERROR
    assert code(request("no/such/method")) == METHOD_NOT_FOUND
    assert code(request("tools/call")) == INVALID_PARAMS
    assert code(request("tools/call", name="broadcast", arguments=[])) == INVALID_PARAMS
    assert (
        post(room, token, request("tools/list"), **{"MCP-Protocol-Version": "1999-01-01"}).status_code == 400
    )
    answer = post(room, token, request("tools/call", name="broadcast", arguments={"text": 5})).json()
    assert answer["result"]["isError"] is True
    assert code(request("tools/call", name=5, arguments={"text": "a secret"})) == INVALID_PARAMS
    assert "mcp" not in room.said() and "a secret" not in room.said()


def test_a_gateway_loads_the_sdk_only_when_asked() -> None:
    code = "import sys, csp.gateway.server; sys.exit('mcp' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_call_that_nobody_waits_for_any_more_is_dropped(tmp_path: Path) -> None:
    clock = Clock()
    async with served(tmp_path / "room", clock) as room:
        bot = await room.join("bot", kind="mcp")
        listing = request("tools/list")
        await room.call("POST", "/mcp", listing, token=bot.token, headers=ACCEPT | JSON)
        waiting = request("tools/call", name="read_messages", arguments={"wait": 60})
        asked = asyncio.ensure_future(
            room.call("POST", "/mcp", waiting, token=bot.token, headers=ACCEPT | JSON)
        )

        def is_served() -> bool:
            """Tell whether a call of its is under way: then its last sign of life is always now."""
            clock.now += 1
            return room.gateway.presence.last_seen(AgentId(bot.id), 0.0) == clock.now

        await wait_until(is_served, what="the call")
        asked.cancel()

        await wait_until(lambda: not is_served(), what="the end of the call")
