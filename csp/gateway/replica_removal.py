"""Remove text from a room that several gateways serve.

The event of a removal is the promise. Every gateway that reads it rewrites its mirror, at its next start if
it was off; the owner also takes the text out of the stream. A file notes how far both are done, so what was
interrupted is done later, by the next owner if need be.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from csp.cluster.removal import StreamRemoval
from csp.errors import Broken
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.gateway.pruned_journal import base_line
from csp.journal import JsonlJournal, rewrite
from csp.journal.history_query import event_of
from csp.journal.line_reader import intact_seq, type_and_seq
from csp.journal.rewrite import Transform
from csp.protocol import events

if TYPE_CHECKING:
    from csp.cluster.node import ClusterRoom
    from csp.journal.history import History

log = logging.getLogger(__name__)

_NAME: Final = "removals.json"
_TYPES: Final = frozenset({b"redacted", b"pruned"})
_RETRY_S: Final = 1.0
#: How long a start waits for the base of a pruned room before it continues.
_START_S: Final = 10.0
_AGAIN_S: Final = 0.2

Removal = events.Redacted | events.Pruned


class Rewriter(Protocol):
    """The parts of the gateway that a removal uses."""

    history: "History"
    rewrite_lock: asyncio.Lock

    @property
    def journal(self) -> JsonlJournal: ...
    @property
    def is_leading(self) -> bool: ...
    async def replace_journal(self, prepared: rewrite.Rewrite, pruned_before: int) -> None: ...


class _Done(msgspec.Struct):
    """The events up to which removals are done in the mirror and in the stream."""

    mirror: int = 0
    stream: int = 0


class ReplicaRemovals:
    """Does in the mirror and in the stream what the events of the room promise."""

    def __init__(self, gateway: Rewriter, cluster: "ClusterRoom", folder: Path) -> None:
        self._gateway = gateway
        self._stream = StreamRemoval(cluster.node.bus, cluster.name)
        self._path = folder / _NAME
        self._done = _read(self._path)
        self._due = asyncio.Event()

    def observe(self, news: Iterable[events.AnyEvent]) -> None:
        """Begin with the removals among new events."""
        if any(isinstance(event, Removal) for event in news):
            self._due.set()

    def look(self) -> None:
        """Look for what an earlier owner has left undone."""
        self._due.set()

    async def start(self) -> None:
        """Do what was promised while this gateway was off."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_START_S), self._gateway.rewrite_lock:
                await self.settle()
        self._due.set()

    async def work(self) -> None:
        """Do what is due, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                async with self._gateway.rewrite_lock:
                    await self.settle()
            except Broken as error:
                log.warning("removal postponed", extra={"problem": error.message})
                self._due.set()
                await asyncio.sleep(_RETRY_S)

    async def remove(self) -> None:
        """Do everything that is promised so far, now if possible; call it with the lock held."""
        try:
            await self.settle()
        except Broken as error:
            log.warning("removal postponed", extra={"problem": error.message})
            self._due.set()

    async def settle(self) -> None:
        """Do everything that is promised so far; call it with the lock held."""
        await self._settle_mirror()
        if self._gateway.is_leading:
            await self._settle_stream()

    # --- the mirror ------------------------------------------------------------------------------

    async def _settle_mirror(self) -> None:
        journal = self._gateway.journal
        due, end = await asyncio.to_thread(removals_after, journal, self._done.mirror)
        ids = [event.message for event in due if isinstance(event, events.Redacted)]
        before = _last_cut(due)
        if before <= _first_seq(journal) + 1:
            before = 0
        if ids or before:
            transform = rewrite.redaction(ids)
            if before:
                transform = _both(transform, rewrite.pruning(before, await self._base(before)))
            prepared = await asyncio.to_thread(rewrite.prepare, journal, transform)
            await self._gateway.replace_journal(prepared, before)
            log.info("text removed from the journal", extra={"messages": len(ids), "before": before})
        self._save(mirror=end)

    async def _base(self, before: int) -> bytes:
        """Return the base that the owner has published; as the owner, publish it."""
        while True:
            if self._gateway.is_leading:
                await self._stream.cut(
                    before, await asyncio.to_thread(base_line, self._gateway.journal, before)
                )
            if (found := await self._stream.base(before)) is not None:
                return found
            await asyncio.sleep(_AGAIN_S)

    # --- the stream ------------------------------------------------------------------------------

    async def _settle_stream(self) -> None:
        journal = self._gateway.journal
        due, end = await asyncio.to_thread(removals_after, journal, self._done.stream)
        if before := _last_cut(due):
            base = next(journal.view.lines_after(0))
            if intact_seq(base) == before - 1:
                await self._stream.cut(before, base)
        for event in due:
            if not isinstance(event, events.Redacted):
                continue
            found = await self._gateway.history.find(event.message)
            if found is not None:
                await self._stream.replace(found.event.seq, rewrite.redaction([event.message]).change)
        self._save(stream=end)

    def _save(self, **done: int) -> None:
        changed = msgspec.structs.replace(self._done, **done)
        if changed == self._done:
            return
        self._done = changed
        try:
            replace_file(self._path, msgspec.json.encode(changed))
        except OSError as exc:
            # It only causes a second rewrite, which changes nothing.
            log.warning("removals not noted", extra={"path": str(self._path), "problem": str(exc)})


def removals_after(journal: JsonlJournal, seq: int) -> tuple[list[Removal], int]:
    """Return the removals that are promised after an event, and the last event."""
    found: list[Removal] = []
    view = journal.view
    for line in view.lines_after(seq):
        head = type_and_seq(line)
        if head is not None and head[0] in _TYPES:
            event = event_of(line)
            if isinstance(event, Removal):
                found.append(event)
    return found, view.seq


def _last_cut(due: Iterable[Removal]) -> int:
    return max((event.before for event in due if isinstance(event, events.Pruned)), default=0)


def _first_seq(journal: JsonlJournal) -> int:
    """Return the seq that the base of a pruned journal has; 0 without one."""
    line = next(journal.view.lines_after(0), b"")
    head = type_and_seq(line)
    return head[1] if head is not None and head[0] == b"base" else 0


def _both(redaction: Transform, pruning: Transform) -> Transform:
    def change(seq: int, line: bytes) -> bytes | None:
        kept = pruning.change(seq, line)
        return None if kept is None else redaction.change(seq, kept)

    return Transform(change=change, first=pruning.first)


def _read(path: Path) -> _Done:
    try:
        return msgspec.json.decode(read_plain(path), type=_Done)
    except FileNotFoundError:
        return _Done()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        log.warning("note of removals unreadable", extra={"path": str(path), "problem": str(exc)})
        return _Done()
