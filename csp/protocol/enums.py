"""The ids, enumerations and limits of the protocol."""

from enum import StrEnum
from typing import Annotated, Final, NewType

import msgspec
from msgspec import Meta

AgentId = NewType("AgentId", str)
MessageId = NewType("MessageId", str)
SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)

HUMAN: Final = AgentId("human")
SYSTEM: Final = AgentId("system")
ALL: Final = AgentId("all")
#: The sender of the task in a handoff.
ROUTER: Final = AgentId("router")

MAX_TEXT_BYTES: Final = 256 * 1024
#: The text used for an empty reply.
NO_TEXT: Final = "(no text)"
# JSON may escape one byte of text as six, so the raw body is allowed more than the text in it.
MAX_BODY_BYTES: Final = 6 * MAX_TEXT_BYTES + 16 * 1024
DEFAULT_THREAD: Final = "default"

Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:@+=-]{1,128}\Z", examples=["m-1"])]
#: An id chosen by a client; ids of the form m-1 are reserved for the room.
OwnId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:@+=-]{1,128}\Z", examples=["question-1"])]
Name = Annotated[str, Meta(min_length=1, max_length=128, examples=["claude"])]
Thread = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}\Z", examples=["default"])]
Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_BYTES, examples=["hello"])]
#: The text of a reply to a failed turn, which may be empty.
MaybeText = Annotated[str, Meta(max_length=MAX_TEXT_BYTES, examples=["done"])]
Note = Annotated[str, Meta(max_length=2000)]
Word = Annotated[str, Meta(max_length=256)]
Scalar = Word | int | float | bool | None
Capabilities = Annotated[dict[Word, Scalar], Meta(max_length=64)] | Annotated[list[Word], Meta(max_length=64)]


class ParticipantKind(StrEnum):
    CLI = "cli"
    API = "api"
    HUMAN = "human"
    MCP = "mcp"
    WEB = "web"
    DEMO = "demo"


class Role(StrEnum):
    """The role of a token; `agent` and `orchestrator` are also roles of participants."""

    NONE = "none"
    AGENT = "agent"
    ORCHESTRATOR = "orchestrator"
    ROOM = "room"


class JoinRole(StrEnum):
    AGENT = "agent"
    ORCHESTRATOR = "orchestrator"


class DeliveryState(StrEnum):
    QUEUED = "queued"
    HELD = "held"
    TYPED = "typed"
    SUBMITTED = "submitted"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


PENDING: Final = frozenset({DeliveryState.QUEUED, DeliveryState.HELD, DeliveryState.TYPED})
UNDELIVERED: Final = frozenset({DeliveryState.FAILED, DeliveryState.WITHDRAWN, DeliveryState.EXPIRED})


class ReportedState(StrEnum):
    """The delivery states a participant may report; the room sets the others."""

    HELD = "held"
    TYPED = "typed"
    SUBMITTED = "submitted"
    CONFIRMED = "confirmed"
    FAILED = "failed"


class HeldReason(StrEnum):
    OFFLINE = "offline"
    STARTING = "starting"
    BUSY = "busy"
    DIALOG = "dialog"
    TYPING = "typing"
    DRAFT = "draft"
    PAUSED = "paused"
    TURN = "turn"
    LOOP = "loop"
    STUCK = "stuck"
    #: A dialog opened while the message was typed; the message may be in the composer underneath.
    COVERED = "covered"


class AgentState(StrEnum):
    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    NEEDS_APPROVAL = "needs_approval"
    NEEDS_HUMAN = "needs_human"
    LIMITED = "limited"
    PAUSED = "paused"
    BENCHED = "benched"
    OFFLINE = "offline"


class ReportedAgentState(StrEnum):
    """The states a participant may report; `offline` means that it is leaving on purpose."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    NEEDS_APPROVAL = "needs_approval"
    NEEDS_HUMAN = "needs_human"
    LIMITED = "limited"
    OFFLINE = "offline"


class NoticeKind(StrEnum):
    """The kind of a fact about an agent that people should know."""

    UNTESTED_VERSION = "untested_version"
    DISK_FULL = "disk_full"
    FILE_ATTACHED = "file_attached"
    PAST_THE_ROOM = "past_the_room"


class Ending(StrEnum):
    """How the turn that a reply belongs to ended."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LIMITED = "limited"


class ControlVerb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    SHARE = "share"
    NOSHARE = "noshare"
    INTERRUPT = "interrupt"
    APPROVE = "approve"
    DENY = "deny"
    RESTART = "restart"


class SessionAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    EXTEND = "extend"
    SKIP = "skip"
    KICK = "kick"
    STOP = "stop"
    DECIDE = "decide"


class MessageAction(StrEnum):
    CANCEL = "cancel"
    RESEND = "resend"
    CONTINUE = "continue"
    REDACT = "redact"


class Mode(StrEnum):
    FREEFORM = "freeform"
    SINGLE = "single"
    COLLABORATE = "collaborate"
    AUTOPILOT = "autopilot"
    ROUND_ROBIN = "round_robin"
    ORCHESTRATOR = "orchestrator"
    DEBATE = "debate"
    CONSENSUS = "consensus"
    REVIEW = "review"


class DeliverKind(StrEnum):
    MESSAGE = "message"
    TURN = "turn"
    CONTROL = "control"


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base class of values in requests and responses."""
