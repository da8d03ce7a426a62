"""Every shape that crosses a border of the gateway: bodies, answers, frames.

The types are msgspec structs, because one declaration then serves the parser, the encoder and
/openapi.json. Field names are Python's; `field(name=...)` keeps the names the seeds gave the wire.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, NewType, TypeVar

import msgspec
from msgspec import Meta, field

from csp.errors import BadInput, TooLarge

AgentId = NewType("AgentId", str)
MessageId = NewType("MessageId", str)

HUMAN: Final = AgentId("human")
SYSTEM: Final = AgentId("system")
ALL: Final = AgentId("all")

MAX_TEXT_BYTES: Final = 256 * 1024
# JSON may escape one byte of text as six, so the raw body is allowed more than the text in it.
MAX_BODY_BYTES: Final = 6 * MAX_TEXT_BYTES + 16 * 1024
DEFAULT_THREAD: Final = "default"

Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:@+=-]{1,128}\Z", examples=["m-1"])]
#: An id that a client chooses; those of the form m-1 are the room's.
OwnId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:@+=-]{1,128}\Z", examples=["question-1"])]
Name = Annotated[str, Meta(min_length=1, max_length=128, examples=["claude"])]
Thread = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}\Z", examples=["default"])]
Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_BYTES, examples=["hello"])]
Note = Annotated[str, Meta(max_length=2000)]
Scalar = str | int | float | bool | None
Capabilities = Annotated[dict[str, Scalar], Meta(max_length=64)] | Annotated[list[str], Meta(max_length=64)]


class Kind(StrEnum):
    CLI = "cli"
    API = "api"
    HUMAN = "human"
    MCP = "mcp"
    WEB = "web"
    DEMO = "demo"


class Role(StrEnum):
    """What a token may do; `agent` and `orchestrator` are also roles of participants."""

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


class ReportedState(StrEnum):
    """The delivery states a participant may report; the others are the room's to decide."""

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
    """The states a participant may say of itself; `offline` means it is leaving on purpose."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    NEEDS_APPROVAL = "needs_approval"
    NEEDS_HUMAN = "needs_human"
    LIMITED = "limited"
    OFFLINE = "offline"


class ControlVerb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    SHARE = "share"
    NOSHARE = "noshare"
    INTERRUPT = "interrupt"
    APPROVE = "approve"
    DENY = "deny"
    RESTART = "restart"


class MessageAction(StrEnum):
    CANCEL = "cancel"
    RESEND = "resend"
    CONTINUE = "continue"
    REDACT = "redact"


class Mode(StrEnum):
    FREEFORM = "freeform"


class DeliverKind(StrEnum):
    MESSAGE = "message"
    TURN = "turn"
    CONTROL = "control"


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value that travels."""


# --- what a peer sends ---------------------------------------------------------------------------


class RegisterBody(Struct, frozen=True):
    agent_id: Name = field(name="agentId")
    capabilities: Capabilities | None = None
    kind: Kind = Kind.CLI
    role: JoinRole = JoinRole.AGENT


class MessageBody(Struct, frozen=True):
    to: Annotated[str, Meta(min_length=1, max_length=128, examples=["claude", "all"])]
    content: Text
    thread: Thread | None = None
    reply_to: Id | None = field(name="replyTo", default=None)
    urgent: bool = False
    id: OwnId | None = None


class Handoff(Struct, frozen=True):
    to: Name
    task: Annotated[str, Meta(min_length=1, max_length=500)]


class Usage(Struct, frozen=True):
    """Tokens and money of one reply, as the provider or the CLI's transcript counted them."""

    input: Annotated[int, Meta(ge=0, le=2**53)] = 0
    output: Annotated[int, Meta(ge=0, le=2**53)] = 0
    cost_usd: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    model: Annotated[str, Meta(max_length=128)] | None = None


class OutputBody(Struct, frozen=True):
    content: Text
    turn: Id | None = None
    reply_to: Id | None = field(name="replyTo", default=None)
    handoff: Handoff | None = None
    final: bool = False
    usage: Usage | None = None
    thread: Thread | None = None
    id: OwnId | None = None


class DeliveryBody(Struct, frozen=True):
    id: Id
    state: ReportedState
    reason: Note = ""
    agent: Name | None = None


class StateBody(Struct, frozen=True):
    state: ReportedAgentState
    detail: Note = ""
    until: Annotated[float, Meta(ge=0, le=1e11)] | None = None


class WorkingBody(Struct, frozen=True):
    note: Note = ""


class ModeBody(Struct, frozen=True):
    mode: Annotated[str, Meta(max_length=64, examples=["freeform"])]
    topic: Text | None = None


class ControlBody(Struct, frozen=True):
    choice: Annotated[int, Meta(ge=1, le=99)] | None = None


class PruneBody(Struct, frozen=True):
    before: Annotated[int, Meta(ge=1, le=2**53)]


class ControlDoneBody(Struct, frozen=True):
    id: Id
    state: ReportedState = ReportedState.CONFIRMED
    reason: Note = ""


class NoBody(Struct, frozen=True):
    """Nothing needs to be said; whatever is sent is not looked at."""


Seq = Annotated[int, Meta(ge=0, le=2**53)]
WaitS = Annotated[float, Meta(ge=0, le=60)]


class NoQuery(Struct, frozen=True):
    """No parameter."""


class HistoryParams(Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    after: Seq | None = None
    before: Seq | None = None
    agent: Annotated[str, Meta(max_length=128)] | None = None
    session: Id | None = None
    types: Annotated[str, Meta(pattern=r"^[a-z_.]{1,32}(,[a-z_.]{1,32})*\Z", max_length=400)] | None = None
    q: Annotated[str, Meta(max_length=1000)] | None = None
    wait: WaitS = 0


class InboxParams(Struct, frozen=True):
    after: Seq = 0
    wait: WaitS = 0


class WatchParams(Struct, frozen=True):
    after: Seq | None = None


class Op(Struct, frozen=True):
    """The head of a WebSocket operation; the rest of the object is the HTTP body of that name."""

    op: str
    ref: int | str | None = None


# --- what the gateway answers --------------------------------------------------------------------


class ErrorView(Struct, frozen=True):
    error: str
    hint: str


class Done(Struct, frozen=True, omit_defaults=False):
    success: bool = True


class RegisteredView(Struct, frozen=True):
    success: bool
    agent_id: str = field(name="agentId")
    token: str
    seq: int


class SentView(Struct, frozen=True):
    success: bool
    id: str
    seq: int
    recipients: tuple[str, ...]


class OutputView(Struct, frozen=True):
    success: bool
    id: str
    seq: int
    recipients: tuple[str, ...]
    late: bool = False


class ControlView(Struct, frozen=True):
    success: bool
    seq: int
    id: str | None = None


class WorkingView(Struct, frozen=True):
    success: bool
    extended: bool


class StopView(Struct, frozen=True):
    success: bool
    stopped: tuple[str, ...]


class DeliveryView(Struct, frozen=True):
    state: DeliveryState
    at: float
    reason: str | None = None


class MessageView(Struct, frozen=True):
    id: str
    seq: int
    sender: str
    recipients: dict[str, DeliveryView]


class AgentView(Struct, frozen=True, omit_defaults=False):
    id: str
    name: str
    kind: Kind
    role: JoinRole
    capabilities: Capabilities | None
    online: bool
    state: AgentState
    queued: int
    last_seen: float = field(name="lastSeen")
    share: bool = False
    detail: str = ""
    until: float | None = None


class Deliver(Struct, frozen=True):
    """One thing for one participant to act on, sent until its delivery has ended."""

    id: str
    seq: int
    kind: DeliverKind
    sender: str = field(name="from")
    text: str
    urgent: bool
    state: DeliveryState = DeliveryState.QUEUED
    thread: str = DEFAULT_THREAD
    reply_to: str | None = field(name="replyTo", default=None)
    control: ControlVerb | None = None
    choice: int | None = None
    turn: str | None = None


class DeliverFrame(Struct, frozen=True):
    deliver: Deliver


class WaitingView(Struct, frozen=True):
    """A message that somebody has not finished with, and why."""

    id: str
    seq: int
    sender: str
    target: str
    text: str
    agent: str
    state: DeliveryState
    at: float
    reason: str | None = None


class QueueView(Struct, frozen=True, omit_defaults=False):
    items: tuple[WaitingView, ...]


class HistoryView(Struct, frozen=True, omit_defaults=False):
    """A page of events, oldest first."""

    items: tuple[dict[str, Any], ...]
    next: int | None


class PrunedView(Struct, frozen=True):
    success: bool
    seq: int


class InboxView(Struct, frozen=True, omit_defaults=False):
    items: tuple[Deliver, ...]
    next: int


class ModeView(Struct, frozen=True, omit_defaults=False):
    """The orchestration state in the names and shapes of the seeds."""

    mode: Mode = Mode.FREEFORM
    topic: str | None = None
    round: int = 0
    max_rounds: int = field(name="maxRounds", default=0)
    turn_order: tuple[str, ...] = field(name="turnOrder", default=())
    current_turn_index: int = field(name="currentTurnIndex", default=0)
    completed_turns: tuple[str, ...] = field(name="completedTurns", default=())
    round_outputs: dict[str, dict[str, str]] = field(name="roundOutputs", default_factory=dict)
    proposals: dict[str, dict[str, str]] = field(default_factory=dict)
    votes: dict[str, dict[str, str]] = field(default_factory=dict)
    current_turn: str | None = field(name="currentTurn", default=None)
    waiting_for: tuple[str, ...] = field(name="waitingFor", default=())
    turn: str | None = None
    turns: dict[str, str] = field(default_factory=dict)
    phase: str | None = None
    session_id: str | None = field(name="sessionId", default=None)
    status: str | None = None
    reason: str | None = None
    started_at: float | None = field(name="startedAt", default=None)
    deadline: float | None = None


class ModeSetView(Struct, frozen=True):
    success: bool
    orchestration: ModeView


class JournalHealth(Struct, frozen=True, omit_defaults=False):
    """What the reading of the whole journal after a start has found so far."""

    writable: bool
    scrub: str
    checked: int = 0
    damaged: tuple[int, ...] = ()


class HealthView(Struct, frozen=True, omit_defaults=False):
    status: str
    room: str
    version: str
    seq: int
    uptime_s: float
    agents: int
    watchers: int
    journal: JournalHealth


T = TypeVar("T")
_decoders: dict[object, msgspec.json.Decoder[object]] = {}


def parse(kind: type[T], data: bytes) -> T:
    """Turn bytes from a peer into `kind`, or raise BadInput naming what is wrong and where."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        value: T = decoder.decode(data)  # type: ignore[assignment]  # the cache forgets the parameter
    except msgspec.ValidationError as exc:
        raise BadInput(_lower(str(exc)), "see /openapi.json for the shape of this request") from exc
    except RecursionError as exc:
        raise BadInput("json is nested too deeply", "send a flat object") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise BadInput(
            f"body is not json: {_lower(str(exc))}", 'send a json object such as {"to": "all"}'
        ) from exc
    return value


def parse_query(kind: type[T], query: Mapping[str, str]) -> T:
    """Turn a query string into `kind`; the values are words, so numbers are read from text."""
    try:
        return msgspec.convert(dict(query), kind, strict=False)
    except msgspec.ValidationError as exc:
        raise BadInput(_lower(str(exc)), "see /openapi.json for the parameters") from exc


def check_text(text: str) -> None:
    """Refuse a text over the limit; the limit counts bytes, the schema could only count characters."""
    if len(text) > MAX_TEXT_BYTES // 4 and len(text.encode()) > MAX_TEXT_BYTES:
        raise TooLarge(f"text is over {MAX_TEXT_BYTES} bytes", "put it into a file and send its path")


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


encode = msgspec.json.Encoder().encode
