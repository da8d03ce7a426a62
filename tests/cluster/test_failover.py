"""Calls whose answer is lost while their gateway dies: repeated at another gateway, they change nothing."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from csp.errors import Unreachable
from csp.http_client import GatewayClient
from tests.client.proxy import Proxy
from tests.cluster.gateways import TOKEN, Gateways
from tests.cluster.nats_servers import NatsServer
from tests.rooms import LiveRoom

AGENTS: Final = ("ada", "bob", "eve", "max")
#: Each needs what the one before it has done.
CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    *(("/register", {"agentId": name, "launch": f"start-of-{name}"}) for name in AGENTS),
    ("/mode", {"id": "mode", "mode": "round_robin", "topic": "t", "agents": ["ada", "bob"]}),
    ("/turn/next", {"id": "next"}),
    (
        "/sessions",
        {"id": "session", "mode": "debate", "topic": "t", "agents": ["eve", "max"], "thread": "two"},
    ),
)


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Gateways]:
    with NatsServer(tmp_path / "nats") as server, Gateways(tmp_path / "g", [server.url], 2) as gateways:
        yield gateways


@pytest.mark.parametrize("is_owner_asked", [True, False])
async def test_what_was_done_without_an_answer_is_not_done_again(
    gateways: Gateways, is_owner_asked: bool
) -> None:
    owner = await asyncio.to_thread(gateways.owner)
    (edge,) = [one for one in gateways.all if one is not owner]
    asked, other = (owner, edge) if is_owner_asked else (edge, owner)
    async with Proxy(asked.port) as proxy:
        # Everything is passed on, and instead of an answer the connection ends.
        proxy.answers_only = b"nothing"
        for path, body in CALLS:
            with pytest.raises(Unreachable):
                await asyncio.to_thread(GatewayClient(proxy.url, TOKEN).post, path, body)
    before = await asyncio.to_thread(gateways.wait_equal)
    await asyncio.to_thread(asked.kill9)
    answers = [await asyncio.to_thread(other.gateway.post, path, body) for path, body in CALLS]

    added = journal(other).removeprefix(before).splitlines()
    names = {view["id"] for view in await asyncio.to_thread(other.gateway.get, "/agents")}

    # The agent of a start that registers again is the same one, with a new token.
    assert [line for line in added if b'"type":"joined"' not in line] == []
    assert [answer["agentId"] for answer in answers[: len(AGENTS)]] == list(AGENTS)
    assert names - {"human"} == set(AGENTS)
    assert all(answer["success"] for answer in answers)


def journal(room: LiveRoom) -> bytes:
    return (room.folder / "journal.jsonl").read_bytes()
