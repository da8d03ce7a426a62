"""Text is taken out of a stream: nothing of it remains in the files, and readers get the patch instead."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from csp.cluster.removal import StreamRemoval
from csp.cluster.setup import API_S
from csp.cluster.stream_log import StreamLog
from csp.errors import Broken, LogLost
from csp.journal import Place
from csp.journal.rewrite import redaction
from csp.protocol.enums import MessageId
from tests.cluster.nats_servers import NatsServer
from tests.cluster.searching import files_with
from tests.cluster.stream_stores import StreamStore
from tests.journal.log_stores import START, Tail, base_line, batch_of, replayed
from tests.journal.making import encoded, said
from tests.waiting import wait_until

SECRET = "the-password-is-swordfish"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
async def store(server: NatsServer) -> AsyncIterator[StreamStore]:
    store = StreamStore(server.url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def removal(store: StreamStore) -> StreamRemoval:
    return StreamRemoval(store.bus, store.room)


def lines_with_secrets(*seqs: int, to: int = 12) -> list[bytes]:
    return encoded(said(seq, f"{SECRET} {seq}" if seq in seqs else "") for seq in range(1, to + 1))


async def fill(store: StreamStore, lines: Sequence[bytes], size: int = 3) -> list[Place]:
    """Write lines in batches of `size`; return the places after them."""
    places = [START]
    for at in range(0, len(lines), size):
        places.append(await store.log.append(batch_of(lines[at : at + size]), places[-1]))
    return places


def redacted(lines: Sequence[bytes], *seqs: int) -> list[bytes]:
    """Return lines as they are after messages were redacted."""
    change = redaction([MessageId(f"m-{seq}") for seq in seqs]).change
    return [change(seq, line) or b"" for seq, line in enumerate(lines, 1)]


async def redact(removal: StreamRemoval, seq: int) -> None:
    await removal.replace(seq, redaction([MessageId(f"m-{seq}")]).change)


def on_disk(folder: Path) -> bool:
    """Return whether any file of the server contains the text."""
    return bool(files_with(SECRET.encode(), folder))


# --- redaction -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", [1, 5, 6, 9])
async def test_a_text_is_gone_from_the_log_and_from_the_disk(
    store: StreamStore, removal: StreamRemoval, tmp_path: Path, seq: int
) -> None:
    lines = lines_with_secrets(seq)
    await fill(store, lines)
    assert on_disk(tmp_path / "nats")
    await redact(removal, seq)

    assert await replayed(store.log) == redacted(lines, seq)
    await wait_until(lambda: not on_disk(tmp_path / "nats"))


async def test_several_texts_of_one_batch_go_one_after_the_other(
    store: StreamStore, removal: StreamRemoval, tmp_path: Path
) -> None:
    lines = lines_with_secrets(4, 5, 6, 7)
    await fill(store, lines)
    for seq in (5, 4, 7, 6):
        await redact(removal, seq)
        # A gateway that does not know that it was done does it again.
        await redact(removal, seq)

    assert await replayed(store.log) == redacted(lines, 4, 5, 6, 7)
    await wait_until(lambda: not on_disk(tmp_path / "nats"))


async def test_a_reader_gets_the_patch_from_wherever_it_goes_on(
    store: StreamStore, removal: StreamRemoval
) -> None:
    lines = lines_with_secrets(5)
    places = await fill(store, lines)
    await redact(removal, 5)
    wanted = redacted(lines, 5)

    for place in places:
        assert await replayed(store.log, place) == wanted[place.seq :]
    for seq in range(12):
        assert await replayed(store.log, Place(seq)) == wanted[seq:]


async def test_the_place_and_the_writer_of_a_batch_stay(store: StreamStore, removal: StreamRemoval) -> None:
    lines = lines_with_secrets(5)
    places = await fill(store, lines)
    before = [(place, batch.owner, batch.epoch) async for place, batch in store.log.replay(START)]
    await redact(removal, 5)
    after = [(place, batch.owner, batch.epoch) async for place, batch in store.log.replay(START)]

    assert after == before
    assert [place for place, _, _ in after] == places[1:]


async def test_a_room_goes_on_while_and_after_text_is_removed(
    store: StreamStore, removal: StreamRemoval
) -> None:
    lines = lines_with_secrets(5, to=18)
    places, tail = await fill(store, lines[:12]), Tail(store)
    await tail.until(12)
    late = Tail(store, places[1])
    await redact(removal, 5)
    place = places[-1]
    for line in lines[12:]:
        place = await store.log.append(batch_of([line]), place)

    assert (await tail.until(18))[:12] == lines[:12]
    assert len(await late.until(18)) == 15
    assert await replayed(StreamLog(store.bus, store.room)) == redacted(lines, 5)


async def test_what_was_crashed_out_of_is_finished_by_the_next(
    store: StreamStore, removal: StreamRemoval, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The patch is there, and the original still is."""
    lines = lines_with_secrets(5)
    await fill(store, lines)
    with monkeypatch.context() as patch:

        async def crash(_: StreamRemoval, sequence: int) -> None:
            raise LogLost("killed")

        patch.setattr(StreamRemoval, "_delete", crash)
        with pytest.raises(LogLost):
            await redact(removal, 5)
    assert await replayed(store.log) == lines
    await redact(StreamRemoval(store.bus, store.room), 5)

    assert await replayed(store.log) == redacted(lines, 5)
    await wait_until(lambda: not on_disk(tmp_path / "nats"))


async def test_a_batch_that_is_lost_is_a_hole_that_is_said(store: StreamStore) -> None:
    places = await fill(store, lines_with_secrets(5))
    stream = store.log._stream  # type: ignore[attr-defined]
    await store.bus.ask(f"STREAM.MSG.DELETE.{stream}", {"seq": places[2].mark}, timeout_s=API_S)

    with pytest.raises(LogLost, match="has a hole: 7 follows 3"):
        await replayed(store.log)


# --- pruning -------------------------------------------------------------------------------------


async def found_after(log: StreamLog, place: Place) -> list[bytes]:
    return [line async for _, batch in log.replay(place) for line in batch.lines]


@pytest.mark.parametrize("before", [2, 4, 5, 6, 9])
async def test_everything_before_an_event_is_replaced_by_the_base(
    store: StreamStore, removal: StreamRemoval, tmp_path: Path, before: int
) -> None:
    lines = lines_with_secrets(*range(1, before))
    places = await fill(store, lines)
    base = base_line(before - 1)
    await removal.cut(before, base)
    await removal.cut(before, base)
    log = StreamLog(store.bus, store.room)
    wanted = [base, *lines[before - 1 :]]

    assert await removal.base(before) == await removal.wait_for_base(before) == base
    assert await found_after(log, START) == wanted
    for place in [*places, *map(Place, range(12))]:
        is_behind = place.seq < before - 1
        assert await found_after(log, place) == (wanted if is_behind else lines[place.seq :])
    await wait_until(lambda: not on_disk(tmp_path / "nats"))
    await log.append(batch_of(encoded([said(13)])), places[-1])


async def test_a_room_is_pruned_again_after_redactions(
    store: StreamStore, removal: StreamRemoval, tmp_path: Path
) -> None:
    lines = lines_with_secrets(5, 7, 8, 9)
    await fill(store, lines)
    await redact(removal, 8)
    await removal.cut(3, base_line(2))
    await redact(removal, 5)
    assert await found_after(StreamLog(store.bus, store.room), START) == [
        base_line(2),
        *redacted(lines, 5, 8)[2:],
    ]
    await removal.cut(9, base_line(8))
    await redact(removal, 9)
    assert await found_after(StreamLog(store.bus, store.room), START) == [
        base_line(8),
        *redacted(lines, 9)[8:],
    ]
    await wait_until(lambda: not on_disk(tmp_path / "nats"))


async def test_the_last_batch_stays_until_another_follows(store: StreamStore, removal: StreamRemoval) -> None:
    lines = lines_with_secrets(11)
    places = await fill(store, lines)
    for attempt in (redact(removal, 11), removal.cut(11, base_line(10))):
        with pytest.raises(LogLost, match="cannot be replaced yet"):
            await attempt
    assert await replayed(store.log) == lines
    await store.log.append(batch_of(encoded([said(13)])), places[-1])
    await redact(removal, 11)
    await removal.cut(12, base_line(11))

    assert await found_after(StreamLog(store.bus, store.room), START) == [
        base_line(11),
        *lines[11:],
        *encoded([said(13)]),
    ]


async def test_what_is_not_there_cannot_be_kept(store: StreamStore, removal: StreamRemoval) -> None:
    await fill(store, lines_with_secrets())
    with pytest.raises(Broken, match="has no event 13"):
        await removal.cut(13, base_line(12))

    assert await removal.base(13) is None
    waiting = asyncio.ensure_future(removal.wait_for_base(5))
    await removal.cut(5, base_line(4))
    assert await waiting == base_line(4)
