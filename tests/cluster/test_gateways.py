"""Real gateways that serve one room: each takes what comes, all have the same journal."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.cluster.bus import Bus
from csp.cluster.stream_log import StreamLog
from csp.http_client import GatewayClient
from tests.cluster.gateways import ROOM, Gateways
from tests.cluster.nats_servers import NatsServer
from tests.journal.log_stores import replayed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="module")
def gateways(server: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    with Gateways(tmp_path_factory.mktemp("gateways"), [server.url]) as gateways:
        yield gateways


def stream_lines(server: NatsServer) -> bytes:
    """Return what the stream has of the room."""

    async def read() -> bytes:
        bus = await Bus.open([server.url])
        lines = await replayed(StreamLog(bus, ROOM))
        await bus.close()
        return b"".join(line + b"\n" for line in lines)

    return asyncio.run(read())


def say(client: GatewayClient, text: str) -> int:
    return int(client.post("/message", {"to": "all", "content": text})["seq"])


def test_every_gateway_takes_messages_and_all_journals_and_the_stream_are_equal(
    gateways: Gateways, server: NatsServer
) -> None:
    gateways.all[0].gateway.post("/register", {"agentId": "ada"})
    seqs = [say(one.gateway, f"message {number}") for number in range(10) for one in gateways.all]
    journal = gateways.wait_equal()

    assert seqs == sorted(set(seqs))
    assert journal == stream_lines(server)
    assert len({gateways.health(one)["roomId"] for one in gateways.all}) == 1
    assert gateways.health(gateways.all[0])["roomId"].encode() in journal.splitlines()[0]


def test_a_caller_reads_what_it_wrote_at_the_same_gateway(gateways: Gateways) -> None:
    for one in gateways.all:
        for number in range(20):
            seq = say(one.gateway, f"mine {number}")
            (item,) = one.gateway.get(f"/history?after={seq - 1}&before={seq + 1}&limit=1")["items"]
            assert item["text"] == f"mine {number}"


def test_a_token_of_one_gateway_is_valid_at_all(gateways: Gateways) -> None:
    agent = gateways.all[1].gateway.post("/register", {"agentId": "bob"})
    gateways.wait_equal()
    names = {GatewayClient(one.url, agent["token"]).get("/me")["id"] for one in gateways.all}

    assert names == {agent["agentId"]}


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_a_room_whose_owner_ends_goes_on_and_the_owner_comes_back_as_an_edge(
    gateways: Gateways, how: str
) -> None:
    owner = gateways.owner()
    other = next(one for one in gateways.all if one is not owner)
    before = say(owner.gateway, "before")
    if how == "kill":
        owner.kill9()
    else:
        owner.stop()
    after = say(other.gateway, f"after {how}")
    new = next(one for one in gateways.all if one is not owner and not gateways.health(one)["replica"])
    owner.start()
    again = say(owner.gateway, "again")
    journal = gateways.wait_equal()

    assert (before + 1, before + 2) == (after, again)
    assert new is gateways.owner()
    assert journal.count(f'"text":"after {how}"'.encode()) == 1


def test_a_gateway_without_a_cluster_does_not_load_the_client_of_nats() -> None:
    code = "import sys, csp.gateway.server, csp.cli; print([name for name in sys.modules if 'nats' in name])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


def test_a_cluster_needs_a_secret(tmp_path: Path, server: NatsServer) -> None:
    words = ["gateway", "--journal", server.url, "--room", "x", "--port", "0", "--history", str(tmp_path)]
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())}
    run = [sys.executable, "-m", "csp.cli", *words]
    found = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
    missing = subprocess.run(
        [*run, "--secret-file", "none"], capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )

    assert (found.returncode, missing.returncode) == (2, 2), found.stderr + missing.stderr
    assert "common secret" in found.stderr
    assert "--secret-file" in found.stderr
    assert "cannot read 'none'" in missing.stderr
