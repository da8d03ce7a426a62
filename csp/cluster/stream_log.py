"""The log of a room in a cluster: one subject of a JetStream stream.

A batch is one message, published with the sequence that must be the last of its subject. So the messages of
a subject are a chain, each accepted only while its predecessor was the last. If the answer to a publish is
lost, the same message is published again until its fate is known: once another message follows the
predecessor, ours can never enter; until then it can be repeated without harm.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec

from csp.cluster.bus import Bus
from csp.cluster.names import log_subject, news_subject, shard_of, stream_name
from csp.cluster.stored_batches import (
    EXPECTED,
    MESSAGE_ID,
    READ_S,
    StoredBatch,
    find_message,
    headers_of,
    read_patches,
    read_stored,
)
from csp.errors import Broken, Deposed, LogLost, StorageFull
from csp.journal import Batch, Place

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger(__name__)

PUBLISH_S: Final = 0.4
AGAIN_S: Final = 0.05
#: A reader that has received nothing for this long asks whether it has missed messages. As long as nothing
#: comes it asks half as often each time, because most of many rooms are silent.
SILENCE_S: Final = 1.0
MOST_SILENCE_S: Final = 32.0
MESSAGES_AT_ONCE: Final = 256
BYTES_AT_ONCE: Final = 1 << 20
#: While less than this is free, the log counts as full.
RESERVE_BYTES: Final = 64 * 1024
_FULL: Final = ("the NATS servers have no space left, the room is read-only", "give them more space")

#: JetStream's codes: another message is last, or is just being stored.
_WRONG_LAST: Final = frozenset({10071, 10164})
#: No space in the stream, its account or its servers.
_NO_SPACE: Final = frozenset({10002, 10023, 10047, 10077})
_LAST_SEQUENCE: Final = re.compile(r"wrong last sequence: (\d+)")


class StreamLog:
    """The log of one room; see `Log`."""

    def __init__(self, bus: Bus, room: str) -> None:
        self._bus = bus
        self._room = room
        self._subject = log_subject(room)
        self._news_subject = news_subject(room)
        self._stream = stream_name(shard_of(room))
        # Makes message ids unique, also among processes.
        self._own_name = uuid4().hex
        self._published = 0
        self._is_closed = False
        self._tails: set[asyncio.Queue[Msg | None]] = set()

    async def append(self, batch: Batch, after: Place) -> Place:
        """See `Log.append`."""
        if self._is_closed:
            raise Broken("the log is closed")
        if batch.first_seq != after.seq + 1:
            raise Broken(f"the log is at seq {after.seq}, got a batch that starts at {batch.first_seq}")
        self._published += 1
        message_id = f"{self._own_name}:{self._published}"
        headers = headers_of(batch) | {EXPECTED: str(after.mark), MESSAGE_ID: message_id}
        data = b"\n".join(batch.lines)
        size = len(data) + sum(len(key) + len(value) + 4 for key, value in headers.items()) + 12
        if 0 < self._bus.max_payload < size:
            raise Broken(
                f"a batch has {size} bytes; the NATS servers accept {self._bus.max_payload}",
                "raise max_payload in their configuration",
            )
        mark = await self._publish(data, headers, after, message_id)
        return Place(batch.first_seq + len(batch.lines) - 1, mark)

    async def _publish(self, data: bytes, headers: Mapping[str, str], after: Place, message_id: str) -> int:
        """Publish a message until its fate is known; return its sequence."""
        is_unknown = False
        while not self._is_closed:
            try:
                message = await self._bus.request(self._subject, data, headers, timeout_s=PUBLISH_S)
                answer = json.loads(message.data)
            except (LogLost, ValueError):
                is_unknown = True
                await asyncio.sleep(AGAIN_S)
                continue
            error = answer.get("error")
            if error is None:
                return int(answer["seq"])
            code = error.get("err_code")
            if code in _WRONG_LAST:
                mark = await self._resolve(after, message_id, error.get("description", ""))
                if mark is not None:
                    return mark
            elif code in _NO_SPACE and not is_unknown:
                raise StorageFull(*_FULL)
            elif code in _NO_SPACE or error.get("code") in (500, 503):
                # An earlier attempt may yet be stored.
                is_unknown = True
            elif not is_unknown:
                raise LogLost(f"the NATS servers refuse the log of this room: {error.get('description')}")
            await asyncio.sleep(AGAIN_S)
        raise LogLost("the log was closed before the NATS servers had answered")

    async def _resolve(self, after: Place, message_id: str, description: str) -> int | None:
        """Return our sequence if we are the one that follows, None if nobody does yet; raise Deposed."""
        last = _LAST_SEQUENCE.search(description)
        if last is not None and int(last[1]) < after.mark:
            raise Deposed(f"the log of this room ends at {last[1]}, before {after.mark}: it has lost events")
        try:
            following = await self._following(after.mark)
        except LogLost:
            return None
        if following is None:
            return None
        if following.message_id == message_id:
            return following.place.mark
        raise Deposed(f"another gateway has appended to the log of this room after seq {after.seq}")

    async def check(self) -> None:
        """See `Log.check`."""
        answer = await self._bus.ask(f"STREAM.INFO.{self._stream}", {}, timeout_s=READ_S)
        if "error" in answer:
            raise LogLost(f"stream {self._stream}: {answer['error'].get('description')}")
        limit, used = answer["config"]["max_bytes"], answer["state"]["bytes"]
        if 0 < limit < used + RESERVE_BYTES:
            raise StorageFull(*_FULL)

    async def last_seq(self) -> int:
        """Return the seq of the last event; 0 if there is none."""
        stored = await find_message(self._bus, self._room, {"last_by_subj": self._subject})
        return stored.place.seq if stored is not None else 0

    # --- reading ---------------------------------------------------------------------------------

    async def replay(self, after: Place) -> AsyncIterator[tuple[Place, Batch]]:
        """See `Log.replay`."""
        here = after
        while True:
            async for stored in self._read_on(here.mark):
                async for found in self._patched(here, stored):
                    here = _later(here, found.place)
                    if (batch := _after(found.batch, after.seq)) is not None:
                        yield found.place, batch
            # Any replica may have answered; the leader knows the end.
            leading = await self._following(here.mark)
            if leading is None:
                return
            async for found in self._patched(here, leading):
                here = _later(here, found.place)
                if (batch := _after(found.batch, after.seq)) is not None:
                    yield found.place, batch

    async def _patched(self, here: Place, stored: StoredBatch) -> AsyncIterator[StoredBatch]:
        """Yield a batch, and before it what stands for the batches that were removed before it."""
        first_seq, known = stored.batch.first_seq, here.seq
        if first_seq > known + 1 and not stored.is_base:
            patches = [
                one for one in await read_patches(self._bus, self._room) if one.batch.first_seq < first_seq
            ]
            bases = [one for one in patches if one.is_base and one.place.seq > known]
            if bases:
                # It replaces everything before it, also what the reader has.
                yield bases[-1]
                known = bases[-1].place.seq
            for patch in patches:
                if not patch.is_base and patch.batch.first_seq <= known + 1 <= patch.place.seq:
                    yield patch
                    known = patch.place.seq
            if known + 1 < first_seq:
                raise LogLost(f"the log of this room has a hole: {first_seq} follows {known}")
        yield stored

    async def tail(self, after: Place) -> AsyncIterator[tuple[Place, Batch]]:
        """See `Log.tail`."""
        here = after
        news: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._tails.add(news)
        end = await self._bus.follow(self._news_subject, news.put_nowait)
        try:
            while not self._is_closed:
                try:
                    async for place, batch in self.replay(here):
                        yield place, batch
                        here = place
                except LogLost:
                    await asyncio.sleep(AGAIN_S)
                    continue
                while (message := await self._next_message(news, here.mark)) is not None:
                    stored = _from_news(message)
                    if stored.place.mark <= here.mark:
                        continue
                    if int((message.headers or {}).get("Nats-Last-Sequence", "-1")) != here.mark:
                        break
                    yield stored.place, stored.batch
                    here = stored.place
        finally:
            self._tails.discard(news)
            await end()

    async def _next_message(self, news: "asyncio.Queue[Msg | None]", mark: int) -> "Msg | None":
        """Return the next message; None if some were missed, or may have been."""
        silence_s = SILENCE_S
        while True:
            try:
                return await _next(news, silence_s)
            except TimeoutError:
                silence_s = min(2 * silence_s, MOST_SILENCE_S)
            try:
                if await self._following(mark) is not None:
                    return None
            except LogLost:
                silence_s = SILENCE_S

    def look(self) -> None:
        """Look for new batches now, in case some were not heard of."""
        for news in self._tails:
            news.put_nowait(None)

    async def close(self) -> None:
        """See `Log.close`."""
        self._is_closed = True
        self.look()

    async def _read_on(self, mark: int) -> AsyncIterator[StoredBatch]:
        """Yield what one of the replicas has after a mark."""
        while True:
            asked = {"seq": mark + 1, "next_by_subj": self._subject, "batch": MESSAGES_AT_ONCE}
            body = json.dumps(asked | {"max_bytes": BYTES_AT_ONCE}).encode()
            subject = f"$JS.API.DIRECT.GET.{self._stream}"
            async with self._bus.reading:
                found = [one async for one in self._bus.request_many(subject, body, timeout_s=READ_S)]
            stored = [one for one in found if "Status" not in (one.headers or {})]
            for message in stored:
                headers = message.headers or {}
                mark = int(headers["Nats-Sequence"])
                yield read_stored(headers, message.data, mark)
            if not stored:
                return

    async def _following(self, mark: int) -> StoredBatch | None:
        """Return the first message of the room after a mark, as the leader of the stream has it."""
        asked = {"seq": mark + 1, "next_by_subj": self._subject}
        async with self._bus.reading:
            return await find_message(self._bus, self._room, asked)


async def _next(news: "asyncio.Queue[Msg | None]", silence_s: float) -> "Msg | None":
    async with asyncio.timeout(silence_s):
        return await news.get()


def _from_news(message: "Msg") -> StoredBatch:
    headers: dict[str, Any] = message.headers or {}
    return read_stored(headers, message.data, int(headers["Nats-Sequence"]))


def _later(here: Place, place: Place) -> Place:
    return Place(max(here.seq, place.seq), max(here.mark, place.mark))


def _after(batch: Batch, seq: int) -> Batch | None:
    """Return the part of a batch after a seq; None if there is none."""
    skipped = seq + 1 - batch.first_seq
    if skipped <= 0:
        return batch
    lines = batch.lines[skipped:]
    return msgspec.structs.replace(batch, lines=lines, first_seq=seq + 1) if lines else None
