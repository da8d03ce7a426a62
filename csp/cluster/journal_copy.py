"""Copy a room's journal between files and clusters, and compare journals.

A copy in a cluster is written batch by batch at the end of the room's log, as a gateway would do it, so it
never overwrites anything. What an interrupted copy has written is known by its writer's name and can be
continued. A copy in a file gets its name when it is complete.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from csp.cluster.bus import Bus
from csp.cluster.names import shard_of
from csp.cluster.setup import REPLICAS, open_stream, stream_info
from csp.cluster.stream_log import StreamLog
from csp.errors import BadInput, LogLost, NotFound, Refused
from csp.fast_start.atomic_files import PRIVATE_FOLDER, create_private, sync_data, sync_folder, write_all
from csp.journal import Batch, Place
from csp.journal.jsonl_journal import JOURNAL_NAME
from csp.journal.line_reader import blocks_forward, intact_seq

#: Names the batches of a copy, which have no gateway.
COPIER: Final = "csp journal copy"
BATCH_BYTES: Final = 128 * 1024
#: How long the servers may take to accept one batch, such as while they elect a leader.
APPEND_S: Final = 60.0
_DRAFT_SUFFIX: Final = ".copy"

#: Called with the number of lines copied or compared so far.
OnProgress = Callable[[int], None]


class Journal(Protocol):
    """A journal that can be read."""

    name: str

    def blocks(self) -> AsyncIterator[Sequence[bytes]]:
        """Yield all complete lines, in order, some at a time."""


class FileJournal:
    """A journal file, or the one in a room's folder; a gateway may be writing it."""

    def __init__(self, path: Path) -> None:
        self.path = path if path.suffix == ".jsonl" else path / JOURNAL_NAME
        self.name = str(self.path)

    async def blocks(self) -> AsyncIterator[Sequence[bytes]]:
        """See `Journal.blocks`."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as exc:
            raise NotFound(f"no journal at {self.name!r}") from exc
        try:
            for _, data in blocks_forward(fd, 0, os.fstat(fd).st_size):
                whole, _, rest = data.rpartition(b"\n")
                if whole:
                    yield whole.split(b"\n")
                if rest:
                    raise BadInput(
                        f"the last line of {self.name!r} is incomplete", "is a gateway writing it? try again"
                    )
        finally:
            os.close(fd)

    async def write(self, source: Journal, on_progress: OnProgress) -> int:
        """Copy a journal to this file, which must not exist; return the number of lines."""
        if self.path.exists():
            raise Refused(f"{self.name!r} exists already", "copy to another place")
        self.path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + _DRAFT_SUFFIX)
        # The rest of an interrupted copy.
        draft.unlink(missing_ok=True)
        fd, size, count = create_private(draft), 0, 0
        try:
            async for lines in source.blocks():
                data = b"\n".join(lines) + b"\n"
                write_all(fd, data, size)
                size, count = size + len(data), count + len(lines)
                on_progress(count)
            sync_data(fd)
            # Unlike a rename, a link never replaces a file that has come into being meanwhile.
            os.link(draft, self.path)
        except FileExistsError as exc:
            raise Refused(f"{self.name!r} exists already", "copy to another place") from exc
        finally:
            os.close(fd)
            draft.unlink(missing_ok=True)
        sync_folder(self.path.parent)
        return count


class _Start(NamedTuple):
    """The end of what is there already: the place, and the number of lines."""

    place: Place
    lines: int


class ClusterJournal:
    """A room in a cluster."""

    def __init__(self, bus: Bus, room: str, name: str) -> None:
        self.name = name
        self._bus = bus
        self._room = room

    async def blocks(self) -> AsyncIterator[Sequence[bytes]]:
        """See `Journal.blocks`."""
        shard = shard_of(self._room)
        if await stream_info(self._bus, shard) is None:
            raise NotFound(f"no room at {self.name}")
        is_empty = True
        async for _, batch in StreamLog(self._bus, self._room).replay(Place(0)):
            if batch.lines:
                is_empty = False
                yield batch.lines
        if is_empty:
            raise NotFound(f"no room at {self.name}")

    async def write(self, source: Journal, on_progress: OnProgress, *, is_resumed: bool = False) -> int:
        """Copy a journal into this room, which must be empty or a part of the same copy; return its lines."""
        await open_stream(self._bus, shard_of(self._room), REPLICAS, or_one=True)
        log = StreamLog(self._bus, self._room)
        start = await self._start(log, source, is_resumed=is_resumed)
        place, count = start.place, start.lines
        async for lines in _batches(_after(source, start.lines)):
            first = _checked_seq(source, lines[0], count + 1)
            if count and first != place.seq + 1:
                raise BadInput(f"line {count + 1} of {source.name!r} is #{first}, expected #{place.seq + 1}")
            for number, line in enumerate(lines[1:], 1):
                if _checked_seq(source, line, count + 1 + number) != first + number:
                    raise BadInput(f"seqs are missing after #{first + number - 1} of {source.name!r}")
            batch = Batch(lines=tuple(lines), first_seq=first, owner=COPIER)
            # A journal that was pruned starts with the base that replaces what came before.
            place = await _append(log, batch, place if count else Place(first - 1, place.mark))
            count += len(lines)
            on_progress(count)
        return count

    async def _start(self, log: StreamLog, source: Journal, *, is_resumed: bool) -> _Start:
        """Return where to go on; raise Refused if something else is there."""
        place, count, theirs = Place(0), 0, _lines(source)
        async with contextlib.aclosing(theirs):
            async for here, batch in log.replay(Place(0)):
                if not is_resumed:
                    hint = "continue an interrupted copy with --resume, or copy to another room"
                    raise Refused(f"{self.name} exists already", hint)
                if batch.owner != COPIER:
                    raise Refused(f"{self.name} has been opened by a gateway", "copy to another room")
                for line in batch.lines:
                    if await anext(theirs, None) != line:
                        raise Refused(f"{self.name} is not a part of {source.name!r}", "copy to another room")
                place, count = here, count + len(batch.lines)
        return _Start(place, count)


async def _append(log: StreamLog, batch: Batch, place: Place) -> Place:
    appending = asyncio.ensure_future(log.append(batch, place))
    done, _ = await asyncio.wait([appending], timeout=APPEND_S)
    if not done:
        await log.close()
        with contextlib.suppress(LogLost):
            return await appending
        raise LogLost("the NATS servers do not answer", "continue the copy later with --resume")
    return appending.result()


def _checked_seq(source: Journal, line: bytes, number: int) -> int:
    seq = intact_seq(line)
    if seq is None:
        raise BadInput(f"line {number} of {source.name!r} is damaged", "see: csp doctor --journal")
    return seq


async def _lines(source: Journal) -> AsyncGenerator[bytes, None]:
    async for lines in source.blocks():
        for line in lines:
            yield line


async def _after(source: Journal, count: int) -> AsyncIterator[Sequence[bytes]]:
    """Yield the lines after the first `count`."""
    async for lines in source.blocks():
        skipped, count = min(count, len(lines)), max(0, count - len(lines))
        if skipped < len(lines):
            yield lines[skipped:]


async def _batches(blocks: AsyncIterator[Sequence[bytes]]) -> AsyncIterator[list[bytes]]:
    """Yield lines in batches of about BATCH_BYTES, or of one line that is longer."""
    found: list[bytes] = []
    size = 0
    async for lines in blocks:
        for line in lines:
            if found and size + len(line) > BATCH_BYTES:
                yield found
                found, size = [], 0
            found.append(line)
            size += len(line) + 1
    if found:
        yield found


# --- comparing -----------------------------------------------------------------------------------


class Difference(NamedTuple):
    """The first line in which a journal differs from the first one; None where it has ended."""

    name: str
    number: int
    expected: bytes | None
    found: bytes | None


class Comparison(NamedTuple):
    """The number of lines that all journals have in common, and where they differ."""

    lines: int
    differences: list[Difference]


class _Reader:
    """Reads a journal some lines at a time."""

    def __init__(self, journal: Journal) -> None:
        self.name = journal.name
        self.lines: Sequence[bytes] = ()
        self._blocks = journal.blocks()

    async def fill(self) -> bool:
        """Read on if everything was used; return whether there are lines."""
        while not self.lines:
            found = await anext(self._blocks, None)
            if found is None:
                return False
            self.lines = found
        return True


async def compare(journals: Sequence[Journal], on_progress: OnProgress) -> Comparison:
    """Compare journals line by line, up to the first difference."""
    readers = [_Reader(journal) for journal in journals]
    number = 0
    while True:
        filled = [await reader.fill() for reader in readers]
        common = min(len(reader.lines) for reader in readers)
        same = _common(readers, common)
        number += same
        if same < common or not all(filled):
            return Comparison(number, _differences(readers, number, same) if any(filled) else [])
        for reader in readers:
            reader.lines = reader.lines[common:]
        on_progress(number)


def _common(readers: Sequence[_Reader], common: int) -> int:
    """Return how many of the first lines are the same in all readers."""
    first = list(readers[0].lines[:common])
    if all(first == list(reader.lines[:common]) for reader in readers[1:]):
        return common
    rows = zip(*(reader.lines[:common] for reader in readers), strict=True)
    return next(at for at, row in enumerate(rows) if len(set(row)) > 1)


def _differences(readers: Sequence[_Reader], number: int, at: int) -> list[Difference]:
    lines = [reader.lines[at] if at < len(reader.lines) else None for reader in readers]
    return [
        Difference(reader.name, number + 1, lines[0], line)
        for reader, line in zip(readers[1:], lines[1:], strict=True)
        if line != lines[0]
    ]
