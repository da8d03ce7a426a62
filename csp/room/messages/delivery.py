"""The life of a message on its way to one recipient; what an agent has sent already."""

from collections.abc import Collection
from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec

from csp.protocol.enums import AgentId, HeldReason, MessageId
from csp.protocol.enums import DeliveryState as S

_ENDED: Final[frozenset[S]] = frozenset()

#: Where a delivery may go from each state. `submitted` ends the work; a proof may still come later.
MOVES: Final[dict[S, frozenset[S]]] = {
    S.QUEUED: frozenset({S.HELD, S.TYPED, S.SUBMITTED, S.CONFIRMED, S.FAILED, S.WITHDRAWN, S.EXPIRED}),
    S.HELD: frozenset(
        {S.QUEUED, S.HELD, S.TYPED, S.SUBMITTED, S.CONFIRMED, S.FAILED, S.WITHDRAWN, S.EXPIRED}
    ),
    S.TYPED: frozenset({S.HELD, S.SUBMITTED, S.CONFIRMED, S.FAILED}),
    S.SUBMITTED: frozenset({S.CONFIRMED}),
    S.CONFIRMED: _ENDED,
    S.FAILED: _ENDED,
    S.WITHDRAWN: _ENDED,
    S.EXPIRED: _ENDED,
}
PENDING: Final = frozenset({S.QUEUED, S.HELD, S.TYPED})
UNDELIVERED: Final = frozenset({S.FAILED, S.WITHDRAWN, S.EXPIRED})


def may_move(old: S, new: S) -> bool:
    """Tell whether a delivery may go from `old` to `new`."""
    return new in MOVES[old]


def is_untouched(state: S, reason: str) -> bool:
    """Tell whether nothing has reached the recipient's composer, so that nothing has to be undone there."""
    return state in (S.QUEUED, S.HELD) and reason != HeldReason.STUCK


# --- what an agent has sent by tool ---------------------------------------------------------------
#
# So that printing the same sends nothing a second time. A model that calls a tool often says in words what it
# did: the command with the same text, or the text as its answer. Both orders occur, since the words before a
# tool call are read from a file that may come later than the call. So what is sent in the midst of a prompt
# is remembered until the prompt is over, each message to be matched once: who sends twice by tool, or prints
# twice, means it.

#: Of a prompt with more messages the last ones are remembered.
KEPT: Final = 50
_BLANK_LINE: Final = "\n\n"


class Channel(StrEnum):
    """How an agent sent a message while it was at work."""

    TOOL = "tool"
    WORDS = "words"


class SentMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message of the prompt that an agent works on, as far as it takes to know it again."""

    id: MessageId
    target: AgentId
    way: Channel
    marks: tuple[str, ...]


def fingerprints(text: str) -> tuple[str, ...]:
    """Return by what a text is known again: as it is, and by its first paragraph.

    A printed command ends at a blank line, so of a long text it repeats the first paragraph alone.
    """
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    first = lines.partition(_BLANK_LINE)[0]
    return tuple(dict.fromkeys((_mark(lines), _mark(first))))


def _mark(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def find_duplicate(
    sent: tuple[SentMessage, ...],
    way: Channel,
    targets: Collection[AgentId],
    text: str,
    used: Collection[MessageId] = (),
) -> MessageId | None:
    """Return the first message that went this way with the same text, if none has been matched with it."""
    if not sent:
        return None
    mark = fingerprints(text)[0]
    for one in sent:
        # Words repeat a tool's first paragraph; a tool that says less than the words did says something else.
        known = one.marks if one.way is Channel.TOOL else one.marks[:1]
        if one.way is way and one.target in targets and mark in known and one.id not in used:
            return one.id
    return None
