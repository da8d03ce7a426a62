"""The log of a room in a cluster: one subject of a JetStream stream.

A batch is one message, published with the sequence that must be the last of its subject. So the messages of
a subject are a chain, each accepted only while its predecessor was the last. If the answer to a publish is
lost, the same message is published again until its fate is known: once another message follows the
predecessor, ours can never enter; until then it can be repeated without harm.
"""

import asyncio
import base64
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import msgspec

from csp.cluster.bus import Bus
from csp.cluster.names import log_subject, news_subject, shard_of, stream_name
from csp.errors import Broken, Deposed, LogLost, StorageFull
from csp.journal import Batch, Place

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger(__name__)

PUBLISH_S: Final = 0.4
READ_S: Final = 2.0
AGAIN_S: Final = 0.05
#: A reader that has received nothing for this long asks whether it has missed messages.
SILENCE_S: Final = 1.0
MESSAGES_AT_ONCE: Final = 256
BYTES_AT_ONCE: Final = 1 << 20
#: While less than this is free, the log counts as full.
RESERVE_BYTES: Final = 64 * 1024
_FULL: Final = ("the NATS servers have no space left, the room is read-only", "give them more space")

_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_MESSAGE_ID: Final = "Nats-Msg-Id"
_FIRST_SEQ: Final = "Csp-First-Seq"
_EPOCH: Final = "Csp-Epoch"
_OWNER: Final = "Csp-Owner"
_CALLS: Final = "Csp-Calls"
#: JetStream's codes: another message is last, or is just being stored.
_WRONG_LAST: Final = frozenset({10071, 10164})
#: No space in the stream, its account or its servers.
_NO_SPACE: Final = frozenset({10002, 10023, 10047, 10077})
_LAST_SEQUENCE: Final = re.compile(r"wrong last sequence: (\d+)")
_calls: Final = msgspec.json.Decoder(dict[str, tuple[int, int]])


class _Stored(NamedTuple):
    """A message of the stream."""

    message_id: str
    place: Place
    batch: Batch


class StreamLog:
    """The log of one room; see `Log`."""

    def __init__(self, bus: Bus, room: str) -> None:
        self._bus = bus
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
        headers = _headers(batch) | {_EXPECTED: str(after.mark), _MESSAGE_ID: message_id}
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
        asked = {"last_by_subj": self._subject}
        answer = await self._bus.ask(f"STREAM.MSG.GET.{self._stream}", asked, timeout_s=READ_S)
        stored = self._found(answer)
        return stored.place.seq if stored is not None else 0

    # --- reading ---------------------------------------------------------------------------------

    async def replay(self, after: Place) -> AsyncIterator[tuple[Place, Batch]]:
        """See `Log.replay`."""
        here = after
        while True:
            async for stored in self._read_on(here.mark):
                here = stored.place
                if (batch := _after(stored.batch, after.seq)) is not None:
                    yield here, batch
            # Any replica may have answered; the leader knows the end.
            leading = await self._following(here.mark)
            if leading is None:
                return
            here = leading.place
            if (batch := _after(leading.batch, after.seq)) is not None:
                yield here, batch

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
                while (message := await _next(news)) is not None:
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

    async def close(self) -> None:
        """See `Log.close`."""
        self._is_closed = True
        for news in self._tails:
            news.put_nowait(None)

    async def _read_on(self, mark: int) -> AsyncIterator[_Stored]:
        """Yield what one of the replicas has after a mark."""
        while True:
            asked = {"seq": mark + 1, "next_by_subj": self._subject, "batch": MESSAGES_AT_ONCE}
            body = json.dumps(asked | {"max_bytes": BYTES_AT_ONCE}).encode()
            count = 0
            subject = f"$JS.API.DIRECT.GET.{self._stream}"
            async for message in self._bus.request_many(subject, body, timeout_s=READ_S):
                headers = message.headers or {}
                if "Status" in headers:
                    break
                mark = int(headers["Nats-Sequence"])
                count += 1
                yield _stored(headers, message.data, mark)
            if not count:
                return

    async def _following(self, mark: int) -> _Stored | None:
        """Return the first message of the room after a mark, as the leader of the stream has it."""
        asked = {"seq": mark + 1, "next_by_subj": self._subject}
        return self._found(await self._bus.ask(f"STREAM.MSG.GET.{self._stream}", asked, timeout_s=READ_S))

    def _found(self, answer: Mapping[str, Any]) -> _Stored | None:
        error = answer.get("error")
        if error is not None:
            if error.get("code") == 404 and error.get("err_code") == 10037:
                return None
            raise LogLost(f"stream {self._stream}: {error.get('description')}")
        found = answer["message"]
        headers = _parse_headers(base64.b64decode(found.get("hdrs", "")))
        return _stored(headers, base64.b64decode(found.get("data", "")), int(found["seq"]))


async def _next(news: "asyncio.Queue[Msg | None]") -> "Msg | None":
    """Return the next message; None if some may have been missed, or after a long silence."""
    try:
        async with asyncio.timeout(SILENCE_S):
            return await news.get()
    except TimeoutError:
        return None


def _headers(batch: Batch) -> dict[str, str]:
    headers = {_FIRST_SEQ: str(batch.first_seq), _EPOCH: str(batch.epoch), _OWNER: batch.owner}
    if batch.calls:
        headers[_CALLS] = json.dumps(batch.calls)
    return headers


def _stored(headers: Mapping[str, str], data: bytes, mark: int) -> _Stored:
    lines = tuple(data.split(b"\n")) if data else ()
    calls = headers.get(_CALLS)
    batch = Batch(
        lines=lines,
        first_seq=int(headers[_FIRST_SEQ]),
        epoch=int(headers.get(_EPOCH, "0")),
        owner=headers.get(_OWNER, ""),
        calls=_calls.decode(calls) if calls else {},
    )
    place = Place(batch.first_seq + len(lines) - 1, mark)
    return _Stored(headers.get(_MESSAGE_ID, ""), place, batch)


def _from_news(message: "Msg") -> _Stored:
    headers: dict[str, Any] = message.headers or {}
    return _stored(headers, message.data, int(headers["Nats-Sequence"]))


def _parse_headers(raw: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in raw.decode().split("\r\n")[1:] if line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _after(batch: Batch, seq: int) -> Batch | None:
    """Return the part of a batch after a seq; None if there is none."""
    skipped = seq + 1 - batch.first_seq
    if skipped <= 0:
        return batch
    lines = batch.lines[skipped:]
    return msgspec.structs.replace(batch, lines=lines, first_seq=seq + 1) if lines else None
