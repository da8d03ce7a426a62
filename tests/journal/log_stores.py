"""The logs under test, each with its store: what a test does to it beside reading and appending."""

import asyncio
import resource
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import msgspec

from csp.journal import Batch, DiskThread, JsonlJournal, LocalLog, Log, Place
from csp.journal.rewrite import finish, prepare, pruning
from csp.protocol.enums import ALL, SYSTEM, MessageId
from csp.protocol.events import PrunedBase, encode_event
from tests.waiting import wait_until

START: Final = Place(0)
_SPARE_BYTES: Final = 100


class LogStore(Protocol):
    """The store of one log, and the log itself, which is open."""

    log: Log

    async def open(self) -> None:
        """Open the log."""

    async def reopen(self) -> None:
        """Close the log and open it again."""

    def full(self) -> AbstractAsyncContextManager[None]:
        """Leave no space for a line of more than a hundred bytes within the block."""

    async def close(self) -> None:
        """Close the log."""


class LocalStore:
    """A journal file, which the limit of a process for its files can keep from growing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def open(self) -> None:
        self.journal, self._disk = JsonlJournal.open(self._folder), DiskThread()
        self.log: Log = LocalLog(self.journal, self._disk, is_synced=True)

    async def reopen(self) -> None:
        await self.close()
        await self.open()

    def prune(self, base: bytes) -> None:
        """Replace everything up to an event by a base with its seq."""
        finish(prepare(self.journal, pruning(base_seq(base) + 1, base)))

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.journal.view.end + _SPARE_BYTES, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    async def close(self) -> None:
        await self.log.close()
        await self._disk.close()
        self.journal.close()


class Tail:
    """A reader that never ends by itself."""

    def __init__(self, store: LogStore, after: Place = START) -> None:
        self.lines: list[bytes] = []
        self.place = after
        self.reading = asyncio.ensure_future(self._read(store))

    async def _read(self, store: LogStore) -> None:
        async for place, batch in store.log.tail(self.place):
            self.lines += batch.lines
            self.place = place

    async def until(self, seq: int) -> list[bytes]:
        await wait_until(lambda: self.place.seq >= seq, what=f"event {seq}")
        return self.lines


def base_line(seq: int, room_id: str = "") -> bytes:
    """Return the line that replaces everything up to an event."""
    head = (seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, ALL, "default", "")
    return encode_event(PrunedBase(*head, state=msgspec.Raw(b"{}")), room_id)


def base_seq(line: bytes) -> int:
    """Return the seq of a line."""
    return int(msgspec.json.decode(line)["seq"])


def batch_of(lines: Sequence[bytes]) -> Batch:
    """Return lines as one batch."""
    return Batch(lines=tuple(lines), first_seq=base_seq(lines[0]))


async def replayed(log: Log, after: Place = START) -> list[bytes]:
    """Return all committed lines after a place; each batch must be where its place says."""
    found: list[bytes] = []
    async for place, batch in log.replay(after):
        found += batch.lines
        assert [base_seq(line) for line in batch.lines] == list(range(batch.first_seq, place.seq + 1))
    return found
