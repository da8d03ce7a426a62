"""The only writer of a room: it loads the room, decides commands, and writes and publishes events.

Commands are decided as they arrive, and their events are written in batches. While one batch is being
written, the next one is collected, so that one fdatasync serves all callers waiting for it.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Final, NamedTuple

import msgspec

from csp.errors import BadInput, Broken, StorageFailed, StorageFull
from csp.gateway.sleep_gauge import SleepGauge
from csp.journal import Batch, DiskThread, JsonlJournal, Log, Place, snapshots
from csp.protocol.events import AnyEvent, KnownEvent, decode_event, encode_event
from csp.room.commands import DEFAULT_RULES, AnyCommand, RoomRules, Slept
from csp.room.decide import draft_of
from csp.room.room_reducer import apply
from csp.room.room_state import Room, dump, load

log = logging.getLogger(__name__)

SNAPSHOT_EVERY: Final = 4096
PROBE_S: Final = 0.5

Committed = list[tuple[AnyEvent, bytes]]
Publish = Callable[[Committed], None]


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


Result = asyncio.Future[list[KnownEvent]]


class Waiter(NamedTuple):
    """A caller, the events of its command, and the command's id if it has one."""

    result: Result
    events: list[KnownEvent]
    call_id: str = ""


class Uncommitted:
    """Events that are not committed yet, and the callers that wait for them."""

    def __init__(self) -> None:
        self.entries: Committed = []
        #: The size of the lines, if batches have a limit.
        self.size = 0
        self.waiters: list[Waiter] = []

    @property
    def is_empty(self) -> bool:
        return not self.entries and not self.waiters

    def end(self, error: Broken | None = None) -> None:
        """Wake the callers: their events are committed, or `error` explains why not."""
        for waiter in self.waiters:
            if waiter.result.done():
                continue
            if error is None:
                waiter.result.set_result(waiter.events)
            else:
                waiter.result.set_exception(error)


class RoomWriter:
    """Owns the room and its journal; the log says what is committed.

    `disk` saves the snapshots. A log in a file shares it, so that its syncs and the snapshots of the journal
    never overtake each other.
    """

    #: Whether commands are decided here; only with several gateways another one may do so.
    is_leading = True

    def __init__(
        self,
        journal: JsonlJournal,
        commit_log: Log,
        disk: DiskThread,
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
        self._log = commit_log
        self._place = Place(self.room.seq)
        self._disk = disk
        self._durability = durability
        #: Whether the journal is on the disk when a batch is committed.
        self._is_synced = durability == "fsync"
        self._clock = clock
        self._publish = publish
        self._rules = rules
        self.sleep_gauge = SleepGauge()
        #: The batches that wait to be written; commands are added to the last one.
        self._queue = deque([Uncommitted()])
        self._in_flight: Uncommitted | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_held = False
        self._released = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._bytes_since_snapshot = 0
        self._snapshot_bytes = 0
        self._snapshot: tuple[int, bytes] | None = None
        #: Why nothing can be written, while that is so, and the task that tries again.
        self._refusal = StorageFull("the room is read-only")
        self._probing: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def safe_seq(self) -> int:
        """The number of the last event that is as durable as the settings require."""
        return self.journal.view.seq

    # --- commands --------------------------------------------------------------------------------

    def submit(self, command: AnyCommand) -> Result:
        """Decide `command` immediately; the future completes when its events are durable."""
        return self._decide(command, self._loop.create_future())

    def _decide(self, command: AnyCommand, result: Result, call_id: str = "") -> Result:
        if not self.is_writable:
            raise copy(self._refusal)
        self.note_sleep()
        return self._safe(Waiter(result, self._take(command), call_id))

    def note_sleep(self) -> None:
        """Note that the machine was suspended, before anything else is decided."""
        slept_s = self.sleep_gauge.take() if self.is_leading and self.is_writable else 0.0
        if slept_s:
            log.info("the machine was suspended", extra={"for_s": round(slept_s)})
            if self._take(Slept(seconds=slept_s)):
                self._schedule()

    def _take(self, command: AnyCommand) -> list[KnownEvent]:
        """Decide a command, change the room, and queue the events."""
        draft = draft_of(self.room, command, self._clock(), self._rules)
        # Encode before changing the room: an event that cannot be encoded must not change anything.
        entries: Committed = [(event, self._line_of(event)) for event in draft.events]
        self._batch_for(entries).entries += entries
        self.room = draft.take_over()
        return draft.events

    def _batch_for(self, entries: Committed) -> Uncommitted:
        """Return the batch to which the events of a command are added."""
        return self._queue[-1]

    @property
    def _next(self) -> Uncommitted:
        return self._queue[-1]

    def _line_of(self, event: KnownEvent) -> bytes:
        is_first = event.seq == self.journal.stating_seq
        return encode_event(event, self.journal.room_id) if is_first else encode_event(event)

    async def catch_up(self) -> None:
        """Wait until the room is up to date, if others decide for it."""

    async def settle(self) -> None:
        """Wait until everything decided before this call is durable or rolled back."""
        with contextlib.suppress(Broken):
            await self._safe(Waiter(self._loop.create_future(), []))

    def _safe(self, waiter: Waiter) -> Result:
        batch = self._queue[-1]
        is_idle = self._in_flight is None and not batch.entries and len(self._queue) == 1
        if is_idle or self._durability == "none":
            waiter.result.set_result(waiter.events)
        else:
            batch.waiters.append(waiter)
        if self._writing is None and (batch.entries or batch.waiters):
            self._schedule()
        return waiter.result

    def _schedule(self) -> None:
        if self._writing is None and not self._is_held:
            self._idle.clear()
            self._writing = self._loop.create_task(self._write())

    async def _write(self) -> None:
        """Commit everything decided so far as one batch."""
        pending = self._queue.popleft()
        if not self._queue:
            self._queue.append(Uncommitted())
        self._in_flight = pending
        self._count(pending.entries)
        # At this moment the room matches the end of this batch, if it is the last one. A room with much
        # unread text has a large snapshot, so its snapshots are taken less often.
        if self._is_snapshot_due and not self._next.entries:
            self._take_snapshot()
        try:
            if pending.entries:
                self._place = await self._append(pending)
        except Broken as error:
            self._writing = None
            self._recover(error)
        else:
            self._writing = None
            self._commit(pending)

    async def _append(self, pending: Uncommitted) -> Place:
        lines = tuple([line for _, line in pending.entries])
        return await self._log.append(Batch(lines=lines, first_seq=pending.entries[0][0].seq), self._place)

    def _count(self, entries: Committed) -> None:
        self._since_snapshot += len(entries)
        self._bytes_since_snapshot += sum([len(line) for _, line in entries])

    @property
    def _is_snapshot_due(self) -> bool:
        is_long = self._since_snapshot >= SNAPSHOT_EVERY
        return is_long and self._bytes_since_snapshot > 2 * self._snapshot_bytes

    def _commit(self, pending: Uncommitted) -> None:
        self._in_flight = None
        pending.end()
        self._publish(pending.entries)
        self._save_snapshot()
        self._go_on()

    def _go_on(self) -> None:
        if len(self._queue) > 1 or not self._next.is_empty:
            self._schedule()
        if self._writing is None:
            self._idle.set()

    def _drop(self) -> list[Uncommitted]:
        """Return everything that is not committed, which is no more to be written."""
        in_flight = [] if self._in_flight is None else [self._in_flight]
        dropped = [*in_flight, *self._queue]
        self._in_flight, self._queue, self._snapshot = None, deque([Uncommitted()]), None
        return dropped

    # --- failures --------------------------------------------------------------------------------

    def _recover(self, error: Broken) -> None:
        """Go back to what is committed."""
        lost = self._drop()
        self.is_writable = False
        try:
            if not isinstance(error, StorageFull):
                raise error
            self._refusal = error
            log.warning("journal not writable", extra={"seq": self.journal.last_seq, "why": error.message})
            self.room, self._since_snapshot = load_room(self.journal)
            self._probing = self._loop.create_task(self._probe())
        except (Broken, OSError) as exc:
            error = exc if isinstance(exc, Broken) else StorageFailed(f"the journal cannot be read: {exc}")
            log.error("journal failed", extra={"problem": error.message})
            self._refusal = StorageFull(f"the room is read-only: {error.message}", error.hint)
            if not self.broken.done():
                self.broken.set_exception(error)
        for pending in lost:
            pending.end(error)
        self._idle.set()

    async def _probe(self) -> None:
        """Wait until the log can be appended to again."""
        while not self.is_writable:
            await asyncio.sleep(PROBE_S)
            try:
                await self._log.check()
            except StorageFull as error:
                self._refusal = error
            except Broken as error:
                log.warning("log does not answer", extra={"problem": error.message})
            else:
                # A journal that had been cut may be whole again.
                self.room, self._since_snapshot = load_room(self.journal)
                log.info("journal writable again")
                self.is_writable = True

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
            sync = None if self._is_synced else self.journal.sync
            save = partial(snapshots.save, self.journal.folder, seq, state, sync=sync, view=self.journal.view)
            self._disk.run(save).add_done_callback(_saved)

    async def alone(self, action: Callable[[], None]) -> None:
        """Run a short `action` on the journal with no write in progress, then save a snapshot."""
        self._is_held = True
        self._released.clear()
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
            self._released.set()
            self._go_on()

    async def close(self) -> None:
        """Write all accepted events, save a snapshot, and close the log and the journal."""
        await self._idle.wait()
        if self._probing is not None:
            self._probing.cancel()
        if self.is_writable and self._since_snapshot:
            self._take_snapshot()
            self._save_snapshot()
        await self._log.close()
        await self._disk.close()
        self.journal.close()


def _saved(saving: "asyncio.Future[None]") -> None:
    error = saving.exception()
    if error is not None:
        log.error("snapshot failed", exc_info=error)
