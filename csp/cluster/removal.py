"""Take text out of the stream of a room.

The batch that contains it is published once more without it, as a patch; then the original is deleted, which
overwrites it on every server. Each step may be repeated, so another gateway can finish a removal.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from csp.cluster.bus import Bus
from csp.cluster.names import SHARDS, log_subject, patch_subject, shard_of, stream_name
from csp.cluster.stored_batches import (
    EXPECTED,
    StoredBatch,
    find_message,
    patch_headers,
    read_patches,
)
from csp.errors import Broken, LogLost
from csp.journal import Batch
from csp.journal.line_reader import intact_seq

if TYPE_CHECKING:
    from nats.aio.msg import Msg

API_S: Final = 10.0
_AGAIN_S: Final = 0.2
#: JetStream's codes: no such message, or the expected one is not the last.
_GONE: Final = frozenset({10037, 10043, 10057})
_WRONG_LAST: Final = frozenset({10071, 10164})

#: Changes a line, given its seq.
Change = Callable[[int, bytes], bytes | None]


async def follow_removals(bus: Bus, on_room: Callable[[str], None], on_gap: Callable[[], None]) -> None:
    """Report each room from which text is removed from now on, and gaps in which one may have been missed."""

    def hear(message: "Msg | None") -> None:
        if message is None:
            on_gap()
        else:
            on_room(message.subject.split(".")[3])

    await bus.follow(patch_subject("*", "*", shard="*"), hear)


async def rooms_with_removals(bus: Bus) -> list[str]:
    """Return the rooms from which text was ever removed."""
    rooms: dict[str, None] = {}
    for shard in range(SHARDS):
        asked = {"subjects_filter": patch_subject("*", "*", shard=str(shard))}
        answer = await bus.ask(f"STREAM.INFO.{stream_name(shard)}", asked, timeout_s=API_S)
        subjects = answer.get("state", {}).get("subjects") or {}
        rooms |= dict.fromkeys(subject.split(".")[3] for subject in subjects)
    return list(rooms)


class StreamRemoval:
    """Removals in the stream of one room."""

    def __init__(self, bus: Bus, room: str) -> None:
        self._bus = bus
        self._room = room
        self._subject = log_subject(room)
        self._stream = stream_name(shard_of(room))

    async def replace(self, seq: int, change: Change) -> None:
        """Change the batch with the event `seq`, so that nothing of its old text remains in the stream."""
        patches = await read_patches(self._bus, self._room)
        for patch in patches:
            if _has(patch, seq):
                changed = _changed(patch.batch, change)
                if changed != patch.batch:
                    await self._publish_patch(changed, patch.place.mark, after=patch.sequence)
                    await self._delete(patch.sequence)
        stored = await self._find(seq)
        if stored is None:
            return
        changed = _changed(stored.batch, change)
        if changed != stored.batch:
            await self._check_not_last(stored)
            await self._publish_patch(changed, stored.place.mark, after=0)
            await self._delete(stored.sequence)

    async def base(self, before: int) -> bytes | None:
        """Return the line that replaces everything before an event; None if it is not in the stream."""
        found = await self._patch_at(before - 1)
        return found.batch.lines[0] if found is not None and found.is_base else None

    async def wait_for_base(self, before: int) -> bytes:
        """Return the line that replaces everything before an event, once the owner has published it."""
        while True:
            try:
                if (line := await self.base(before)) is not None:
                    return line
            except LogLost:
                pass
            await asyncio.sleep(_AGAIN_S)

    async def cut(self, before: int, base: bytes) -> None:
        """Replace everything before an event, which the log must have, by a base."""
        patches = await read_patches(self._bus, self._room)
        holder = await self._find(before)
        if holder is not None:
            await self._check_not_last(holder)
        else:
            holder = next((one for one in patches if not one.is_base and _has(one, before)), None)
        if holder is None:
            raise Broken(f"the log of this room has no event {before}")
        mark = holder.place.mark
        if holder.batch.first_seq < before and await self._patch_at(before) is None:
            lines = holder.batch.lines[before - holder.batch.first_seq :]
            rest = replace(holder.batch, lines=lines, first_seq=before)
            await self._publish_patch(rest, mark, after=0)
        former = await self._patch_at(before - 1)
        if former is None or not former.is_base:
            line = Batch(lines=(base,), first_seq=before - 1)
            await self._publish_patch(line, mark - 1, after=former.sequence if former else 0)
            patches += [former] if former else []
        if holder.batch.first_seq < before:
            await self._delete(holder.sequence)
        await self._delete_before(mark)
        for patch in patches:
            if patch.batch.first_seq < before and not (patch.is_base and patch.place.seq == before - 1):
                await self._delete(patch.sequence)

    async def _delete_before(self, mark: int) -> None:
        """Delete the batches before a mark, one by one: a purge would leave their bytes on the disks."""
        while (found := await self._next(1)) is not None and found.sequence < mark:
            await self._delete(found.sequence)

    async def _check_not_last(self, stored: StoredBatch) -> None:
        """Raise LogLost for the last message: the next append has to name it."""
        if await self._next(stored.sequence + 1) is None:
            raise LogLost("the last batch of a room cannot be replaced yet")

    # --- finding ---------------------------------------------------------------------------------

    async def _find(self, seq: int) -> StoredBatch | None:
        """Return the batch with an event, by binary search over the stream; None if it was removed."""
        last = await find_message(self._bus, self._room, {"last_by_subj": self._subject})
        if last is None:
            return None
        low, high = 1, last.sequence
        # The batch at or after `high` ends at the event or later.
        while low < high:
            middle = (low + high) // 2
            found = await self._next(middle)
            if found is None or found.place.seq >= seq:
                high = middle
            else:
                low = found.sequence + 1
        found = await self._next(low)
        while found is not None and not found.batch.lines:
            found = await self._next(found.sequence + 1)
        return found if found is not None and found.batch.first_seq <= seq <= found.place.seq else None

    async def _next(self, sequence: int) -> StoredBatch | None:
        asked = {"seq": sequence, "next_by_subj": self._subject}
        return await find_message(self._bus, self._room, asked)

    async def _patch_at(self, first_seq: int) -> StoredBatch | None:
        subject = patch_subject(self._room, str(first_seq))
        return await find_message(self._bus, self._room, {"last_by_subj": subject})

    # --- changing --------------------------------------------------------------------------------

    async def _publish_patch(self, batch: Batch, mark: int, *, after: int) -> None:
        subject = patch_subject(self._room, str(batch.first_seq))
        headers = patch_headers(batch, mark) | {EXPECTED: str(after)}
        answer = await self._bus.publish_stored(subject, b"\n".join(batch.lines), headers, timeout_s=API_S)
        error = answer.get("error")
        # Another gateway has published the same patch.
        if error is not None and error.get("err_code") not in _WRONG_LAST:
            raise LogLost(f"a removal cannot be written: {error.get('description')}")

    async def _delete(self, sequence: int) -> None:
        asked = {"seq": sequence, "no_erase": False}
        answer = await self._bus.ask(f"STREAM.MSG.DELETE.{self._stream}", asked, timeout_s=API_S)
        error = answer.get("error")
        if error is not None and error.get("err_code") not in _GONE:
            raise LogLost(f"a message cannot be deleted: {error.get('description')}")


def _changed(batch: Batch, change: Change) -> Batch:
    lines = [change(intact_seq(line) or 0, line) for line in batch.lines]
    return replace(batch, lines=tuple(line for line in lines if line is not None))


def _has(stored: StoredBatch, seq: int) -> bool:
    return stored.batch.first_seq <= seq <= stored.place.seq
