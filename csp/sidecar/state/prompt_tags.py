"""Which message stands behind the tag of a prompt, for the replies to it."""

from typing import Final

import msgspec

from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver
from csp.terminal.prompt import tag_of

KEPT: Final = 500


class TaggedMessage(msgspec.Struct, frozen=True, array_like=True):
    """What a reply is addressed to: a message of the room, perhaps a turn."""

    id: str
    turn: str | None = None


class PromptTags:
    """Remembers the last messages that were typed in."""

    def __init__(self, known: dict[str, TaggedMessage] | None = None) -> None:
        self.known = known or {}

    def remember(self, item: Deliver) -> None:
        """Note whom a reply to this prompt is for."""
        turn = item.turn if item.kind is DeliverKind.TURN else None
        self.known[tag_of(item)] = TaggedMessage(item.id, turn)
        if len(self.known) > KEPT:
            del self.known[next(iter(self.known))]

    def find(self, tag: str | None) -> TaggedMessage | None:
        """Return whom a reply is for; nobody for a prompt that was no message, such as the initial one."""
        asked = None if tag is None else self.known.get(tag)
        return asked if asked is not None and asked.id else None
