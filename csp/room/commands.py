"""Commands: participants' requests to a room, and the gateway's requests when time has passed."""

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
from csp.protocol.session_parts import Collaboration, Limits, OnHardLimit, OnLimit, Price

#: Whiteboard hits for the agents asked next, by session; the key is "" for a session about to start.
Hits = Mapping[str, tuple[HitView, ...]]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the room; `decide` turns it into events or refuses it.

    `once` is an id chosen by the caller; a command that repeats the id has no effect.
    """

    once: str = ""
    caller: AgentId = HUMAN


class Join(Command, frozen=True, kw_only=True):
    """Join under a name, taking over an id whose owner is offline.

    `launch` identifies a sidecar's start. The participant is `starting`, and the same launch gets the same id
    again.
    """

    name: str
    kind: ParticipantKind = ParticipantKind.CLI
    role: JoinRole = JoinRole.AGENT
    capabilities: Capabilities | None = None
    launch: str = ""


class Rejoin(Command, frozen=True, kw_only=True):
    """Rejoin as the owner of `agent`, authenticated by its token; a restarted sidecar has a new `launch`."""

    agent: AgentId
    capabilities: Capabilities | None = None
    launch: str = ""


class Leave(Command, frozen=True, kw_only=True):
    agent: AgentId
    reason: str


class Remove(Command, frozen=True, kw_only=True):
    agent: AgentId


class Send(Command, frozen=True, kw_only=True):
    """Send `text` to one participant or to all; `only` limits the recipients of a resend."""

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
    """Post a participant's text for those who asked for it, and run the commands in an agent's text."""

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


#: The command for a participant's text, from a call or from its pane.
Words = Send | PostReply


class AnswerQuery(Command, frozen=True, kw_only=True):
    """Answer an agent's query with the text found."""

    query: MessageId
    text: str
    ttl_s: float | None = None


class ReportDelivery(Command, frozen=True, kw_only=True):
    """Report the state of a message on its way to `agent`."""

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
    #: A notice for the people in the room; it is posted even if the state has not changed.
    notice: AgentNotice | None = None
    #: The kind of its dialog or blocking screen: permission, login, trust, menu ...
    asks: str = ""
    #: The branch and the changed files of its git worktree.
    work: str = ""


class ControlAgent(Command, frozen=True, kw_only=True):
    """Send a control to `agent`."""

    agent: AgentId
    verb: ControlVerb
    choice: int | None = None


class AllowCommand(Command, frozen=True, kw_only=True):
    """Allow `agent` to run commands that begin with the words of `pattern` without asking a person."""

    agent: AgentId
    pattern: str


class DisallowCommand(Command, frozen=True, kw_only=True):
    """Remove the approval rule with a number."""

    number: int


class RecordCall(Command, frozen=True, kw_only=True):
    """Record a call that is executed outside the room: first its start, then its result."""

    key: str
    answer: str = ""


class CancelMessage(Command, frozen=True, kw_only=True):
    message: str


class ReleaseMessage(Command, frozen=True, kw_only=True):
    """Release a message held by the loop guard."""

    message: str


class RedactMessage(Command, frozen=True, kw_only=True):
    """Remove a message's text from the journal; the caller has checked that it is there."""

    message: str


class Prune(Command, frozen=True, kw_only=True):
    """Remove everything before `before` from the journal."""

    before: int


class Notice(Command, frozen=True, kw_only=True):
    words: NoticeWords
    target: AgentId


class SetMode(Command, frozen=True, kw_only=True):
    """Start a session in a thread, replacing the running one; `freeform` only ends the running one.

    Without `agents`, all online agents take part. Without a `thread`, the session gets its own.
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
    #: By default, the mode and the room's rules decide.
    on_limit: OnLimit | None = None
    on_hard_limit: OnHardLimit | None = None
    #: Only for a review.
    terms: review.RunTerms | None = None
    max_revisions: int | None = None
    #: Only for a collaboration: its terms, notices for people, and the first message in it.
    collaboration: Collaboration | None = None
    notes: tuple[NoticeWords, ...] = ()
    said: str = ""
    prices: Mapping[AgentId, Price] = {}
    thread: str | None = DEFAULT_THREAD


class Collaborate(Command, frozen=True, kw_only=True):
    """Have agents work on an objective in a separate thread, or continue such a session.

    `session` is the id of the session to continue, or a name for it. Omitted fields keep their
    value or, in a new session, get the default.
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
    #: The thread in which the result is posted.
    thread: str = DEFAULT_THREAD


class NextTurn(Command, frozen=True, kw_only=True):
    """Mark the current turn of a thread as done."""

    thread: str = DEFAULT_THREAD


class ExtendTurn(Command, frozen=True, kw_only=True):
    """Report that `agent` is working on its turn; `usage` is the total usage of `turn` so far."""

    agent: AgentId
    note: str = ""
    turn: str | None = None
    usage: Usage | None = None


class CastVote(Command, frozen=True, kw_only=True):
    """Vote in the ballot that waits for `agent`; its reply may repeat or omit the vote."""

    agent: AgentId
    label: str
    reason: str = ""
    session: str | None = None


class HandOffTurn(Command, frozen=True, kw_only=True):
    """Name the next speaker, who follows once `agent` has replied to its turn."""

    agent: AgentId
    to: str
    task: str
    session: str | None = None


class Stop(Command, frozen=True, kw_only=True):
    """End a thread's session at once, or all sessions if no thread is given."""

    sender: AgentId
    thread: str | None = DEFAULT_THREAD


class Steer(Command, frozen=True, kw_only=True):
    """Control a session from outside."""

    sender: AgentId
    session: str
    action: SessionAction
    agent: str | None = None
    #: The decision, for a session that waits for one.
    choice: str | None = None
    rounds: int | None = None
    minutes: float | None = None


class SayInRun(Command, frozen=True, kw_only=True):
    """Post a run's message. For a message file, the sender is MAILBOX and the folder determines `role`.

    `role` is the sender that the message names, if any; `key` identifies a message that is sent again.
    """

    sender: AgentId
    run: str
    body: review.AnyMessage
    role: review.RunRole | None = None
    origin: str = "http"
    key: str = ""


class PrepareRun(Command, frozen=True, kw_only=True):
    """Set a run's working directory."""

    run: str
    context: review.RunContext


class CheckRun(Command, frozen=True, kw_only=True):
    """Record the result of a step; `update` is the step with its diff and its test results."""

    run: str
    cycle: int
    step: int
    update: review.ExecutionUpdate
    note: str = ""


class DeliverRun(Command, frozen=True, kw_only=True):
    """Record the branch with the accepted work or, in `note`, the reason why there is none."""

    run: str
    branch: str = ""
    note: str = ""


class ActOnRun(Command, frozen=True, kw_only=True):
    """Perform a person's action on a run; the action determines which fields are used."""

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
    """Write a note on a session's board or the room's board; a repeated id writes nothing."""

    sender: AgentId
    text: str
    session: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None


class Summarise(Command, frozen=True, kw_only=True):
    """Ask `by` with the prompt `text` to summarise these notes of a board."""

    by: str
    session: str
    text: str
    stands_for: tuple[MessageId, ...]
    ttl_s: float | None = None


class SetBoardProvider(Command, frozen=True, kw_only=True):
    """Set the provider that stores a board's notes for searching."""

    session: str
    provider: Provider
    store: str = ""
    problem: str = ""


class CompactBoard(Command, frozen=True, kw_only=True):
    """Remove the notes up to event `upto`, which a summary covers, from a board; `freed` is their size."""

    session: str
    upto: int
    freed: int


class Tick(Command, frozen=True, kw_only=True):
    """Apply the deadlines that have passed."""

    hits: Hits = {}


class Slept(Command, frozen=True, kw_only=True):
    """Report that the machine was suspended until now."""

    seconds: float


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
    | Slept
)


# --- a room's rules: times, limits and prompt texts ---- -------------------------------------------


class WindowSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a turn's conversation window: the maximum number of items and of tokens."""

    items: int = 8
    tokens: int = 2500


DEFAULT_WINDOW = WindowSize()


class AllowedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """An approval rule from the settings: `agent` may run commands that begin with the words of `pattern`."""

    agent: str
    pattern: str


class RoomRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules from the settings, which may differ from one start of the gateway to the next."""

    warn_s: float = 90.0
    timeout_s: float = 120.0
    #: How long activity, a dialog or a draft in the composer may keep a turn open.
    longest_s: float = 1800.0
    soft_turns: int = 25
    #: Limits count new tokens: input that was not read from a cache, and output.
    soft_tokens: int = 250_000
    window: WindowSize = DEFAULT_WINDOW
    limits: Limits = Limits(turns=200, tokens=1_000_000, minutes=20.0)
    #: The actions of sessions at an agent's usage limit (None: the default of the mode), and at their own.
    on_limit: OnLimit | None = None
    on_hard_limit: OnHardLimit = OnHardLimit.STOP
    #: Whether a session's replies go onto its board; after how many notes (0: never) who summarises them.
    board_replies: bool = True
    summary_after: int = 50
    summariser: str = ""
    #: Maximum size of a board's text; 0 for no limit.
    board_max_bytes: int = 64 * 1024 * 1024
    #: Commands that need no approval, from the settings.
    allowed: tuple[AllowedCommand, ...] = ()
    #: Texts that must never appear on a board.
    secrets: tuple[str, ...] = ()
    prompts: Mapping[str, str] = msgspec.field(default_factory=dict)

    def timeout_of(self, kind: ParticipantKind) -> float:
        """Return the time limit of a turn; an API model shows no activity while it is thinking."""
        return self.timeout_s * 2.5 if kind is ParticipantKind.API else self.timeout_s


DEFAULT_RULES = RoomRules()
