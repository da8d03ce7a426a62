"""A subject of a stream as the log of a room: what every log keeps to is in test_commit_log."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from csp.cluster import stream_log
from csp.cluster.bus import Bus
from csp.cluster.names import log_subject, shard_of, stream_name
from csp.cluster.setup import API_S
from csp.cluster.stream_log import StreamLog
from csp.errors import Broken, Deposed, LogLost, StorageFull
from csp.journal import Batch, Place
from tests.cluster.nats_servers import NatsServer
from tests.cluster.stream_stores import StreamStore
from tests.journal.log_stores import START, Tail, batch_of, replayed
from tests.journal.making import encoded, lines_to, said
from tests.waiting import wait_until


@pytest.fixture
async def store(nats_server: NatsServer) -> AsyncIterator[StreamStore]:
    store = StreamStore(nats_server.url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server that the test may treat badly."""
    with NatsServer(tmp_path) as server:
        yield server


@pytest.fixture
async def own_store(own_server: NatsServer) -> AsyncIterator[StreamStore]:
    store = StreamStore(own_server.url)
    await store.open()
    yield store
    await store.close()


def another_log(store: StreamStore) -> StreamLog:
    """Return what another gateway has of the same room."""
    return StreamLog(store.bus, store.room)


# --- what a message carries ----------------------------------------------------------------------


async def test_a_batch_comes_back_with_its_writer_and_its_calls(store: StreamStore) -> None:
    batch = replace(batch_of(lines_to(3)), epoch=7, owner="gw1-abc", calls={"c-1": (1, 1), "c-2": (2, 3)})
    place = await store.log.append(batch, START)
    tail = [pair async for pair in store.log.replay(START)]

    assert tail == [(place, batch)]


async def test_a_claim_has_no_lines_and_deposes_whoever_wrote_before(store: StreamStore) -> None:
    former, claimant = store.log, another_log(store)
    place = await former.append(batch_of(lines_to(1)), START)
    claim = Batch(lines=(), first_seq=2, epoch=2, owner="gw2")
    claimed = await claimant.append(claim, place)

    assert (claimed.seq, claimed.mark > place.mark) == (1, True)
    with pytest.raises(Deposed, match="another gateway"):
        await former.append(batch_of(lines_to(2)[1:]), place)
    assert await replayed(store.log) == lines_to(1)
    assert [pair async for pair in store.log.replay(place)] == [(claimed, claim)]
    await claimant.append(batch_of(lines_to(2)[1:]), claimed)


async def test_rooms_of_one_stream_do_not_see_each_other(store: StreamStore) -> None:
    other = StreamStore(*store._servers)
    while shard_of(other.room) != shard_of(store.room):
        other = StreamStore(*store._servers)
    await other.open()
    mine, theirs = lines_to(4), encoded(said(seq, "elsewhere") for seq in range(1, 4))
    tail = Tail(store)
    here = there = START
    for number in range(3):
        here = await store.log.append(batch_of(mine[number : number + 1]), here)
        there = await other.log.append(batch_of(theirs[number : number + 1]), there)
    await store.log.append(batch_of(mine[3:]), here)
    found = await tail.until(4), await replayed(other.log)
    await other.close()

    assert found == (mine, theirs)


async def test_more_batches_than_are_read_at_once_are_all_replayed(
    store: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_log, "MESSAGES_AT_ONCE", 3)
    lines, place = lines_to(10), START
    for line in lines:
        place = await store.log.append(batch_of([line]), place)

    assert await replayed(store.log) == lines
    assert await replayed(store.log, Place(4)) == lines[4:]


async def test_a_place_within_a_batch_gives_the_rest_of_it(store: StreamStore) -> None:
    await store.log.append(batch_of(lines_to(5)), START)

    assert await replayed(store.log, Place(3)) == lines_to(5)[3:]
    assert await replayed(store.log, Place(5)) == []


async def test_a_batch_that_is_too_large_is_refused_before_it_is_sent(
    store: StreamStore,
) -> None:
    huge = encoded([said(1, "x" * store.bus.max_payload)])
    with pytest.raises(Broken, match="the NATS servers accept"):
        await store.log.append(batch_of(huge), START)
    await store.log.append(batch_of(lines_to(1)), START)

    assert await replayed(store.log) == lines_to(1)


# --- answers that are lost -----------------------------------------------------------------------


async def test_a_lost_answer_does_not_double_a_batch(
    store: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first copy was stored, and its writer does not know."""
    request, lost = store.bus.request, list[str]()

    async def request_and_lose(subject: str, data: bytes, headers: object = None, **options: float) -> object:
        answer = await request(subject, data, headers, **options)  # type: ignore[arg-type]
        if subject == log_subject(store.room) and len(lost) < 3:
            lost.append(subject)
            raise LogLost("lost on the way")
        return answer

    monkeypatch.setattr(store.bus, "request", request_and_lose)
    place = await store.log.append(batch_of(lines_to(2)), START)
    await store.log.append(batch_of(lines_to(3)[2:]), place)

    assert len(lost) == 3
    assert await replayed(store.log) == lines_to(3)


async def test_a_writer_whose_answer_is_lost_learns_that_another_was_first(
    store: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival, request = another_log(store), store.bus.request
    theirs = encoded([said(1, "from the rival")])
    asked: list[str] = []

    async def request_too_late(subject: str, data: bytes, headers: object = None, **options: float) -> object:
        if subject == log_subject(store.room) and not asked:
            asked.append(subject)
            await rival.append(batch_of(theirs), START)
            raise LogLost("never sent")
        return await request(subject, data, headers, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store.bus, "request", request_too_late)
    with pytest.raises(Deposed):
        await store.log.append(batch_of(lines_to(1)), START)

    assert await replayed(store.log) == theirs


async def test_a_full_store_after_a_lost_answer_is_no_refusal_yet(
    store: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy whose answer was lost may be stored all the same, so nobody may be told that it is not."""
    request, asked = store.bus.request, list[str]()

    async def lose_first(subject: str, data: bytes, headers: object = None, **options: float) -> object:
        if subject == log_subject(store.room):
            asked.append(subject)
            if len(asked) == 1:
                raise LogLost("lost on the way")
        return await request(subject, data, headers, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store.bus, "request", lose_first)
    async with store.full():
        appending = asyncio.ensure_future(store.log.append(batch_of(encoded([said(1, "x" * 300)])), START))
        await wait_until(lambda: len(asked) > 3)
        assert not appending.done()
    await appending

    assert len(await replayed(store.log)) == 1


async def test_an_append_outlives_a_killed_server(own_server: NatsServer, own_store: StreamStore) -> None:
    lines = lines_to(3)
    tail = Tail(own_store)
    place = await own_store.log.append(batch_of(lines[:1]), START)
    await asyncio.to_thread(own_server.kill)
    appending = asyncio.ensure_future(own_store.log.append(batch_of(lines[1:2]), place))
    await wait_until(lambda: not own_store.bus.is_connected)
    await asyncio.to_thread(own_server.start)
    await own_store.log.append(batch_of(lines[2:]), await appending)

    assert await tail.until(3) == lines
    assert await replayed(own_store.log) == lines


async def test_an_append_to_a_paused_server_is_done_once_when_it_goes_on(
    own_server: NatsServer, own_store: StreamStore
) -> None:
    lines = lines_to(3)
    tail = Tail(own_store)
    place = await own_store.log.append(batch_of(lines[:1]), START)
    own_server.signal(signal.SIGSTOP)
    appending = asyncio.ensure_future(own_store.log.append(batch_of(lines[1:2]), place))
    await wait_until(lambda: not own_store.bus.is_connected)
    own_server.signal(signal.SIGCONT)
    await own_store.log.append(batch_of(lines[2:]), await appending)

    assert await tail.until(3) == lines
    assert await replayed(own_store.log) == lines


async def test_many_kills_lose_and_double_nothing(own_server: NatsServer, own_store: StreamStore) -> None:
    lines = lines_to(60)
    tail = Tail(own_store)

    async def write() -> None:
        place = START
        for line in lines:
            place = await own_store.log.append(batch_of([line]), place)

    writing = asyncio.ensure_future(write())
    for seq in (5, 20, 40):
        await tail.until(seq)
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
    await writing

    assert await tail.until(60) == lines
    assert await replayed(own_store.log) == lines


async def test_closing_gives_up_an_append_that_nobody_answers(
    own_server: NatsServer, own_store: StreamStore
) -> None:
    await asyncio.to_thread(own_server.kill)
    appending = asyncio.ensure_future(own_store.log.append(batch_of(lines_to(1)), START))
    # Now it waits for a connection.
    await asyncio.sleep(0)
    await wait_until(lambda: not own_store.bus.is_connected)
    await own_store.log.close()

    with pytest.raises(LogLost, match="closed"):
        await appending


# --- a stream that is not what it was ------------------------------------------------------------


async def test_a_stream_that_has_lost_events_is_noticed(store: StreamStore) -> None:
    place = await store.log.append(batch_of(lines_to(2)), START)
    name = stream_name(shard_of(store.room))
    purged = {"filter": log_subject(store.room)}
    assert "error" not in await store.bus.ask(f"STREAM.PURGE.{name}", purged, timeout_s=API_S)

    with pytest.raises(Deposed, match="lost events"):
        await store.log.append(batch_of(lines_to(3)[2:]), place)


async def test_a_deleted_stream_is_no_full_disk(own_store: StreamStore) -> None:
    name = stream_name(shard_of(own_store.room))
    assert "error" not in await own_store.bus.ask(f"STREAM.DELETE.{name}", {}, timeout_s=API_S)

    with pytest.raises(LogLost, match="not found"):
        await own_store.log.check()


async def test_a_log_with_a_little_space_counts_as_full(
    store: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store.full():
        with pytest.raises(StorageFull, match="NATS"):
            await store.log.check()
        monkeypatch.setattr(stream_log, "RESERVE_BYTES", 10)
        await store.log.check()


# --- following -----------------------------------------------------------------------------------


async def test_news_that_were_missed_are_fetched(store: StreamStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the messages that are passed on, every second one is lost."""
    follow, passed = store.bus.follow, list[object]()

    async def follow_badly(subject: str, on_message: object) -> object:
        def now_and_then(message: object) -> None:
            passed.append(message)
            if len(passed) % 2 == 0:
                on_message(message)  # type: ignore[operator]

        return await follow(subject, now_and_then)

    rests, next_of = list[bool](), stream_log._next

    async def next_noted(news: asyncio.Queue[Any], silence_s: float) -> object:
        rests.append(news.empty())
        return await next_of(news, silence_s)

    monkeypatch.setattr(store.bus, "follow", follow_badly)
    monkeypatch.setattr(stream_log, "_next", next_noted)
    tail, lines, place = Tail(store), lines_to(10), START
    for number in range(0, 10, 2):
        # What is appended before the tail waits for news is read with the past.
        rests.clear()
        await wait_until(lambda: any(rests))
        for line in lines[number : number + 2]:
            place = await store.log.append(batch_of([line]), place)
        assert await tail.until(number + 2) == lines[: number + 2]

    assert len(passed) == 10


async def test_two_buses_follow_one_room(store: StreamStore) -> None:
    other = await Bus.open(store._servers)
    log = StreamLog(other, store.room)
    lines = lines_to(4)
    place = await store.log.append(batch_of(lines[:2]), START)
    place = await log.append(batch_of(lines[2:3]), place)
    await store.log.append(batch_of(lines[3:]), place)
    found = await replayed(log)
    await log.close()
    await other.close()

    assert found == lines
