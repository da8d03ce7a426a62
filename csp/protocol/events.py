"""The events of a room; each is one line of its journal.

A line is plain JSON with its checksum last. The bytes on disk are also the bytes sent to
watchers, so each event is encoded only once.
"""

import re
from typing import Final
from zlib import crc32

import msgspec
from msgspec import field

from csp.errors import BadInput
from csp.protocol import enums, review_messages
from csp.protocol.event_base import Event as Event
from csp.protocol.event_base import MessageEvent as MessageEvent
from csp.protocol.notes import BoardChange, NoteKind, Provider, Source
from csp.protocol.notices import NoticeParam
from csp.protocol.requests import Dialog, Handoff, Usage
from csp.protocol.session_parts import Change, EndReason, Limits, Setup, Stage, TurnState, Wait

VERSION: Final = 1
_HEAD: Final = b'{"v":1,'
_CRC_MARK: Final = b',"crc":"'
_CRC_TAIL_BYTES: Final = len(_CRC_MARK) + 8 + 2
_ROOM_ID: Final = re.compile(rb',"room_id":"([0-9a-f-]{36})","crc":"[^"]*"\}\Z')


class HumanMessage(MessageEvent, frozen=True, omit_defaults=True, tag="human_message"):
    pass


class AgentCall(MessageEvent, frozen=True, omit_defaults=True, tag="agent_call"):
    """An agent sent a message to another participant."""


class AgentResponse(MessageEvent, frozen=True, omit_defaults=True, tag="agent_response"):
    """An agent answered."""


class Activity(MessageEvent, frozen=True, omit_defaults=True, tag="activity"):
    """An agent wrote something during its turn that is not the reply."""


class KeptPrivate(MessageEvent, frozen=True, omit_defaults=True, tag="kept"):
    """An agent wrote something that stays in its pane; the commands in it were run."""


class SystemReply(MessageEvent, frozen=True, omit_defaults=True, tag="answer"):
    """The room answered an agent's query; `query` is the event of that query, if there is one."""

    query: enums.MessageId | None = None


class TurnSignal(MessageEvent, frozen=True, omit_defaults=True, tag="turn_signal"):
    """An agent was asked to take its turn; `text` is the whole prompt."""

    current_agent: enums.AgentId = field(name="currentAgent", default=enums.AgentId(""))
    waiting_for: tuple[enums.AgentId, ...] = field(name="waitingFor", default=())
    #: Whether it repeats the request because the reply had the wrong format.
    is_repair: bool = False
    #: Whether it repeats the request after a wait, so it does not count again.
    is_again: bool = False
    #: The estimated cost of the call, its maximum cost, and the output limit that this implies.
    foreseen_usd: float = 0.0
    allowed_usd: float = 0.0
    max_output: int | None = None


class LogRequested(Event, frozen=True, omit_defaults=True, tag="query"):
    """An agent asked the room for its last messages while it was working on `replyTo`."""

    count: int
    reply_to: enums.MessageId | None = field(name="replyTo", default=None)
    hops: int = 0


class NoticePosted(Event, frozen=True, omit_defaults=True, tag="system"):
    """The room posted a notice for people; `code` and `params`, if set, are defined in csp.protocol.notices.

    `silent` is an orchestrator that ignored its wake-ups; `repeats` is the original of a duplicate message.
    """

    session_id: enums.SessionId | None = None
    silent: enums.AgentId | None = None
    repeats: enums.MessageId | None = None
    code: str = ""
    params: dict[str, NoticeParam] = field(default_factory=dict)


class ModeChanged(Event, frozen=True, omit_defaults=True, tag="mode"):
    """A session started, changed its phase, paused, resumed or ended.

    A pause with a `reason` is one at that limit; `limits` are the session's new limits.
    """

    session_id: enums.SessionId
    change: Change
    setup: Setup | None = None
    stage: Stage | None = None
    agent: enums.AgentId | None = None
    reason: EndReason | None = None
    rounds: int | None = None
    minutes: float | None = None
    sealed: int = 0
    limits: Limits | None = None


class TurnMoved(Event, frozen=True, omit_defaults=True, tag="turn"):
    """The turn of `agent` changed its state; `warned` means that it will time out soon.

    With a `handoff` the state is unchanged: it names the next agent, unless the reply names another.
    `wait` is what the turn waits for; without it, an `asked` turn is no longer obstructed.
    """

    session_id: enums.SessionId
    turn: enums.TurnId
    agent: enums.AgentId
    state: TurnState
    round: int
    reason: str = ""
    warned: bool = False
    handoff: Handoff | None = None
    wait: Wait | None = None


class UsageSeen(Event, frozen=True, omit_defaults=True, tag="usage"):
    """The total usage of a turn so far; its reply reports the final usage."""

    session_id: enums.SessionId
    turn: enums.TurnId
    usage: Usage


class Voted(Event, frozen=True, omit_defaults=True, tag="vote"):
    """An agent voted in a ballot; `message` is the reply with the vote, unless a tool was used."""

    session_id: enums.SessionId
    turn: enums.TurnId
    label: str
    reason: str = ""
    sealed: int = 0
    message: enums.MessageId | None = None


class NoteAdded(Event, frozen=True, omit_defaults=True, tag="note"):
    """A note was added to a session's board or the room's board; `key` is the writer's id for it."""

    idx: int
    session_id: enums.SessionId | None = None
    kind: NoteKind = NoteKind.NOTE
    tags: tuple[str, ...] = ()
    stands_for: tuple[enums.MessageId, ...] = ()
    source: Source | None = None
    key: str = ""
    #: The writer's sealed phases: no other agent may read the note before they end.
    seals: dict[enums.SessionId, int] = field(default_factory=dict)


class BoardChanged(Event, frozen=True, omit_defaults=True, tag="board"):
    """A board got a provider, became full or was compacted, or a summary by `by` was requested or failed."""

    change: BoardChange
    session_id: enums.SessionId | None = None
    #: The message that asks for a summary, and the notes that it will cover.
    message: enums.MessageId | None = None
    by: enums.AgentId | None = None
    stands_for: tuple[enums.MessageId, ...] = ()
    provider: Provider | None = None
    store: str = ""
    #: The last event whose notes were removed from the board, and the size of their text in bytes.
    upto: int = 0
    freed: int = 0


class RunEvent(Event, frozen=True, omit_defaults=True):
    """An event of a review run."""

    session_id: enums.SessionId
    run: str


class RunStarted(RunEvent, frozen=True, omit_defaults=True, tag="run.started"):
    """A review run started; `text` is its goal."""

    builder: enums.AgentId
    reviewer: enums.AgentId
    max_revisions: int
    terms: review_messages.RunTerms = review_messages.RunTerms()


class RunPrepared(RunEvent, frozen=True, omit_defaults=True, tag="run.prepared"):
    """The working directory of a run was prepared."""

    context: review_messages.RunContext


class RunSaid(RunEvent, frozen=True, omit_defaults=True, tag="run.message"):
    """A message of a run was accepted; `key` identifies repetitions, `origin` is its channel."""

    role: review_messages.RunRole
    body: review_messages.AnyMessage
    origin: str = ""
    key: str = ""


class RunMoved(RunEvent, frozen=True, omit_defaults=True, tag="run.phase"):
    """A run changed its phase; after a halt it resumes in `back`."""

    phase: review_messages.RunPhase
    why: str = ""
    cycle: int = 1
    revisions: int = 0
    back: review_messages.RunPhase | None = None


class RunReminded(RunEvent, frozen=True, omit_defaults=True, tag="run.waiting"):
    """A run has been waiting for a long time; this is reminder `number`."""

    number: int


class RunChecked(RunEvent, frozen=True, omit_defaults=True, tag="run.checked"):
    """CSP created the diff of the last step and ran the tests; `cycle` is the step's cycle."""

    cycle: int
    update: review_messages.ExecutionUpdate
    note: str = ""


class RunEdited(RunEvent, frozen=True, omit_defaults=True, tag="run.plan"):
    """A person changed the plan."""

    plan: review_messages.Plan


class RunJudged(RunEvent, frozen=True, omit_defaults=True, tag="run.finding"):
    """A person judged a finding."""

    finding: str
    verdict: review_messages.Verdict


class RunDefect(RunEvent, frozen=True, omit_defaults=True, tag="run.defect"):
    """A person found a defect in accepted work, which `text` describes."""

    defect: str
    severity: review_messages.Severity


class RunEnded(RunEvent, frozen=True, omit_defaults=True, tag="run.ended"):
    """A run has ended; `text` summarises both roles."""

    reason: EndReason


class RunDelivered(RunEvent, frozen=True, omit_defaults=True, tag="run.delivered"):
    """Accepted work was put on a branch, or could not be."""

    branch: str = ""
    note: str = ""


class DeliveryMoved(Event, frozen=True, omit_defaults=True, tag="delivery"):
    """The delivery of a message to `agent` changed its state."""

    message: enums.MessageId
    agent: enums.AgentId
    state: enums.DeliveryState
    reason: str = ""


class Joined(Event, frozen=True, omit_defaults=True, tag="joined"):
    """A participant joined or rejoined; a new `epoch` revokes all earlier tokens of the id."""

    name: str
    kind: enums.ParticipantKind
    role: enums.JoinRole
    epoch: int
    capabilities: enums.Capabilities | None = None
    #: The id of a sidecar's start; empty for other participants.
    launch: str = ""


class Left(Event, frozen=True, omit_defaults=True, tag="left"):
    reason: str
    removed: bool = False


class StateChanged(Event, frozen=True, omit_defaults=True, tag="state"):
    """A participant's state or permissions changed.

    `asks` is the kind of its dialog or screen, `work` the state of its worktree. `allow` is the pattern of
    a new approval rule, whose number is that of this event; `disallow` is the number of a rule that is no
    longer valid.
    """

    state: enums.AgentState | None = None
    detail: str = ""
    until: float | None = None
    paused: bool | None = None
    share: bool | None = None
    dialog: Dialog | None = None
    #: The participant's sealed phases when it reported the detail.
    seals: dict[enums.SessionId, int] = field(default_factory=dict)
    asks: str = ""
    work: str = ""
    allow: str = ""
    disallow: int = 0


class ControlSent(Event, frozen=True, omit_defaults=True, tag="control"):
    """A person sent a control to `target`."""

    control: enums.ControlVerb
    expires: float
    choice: int | None = None
    #: Apply the control only while the CLI is working on this turn.
    turn: enums.TurnId | None = None
    #: Answer only a dialog for this command, which an approval rule covers.
    about: str = ""


class LateReply(Event, frozen=True, omit_defaults=True, tag="late"):
    """A reply to a turn that was not open; it is recorded, but not shown and has no effect.

    Its cost still counts.
    """

    turn: str
    session_id: enums.SessionId | None = None
    usage: Usage | None = None


class CallRecorded(Event, frozen=True, omit_defaults=True, tag="call"):
    """A call with an idempotency id was executed; `answer` identifies its result."""

    key: str
    answer: str = ""


class Redacted(Event, frozen=True, omit_defaults=True, tag="redacted"):
    """The text of `message` was removed from the journal."""

    message: enums.MessageId


class Pruned(Event, frozen=True, omit_defaults=True, tag="pruned"):
    """Everything before `before` was removed from the journal."""

    before: int


class PrunedBase(Event, frozen=True, omit_defaults=True, tag="base"):
    """The first line of a pruned journal: the state of the room after `seq`."""

    state: msgspec.Raw


class Unknown(msgspec.Struct, frozen=True):
    """An event from a newer version of CSP: kept and counted, but otherwise ignored."""

    seq: int
    ts: float
    type: str
    id: enums.MessageId = enums.MessageId("")
    sender: enums.AgentId = enums.AgentId("")
    target: enums.AgentId = enums.AgentId("")


# fmt: off
KnownEvent = (
    HumanMessage | AgentCall | AgentResponse | Activity | KeptPrivate | SystemReply | TurnSignal
    | LogRequested | NoticePosted | ModeChanged | TurnMoved | UsageSeen | Voted | NoteAdded | BoardChanged
    | RunStarted | RunPrepared | RunSaid | RunMoved | RunReminded | RunChecked | RunEdited | RunJudged
    | RunDefect | RunEnded | RunDelivered
    | DeliveryMoved | Joined | Left | StateChanged | ControlSent | LateReply | CallRecorded
    | Redacted | Pruned | PrunedBase
)
# fmt: on
AnyEvent = KnownEvent | Unknown

#: The types that /history shows by default.
HISTORY_TYPES: Final = frozenset({"human_message", "agent_call", "agent_response", "system", "vote"})

_encode: Final = msgspec.json.Encoder().encode
_known: Final[msgspec.json.Decoder[KnownEvent]] = msgspec.json.Decoder(KnownEvent)
_unknown: Final = msgspec.json.Decoder(Unknown)


def type_of(event: AnyEvent) -> str:
    """Return the event's `type` on the wire."""
    return event.type if isinstance(event, Unknown) else str(event.__struct_config__.tag)


def encode_event(event: KnownEvent, room_id: str = "") -> bytes:
    """Return the journal line of `event`, without its newline; the first line has the id of the room too."""
    body = _HEAD + _encode(event)[1:-1]
    if room_id:
        body += b',"room_id":"%b"' % room_id.encode("ascii")
    return b'%b,"crc":"%08x"}' % (body, crc32(body))


def room_id_in(line: bytes) -> str:
    """Return the id of the room in the first line of a journal, or "" if it has none."""
    found = _ROOM_ID.search(line[-100:])
    return found[1].decode("ascii") if found else ""


def is_intact(line: bytes) -> bool:
    """Return whether the checksum of a line (without its newline) is correct."""
    cut = len(line) - _CRC_TAIL_BYTES
    if cut < 0 or line[cut : cut + len(_CRC_MARK)] != _CRC_MARK or line[-2:] != b'"}':
        return False
    return line[cut + len(_CRC_MARK) : -2] == b"%08x" % crc32(line[:cut])


def decode_event(line: bytes) -> AnyEvent:
    """Decode one line; raise BadInput if its checksum or its structure is wrong."""
    if not is_intact(line):
        raise BadInput("journal line does not match its checksum")
    try:
        return _known.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _unknown.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise BadInput(f"journal line is not a valid event: {exc}") from exc
