"""What a participant, or the gateway for the clock, asks of a room."""

from collections.abc import Mapping

import msgspec

from csp.protocol import review_messages as review
from csp.protocol.enums import (
    DEFAULT_THREAD,
    HUMAN,
    AgentId,
    AgentState,
    Capabilities,
    ControlVerb,
    DeliveryState,
    Ending,
    JoinRole,
    MessageId,
    ParticipantKind,
    SessionAction,
)
from csp.protocol.notes import HitView, Provider
from csp.protocol.notices import NoticeWords
from csp.protocol.requests import AgentNotice, Dialog, Handoff, Usage
from csp.protocol.session_parts import Collaboration, Limits, Price

#: What the whiteboard has for those who are asked next, by session; under "" for one that begins.
Hits = Mapping[str, tuple[HitView, ...]]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One wish; `decide` turns it into events or refuses it.

    With an id of the caller's own in `once` it is carried out once: the same id again causes nothing.
    """

    once: str = ""
    caller: AgentId = HUMAN


class Join(Command, frozen=True, kw_only=True):
    """Come in under a name; an id whose owner is offline is taken over.

    `launch` names one start of a sidecar. It is `starting`, and the same launch again gets the same id.
    """

    name: str
    kind: ParticipantKind = ParticipantKind.CLI
    role: JoinRole = JoinRole.AGENT
    capabilities: Capabilities | None = None
    launch: str = ""


class Rejoin(Command, frozen=True, kw_only=True):
    """Come back as the owner of `agent`, known by its token; a sidecar comes back with a new `launch`."""

    agent: AgentId
    capabilities: Capabilities | None = None
    launch: str = ""


class Leave(Command, frozen=True, kw_only=True):
    agent: AgentId
    reason: str


class Remove(Command, frozen=True, kw_only=True):
    agent: AgentId


class Send(Command, frozen=True, kw_only=True):
    """Say `text` to one participant or to all; `only` narrows the recipients of a resend."""

    sender: AgentId
    to: str
    text: str
    thread: str | None = None
    reply_to: MessageId | None = None
    urgent: bool = False
    id: MessageId | None = None
    ttl_s: float | None = None
    only: tuple[AgentId, ...] | None = None


class PostReply(Command, frozen=True, kw_only=True):
    """Post what a participant wrote; it goes to those who asked. The commands in an agent's text are run."""

    sender: AgentId
    text: str
    turn: str | None = None
    reply_to: MessageId | None = None
    handoff: Handoff | None = None
    final: bool = False
    usage: Usage | None = None
    thread: str | None = None
    id: MessageId | None = None
    ttl_s: float | None = None
    activity: bool = False
    local: bool = False
    ending: Ending = Ending.DONE
    reason: str = ""
    hits: Hits = {}


#: What a participant says, by a call or in its pane.
Words = Send | PostReply


class AnswerQuery(Command, frozen=True, kw_only=True):
    """Answer a query of an agent with what was found."""

    query: MessageId
    text: str
    ttl_s: float | None = None


class ReportDelivery(Command, frozen=True, kw_only=True):
    """Say how far a message has come on its way to `agent`."""

    agent: AgentId
    message: str
    state: DeliveryState
    reason: str = ""


class SetState(Command, frozen=True, kw_only=True):
    agent: AgentId
    state: AgentState
    detail: str = ""
    until: float | None = None
    dialog: Dialog | None = None
    #: Something that the people of the room have to know; it is told whether the state is new or not.
    notice: AgentNotice | None = None
    #: The kind of its dialog or blocking screen: permission, login, trust, menu ...
    asks: str = ""


class ControlAgent(Command, frozen=True, kw_only=True):
    """Press a button for `agent`."""

    agent: AgentId
    verb: ControlVerb
    choice: int | None = None


class AllowCommand(Command, frozen=True, kw_only=True):
    """Let `agent` run commands that begin with the words of `pattern` without asking a person."""

    agent: AgentId
    pattern: str


class DisallowCommand(Command, frozen=True, kw_only=True):
    """Remove the approval rule of a number."""

    number: int


class RecordCall(Command, frozen=True, kw_only=True):
    """Remember a call whose work is done outside the room: that it began, then what came of it."""

    key: str
    answer: str = ""


class CancelMessage(Command, frozen=True, kw_only=True):
    message: str


class ReleaseMessage(Command, frozen=True, kw_only=True):
    """Release a message that the loop guard holds."""

    message: str


class RedactMessage(Command, frozen=True, kw_only=True):
    """Take the text of a message out of the journal; the caller has checked that it is there."""

    message: str


class Prune(Command, frozen=True, kw_only=True):
    """Take everything before `before` out of the journal."""

    before: int


class Notice(Command, frozen=True, kw_only=True):
    words: NoticeWords
    target: AgentId


class SetMode(Command, frozen=True, kw_only=True):
    """Begin a session in a thread, in place of the one that is there; `freeform` only ends that one.

    Without `agents` all who are online take part; without a `thread` it gets one of its own.
    """

    sender: AgentId
    mode: str
    topic: str = ""
    agents: tuple[str, ...] | None = None
    rounds: int | None = None
    steps: int | None = None
    first: str | None = None
    synth: str | None = None
    ballot: bool = False
    respect_final: bool = False
    soft_turns: bool = False
    limits: Limits = Limits()
    #: Of a review alone.
    terms: review.RunTerms | None = None
    max_revisions: int | None = None
    #: Of a collaboration alone: its terms, what its people are told, what is said first in it.
    collaboration: Collaboration | None = None
    notes: tuple[NoticeWords, ...] = ()
    said: str = ""
    prices: Mapping[AgentId, Price] = {}
    thread: str | None = DEFAULT_THREAD


class Collaborate(Command, frozen=True, kw_only=True):
    """Have agents work on an objective in a thread of their own, or go on with that.

    `session` is the id of one that is to go on, or a name for it, by which it will be known. What is left
    out stays as it is, of a new one as it is by default.
    """

    sender: AgentId
    objective: str = ""
    agents: tuple[str, ...] | None = None
    session: str | None = None
    said: str = ""
    mode: str | None = None
    steps: int | None = None
    parallel: int | None = None
    step_s: float | None = None
    cost: float | None = None
    summarise_at: int | None = None
    prices: Mapping[AgentId, Price] = {}
    hits: Hits = {}
    #: Where the result is told.
    thread: str = DEFAULT_THREAD


class NextTurn(Command, frozen=True, kw_only=True):
    """Take the current turn of a thread for done."""

    thread: str = DEFAULT_THREAD


class ExtendTurn(Command, frozen=True, kw_only=True):
    """Say that `agent` is at work on its turn; `usage` is all that `turn` has used so far."""

    agent: AgentId
    note: str = ""
    turn: str | None = None
    usage: Usage | None = None


class CastVote(Command, frozen=True, kw_only=True):
    """Vote in the ballot that waits for `agent`; its reply may say the same again, or nothing of it."""

    agent: AgentId
    label: str
    reason: str = ""
    session: str | None = None


class HandOffTurn(Command, frozen=True, kw_only=True):
    """Name the next speaker after the turn of `agent`, once it has replied."""

    agent: AgentId
    to: str
    task: str
    session: str | None = None


class Stop(Command, frozen=True, kw_only=True):
    """End the session of a thread at once; without a thread, all of them."""

    sender: AgentId
    thread: str | None = DEFAULT_THREAD


class Steer(Command, frozen=True, kw_only=True):
    """Act on one session from outside."""

    sender: AgentId
    session: str
    action: SessionAction
    agent: str | None = None
    #: What was chosen, of a session that waits for a decision.
    choice: str | None = None
    rounds: int | None = None
    minutes: float | None = None


class SayInRun(Command, frozen=True, kw_only=True):
    """Say a message of a run; who writes files is MAILBOX, its role is the folder's.

    `role` is the sender that the message itself names, if any; `key` tells a message that comes again.
    """

    sender: AgentId
    run: str
    body: review.AnyMessage
    role: review.RunRole | None = None
    origin: str = "http"
    key: str = ""


class PrepareRun(Command, frozen=True, kw_only=True):
    """Say where a run works."""

    run: str
    context: review.RunContext


class CheckRun(Command, frozen=True, kw_only=True):
    """Say what came of a step: `update` is it with its diff and its tests."""

    run: str
    cycle: int
    step: int
    update: review.ExecutionUpdate
    note: str = ""


class DeliverRun(Command, frozen=True, kw_only=True):
    """Say on which branch the accepted work lies, or why on none."""

    run: str
    branch: str = ""
    note: str = ""


class ActOnRun(Command, frozen=True, kw_only=True):
    """Act on a run as a person; which fields count depends on the action."""

    sender: AgentId
    run: str
    action: review.RunAction
    plan: review.Plan | None = None
    decision: review.Decision | None = None
    rationale: str = ""
    finding: str | None = None
    verdict: review.Verdict | None = None
    defect: str | None = None
    severity: review.Severity = review.Severity.MAJOR


class WriteNote(Command, frozen=True, kw_only=True):
    """Write on the board of a session, or of the room; the same id again writes nothing."""

    sender: AgentId
    text: str
    session: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None


class Summarise(Command, frozen=True, kw_only=True):
    """Ask `by` with `text` to sum up these notes of a board."""

    by: str
    session: str
    text: str
    stands_for: tuple[MessageId, ...]
    ttl_s: float | None = None


class SetBoardProvider(Command, frozen=True, kw_only=True):
    """Say by whom the notes of a board are kept for searching."""

    session: str
    provider: Provider
    store: str = ""
    problem: str = ""


class CompactBoard(Command, frozen=True, kw_only=True):
    """Take the notes up to an event off a board, which a summary stands for; they hold so many bytes."""

    session: str
    upto: int
    freed: int


class Tick(Command, frozen=True, kw_only=True):
    """Let the deadlines that have come take effect."""

    hits: Hits = {}


BoardCommand = WriteNote | Summarise | SetBoardProvider | CompactBoard
RunCommand = SayInRun | PrepareRun | CheckRun | DeliverRun | ActOnRun
SessionCommand = SetMode | Collaborate | NextTurn | ExtendTurn | CastVote | HandOffTurn | Stop | Steer
AnyCommand = (
    Join
    | Rejoin
    | Leave
    | Remove
    | Send
    | PostReply
    | AnswerQuery
    | ReportDelivery
    | SetState
    | ControlAgent
    | AllowCommand
    | DisallowCommand
    | RecordCall
    | CancelMessage
    | ReleaseMessage
    | RedactMessage
    | Prune
    | Notice
    | SessionCommand
    | RunCommand
    | BoardCommand
    | Tick
)


# --- the rules a room is run with: times, limits, the texts of the prompts ------------------------


class WindowSize(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was said comes with a turn: so many items, or so many tokens of them."""

    items: int = 8
    tokens: int = 2500


DEFAULT_WINDOW = WindowSize()


class AllowedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """An approval rule of the settings: `agent` may run commands that begin with the words of `pattern`."""

    agent: str
    pattern: str


class RoomRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say; they may differ from one start of the gateway to the next."""

    warn_s: float = 90.0
    timeout_s: float = 120.0
    #: How long a turn may be kept open by signs of work, by a dialog, by a draft in the way.
    longest_s: float = 1800.0
    soft_turns: int = 25
    #: Limits count tokens that are new: input that was not read from a cache, and output.
    soft_tokens: int = 250_000
    window: WindowSize = DEFAULT_WINDOW
    limits: Limits = Limits(turns=200, tokens=1_000_000, minutes=20.0)
    #: Whether the replies of a session go onto its board; after how many notes who sums them up, 0 for never.
    board_replies: bool = True
    summary_after: int = 50
    summariser: str = ""
    #: How much text a board may hold; 0 for no limit.
    board_max_bytes: int = 64 * 1024 * 1024
    #: Commands that need no person, from the settings.
    allowed: tuple[AllowedCommand, ...] = ()
    #: Texts that must never stand on a board.
    secrets: tuple[str, ...] = ()
    prompts: Mapping[str, str] = msgspec.field(default_factory=dict)

    def timeout_of(self, kind: ParticipantKind) -> float:
        """Return how long a turn may take; a model that thinks behind an API shows no sign of it."""
        return self.timeout_s * 2.5 if kind is ParticipantKind.API else self.timeout_s


DEFAULT_RULES = RoomRules()
