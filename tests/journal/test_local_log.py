"""A journal file as the log of a room: when a batch counts, and what a failing disk leaves of it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from csp.errors import Broken, StorageFailed, StorageFull
from csp.journal import DiskThread, JsonlJournal, LocalLog, Place
from tests.journal.log_stores import START, LocalStore, Tail, base_line, batch_of, replayed
from tests.journal.making import lines_to
from tests.waiting import wait_until


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalStore]:
    store = LocalStore(tmp_path / "room")
    await store.open()
    yield store
    await store.close()


def file_of(store: LocalStore) -> bytes:
    return store.journal.path.read_bytes()


async def test_a_batch_counts_when_it_is_on_the_disk(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, may_sync = store.journal.sync, threading.Event()

    def slow_sync() -> None:
        assert may_sync.wait(120), "nobody let the disk go on"
        sync()

    monkeypatch.setattr(store.journal, "sync", slow_sync)
    appending = asyncio.ensure_future(store.log.append(batch_of(lines_to(2)), START))
    await wait_until(lambda: file_of(store))
    seen = await replayed(store.log)
    may_sync.set()

    assert await appending == Place(2)
    assert (seen, await replayed(store.log)) == ([], lines_to(2))


async def test_a_log_that_does_not_sync_commits_without_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, disk = JsonlJournal.open(tmp_path), DiskThread()
    monkeypatch.setattr(journal, "sync", lambda: pytest.fail("synced"))
    log = LocalLog(journal, disk, is_synced=False)
    place = await log.append(batch_of(lines_to(2)), START)
    await disk.close()
    journal.close()

    assert place == Place(2)
    assert journal.path.read_bytes().splitlines() == lines_to(2)


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (StorageFull("full"), StorageFull),
        (StorageFailed("bad sector"), StorageFailed),
        (ValueError("what is this"), StorageFailed),
    ],
)
async def test_a_batch_that_was_not_synced_is_not_in_the_file(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, failure: Exception, raised: type[Broken]
) -> None:
    place = await store.log.append(batch_of(lines_to(1)), START)
    before = file_of(store)

    def fail() -> None:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(store.journal, "sync", fail)
        with pytest.raises(raised):
            await store.log.append(batch_of(lines_to(3)[1:]), place)
    after = file_of(store)
    await store.log.append(batch_of(lines_to(2)[1:]), place)

    assert after == before
    assert await replayed(store.log) == lines_to(2)


async def test_a_journal_that_was_moved_is_not_called_a_full_disk(store: LocalStore) -> None:
    store.journal.path.rename(store.journal.path.with_name("away"))

    for refused in (store.log.append(batch_of(lines_to(1)), START), store.log.check()):
        with pytest.raises(StorageFull, match="deleted, moved or cut"):
            await refused


async def test_a_damaged_line_is_a_gap_between_two_batches(store: LocalStore) -> None:
    lines = lines_to(5)
    await store.log.append(batch_of(lines), START)
    damaged = file_of(store).replace(b"number 3", b"number 8")
    store.journal.path.write_bytes(damaged)
    found = [(place.seq, batch.first_seq, len(batch.lines)) async for place, batch in store.log.replay(START)]

    assert found == [(2, 1, 2), (5, 4, 2)]


# --- pruning -------------------------------------------------------------------------------------


async def append_each(store: LocalStore, lines: Sequence[bytes], after: Place = START) -> Place:
    """Append each line as a batch of its own."""
    for line in lines:
        after = await store.log.append(batch_of([line]), after)
    return after


async def test_a_reader_at_the_end_notices_no_pruning(store: LocalStore) -> None:
    lines = lines_to(6)
    place = await append_each(store, lines[:4])
    tail = Tail(store)
    await tail.until(4)
    store.prune(base_line(3))
    await append_each(store, lines[4:], place)

    assert await tail.until(6) == lines


async def test_a_reader_behind_a_pruning_gets_the_base_instead(store: LocalStore) -> None:
    lines = lines_to(5)
    place = await append_each(store, lines[:4])
    store.prune(base_line(3))
    tail = Tail(store, Place(1))
    await append_each(store, lines[4:], place)

    assert await tail.until(5) == [base_line(3), *lines[3:]]
    assert await replayed(store.log) == [base_line(3), *lines[3:]]
    assert await replayed(store.log, place) == lines[4:]
