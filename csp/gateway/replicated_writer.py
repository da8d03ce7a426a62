"""The writer of a room that several gateways serve: each has a replica, one of them decides.

The owner decides commands as in a room with one gateway, but its log is shared. The others follow the log,
and pass their commands to the owner. A command's id is in the batch with its events, so the gateway that
passed it on learns of them by following: when the caller gets the events, the replica has them. After the
owner changed, what was not committed goes to the new owner, which ignores what it finds in its replica.
"""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, cast
from uuid import NAMESPACE_OID, uuid5

import msgspec

from csp import errors
from csp.cluster.calls import Answer, Failure, RemoteCommand
from csp.cluster.node import ClusterRoom
from csp.cluster.stored_batches import is_base
from csp.errors import BadInput, Broken, CspError, Deposed, LogLost, StorageFailed, StorageFull, TooLarge
from csp.gateway.early_interrupt import Interrupt, interrupts_of
from csp.gateway.journal_mirror import Overlap, PlaceFile
from csp.gateway.room_writer import Committed, Publish, Result, RoomWriter, Uncommitted, load_room
from csp.journal import Batch, DiskThread, JsonlJournal, Place, rewrite
from csp.protocol.events import AnyEvent, KnownEvent, Unknown, decode_event, room_id_in
from csp.room.commands import AnyCommand, Command, RoomRules
from csp.room.room_reducer import apply

log = logging.getLogger(__name__)

#: The most that one command may write; a message of NATS has room for it and its headers.
MAX_COMMAND_BYTES: Final = 900 * 1024
MAX_BATCH_BYTES: Final = 256 * 1024
#: How long a command may wait for the log, and how much may wait.
PATIENCE_S: Final = 10.0
#: How long a reader waits for what is not committed yet.
SETTLE_S: Final = 1.0
MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
#: How many finished calls are remembered, to recognise those that are repeated.
CALLS_KEPT: Final = 65536
_RETRY_S: Final = 2.0
_CLOSING_S: Final = 3.0


def kinds() -> dict[str, type[Command]]:
    """Return the kinds of commands by name."""
    return {kind.__name__: kind for kind in Command.__subclasses__()}


_KINDS: Final = kinds()
_ERRORS: Final = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, CspError)
}


class _Waiting(NamedTuple):
    """A command of this gateway that waits for its events."""

    command: AnyCommand
    result: Result
    since: float


class ReplicatedWriter(RoomWriter):
    """A replica of a room; see `csp.cluster.seat.Member`."""

    def __init__(
        self,
        journal: JsonlJournal,
        cluster: ClusterRoom,
        disk: DiskThread,
        clock: Callable[[], float],
        publish: Publish,
        rules: RoomRules,
    ) -> None:
        super().__init__(journal, cluster.log, disk, "fsync", clock, publish, rules)
        # Only the log is on disks when a batch is committed.
        self._is_synced = False
        self.is_leading = False
        #: Called when this gateway begins to decide.
        self.on_lead: Callable[[], None] = lambda: None
        #: Called when the journal was replaced by a base.
        self.on_restart: Callable[[], None] = lambda: None
        #: Called with every command of this gateway and the interrupts that it will cause.
        self.on_stop: Callable[[Result, tuple[Interrupt, ...]], None] = lambda result, interrupts: None
        self._process = cluster.process
        self._name = cluster.name
        self._epoch = 0
        self._is_stepping_down = False
        self._has_room_id = False
        self._numbers = iter(range(1 << 62))
        self._calls = cluster.calls
        self._calls.on_calls, self._calls.on_answers = self._accept, self._hear
        #: The commands that wait, in their order, whether they are decided here or elsewhere.
        self._waiting: dict[str, _Waiting] = {}
        #: Calls whose answer says that they caused nothing, with the event that must be here before.
        self._answered: dict[str, int] = {}
        #: The calls that are being decided for others, and those that are done.
        self._deciding: set[str] = set()
        self._done: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._moved = asyncio.Event()
        self._places = PlaceFile(journal.folder)
        #: The place from which this gateway reads the log.
        self.start = self._places.read(journal.last_seq)
        self._place = Place(self.start.seq)
        self._overlap = Overlap(journal, self.start.seq)
        self._expiring: asyncio.Task[None] | None = None

    @property
    def place(self) -> Place:
        """See `Member.place`."""
        return self._place

    @property
    def stalled_s(self) -> float:
        """How long the oldest command has been waiting."""
        return time.monotonic() - next(iter(self._waiting.values())).since if self._waiting else 0.0

    # --- commands of this gateway ----------------------------------------------------------------

    def submit(self, command: AnyCommand) -> Result:
        """Decide `command`, or have the owner decide it."""
        if self._calls.open_bytes > MAX_WAITING_BYTES:
            raise _no_answer("too much waits for the log of this room")
        interrupts = interrupts_of(self.room, command, self._clock(), self._rules)
        call_id = f"{self._process}.{next(self._numbers)}"
        waiting = _Waiting(command, self._loop.create_future(), time.monotonic())
        self._waiting[call_id] = waiting
        waiting.result.add_done_callback(partial(self._forget, call_id))
        self.on_stop(waiting.result, interrupts)
        if self._expiring is None or self._expiring.done():
            self._expiring = self._loop.create_task(self._expire())
        if self.is_leading:
            try:
                return self._decide(command, waiting.result, call_id)
            except BaseException:
                self._waiting.pop(call_id)
                raise
        if not self._is_stepping_down:
            self._pass_on(call_id, command)
        return waiting.result

    def _pass_on(self, call_id: str, command: AnyCommand) -> None:
        body = msgspec.Raw(msgspec.json.encode(command))
        self._calls.add(RemoteCommand(call_id, type(command).__name__, body))

    def _forget(self, call_id: str, result: Result) -> None:
        self._waiting.pop(call_id, None)
        self._answered.pop(call_id, None)
        self._calls.remove(call_id)
        if not result.cancelled():
            # Nobody may be waiting any more.
            result.exception()

    async def _expire(self) -> None:
        """Refuse what has waited for too long, until nothing waits."""
        while self._waiting:
            await asyncio.sleep(PATIENCE_S / 20)
            for waiting in list(self._waiting.values()):
                if time.monotonic() - waiting.since < PATIENCE_S:
                    break
                if not waiting.result.done():
                    waiting.result.set_exception(_no_answer(f"no answer within {PATIENCE_S:g} s"))

    def _hear(self, answers: Sequence[Answer]) -> None:
        """Handle the answers of the owner."""
        for answer in answers:
            waiting = self._waiting.get(answer.id)
            if waiting is None or waiting.result.done():
                continue
            if answer.failure is not None:
                waiting.result.set_exception(error_of(answer.failure))
            else:
                self._answered[answer.id] = answer.seq
        self._end_answered()

    def _end_answered(self) -> None:
        for call_id, seq in list(self._answered.items()):
            waiting = self._waiting.get(call_id)
            if waiting is not None and seq <= self.room.seq and not waiting.result.done():
                waiting.result.set_result([])

    # --- commands of other gateways --------------------------------------------------------------

    def _accept(self, reply: str, calls: Sequence[RemoteCommand]) -> bool:
        """Decide the calls of another gateway; return whether that is possible here."""
        if not self.is_leading:
            return False
        failed: list[Answer] = []
        for call in calls:
            if call.id in self._done or call.id in self._deciding:
                continue
            try:
                command = cast(AnyCommand, msgspec.json.decode(call.body, type=_KINDS[call.kind]))
                result = self._decide(command, self._loop.create_future(), call.id)
            except CspError as error:
                failed.append(Answer(call.id, failure=failure_of(error)))
            except (msgspec.MsgspecError, KeyError) as error:
                log.warning("call not understood", extra={"kind": call.kind, "problem": str(error)})
                problem = f"the owner of the room does not know {call.kind!r}"
                failed.append(Answer(call.id, failure=failure_of(Broken(problem, "run one version of csp"))))
            except Exception:
                log.exception("call failed", extra={"kind": call.kind})
                failed.append(Answer(call.id, failure=failure_of(Broken("internal error", "see its log"))))
            else:
                self._deciding.add(call.id)
                result.add_done_callback(partial(self._answer, reply, call.id))
        if failed:
            self._calls.answer(reply, failed)
        return True

    def _answer(self, reply: str, call_id: str, result: Result) -> None:
        self._deciding.discard(call_id)
        if result.cancelled():
            return
        error = result.exception()
        if error is None and not result.result():
            self._calls.answer(reply, [Answer(call_id, self.safe_seq)])
        elif isinstance(error, CspError) and not isinstance(error, Deposed | LogLost):
            self._calls.answer(reply, [Answer(call_id, failure=failure_of(error))])

    # --- deciding --------------------------------------------------------------------------------

    def lead(self, place: Place, epoch: int) -> None:
        """See `Member.lead`."""
        self._place, self._epoch, self.is_leading = place, epoch, True
        if not self.room.seq:
            self._note_room_id((), self._process)
        for call_id, waiting in list(self._waiting.items()):
            if waiting.result.done():
                continue
            # Decided here from now on: it must not go to another owner before its fate is known.
            self._calls.remove(call_id)
            try:
                self._decide(waiting.command, waiting.result, call_id)
            except Exception as error:
                waiting.result.set_exception(error)
        self.on_lead()

    async def step_down(self) -> None:
        """See `Member.step_down`."""
        if self.is_leading:
            log.warning("another gateway has taken the room", extra={"seq": self.safe_seq})
        self.is_leading, self._is_stepping_down = False, True
        self._wake()
        # Wait until it is known whether the batch in flight was committed.
        await self._idle.wait()
        self._is_stepping_down = False
        self._hand_over()

    def _hand_over(self) -> None:
        """Go back to what is committed, and pass on the commands of the rest in their order."""
        dropped = self._drop()
        if any(pending.entries for pending in dropped):
            self.room, self._since_snapshot = load_room(self.journal)
        for waiter in [waiter for pending in dropped for waiter in pending.waiters]:
            if waiter.result.done() or waiter.call_id in self._waiting:
                continue
            if waiter.call_id:
                # The gateway that passed it on sends it to the next owner.
                waiter.result.cancel()
            else:
                waiter.result.set_result(waiter.events)
        for call_id, waiting in list(self._waiting.items()):
            if not waiting.result.done():
                self._pass_on(call_id, waiting.command)

    def _schedule(self) -> None:
        if self.is_leading:
            super()._schedule()

    def _batch_for(self, entries: Committed) -> Uncommitted:
        size = sum([len(line) for _, line in entries])
        if size > MAX_COMMAND_BYTES:
            raise TooLarge(f"this would write {size} bytes at once, at most {MAX_COMMAND_BYTES} are possible")
        if self._next.size and self._next.size + size > MAX_BATCH_BYTES:
            self._queue.append(Uncommitted())
        self._next.size += size
        return self._next

    async def _append(self, pending: Uncommitted) -> Place:
        lines = tuple([line for _, line in pending.entries])
        calls = {
            waiter.call_id: (waiter.events[0].seq, waiter.events[-1].seq)
            for waiter in pending.waiters
            # Own calls need no id in the log: whether they are in it is known here.
            if waiter.events and waiter.call_id and waiter.call_id not in self._waiting
        }
        first_seq = pending.entries[0][0].seq
        batch = Batch(lines=lines, first_seq=first_seq, epoch=self._epoch, owner=self._process, calls=calls)
        place = await self._log.append(batch, self._place)
        self._mirror(lines, first_seq)
        self._remember(calls)
        self._note_place(place)
        return place

    def _commit(self, pending: Uncommitted) -> None:
        super()._commit(pending)
        self._wake()

    def _recover(self, error: Broken) -> None:
        if isinstance(error, Deposed | LogLost):
            log.warning("the room is not decided here any more", extra={"why": error.message})
            self.is_leading = False
            if not self._is_stepping_down:
                self._hand_over()
            self._idle.set()
        else:
            super()._recover(error)
        self._wake()

    # --- following -------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until what was decided before is committed, but not for a log that does not answer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                await super().settle()

    async def catch_up(self) -> None:
        """Wait until everything that is in the log now has been followed."""
        if self.is_leading:
            return
        deadline = self._loop.time() + PATIENCE_S
        end = self._place
        try:
            async with asyncio.timeout_at(deadline):
                async for place, _ in self._log.replay(end):
                    end = place
                while self._place.mark < end.mark and not self.broken.done():
                    await self._moved.wait()
        except (TimeoutError, LogLost):
            # The replica is as new as it can be.
            return

    async def caught_up(self, place: Place) -> None:
        """See `Member.caught_up`."""
        while self.is_leading and self._place.mark < place.mark:
            await self._moved.wait()

    async def follow(self, place: Place, batch: Batch) -> None:
        """See `Member.follow`."""
        if self._is_held:
            await self._released.wait()
        if is_base(batch):
            batch = self._start_after(batch)
        known = self.room.seq
        overlap = max(0, known + 1 - batch.first_seq)
        self._overlap.check(batch.lines[:overlap], batch.first_seq)
        lines = batch.lines[overlap:]
        if lines and batch.first_seq > known + 1:
            raise Broken(f"the log of this room has a hole: {batch.first_seq} follows {known}")
        if not known:
            self._note_room_id(batch.lines, batch.owner)
        if lines:
            self._mirror(lines, known + 1)
        entries = [entry for line in lines if (entry := self._apply(line)) is not None]
        self._note_place(place)
        self._remember(batch.calls)
        self._count(entries)
        if entries:
            self._publish(entries)
        self._end_calls(batch.calls, entries)
        self._wake()
        if self._is_snapshot_due:
            self._take_snapshot()
            self._save_snapshot()

    def _start_after(self, batch: Batch) -> Batch:
        """Begin after the base of a pruned room, unless it is known; return the rest of the batch."""
        base, seq = batch.lines[0], batch.first_seq
        if seq > self.room.seq:
            rewrite.start_again(self.journal, base)
            self.room, self._since_snapshot = load_room(self.journal)
            self._note_room_id((base,), batch.owner)
            self.on_restart()
        self._overlap = Overlap(self.journal, seq)
        return msgspec.structs.replace(batch, lines=batch.lines[1:], first_seq=seq + 1)

    def check_start(self) -> None:
        """Raise Broken if the journal is longer than the log."""
        if self.room.seq > self._place.seq:
            raise Broken(
                f"the journal {str(self.journal.path)!r} ends at {self.room.seq}, but the room's log at"
                f" {self._place.seq}",
                "to bring a journal into the cluster: csp journal copy",
            )

    def _note_place(self, place: Place) -> None:
        self._place = place
        if self._places.note(place):
            self._disk.run(self._places.save)

    def _note_room_id(self, lines: Sequence[bytes], owner: str) -> None:
        """Recognise the room by its first line or, before there is one, by its first claim."""
        if lines:
            self.journal.room_id = room_id_in(lines[0]) or self.journal.room_id
        elif not self._has_room_id:
            self.journal.room_id = str(uuid5(NAMESPACE_OID, f"{self._name}\n{owner}"))
        self._has_room_id = True

    def _apply(self, line: bytes) -> tuple[AnyEvent, bytes] | None:
        seq, event = self.room.seq + 1, None
        try:
            event = decode_event(line)
            self.room = apply(self.room, event)
        except (BadInput, msgspec.MsgspecError) as exc:
            log.warning("event skipped", extra={"seq": seq, "problem": str(exc)})
        self.room.seq = seq
        return None if event is None else (event, line)

    def _mirror(self, lines: Sequence[bytes], first_seq: int) -> None:
        try:
            self.journal.append(lines, first_seq)
        except StorageFull as exc:
            # The other gateways go on.
            raise StorageFailed(f"the mirror of the room's journal cannot be written: {exc.message}") from exc
        self.journal.commit()

    def _remember(self, calls: Mapping[str, tuple[int, int]]) -> None:
        self._done.update(calls)
        while len(self._done) > CALLS_KEPT:
            self._done.popitem(last=False)

    def _end_calls(self, calls: Mapping[str, tuple[int, int]], entries: Committed) -> None:
        for call_id, (first, last) in calls.items():
            waiting = self._waiting.get(call_id)
            if waiting is not None and not waiting.result.done():
                waiting.result.set_result(_known(event for event, _ in entries if first <= event.seq <= last))
        if self._answered:
            self._end_answered()

    def fail(self, error: Broken) -> None:
        """End the gateway: the room cannot be followed."""
        if not self.broken.done():
            self.broken.set_exception(error)

    # --- the rest --------------------------------------------------------------------------------

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def close(self) -> None:
        """Write what is decided, unless the log does not answer; then close the log and the journal."""
        if self._expiring is not None:
            self._expiring.cancel()
        try:
            async with asyncio.timeout(_CLOSING_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("the log does not answer", extra={"seq": self.safe_seq})
            await self._log.close()
        await super().close()


def _known(events: Iterable[AnyEvent]) -> list[KnownEvent]:
    return [event for event in events if not isinstance(event, Unknown)]


def _no_answer(problem: str) -> LogLost:
    return LogLost(problem, "the NATS cluster or the owner of the room is down; try again", after_s=_RETRY_S)


def failure_of(error: CspError) -> Failure:
    """Return an error as it is sent to another gateway."""
    after_s = getattr(error, "after_s", None)
    return Failure(type(error).__name__, error.message, error.hint, after_s)


def error_of(failure: Failure) -> CspError:
    """Return the error that another gateway sent."""
    error = _ERRORS.get(failure.kind, Broken)(failure.message, failure.hint)
    if failure.after_s is not None:
        vars(error)["after_s"] = failure.after_s
    return error
