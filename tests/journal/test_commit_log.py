"""What every log keeps to, whatever its store is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from csp.errors import Broken, Deposed, StorageFull
from csp.journal import Place
from tests.cluster.stream_stores import StreamStore
from tests.journal.log_stores import START, LocalStore, LogStore, Tail, batch_of, replayed
from tests.journal.making import encoded, lines_to, said


@pytest.fixture(params=["file", "stream"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LogStore]:
    is_file = request.param == "file"
    store: LogStore = (
        LocalStore(tmp_path) if is_file else StreamStore(request.getfixturevalue("nats_server").url)
    )
    await store.open()
    yield store
    await store.close()


async def append(store: LogStore, lines: Sequence[bytes], after: Place) -> Place:
    return await store.log.append(batch_of(lines), after)


async def append_each(store: LogStore, lines: Sequence[bytes], after: Place = START) -> Place:
    """Append each line as a batch of its own."""
    for line in lines:
        after = await append(store, [line], after)
    return after


# --- appending -----------------------------------------------------------------------------------


async def test_a_batch_is_at_the_place_that_its_append_returns(store: LogStore) -> None:
    lines = lines_to(5)
    first = await append(store, lines[:2], START)
    second = await append(store, lines[2:], first)

    assert (first.seq, second.seq) == (2, 5)
    assert await replayed(store.log) == lines
    assert await replayed(store.log, first) == lines[2:]
    assert await replayed(store.log, second) == []


async def test_what_was_appended_is_there_after_reopening(store: LogStore) -> None:
    lines = lines_to(4)
    place = await append_each(store, lines[:3])
    await store.reopen()

    assert await replayed(store.log) == lines[:3]
    await append(store, lines[3:], place)
    assert await replayed(store.log) == lines


async def test_an_append_anywhere_but_at_the_end_is_refused(store: LogStore) -> None:
    lines = lines_to(3)
    first = await append(store, lines[:1], START)
    second = await append(store, lines[1:2], first)

    for place in (START, first):
        with pytest.raises(Deposed):
            await store.log.append(batch_of(encoded([said(place.seq + 1, "by another writer")])), place)
    assert await replayed(store.log) == lines[:2]
    await append(store, lines[2:], second)
    assert await replayed(store.log) == lines


async def test_an_append_beyond_the_end_is_refused(store: LogStore) -> None:
    place = await append(store, lines_to(1), START)

    with pytest.raises(Deposed):
        await append(store, lines_to(3)[2:], place._replace(seq=2, mark=place.mark + 1))
    assert await replayed(store.log) == lines_to(1)


async def test_one_of_many_writers_at_the_same_place_succeeds(store: LogStore) -> None:
    place = await append(store, lines_to(1), START)
    rivals = [encoded([said(2, f"from writer {number}")]) for number in range(8)]
    ends = await asyncio.gather(*(append(store, lines, place) for lines in rivals), return_exceptions=True)
    (won,) = [lines for lines, end in zip(rivals, ends, strict=True) if isinstance(end, Place)]

    assert [type(end) for end in ends].count(Deposed) == 7
    assert await replayed(store.log, place) == won


async def test_a_batch_must_begin_where_it_is_appended(store: LogStore) -> None:
    place = await append(store, lines_to(1), START)

    with pytest.raises(Broken, match="seq 1"):
        await store.log.append(batch_of(lines_to(5)[3:]), place)
    assert await replayed(store.log) == lines_to(1)
    await append(store, lines_to(2)[1:], place)


# --- a full store --------------------------------------------------------------------------------


async def test_a_batch_that_does_not_fit_leaves_nothing(store: LogStore) -> None:
    lines = lines_to(3)
    place = await append(store, lines[:1], START)
    async with store.full():
        with pytest.raises(StorageFull) as refused:
            await append(store, lines[1:], place)
        seen = await replayed(store.log)

    assert refused.value.status == 507
    assert refused.value.hint
    assert seen == lines[:1]
    await store.reopen()
    assert await replayed(store.log) == lines[:1]


async def test_a_full_log_goes_on_where_it_was_when_there_is_space(store: LogStore) -> None:
    lines = lines_to(3)
    place = await append(store, lines[:1], START)
    await store.log.check()
    async with store.full():
        for _ in range(2):
            with pytest.raises(StorageFull):
                await append(store, lines[1:], place)
            with pytest.raises(StorageFull):
                await store.log.check()
    await store.log.check()
    await append(store, lines[1:], place)

    assert await replayed(store.log) == lines


async def test_a_tail_sees_nothing_of_what_did_not_fit(store: LogStore) -> None:
    lines = lines_to(3)
    tail = Tail(store)
    place = await append(store, lines[:1], START)
    async with store.full():
        with pytest.raises(StorageFull):
            await append(store, encoded([said(2, "too much"), said(3, "too much")]), place)
    await append(store, lines[1:], place)

    assert await tail.until(3) == lines


# --- reading on ----------------------------------------------------------------------------------


async def test_a_tail_has_what_was_there_and_what_comes(store: LogStore) -> None:
    lines = lines_to(9)
    place = await append(store, lines[:3], START)
    tails = [Tail(store, START), Tail(store, place)]
    place = await append_each(store, lines[3:6], place)
    tails.append(Tail(store, place))
    await append_each(store, lines[6:], place)

    assert [await tail.until(9) for tail in tails] == [lines, lines[3:], lines[6:]]


async def test_a_long_history_is_tailed_without_gaps_while_it_grows(store: LogStore) -> None:
    lines = encoded(said(seq, "x" * 5000) for seq in range(1, 301))
    place = await append(store, lines[:150], START)
    tail = Tail(store)
    await append_each(store, lines[150:], place)

    assert await tail.until(300) == lines


async def test_a_reader_that_goes_away_leaves_the_others_reading(store: LogStore) -> None:
    lines = lines_to(3)
    place = await append(store, lines[:1], START)
    leaving, staying = Tail(store), Tail(store)
    await leaving.until(1)
    await staying.until(1)
    leaving.reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving.reading
    await append(store, lines[1:], place)

    assert await staying.until(3) == lines


# --- closing -------------------------------------------------------------------------------------


async def test_closing_ends_every_reader_after_what_is_there(store: LogStore) -> None:
    lines = lines_to(2)
    await append(store, lines, START)
    tails = [Tail(store), Tail(store)]
    for tail in tails:
        await tail.until(2)
    await store.log.close()
    await asyncio.gather(*(tail.reading for tail in tails))

    assert [tail.lines for tail in tails] == [lines, lines]


async def test_a_closed_log_accepts_nothing(store: LogStore) -> None:
    place = await append(store, lines_to(1), START)
    await store.log.close()

    with pytest.raises(Broken, match="closed"):
        await append(store, lines_to(2)[1:], place)
    await store.reopen()
    assert await replayed(store.log) == lines_to(1)
