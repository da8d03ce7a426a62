"""What csp doctor --journal finds in a cluster."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.cli import main
from csp.cli.cli_checks import CheckResult
from csp.cli.cluster_checks import check_cluster, check_stream
from csp.cluster.background import end_task
from csp.cluster.bus import Bus
from csp.cluster.names import heartbeat_subject, shard_of
from csp.cluster.peers import Heartbeat
from csp.cluster.servers import NatsServers
from csp.cluster.setup import API_S, open_stream, stream_config
from csp.cluster.stream_log import StreamLog
from csp.config import Settings
from csp.errors import Broken
from tests.cluster.nats_servers import NatsCluster, NatsServer
from tests.cluster.old_server import VERSION, old_server
from tests.journal.log_stores import START, batch_of
from tests.journal.making import lines_to, write_journal
from tests.rooms import free_port
from tests.waiting import wait_until

ROOM = "review"
STREAM = f"stream CSP_J_{shard_of(ROOM)}"


async def findings(*urls: str, history: Path = Path("/nowhere")) -> dict[str, CheckResult]:
    """Return what is found, by the check."""
    results = check_cluster(NatsServers(urls), Settings(history_dir=history), ROOM)
    return {result.check: result async for result in results}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats", has_monitor=True) as server:
        yield server


async def fill(*urls: str, replicas: int) -> None:
    """Write a room of five lines."""
    bus = await Bus.open(urls)

    async def opens() -> bool:
        try:
            await open_stream(bus, shard_of(ROOM), replicas)
        except Broken:
            # The servers have not found each other yet.
            return False
        return True

    asked: Callable[[], bool | Awaitable[bool]] = opens
    await wait_until(asked)
    await StreamLog(bus, ROOM).append(batch_of(lines_to(5)), START)
    await bus.close()


# --- servers -------------------------------------------------------------------------------------


async def test_a_server_is_named_with_its_version_and_its_storage(server: NatsServer) -> None:
    found = await findings(server.url)

    assert found[f"server {server.url}"] == (
        *(f"server {server.url}", True, "version 2.15.1, without TLS"),
        "",
    )
    storage = found[f"storage of {server.url}"]
    assert storage.ok and storage.detail.startswith("synced before it is acknowledged, 0 B used, ")
    assert found["streams"].detail == "0 of 8; rooms create the other 8"


async def test_a_server_that_does_not_sync_is_a_failure(tmp_path: Path) -> None:
    with NatsServer(tmp_path, sync="", has_monitor=True) as server:
        found = (await findings(server.url))[f"storage of {server.url}"]

    assert not found.ok and "a power cut loses up to two minutes" in found.detail
    assert found.advice == "set sync_interval: always in its jetstream block"


async def test_a_state_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with NatsServer(tmp_path) as server:
        found = (await findings(server.url))[f"storage of {server.url}"]

    assert found.ok and "cannot be read from here" in found.detail


async def test_servers_that_are_old_or_down_are_failures(tmp_path: Path) -> None:
    nobody = f"nats://127.0.0.1:{free_port()}"
    with NatsServer(tmp_path, program=old_server()) as old:
        found = await findings(old.url, nobody)

    assert not found[f"server {old.url}"].ok and not found[f"server {nobody}"].ok
    assert f"version {VERSION}, expected 2.11" in found[f"server {old.url}"].detail
    assert "no NATS server can be reached" in found[f"server {nobody}"].detail
    assert "streams" not in found


async def test_a_server_without_jetstream_is_a_failure(tmp_path: Path) -> None:
    with NatsServer(
        tmp_path, more="accounts { A: { users: [{user: a}] }, B: {} }\nno_auth_user: a"
    ) as server:
        found = (await findings(server.url))[f"server {server.url}"]

    assert not found.ok and "without JetStream" in found.detail


# --- streams -------------------------------------------------------------------------------------


async def until_found(cluster: NatsCluster, detail: str, *, is_ok: bool) -> None:
    async def is_found() -> bool:
        found = (await findings(*cluster.urls)).get(STREAM)
        return found is not None and found.ok == is_ok and detail in found.detail

    asked: Callable[[], bool | Awaitable[bool]] = is_found
    await wait_until(asked)


async def test_three_replicas_are_fine_until_one_is_gone(tmp_path: Path) -> None:
    with NatsCluster(tmp_path) as cluster:
        await fill(*cluster.urls, replicas=3)
        await until_found(cluster, "3 replicas, leader n", is_ok=True)
        await asyncio.to_thread(cluster.named("n2").kill)
        await until_found(cluster, "behind or gone: n2", is_ok=False)


async def test_a_stream_with_one_replica_is_a_failure(server: NatsServer) -> None:
    await fill(server.url, replicas=1)
    found = (await findings(server.url))[STREAM]

    assert not found.ok and "a lost disk loses its rooms" in found.detail
    assert found.advice == "use three servers"


async def test_a_stream_that_deletes_events_is_a_failure(server: NatsServer) -> None:
    bus = await Bus.open([server.url])
    config = stream_config(shard_of(ROOM), 1) | {"discard": "old"}
    await bus.ask(f"STREAM.CREATE.{config['name']}", config, timeout_s=API_S)
    await bus.close()
    found = (await findings(server.url))[STREAM]

    assert not found.ok and "discard = 'old', expected 'new'" in found.detail


def test_more_replicas_are_advised_where_there_are_servers() -> None:
    info: dict[str, Any] = {
        "config": {"num_replicas": 1},
        "state": {"messages": 1234, "bytes": 5_600_000},
    }
    found = check_stream("CSP_J_1", info, "", 3)

    assert found.detail == "1,234 batches, 5.6 MB, 1 replicas; a lost disk loses its rooms"
    assert found.advice == "nats stream edit CSP_J_1 --replicas 3"


# --- clocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ahead_s", "is_ok"), [(0.0, True), (5.0, False), (-5.0, False)])
async def test_a_gateway_with_another_time_is_a_failure(
    server: NatsServer, ahead_s: float, is_ok: bool
) -> None:
    bus = await Bus.open([server.url])

    async def beat() -> None:
        while True:
            sign = Heartbeat("gateway", time.time() + ahead_s)
            await bus.publish(heartbeat_subject("gateway"), msgspec.json.encode(sign))
            await asyncio.sleep(0.05)

    beating = asyncio.create_task(beat())
    found = (await findings(server.url))["clocks"]
    await end_task(beating)
    await bus.close()

    assert found.ok == is_ok and found.detail.startswith("1 gateways, at most ")


# --- copies and the command ----------------------------------------------------------------------


@pytest.mark.parametrize(("count", "is_ok"), [(3, True), (5, True), (6, False)])
async def test_a_copy_must_not_be_ahead_of_the_log(
    server: NatsServer, tmp_path: Path, count: int, is_ok: bool
) -> None:
    await fill(server.url, replicas=1)
    path = write_journal(tmp_path / ROOM, b"".join(line + b"\n" for line in lines_to(count)))
    found = (await findings(server.url, history=tmp_path))[f"copy of room {ROOM}"]

    assert found.ok == is_ok
    assert found.detail.startswith(f"{path} ends at #{count}, the log at #5; ")


async def test_a_room_without_a_copy_here_is_fine(server: NatsServer, tmp_path: Path) -> None:
    found = (await findings(server.url, history=tmp_path))[f"copy of room {ROOM}"]

    assert found.ok and found.detail.endswith("the log ends at #0")


def test_the_command_prints_every_finding(
    server: NatsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["doctor", "--journal", server.url, "--room", ROOM, "--history", str(tmp_path)]
    codes = [main(words), main([*words, "--json"])]
    *lines, data = capsys.readouterr().out.splitlines()

    assert codes == [0, 0]
    assert [line[:6] for line in lines] == ["ok    "] * len(lines)
    assert [row["check"] for row in json.loads(data)] == [line[6:].split(": ")[0] for line in lines]
    assert main(["doctor", "--journal", "nats://other.example"]) == 2
    assert "is on another machine" in capsys.readouterr().err
