"""The messages of a room in its stream: batches, and the patches that stand for batches that were removed.

A patch has the number of its first event in its subject, and the place of the batch that it stands for in a
header. Readers look for one when they find a hole.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from csp.cluster.bus import Bus
from csp.cluster.names import patch_subject, shard_of, stream_name
from csp.errors import LogLost
from csp.journal import Batch, Place
from csp.journal.line_reader import type_and_seq

READ_S: Final = 2.0
MESSAGE_ID: Final = "Nats-Msg-Id"
EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_FIRST_SEQ: Final = "Csp-First-Seq"
_EPOCH: Final = "Csp-Epoch"
_OWNER: Final = "Csp-Owner"
_CALLS: Final = "Csp-Calls"
_MARK: Final = "Csp-Mark"
_calls: Final = msgspec.json.Decoder(dict[str, tuple[int, int]])


class StoredBatch(NamedTuple):
    """A batch with its place, and the message that contains it."""

    message_id: str
    place: Place
    batch: Batch
    sequence: int

    @property
    def is_base(self) -> bool:
        """Whether its line replaces everything before it."""
        return is_base(self.batch)


def is_base(batch: Batch) -> bool:
    """Return whether the line of a batch replaces everything before it."""
    head = type_and_seq(batch.lines[0]) if batch.lines else None
    return head is not None and head[0] == b"base"


def headers_of(batch: Batch) -> dict[str, str]:
    """Return the headers of a message with this batch."""
    headers = {_FIRST_SEQ: str(batch.first_seq), _EPOCH: str(batch.epoch), _OWNER: batch.owner}
    if batch.calls:
        headers[_CALLS] = json.dumps(batch.calls)
    return headers


def patch_headers(batch: Batch, mark: int) -> dict[str, str]:
    """Return the headers of a patch that stands for the batch at this mark."""
    return headers_of(batch) | {_MARK: str(mark)}


def read_stored(headers: Mapping[str, str], data: bytes, sequence: int) -> StoredBatch:
    """Return the batch of a message."""
    lines = tuple(data.split(b"\n")) if data else ()
    calls = headers.get(_CALLS)
    batch = Batch(
        lines=lines,
        first_seq=int(headers[_FIRST_SEQ]),
        epoch=int(headers.get(_EPOCH, "0")),
        owner=headers.get(_OWNER, ""),
        calls=_calls.decode(calls) if calls else {},
    )
    place = Place(batch.first_seq + len(lines) - 1, int(headers.get(_MARK, sequence)))
    return StoredBatch(headers.get(MESSAGE_ID, ""), place, batch, sequence)


def read_answer(answer: Mapping[str, Any]) -> StoredBatch | None:
    """Return the message that JetStream's API has answered; None if there is none."""
    error = answer.get("error")
    if error is not None:
        if error.get("code") == 404 and error.get("err_code") == 10037:
            return None
        raise LogLost(f"the stream cannot be read: {error.get('description')}")
    found = answer["message"]
    headers = _parse_headers(base64.b64decode(found.get("hdrs", "")))
    return read_stored(headers, base64.b64decode(found.get("data", "")), int(found["seq"]))


async def find_message(bus: Bus, room: str, asked: Mapping[str, object]) -> StoredBatch | None:
    """Return a message as the leader of the stream has it; None if there is none."""
    stream = stream_name(shard_of(room))
    return read_answer(await bus.ask(f"STREAM.MSG.GET.{stream}", asked, timeout_s=READ_S))


async def read_patches(bus: Bus, room: str) -> list[StoredBatch]:
    """Return all patches of a room, in the order of their events."""
    stream = stream_name(shard_of(room))
    asked = {"subjects_filter": patch_subject(room, "*")}
    answer = await bus.ask(f"STREAM.INFO.{stream}", asked, timeout_s=READ_S)
    if "error" in answer:
        raise LogLost(f"stream {stream}: {answer['error'].get('description')}")
    subjects = answer["state"].get("subjects") or {}
    found = [await find_message(bus, room, {"last_by_subj": subject}) for subject in subjects]
    return sorted((patch for patch in found if patch is not None), key=lambda patch: patch.batch.first_seq)


def _parse_headers(raw: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in raw.decode().split("\r\n")[1:] if line)
    return {key.strip(): value.strip() for key, _, value in pairs}
