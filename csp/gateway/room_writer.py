"""The only writer of a room: it loads the room, decides commands, and writes and publishes events.

Commands are decided as they arrive, and their events are written in batches. While one batch is being
written, the next one is collected, so that one fdatasync serves all callers waiting for it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final

import msgspec

from csp.errors import BadInput, Broken, StorageFailed, StorageFull
from csp.journal import snapshots
from csp.journal.jsonl_journal import MOVED, JsonlJournal
from csp.protocol.events import AnyEvent, KnownEvent, decode_event, encode_event
from csp.room.commands import DEFAULT_RULES, AnyCommand, RoomRules
from csp.room.decide import draft_of
from csp.room.room_reducer import apply
from csp.room.room_state import Room, dump, load

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]
log = logging.getLogger(__name__)

SNAPSHOT_EVERY: Final = 4096
PROBE_S: Final = 0.5
_FULL: Final = ("the disk is full, the room is read-only", "free some space; the room continues by itself")

Committed = list[tuple[AnyEvent, bytes]]
Publish = Callable[[Committed], None]


class DiskThread:
    """A thread that runs blocking work in order and reports back to the event loop.

    Every commit goes through it, and a thread pool's futures would cost as much as the sync itself.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._todo: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def start(self, work: Work, done: Done) -> None:
        """Run `work` in the thread, then call `done` with the outcome on the event loop."""
        self._todo.put((work, done))

    async def settle(self) -> None:
        """Wait until the thread has finished all work queued so far."""
        finished: asyncio.Future[None] = self._loop.create_future()
        self.start(lambda: None, lambda error: finished.set_result(None))
        await finished

    async def close(self) -> None:
        """Wait until the thread has finished its work and has ended."""
        self._todo.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (task := self._todo.get()) is not None:
            work, done = task
            error: BaseException | None = None
            try:
                work()
            except BaseException as exc:
                error = exc
            self._loop.call_soon_threadsafe(done, error)


def load_room(journal: JsonlJournal) -> tuple[Room, int]:
    """Return the room as of the last line on disk, and the number of events after its newest snapshot."""
    room = Room()
    snapshot = snapshots.load(journal.folder, journal.last_seq, journal.view)
    if snapshot is not None:
        try:
            room = load(snapshot.state)
        except (ValueError, RecursionError) as exc:
            log.warning("snapshot skipped", extra={"seq": snapshot.seq, "problem": str(exc)})
    known = room.seq
    for line in journal.view.lines_after(room.seq):
        try:
            room = apply(room, decode_event(line))
        except (BadInput, msgspec.MsgspecError) as exc:
            log.warning("journal line skipped", extra={"after_seq": room.seq, "problem": str(exc)})
    # A damaged line keeps its number although it cannot be read.
    room.seq = journal.last_seq
    return room, room.seq - known


class _Batch:
    """Events that are not on disk yet, and the callers waiting for them."""

    def __init__(self) -> None:
        self.entries: Committed = []
        self.waiters: list[tuple[asyncio.Future[list[KnownEvent]], list[KnownEvent]]] = []

    def end(self, error: Broken | None = None) -> None:
        """Wake the callers: their events are on disk, or `error` explains why not."""
        for waiter, events in self.waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(events)
            else:
                waiter.set_exception(error)


class RoomWriter:
    """Owns the room and its journal."""

    def __init__(
        self,
        journal: JsonlJournal,
        durability: str,
        clock: Callable[[], float],
        publish: Publish,
        rules: RoomRules = DEFAULT_RULES,
    ) -> None:
        # Counted from the newest snapshot, so that a long tail is not read again at every start.
        self.room, self._since_snapshot = load_room(journal)
        self.journal = journal
        self.is_writable = True
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._durability = durability
        self._clock = clock
        self._publish = publish
        self._rules = rules
        self._next = _Batch()
        self._in_flight: _Batch | None = None
        self._is_scheduled = False
        self._is_held = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._bytes_since_snapshot = 0
        self._snapshot_bytes = 0
        self._snapshot: tuple[int, bytes] | None = None
        self._loop = asyncio.get_running_loop()
        # A single thread, so that syncs and snapshots of a journal never overtake each other.
        self._disk = DiskThread()

    @property
    def safe_seq(self) -> int:
        """The number of the last event that is as durable as the settings require."""
        return self.journal.view.seq

    # --- commands --------------------------------------------------------------------------------

    def submit(self, command: AnyCommand) -> "asyncio.Future[list[KnownEvent]]":
        """Decide `command` immediately; the future completes when its events are durable."""
        if not self.is_writable:
            raise self._refusal()
        draft = draft_of(self.room, command, self._clock(), self._rules)
        # Encode before changing the room: an event that cannot be encoded must not change anything.
        self._next.entries += [(event, encode_event(event)) for event in draft.events]
        self.room = draft.take_over()
        return self._safe(draft.events)

    async def settle(self) -> None:
        """Wait until everything decided before this call is durable or rolled back."""
        with contextlib.suppress(Broken):
            await self._safe([])

    def _safe(self, events: list[KnownEvent]) -> "asyncio.Future[list[KnownEvent]]":
        waiter: asyncio.Future[list[KnownEvent]] = self._loop.create_future()
        if self._durability == "none" or (not self._next.entries and self._in_flight is None):
            waiter.set_result(events)
        else:
            self._next.waiters.append((waiter, events))
        if self._next.entries or self._next.waiters:
            self._schedule()
        return waiter

    def _schedule(self) -> None:
        if not self._is_scheduled and self._in_flight is None and not self._is_held:
            self._is_scheduled = True
            self._idle.clear()
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_scheduled = False
        batch, self._next = self._next, _Batch()
        self._in_flight = batch
        self._since_snapshot += len(batch.entries)
        self._bytes_since_snapshot += sum([len(line) for _, line in batch.entries])
        # At this moment the room matches the end of this batch. A room with much unread text has a large
        # snapshot, so its snapshots are taken less often.
        if self._since_snapshot >= SNAPSHOT_EVERY and self._bytes_since_snapshot > 2 * self._snapshot_bytes:
            self._take_snapshot()
        try:
            if batch.entries:
                self.journal.append([line for _, line in batch.entries], batch.entries[0][0].seq)
        except Broken as error:
            self._recover(error)
            return
        if batch.entries and self._durability == "fsync":
            self._disk.start(self.journal.sync, self._synced)
        else:
            self._commit()

    def _synced(self, error: BaseException | None) -> None:
        if error is None:
            self._commit()
        else:
            broken = StorageFailed(f"the journal cannot be written: {error}")
            self._recover(error if isinstance(error, Broken) else broken)

    def _commit(self) -> None:
        batch, self._in_flight = self._in_flight, None
        if batch is None:
            return
        self.journal.commit()
        batch.end()
        self._publish(batch.entries)
        self._save_snapshot()
        self._go_on()

    def _go_on(self) -> None:
        if self._next.entries or self._next.waiters:
            self._schedule()
        if not self._is_scheduled:
            self._idle.set()

    # --- failures --------------------------------------------------------------------------------

    def _recover(self, error: Broken) -> None:
        """Roll back all changes that are not on disk."""
        lost, self._in_flight = [self._in_flight, self._next], None
        self._next, self._snapshot = _Batch(), None
        try:
            if not isinstance(error, StorageFull):
                # Nothing has been acknowledged, and a disk that failed once may report lost bytes as written.
                with contextlib.suppress(Broken):
                    self.journal.rollback()
                raise error
            answer: Broken = self._refusal()
            log.warning("journal not writable", extra={"seq": self.journal.last_seq, "why": answer.message})
            self.is_writable = False
            self.journal.rollback()
            self.room, self._since_snapshot = load_room(self.journal)
            self._loop.call_later(PROBE_S, self._probe)
        except (Broken, OSError) as exc:
            answer = exc if isinstance(exc, Broken) else StorageFailed(f"the journal cannot be read: {exc}")
            log.error("journal failed", extra={"problem": answer.message})
            self.is_writable = False
            if not self.broken.done():
                self.broken.set_exception(answer)
        for batch in lost:
            if batch is not None:
                batch.end(answer)
        self._idle.set()

    def _refusal(self) -> StorageFull:
        """Return the error for callers while the room is read-only."""
        return StorageFull(*(_FULL if self.journal.is_in_place() else MOVED))

    def _probe(self) -> None:
        if self.journal.can_grow():
            log.info("journal writable again")
            self.is_writable = True
        elif not self.broken.done():
            self._loop.call_later(PROBE_S, self._probe)

    # --- snapshots -------------------------------------------------------------------------------

    def _take_snapshot(self) -> None:
        state = dump(self.room)
        self._snapshot = (self.room.seq, state)
        self._since_snapshot = self._bytes_since_snapshot = 0
        self._snapshot_bytes = len(state)

    def _save_snapshot(self) -> None:
        if self._snapshot is not None:
            (seq, state), self._snapshot = self._snapshot, None
            # A snapshot must not be newer than the journal on disk.
            sync = None if self._durability == "fsync" else self.journal.sync
            save = partial(snapshots.save, self.journal.folder, seq, state, sync=sync, view=self.journal.view)
            self._disk.start(save, _saved)

    async def alone(self, action: Callable[[], None]) -> None:
        """Run a short `action` on the journal with no write in progress, then save a snapshot."""
        self._is_held = True
        try:
            await self._idle.wait()
            # A snapshot that is still being written could contain what the action removes.
            await self._disk.settle()
            action()
            if not self._next.entries:
                self._take_snapshot()
                self._save_snapshot()
        finally:
            self._is_held = False
            self._go_on()

    async def close(self) -> None:
        """Write all accepted events, save a snapshot, and close the journal."""
        await self._idle.wait()
        if self.is_writable and self._since_snapshot:
            self._take_snapshot()
            self._save_snapshot()
        await self._disk.close()
        self.journal.close()


def _saved(error: BaseException | None) -> None:
    if error is not None:
        log.error("snapshot failed", exc_info=error)
