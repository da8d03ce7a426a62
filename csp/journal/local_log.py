"""The log of a room that has only one gateway: its journal file."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from csp.errors import Broken, Deposed, StorageFailed, StorageFull
from csp.journal.commit_log import Batch, Place
from csp.journal.committed_journal import Cursor
from csp.journal.disk_thread import DiskThread
from csp.journal.jsonl_journal import MOVED, JsonlJournal
from csp.journal.line_reader import BLOCK_BYTES, type_and_seq

_FULL: Final = ("the disk is full; the room is read-only", "free some space; the room continues by itself")


class LocalLog:
    """A journal file as a log: a batch is committed when it is in the file, and with `is_synced` on the disk.

    The lock of the file keeps other writers away.
    """

    def __init__(self, journal: JsonlJournal, disk: DiskThread, *, is_synced: bool) -> None:
        self._journal = journal
        self._disk = disk
        self._is_synced = is_synced
        self._is_closed = False
        #: Set by the next commit; made by the first tail that waits for it.
        self._news: asyncio.Event | None = None

    async def append(self, batch: Batch, after: Place) -> Place:
        """See `Log.append`."""
        journal = self._journal
        if self._is_closed:
            raise Broken("the journal is closed")
        if after.seq != journal.last_seq:
            raise Deposed(f"the journal is at seq {journal.last_seq}, not at {after.seq}")
        try:
            journal.append(batch.lines, batch.first_seq)
            if self._is_synced and batch.lines:
                await self._disk.run(journal.sync)
        except StorageFull as exc:
            journal.rollback()
            raise self._refusal() from exc
        except Exception as exc:
            # Nothing was acknowledged, and a disk that has failed once may report lost bytes as written.
            with contextlib.suppress(Broken):
                journal.rollback()
            if isinstance(exc, Broken):
                raise
            raise StorageFailed(f"the journal cannot be written: {exc}") from exc
        journal.commit()
        self._wake()
        return Place(journal.last_seq)

    async def check(self) -> None:
        """See `Log.check`."""
        if not await self._disk.run(self._journal.can_grow):
            raise self._refusal()

    async def replay(self, after: Place) -> AsyncIterator[tuple[Place, Batch]]:
        """See `Log.replay`."""
        seq, is_end = after.seq, False
        cursor: Cursor | None = None
        while not is_end:
            view = self._journal.view
            chunk = await asyncio.to_thread(view.read_after, seq, BLOCK_BYTES, cursor)
            for batch in _batches(chunk.lines):
                yield Place(batch.first_seq + len(batch.lines) - 1), batch
            seq, cursor, is_end = chunk.last_seq, chunk.cursor, chunk.end

    async def tail(self, after: Place) -> AsyncIterator[tuple[Place, Batch]]:
        """See `Log.tail`."""
        here = after
        while not self._is_closed:
            # Before reading, so that no commit is missed.
            news = self._news = self._news or asyncio.Event()
            async for place, batch in self.replay(here):
                yield place, batch
                here = place
            await news.wait()

    async def close(self) -> None:
        """See `Log.close`."""
        self._is_closed = True
        self._wake()

    def _refusal(self) -> StorageFull:
        return StorageFull(*(_FULL if self._journal.is_in_place() else MOVED))

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None


def _batches(lines: Iterable[bytes]) -> Iterator[Batch]:
    """Yield lines as batches of consecutive seqs; damaged and pruned lines leave gaps."""
    run: list[bytes] = []
    first = following = 0
    for line in lines:
        head = type_and_seq(line)
        assert head is not None, "an intact line has a seq"
        if run and head[1] != following:
            yield Batch(lines=tuple(run), first_seq=first)
            run = []
        if not run:
            first = head[1]
        run.append(line)
        following = head[1] + 1
    if run:
        yield Batch(lines=tuple(run), first_seq=first)
