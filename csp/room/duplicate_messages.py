"""Recognise a message that was sent before: by its id, or by the text that the agent has sent by tool."""

import re
from collections.abc import Collection
from typing import Final

from csp.errors import BadInput, Refused
from csp.protocol.enums import AgentId, MessageId
from csp.protocol.notices import NoticeCode
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Channel, Room, SentMessage, fingerprints

#: The ids that the room gives itself.
OWN_ID: Final = re.compile(r"^[mestn]-\d+\Z")


def is_repeated(room: Room, sender: AgentId, message_id: str) -> bool:
    """Return whether `sender` has sent this id before; raise if the id belongs to somebody else."""
    if OWN_ID.match(message_id):
        raise BadInput(f"id {message_id!r} has the format of the room's own ids", "use, for example, a UUID")
    known = room.message(message_id)
    if known is None:
        return False
    if known.sender != sender:
        raise Refused(f"id {message_id!r} is already used by another participant's message", "use a new id")
    return True


def find_duplicate(
    sent: tuple[SentMessage, ...],
    way: Channel,
    targets: Collection[AgentId],
    text: str,
    used: Collection[MessageId] = (),
) -> MessageId | None:
    """Return the first message sent through `way` with the same text that has not been matched yet."""
    if not sent:
        return None
    mark = fingerprints(text)[0]
    for one in sent:
        # A printed text may repeat only the first paragraph of a message sent by tool. A tool call with less
        # text than the printed one is a different message.
        known = one.marks if one.way is Channel.TOOL else one.marks[:1]
        if one.way is way and one.target in targets and mark in known and one.id not in used:
            return one.id
    return None


def notice_duplicate(draft: RoomDraft, agent: AgentId, what: str, known: MessageId) -> None:
    """Post a notice that a message was not sent because it duplicates one sent for the same prompt."""
    draft.notice(agent, NoticeCode.NOT_SENT_AGAIN(agent=agent, what=what, message=known), repeats=known)
