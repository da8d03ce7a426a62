"""The responses of the gateway."""

from enum import StrEnum
from typing import Any

from msgspec import field

from csp.protocol import enums
from csp.protocol.requests import Dialog
from csp.protocol.session_parts import EndReason, Status, WaitKind


class ErrorView(enums.Struct, frozen=True):
    error: str
    hint: str


class Done(enums.Struct, frozen=True, omit_defaults=False):
    success: bool = True


class Succeeded(enums.Struct, frozen=True):
    success: bool


class RegisteredView(Succeeded, frozen=True):
    agent_id: str = field(name="agentId")
    token: str
    seq: int


class LinkView(Succeeded, frozen=True, omit_defaults=False):
    """A login link for one page; `hosts` are the addresses at which other machines reach the gateway."""

    code: str
    path: str
    expires: float
    hosts: tuple[str, ...] = ()


class EnteredView(Succeeded, frozen=True):
    token: str
    room: str
    expires: float


class MeView(enums.Struct, frozen=True, omit_defaults=False):
    """The owner of the token; the room's token represents its people."""

    id: str
    role: enums.Role
    kind: enums.ParticipantKind
    room: str


class StartedView(Succeeded, frozen=True):
    agent_id: str = field(name="agentId")
    state: str


class SentView(Succeeded, frozen=True):
    id: str
    seq: int
    recipients: tuple[str, ...]


class LineKind(StrEnum):
    """The kind of a typed line; a `command` must be performed by the interface itself.

    The kinds that ask have no effect yet; the response contains the question. After a yes to `confirm` or
    `ask_replace`, send the line again with `confirmed`; after `ask_topic`, send it with the topic appended.
    """

    EMPTY = "empty"
    MESSAGE = "message"
    TARGET = "target"
    DONE = "done"
    COMMAND = "command"
    CONFIRM = "confirm"
    ASK_TOPIC = "ask_topic"
    ASK_REPLACE = "ask_replace"


class LineView(enums.Struct, frozen=True):
    """The result of a typed line; `id`, `seq` and `recipients` are set for messages, `name` for commands."""

    kind: LineKind
    id: str = ""
    seq: int = 0
    recipients: tuple[str, ...] = ()
    to: str = ""
    name: str = ""
    rest: str = ""
    question: str = ""


class OutputView(Succeeded, frozen=True):
    id: str
    seq: int
    recipients: tuple[str, ...]
    late: bool = False
    posted: bool = True


class ControlView(Succeeded, frozen=True):
    seq: int
    id: str | None = None


class WorkingView(Succeeded, frozen=True):
    extended: bool


class StopView(Succeeded, frozen=True):
    stopped: tuple[str, ...]


class DeliveryView(enums.Struct, frozen=True):
    state: enums.DeliveryState
    at: float
    reason: str | None = None


class MessageView(enums.Struct, frozen=True):
    id: str
    seq: int
    sender: str
    recipients: dict[str, DeliveryView]


class AgentView(enums.Struct, frozen=True, omit_defaults=False):
    """A participant as the caller may see it.

    `context` is the number of tokens in its context after its last model call and `window` the number that
    fits into it; 0 if it is unknown or not for the caller. `work` describes the branch and the changed files
    of its git worktree.
    """

    id: str
    name: str
    kind: enums.ParticipantKind
    role: enums.JoinRole
    capabilities: enums.Capabilities | None
    online: bool
    state: enums.AgentState
    queued: int
    last_seen: float = field(name="lastSeen")
    share: bool = False
    detail: str = ""
    until: float | None = None
    dialog: Dialog | None = None
    context: int = 0
    window: int = 0
    work: str = ""


class Deliver(enums.Struct, frozen=True):
    """A delivery for one participant, sent until it has ended.

    For a turn, `handoffTo` lists the agents to which its reply may hand over, `repair` means that it asks
    again for a reply that could not be parsed, and `maxOutput` limits the tokens of the reply: more would
    cost too much. For a control, `about` is the command whose dialog it may answer.
    """

    id: str
    seq: int
    kind: enums.DeliverKind
    sender: str = field(name="from")
    text: str
    urgent: bool
    state: enums.DeliveryState = enums.DeliveryState.QUEUED
    thread: str = enums.DEFAULT_THREAD
    reply_to: str | None = field(name="replyTo", default=None)
    control: enums.ControlVerb | None = None
    choice: int | None = None
    about: str = ""
    turn: str | None = None
    turn_signal: str | None = field(name="turnSignal", default=None)
    current_turn: str | None = field(name="currentTurn", default=None)
    ending: enums.Ending = enums.Ending.DONE
    handoff_to: tuple[str, ...] = field(name="handoffTo", default=())
    is_repair: bool = field(name="repair", default=False)
    max_output: int | None = field(name="maxOutput", default=None)


class DeliverFrame(enums.Struct, frozen=True):
    deliver: Deliver


class WaitingView(enums.Struct, frozen=True):
    """A message with unfinished deliveries, and the reasons for them."""

    id: str
    seq: int
    sender: str
    target: str
    text: str
    agent: str
    state: enums.DeliveryState
    at: float
    reason: str | None = None


class QueueView(enums.Struct, frozen=True, omit_defaults=False):
    items: tuple[WaitingView, ...]


class HistoryView(enums.Struct, frozen=True, omit_defaults=False):
    """A page of events, oldest first."""

    items: tuple[dict[str, Any], ...]
    next: int | None


#: A text; null, which closes the last opened element; or an opening or self-contained element with details.
MarkdownToken = str | tuple[str | int, ...] | None


class MarkdownText(enums.Struct, frozen=True):
    """The Markdown elements of a text, or of its first `length` UTF-16 units if it is too long."""

    length: int
    tokens: tuple[MarkdownToken, ...]


class MarkdownView(enums.Struct, frozen=True):
    """Missing items are not readable by the caller, or have to be requested again in a smaller batch."""

    items: dict[str, MarkdownText]


class PrunedView(Succeeded, frozen=True):
    seq: int


class InboxView(enums.Struct, frozen=True, omit_defaults=False):
    items: tuple[Deliver, ...]
    next: int


class WaitView(enums.Struct, frozen=True, omit_defaults=False):
    """A wait of a session for an agent; at `at` it is asked again, else something has to happen first."""

    agent: str
    kind: WaitKind
    since: float
    until: float | None = None
    at: float | None = None
    detail: str = ""


class ModeView(enums.Struct, frozen=True, omit_defaults=False):
    """The orchestration state, with the field names of the original protocol.

    `held` is the limit at which the session is paused until a person decides.
    """

    mode: enums.Mode = enums.Mode.FREEFORM
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
    waits: tuple[WaitView, ...] = ()
    held: EndReason | None = None


class TurnView(enums.Struct, frozen=True):
    """The current turn, or the fact that the mode is complete."""

    success: bool | None = None
    current_turn: str | None = field(name="currentTurn", default=None)
    round: int | None = None
    complete: bool = False


class TokensView(enums.Struct, frozen=True, kw_only=True, omit_defaults=False):
    new: int
    cached: int
    output: int


class SpentView(enums.Struct, frozen=True, omit_defaults=False):
    """The usage of one model by one agent.

    `cost_usd` is null if no price is known; `unpriced` counts the replies without a price, `estimated` those
    without reported tokens. `cached` is the part of `input` that was read from a cache; `new` is the rest
    plus `output`, which counts towards limits.
    """

    agent: str
    model: str | None
    replies: int
    input: int
    output: int
    cost_usd: float | None
    unpriced: int
    estimated: int
    cached: int
    new: int


class UsageView(enums.Struct, frozen=True, omit_defaults=False):
    """The usage of all replies up to event `seq`; `prices` names the price list."""

    items: tuple[SpentView, ...]
    prices: str | None
    seq: int


class SessionView(TokensView, frozen=True, omit_defaults=False):
    """A summary of a session; `tokens` includes `cached` tokens, but limits count only `new` ones."""

    id: str
    thread: str
    mode: enums.Mode
    topic: str
    status: Status
    reason: EndReason | None
    agents: tuple[str, ...]
    round: int
    max_rounds: int = field(name="maxRounds")
    turns: int
    tokens: int
    cost_usd: float
    started_at: float = field(name="startedAt")
    ended_at: float | None = field(name="endedAt")
    spent: tuple[SpentView, ...]


class SessionsView(enums.Struct, frozen=True, omit_defaults=False):
    items: tuple[SessionView, ...]


class SessionDoneView(Succeeded, frozen=True):
    session: SessionView


class SessionDetailView(enums.Struct, frozen=True):
    session: SessionView
    orchestration: "ModeView"


class SessionStartedView(Succeeded, frozen=True):
    id: str
    thread: str
    orchestration: "ModeView"


class CollaborationStartedView(Succeeded, frozen=True):
    handle: str
    session: str
    thread: str


class CollaborationView(TokensView, frozen=True, omit_defaults=False):
    """The progress of a collaboration.

    `speakers` have answered, `waiting` have an open turn, and the last turn of those in `failed` failed.
    `progress` has a line for each finished step, except those the caller already has; `lines` counts all.
    """

    handle: str
    session: str
    thread: str
    status: Status
    reason: EndReason | None
    objective: str
    mode: enums.Mode
    models: tuple[str, ...]
    step: int
    max_steps: int
    parallel: int
    speakers: tuple[str, ...]
    waiting: tuple[str, ...]
    failed: tuple[str, ...]
    cost_usd: float
    cost_limit_usd: float | None
    tokens: int
    spent: tuple[SpentView, ...]
    result: str | None
    progress: tuple[str, ...]
    lines: int


class ModeSetView(Succeeded, frozen=True):
    orchestration: ModeView


class JournalHealth(enums.Struct, frozen=True, omit_defaults=False):
    """The result so far of the complete journal check after a start."""

    writable: bool
    scrub: str
    checked: int = 0
    damaged: tuple[int, ...] = ()


class BoardsHealth(enums.Struct, frozen=True, omit_defaults=False):
    """The sizes of the whiteboards: total, largest, and the limit of one (0 for none)."""

    count: int
    notes: int
    bytes: int
    largest_bytes: int
    max_bytes: int


class HealthView(enums.Struct, frozen=True, omit_defaults=False):
    """The state of the gateway and of its room.

    `roomId` is the identity of the room, which it keeps for life; a new room of the same name has another.
    With `replica` another gateway decides for the room, and `seq` may be behind.
    """

    status: str
    room: str
    room_id: str = field(name="roomId")
    replica: bool
    version: str
    seq: int
    uptime_s: float
    agents: int
    watchers: int
    journal: JournalHealth
    boards: BoardsHealth
