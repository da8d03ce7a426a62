"""A log whose stream three servers hold: one writer at a time, and no loss when a server dies."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from csp.cluster.bus import Bus
from csp.cluster.names import shard_of, stream_name
from csp.cluster.setup import API_S
from csp.cluster.stream_log import StreamLog
from csp.errors import Broken, Deposed, LogLost
from csp.journal import Place
from tests.cluster.nats_servers import NatsCluster
from tests.cluster.stream_stores import StreamStore
from tests.journal.log_stores import START, Tail, batch_of, replayed
from tests.journal.making import encoded, lines_to, said
from tests.waiting import wait_until

ROUNDS: Final = 20
RIVALS: Final = 6


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    with NatsCluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
async def store(cluster: NatsCluster) -> AsyncIterator[StreamStore]:
    store = StreamStore(*cluster.urls, replicas=3)

    async def is_open() -> bool:
        try:
            await store.open()
        except Broken:
            # The servers have not found each other yet.
            return False
        return True

    asked: Callable[[], bool | Awaitable[bool]] = is_open
    await wait_until(asked)
    yield store
    await store.close()


async def leader_of(store: StreamStore) -> str:
    """Return the name of the server that leads the stream; "" while there is none."""
    try:
        info: dict[str, Any] = await store.bus.ask(
            f"STREAM.INFO.{stream_name(shard_of(store.room))}", {}, timeout_s=API_S
        )
    except LogLost:
        return ""
    return str(info.get("cluster", {}).get("leader", ""))


async def test_of_rivals_at_all_servers_one_succeeds_each_time(
    cluster: NatsCluster, store: StreamStore
) -> None:
    buses = [await Bus.open([url]) for url in cluster.urls]
    logs = [StreamLog(buses[number % 3], store.room) for number in range(RIVALS)]
    won, place = list[bytes](), START
    for seq in range(1, ROUNDS + 1):
        batches = [batch_of(encoded([said(seq, f"from {number}")])) for number in range(RIVALS)]
        ends = await asyncio.gather(
            *(log.append(batch, place) for log, batch in zip(logs, batches, strict=True)),
            return_exceptions=True,
        )
        assert sorted(type(end).__name__ for end in ends) == ["Deposed"] * (RIVALS - 1) + ["Place"]
        number = next(number for number, end in enumerate(ends) if isinstance(end, Place))
        won += batches[number].lines
        end = ends[number]
        assert isinstance(end, Place)
        place = end
    found = [await replayed(log) for log in logs[:3]]
    for bus in buses:
        await bus.close()

    assert found == [won] * 3


async def test_a_killed_leader_costs_nothing_that_was_acknowledged(
    cluster: NatsCluster, store: StreamStore
) -> None:
    lines, tail = lines_to(30), Tail(store)

    async def write() -> None:
        place = START
        for line in lines:
            place = await store.log.append(batch_of([line]), place)

    writing = asyncio.ensure_future(write())
    await tail.until(10)
    leader = cluster.named(await wait_until(lambda: leader_of(store)))
    await asyncio.to_thread(leader.kill)
    await writing
    await tail.until(30)
    await asyncio.to_thread(leader.start)

    assert tail.lines == lines
    assert await replayed(store.log) == lines


async def test_a_writer_that_was_cut_off_is_refused_after_another_claimed(
    cluster: NatsCluster, store: StreamStore
) -> None:
    """A second gateway claims the room while the first one believes in its place."""
    other = await Bus.open(cluster.urls)
    claimant = StreamLog(other, store.room)
    place = await store.log.append(batch_of(lines_to(1)), START)
    claim = batch_of(encoded([said(2, "the claim of another")]))
    await claimant.append(claim, place)
    refused = await asyncio.gather(
        *(store.log.append(batch_of(lines_to(2)[1:]), place) for _ in range(10)), return_exceptions=True
    )
    found = await replayed(claimant)
    await other.close()

    assert [type(error) for error in refused] == [Deposed] * 10
    assert found == [*lines_to(1), *claim.lines]
