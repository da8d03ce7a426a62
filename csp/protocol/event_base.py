"""The fields common to all events, and those common to all messages."""

import msgspec
from msgspec import field

from csp.protocol.enums import AgentId, Ending, MessageId, SessionId
from csp.protocol.requests import Handoff, Usage


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """The common fields of all events; `seq` counts the room's events without gaps."""

    seq: int
    ts: float
    id: MessageId
    sender: AgentId
    target: AgentId
    thread: str
    text: str


class MessageEvent(Event, frozen=True, omit_defaults=True):
    """A message was accepted for these recipients."""

    recipients: tuple[AgentId, ...]
    reply_to: MessageId | None = field(name="replyTo", default=None)
    hops: int = 0
    urgent: bool = False
    held: str = ""
    expires: float | None = None
    turn: str | None = None
    #: Shared by a turn and its reply.
    call_id: str | None = None
    handoff: Handoff | None = None
    final: bool = False
    usage: Usage | None = None
    ending: Ending = Ending.DONE
    #: The session of the message, if any; no other agent may read it before the end of phase `sealed`.
    session_id: SessionId | None = None
    round: int | None = None
    max_rounds: int | None = None
    sealed: int = 0
    #: Recipients that get the message with their next turn.
    waits: tuple[AgentId, ...] = ()
    #: Whether it was not requested, arrived after its turn, or violated the envelope format.
    out_of_turn: bool = False
    late: bool = False
    malformed: bool = False
    #: Its position on its session's board, if it is on that board.
    idx: int | None = None
    #: How an agent sent it during its turn (`tool` or `words`), and the earlier message with the same text.
    via: str = ""
    repeats: MessageId | None = None
    #: The sender's other sealed phases: the number of the phase by session.
    seals: dict[SessionId, int] = field(default_factory=dict)
