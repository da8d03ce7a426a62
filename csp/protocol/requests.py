"""Bodies and queries of requests."""

from typing import Annotated

from msgspec import Meta, field

from csp.protocol.enums import (
    DEFAULT_THREAD,
    Capabilities,
    Ending,
    Id,
    JoinRole,
    MaybeText,
    Name,
    Note,
    NoticeKind,
    OwnId,
    ParticipantKind,
    ReportedAgentState,
    ReportedState,
    Struct,
    Text,
    Thread,
)
from csp.protocol.session_parts import Limits


class RegisterBody(Struct, frozen=True):
    agent_id: Name = field(name="agentId")
    capabilities: Capabilities | None = None
    kind: ParticipantKind = ParticipantKind.CLI
    role: JoinRole = JoinRole.AGENT
    #: The id of one start of a sidecar: registering with it again returns the same agent.
    launch: Annotated[str, Meta(max_length=64)] = ""


class StartBody(Struct, frozen=True):
    """An API model to start as an agent, with the options of `csp add`."""

    name: Name
    provider: Annotated[str, Meta(min_length=1, max_length=64, examples=["anthropic"])]
    model: Annotated[str, Meta(min_length=1, max_length=256, examples=["claude-sonnet-5"])]
    base_url: Annotated[str, Meta(max_length=2048)] | None = None
    key_env: Annotated[str, Meta(max_length=256, pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?\Z")] | None = None
    role: JoinRole = JoinRole.AGENT
    id: OwnId | None = None


class MessageBody(Struct, frozen=True):
    to: Annotated[str, Meta(min_length=1, max_length=512, examples=["claude", "claude,codex", "all"])]
    content: Text
    thread: Thread | None = None
    reply_to: Id | None = field(name="replyTo", default=None)
    urgent: bool = False
    id: OwnId | None = None


class LineBody(Struct, frozen=True):
    """A line that a person typed; `to` is who a plain text goes to, `thread` the one that is looked at.

    `confirmed` is the yes of the person to what the answer to the same line asked.
    """

    line: MaybeText
    to: Annotated[str, Meta(min_length=1, max_length=512, examples=["claude", "claude,codex", "all"])] = "all"
    thread: Thread | None = None
    id: OwnId | None = None
    confirmed: bool = False


class Handoff(Struct, frozen=True):
    to: Name
    task: Annotated[str, Meta(min_length=1, max_length=500)]


Tokens = Annotated[int, Meta(ge=0, le=2**53)]


class Usage(Struct, frozen=True):
    """Tokens and cost of one reply, as reported by the provider or the CLI's transcript.

    `input` is all of it, with what was read from a cache or written to one; `output` includes reasoning.
    `estimated`: nobody had counted, so it is a guess by the length of the texts. `unpriced`: the model is
    served by somebody of whom no price is known, whatever a model of that name costs elsewhere. `calls` is
    the number of calls of the model that are added up here; 0 if it is not known.
    """

    input: Tokens = 0
    output: Tokens = 0
    cost_usd: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    model: Annotated[str, Meta(max_length=128)] | None = None
    cache_read: Tokens = 0
    cache_write: Tokens = 0
    reasoning: Tokens = 0
    estimated: bool = False
    unpriced: bool = False
    calls: Tokens = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def cached(self) -> int:
        """The cached part of the input."""
        return min(self.cache_read, self.input)

    @property
    def new(self) -> int:
        """The tokens that limits count: uncached input plus output."""
        return self.tokens - self.cached


class OutputBody(Struct, frozen=True):
    """Output of a participant.

    `activity` is text from the midst of a turn, not its answer; `local` answers what a person typed in the
    pane, so it is posted only if that is shared; only a turn that broke off may have no content, and may
    say its `reason`.
    """

    content: MaybeText
    turn: Id | None = None
    reply_to: Id | None = field(name="replyTo", default=None)
    handoff: Handoff | None = None
    final: bool = False
    usage: Usage | None = None
    thread: Thread | None = None
    id: OwnId | None = None
    activity: bool = False
    local: bool = False
    ending: Ending = Ending.DONE
    reason: Note = ""


class DeliveryBody(Struct, frozen=True):
    id: Id
    state: ReportedState
    reason: Note = ""
    agent: Name | None = None


class Choice(Struct, frozen=True):
    """An option of a dialog."""

    number: Annotated[int, Meta(ge=1, le=99)]
    label: Annotated[str, Meta(max_length=500)]


class Dialog(Struct, frozen=True):
    """A question of an agent to a person: the tool it wants to use, its input and the options."""

    tool: Annotated[str, Meta(max_length=500)] = ""
    arguments: Annotated[str, Meta(max_length=8000)] = ""
    question: Note = ""
    choices: Annotated[tuple[Choice, ...], Meta(max_length=30)] = ()


class AgentNotice(Struct, frozen=True):
    """A fact about an agent for people; `detail` is a version, a folder, a file or a name."""

    kind: NoticeKind
    detail: Note = ""


class StateBody(Struct, frozen=True):
    state: ReportedAgentState
    detail: Note = ""
    until: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    agent: Name | None = None
    dialog: Dialog | None = None
    notice: AgentNotice | None = None


class WorkingBody(Struct, frozen=True):
    """A sign of work on a turn; `usage` is the total usage of `turn` so far."""

    note: Note = ""
    turn: Id | None = None
    usage: Usage | None = None


class VoteBody(Struct, frozen=True):
    """A vote in an open ballot; `session` is needed only if there are several."""

    label: Annotated[str, Meta(pattern=r"^[A-Za-z]{1,2}\Z", examples=["A"])]
    reason: Note = ""
    session: Id | None = None


class HandoffBody(Handoff, frozen=True):
    """The next agent after an open turn; takes effect with the reply."""

    session: Id | None = None


Rounds = Annotated[int, Meta(ge=1, le=1000)]


class ModeBody(Struct, frozen=True):
    """The mode to set, its topic and its agents; without `agents` all online ones."""

    mode: Annotated[str, Meta(max_length=64, examples=["freeform"])]
    topic: Text | None = None
    agents: Annotated[tuple[Name, ...], Meta(max_length=1000)] | None = None
    rounds: Rounds | None = None
    steps: Rounds | None = None
    first: Name | None = None
    synth: Name | None = None
    ballot: bool = False
    respect_final: bool = False
    soft_turns: bool = False
    limits: Limits = Limits()
    thread: Thread | None = None
    id: OwnId | None = None


class CollaborateBody(Struct, frozen=True):
    """A collaboration to start, or with a known `session_id` to continue.

    What is left out is as it was, of a new one as it is by default: round_robin, 10 steps, one at a time,
    300 seconds a step. `thread` is where the result is told.
    """

    objective: MaybeText = ""
    models: Annotated[tuple[Name, ...], Meta(max_length=1000)] | None = None
    session_id: Thread | None = None
    user_input: MaybeText = ""
    mode: Annotated[str, Meta(max_length=64, examples=["round_robin"])] | None = None
    max_steps: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    parallel: Annotated[int, Meta(ge=1, le=1000)] | None = None
    timeout_per_step: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    cost_limit_usd: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    summarization_threshold: Annotated[int, Meta(ge=2, le=1_000_000)] | None = None
    thread: Thread | None = None
    id: OwnId | None = None


class SessionActionBody(Struct, frozen=True):
    """The agent to skip or kick, or the number to extend by; without it open turns get more time."""

    agent: Name | None = None
    rounds: Rounds | None = None
    minutes: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    id: OwnId | None = None


class TurnBody(Struct, frozen=True):
    thread: Thread | None = None
    id: OwnId | None = None


class StopBody(Struct, frozen=True):
    """The thread to stop, or `all` of them."""

    thread: Thread | None = None
    all: bool = False
    id: OwnId | None = None


class ControlBody(Struct, frozen=True):
    choice: Annotated[int, Meta(ge=1, le=99)] | None = None
    id: OwnId | None = None


class MessageActionBody(Struct, frozen=True):
    """An action on a message; a resent one gets the id."""

    id: OwnId | None = None


class PruneBody(Struct, frozen=True):
    before: Annotated[int, Meta(ge=1, le=2**53)]


class EnterBody(Struct, frozen=True):
    """The code of a link, after `#link=`."""

    code: Annotated[str, Meta(min_length=1, max_length=128)]


class LeaveBody(Struct, frozen=True):
    """Which pages to log out: all, or only the caller."""

    all: bool = False


class ControlDoneBody(Struct, frozen=True):
    id: Id
    state: ReportedState = ReportedState.CONFIRMED
    reason: Note = ""


class NoBody(Struct, frozen=True):
    """An empty body; its content is ignored."""


Seq = Annotated[int, Meta(ge=0, le=2**53)]
WaitS = Annotated[float, Meta(ge=0, le=60)]


class NoQuery(Struct, frozen=True):
    """No parameters."""


class HistoryParams(Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    after: Seq | None = None
    before: Seq | None = None
    agent: Annotated[str, Meta(max_length=128)] | None = None
    session: Id | None = None
    types: Annotated[str, Meta(pattern=r"^[a-z_.]{1,32}(,[a-z_.]{1,32})*\Z", max_length=400)] | None = None
    q: Annotated[str, Meta(max_length=1000)] | None = None
    wait: WaitS = 0


class MarkdownParams(Struct, frozen=True):
    """Messages by their seq, notes by their id."""

    ids: Annotated[
        str, Meta(pattern=r"^(n-)?[1-9][0-9]{0,14}(,(n-)?[1-9][0-9]{0,14}){0,99}\Z", max_length=2000)
    ]


class InboxParams(Struct, frozen=True):
    after: Seq = 0
    wait: WaitS = 0


class ThreadParams(Struct, frozen=True):
    thread: Thread = DEFAULT_THREAD


class CollaborationParams(Struct, frozen=True):
    """How long to wait for the end, or for more lines of progress than the caller knows."""

    wait: WaitS = 0
    after: Seq | None = None


class WatchParams(Struct, frozen=True):
    after: Seq | None = None


class WatchBody(Struct, frozen=True):
    """The agent whose screen to watch; without one, the seq after which to send all events."""

    after: Seq | None = None
    screen: Name | None = None


class Op(Struct, frozen=True):
    """The head of a WebSocket operation; the rest of the object is the HTTP body of that name."""

    op: str
    ref: int | str | None = None
