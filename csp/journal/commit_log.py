"""The log of a room, which commits its events in one order.

An append states its place in that order, and every place except the end is refused. So at most one writer at
a time succeeds, even if several of them believe that they own the room.
"""

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Protocol

import msgspec


class Place(NamedTuple):
    """A place in the order of a room: after the event `seq`.

    `mark` belongs to the log, which may need more than the seq to find the place; nothing else reads it.
    """

    seq: int
    mark: int = 0


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The journal lines of whole commands, which are committed together or not at all.

    The seqs of the lines are consecutive. `owner` and `epoch` name the writer. `calls` has the first and the
    last event of each call with an id, so that a call that is repeated is not carried out twice.
    """

    lines: tuple[bytes, ...]
    first_seq: int
    epoch: int = 0
    owner: str = ""
    calls: Mapping[str, tuple[int, int]] = msgspec.field(default_factory=dict)


class Log(Protocol):
    """The log of one room: the order of its events, and which of them are committed."""

    async def append(self, batch: Batch, after: Place) -> Place:
        """Commit a batch at the end of the log, and return the new end; do not cancel it.

        Raise Deposed if `after` is not the end, and StorageFull while there is no space. After an error
        no event of the batch is in the log or will ever be added to it. The outcome is unknown only after
        LogLost, which is raised if the log is closed before its store has answered.
        """

    async def check(self) -> None:
        """Raise StorageFull if an append would fail for lack of space."""

    def replay(self, after: Place) -> AsyncIterator[tuple[Place, Batch]]:
        """Yield everything committed after a place, with the place after each batch, then end.

        The lines come in order, without gaps or duplicates, but not in the batches in which they were
        appended. If the lines after the place were pruned, the base that replaces them comes first.
        """

    def tail(self, after: Place) -> AsyncIterator[tuple[Place, Batch]]:
        """Like `replay`, but then wait for each new batch; end when the log is closed."""

    async def close(self) -> None:
        """End every tail; appends are refused from now on."""
