"""The one writer of a room: when it takes snapshots, what it does when the disk fails."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from csp.errors import StorageFailed, StorageFull
from csp.gateway import room_writer as writer_module
from csp.gateway.room_writer import RoomWriter
from csp.journal import DiskThread, JsonlJournal, LocalLog, snapshots
from csp.journal.committed_journal import JournalView
from csp.protocol.enums import HUMAN
from csp.protocol.notices import NoticeCode
from csp.room.commands import Notice
from tests.waiting import wait_until

Open = Callable[..., RoomWriter]


class Saved:
    """The snapshots that were saved, as (seq, size, whether the journal was to be synced first)."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int, bool]] = []

    def save(
        self,
        folder: Path,
        seq: int,
        state: bytes,
        *,
        sync: Callable[[], None] | None = None,
        view: JournalView | None = None,
    ) -> None:
        self.all.append((seq, len(state), sync is not None))

    @property
    def seqs(self) -> list[int]:
        return [seq for seq, _, _ in self.all]


def a_writer(folder: Path, durability: str = "fsync", publish: Any = lambda committed: None) -> RoomWriter:
    journal, disk = JsonlJournal.open(folder), DiskThread()
    commit_log = LocalLog(journal, disk, is_synced=durability == "fsync")
    return RoomWriter(journal, commit_log, disk, durability, lambda: 5.0, publish)


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> Saved:
    saved = Saved()
    monkeypatch.setattr(snapshots, "save", saved.save)
    monkeypatch.setattr(writer_module, "SNAPSHOT_EVERY", 3)
    monkeypatch.setattr(writer_module, "PROBE_S", 0.0)
    return saved


@pytest.fixture
async def open_writer(tmp_path: Path) -> AsyncIterator[Open]:
    opened: list[RoomWriter] = []

    def make(durability: str = "fsync", publish: Any = lambda committed: None) -> RoomWriter:
        writer = a_writer(tmp_path, durability, publish)
        opened.append(writer)
        return writer

    yield make
    for writer in opened:
        if writer.broken.done():
            writer.broken.exception()
        await writer.close()


async def say(writer: RoomWriter, text: str = "x") -> None:
    await writer.submit(Notice(words=NoticeCode.JOURNAL_REPAIRED(warning=text), target=HUMAN))


def the_size_of_a_snapshot_is(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(writer_module, "dump", lambda room: b"s" * size)


async def test_a_snapshot_is_taken_every_so_many_events(
    open_writer: Open, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_size_of_a_snapshot_is(monkeypatch, 1)
    writer = open_writer()
    for _ in range(7):
        await say(writer)
    await writer._disk.settle()

    assert saved.seqs == [3, 6]


async def test_a_large_snapshot_is_taken_less_often(
    open_writer: Open, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_size_of_a_snapshot_is(monkeypatch, 1000)
    writer = open_writer()
    for _ in range(3):
        await say(writer)
    for _ in range(3):
        await say(writer)
    await writer._disk.settle()
    early = saved.seqs
    await say(writer, "y" * 2000)
    await writer._disk.settle()

    assert (early, saved.seqs) == ([3], [3, 7])


@pytest.mark.parametrize(("durability", "is_synced"), [("fsync", False), ("flush", True), ("none", True)])
async def test_a_snapshot_does_not_outlive_what_it_was_made_from(
    open_writer: Open, saved: Saved, durability: str, is_synced: bool
) -> None:
    writer = open_writer(durability)
    for _ in range(3):
        await say(writer)
    await writer.settle()
    await wait_until(lambda: saved.all)

    assert [sync for _, _, sync in saved.all] == [is_synced]


@pytest.mark.parametrize(("count", "is_writable", "seqs"), [(2, True, [2]), (2, False, []), (0, True, [])])
async def test_a_room_with_news_saves_its_last_state_when_it_is_closed(
    tmp_path: Path, saved: Saved, count: int, is_writable: bool, seqs: list[int]
) -> None:
    writer = a_writer(tmp_path)
    for _ in range(count):
        await say(writer)
    writer.is_writable = is_writable
    await writer.close()

    assert saved.seqs == seqs


async def test_an_action_alone_is_followed_by_a_snapshot(open_writer: Open, saved: Saved) -> None:
    writer, done = open_writer(), list[int]()
    await say(writer)
    await writer.alone(lambda: done.append(len(saved.all)))
    await writer._disk.settle()
    await say(writer)

    assert (done, saved.seqs) == ([0], [1])
    assert writer.safe_seq == 2


async def test_what_comes_during_an_action_alone_waits_and_is_written_after_it(
    open_writer: Open, saved: Saved
) -> None:
    writer, order = open_writer(), list[str]()

    def action() -> None:
        waiting = writer.submit(Notice(words=NoticeCode.JOURNAL_REPAIRED(warning="meanwhile"), target=HUMAN))
        waiting.add_done_callback(lambda _: order.append("written"))
        order.append(f"at {writer.journal.last_seq}")

    await say(writer)
    await writer.alone(action)
    await writer.settle()

    assert order == ["at 1", "written"]
    # The room was ahead of the journal, so what it is now must not be taken for what is on disk.
    assert saved.seqs == []


async def test_a_sync_that_fails_for_any_other_reason_stops_the_room(
    open_writer: Open, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    writer = open_writer(publish=told.extend)

    def sync() -> None:
        raise ValueError("what is this")

    monkeypatch.setattr(writer.journal, "sync", sync)
    with pytest.raises(StorageFailed, match="the journal cannot be written: what is this"):
        await say(writer)

    assert (told, writer.is_writable) == ([], False)
    assert isinstance(writer.broken.exception(), StorageFailed)
    with pytest.raises(StorageFull):
        writer.submit(Notice(words=NoticeCode.JOURNAL_REPAIRED(warning="again"), target=HUMAN))


async def test_a_full_disk_is_tried_until_it_has_room_again(
    open_writer: Open, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_writer()
    await say(writer)
    answers = [True, False, False]
    monkeypatch.setattr(writer.journal, "can_grow", answers.pop)
    sync = writer.journal.sync

    def fail() -> None:
        monkeypatch.setattr(writer.journal, "sync", sync)
        raise StorageFull("full")

    monkeypatch.setattr(writer.journal, "sync", fail)
    with pytest.raises(StorageFull, match="read-only"):
        await say(writer)
    seq = writer.room.seq
    await wait_until(lambda: writer.is_writable)
    await say(writer)

    assert (seq, answers, writer.safe_seq, writer._since_snapshot) == (1, [], 2, 2)


async def test_a_snapshot_of_what_was_taken_back_is_never_saved(
    open_writer: Open, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_writer()
    await say(writer)
    await say(writer)
    sync = writer.journal.sync

    def fail() -> None:
        monkeypatch.setattr(writer.journal, "sync", sync)
        raise StorageFull("full")

    monkeypatch.setattr(writer.journal, "sync", fail)
    with pytest.raises(StorageFull):
        await say(writer)
    await wait_until(lambda: writer.is_writable)
    monkeypatch.setattr(writer_module, "SNAPSHOT_EVERY", 100)
    await say(writer)
    await writer._disk.settle()

    assert saved.seqs == []


async def test_a_snapshot_that_failed_is_logged(
    open_writer: Open, saved: Saved, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no room")

    writer = open_writer()
    await writer.alone(lambda: None)
    await writer._disk.settle()
    before = list(caplog.messages)
    monkeypatch.setattr(snapshots, "save", fail)
    await writer.alone(lambda: None)
    await writer._disk.settle()
    await wait_until(lambda: caplog.messages)

    assert (before, caplog.messages) == ([], ["snapshot failed"])
