"""The bodies and query parameters of requests."""

from typing import Annotated

from msgspec import Meta, field

from csp.protocol import enums
from csp.protocol.session_parts import Limits, OnHardLimit, OnLimit


class RegisterBody(enums.Struct, frozen=True):
    agent_id: enums.Name = field(name="agentId")
    capabilities: enums.Capabilities | None = None
    kind: enums.ParticipantKind = enums.ParticipantKind.CLI
    role: enums.JoinRole = enums.JoinRole.AGENT
    #: The id of a sidecar's start: registering with the same id again returns the same agent.
    launch: Annotated[str, Meta(max_length=64)] = ""


class Once(enums.Struct, frozen=True, kw_only=True):
    """A request that is executed only once, however often it is sent with the same id."""

    id: enums.OwnId | None = None


class InThread(Once, frozen=True, kw_only=True):
    thread: enums.Thread | None = None


class StartBody(Once, frozen=True):
    """An API model to start as an agent, with the options of `csp add`."""

    name: enums.Name
    provider: Annotated[str, Meta(min_length=1, max_length=64, examples=["anthropic"])]
    model: Annotated[str, Meta(min_length=1, max_length=256, examples=["claude-sonnet-5"])]
    base_url: Annotated[str, Meta(max_length=2048)] | None = None
    key_env: Annotated[str, Meta(max_length=256, pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?\Z")] | None = None
    role: enums.JoinRole = enums.JoinRole.AGENT


class MessageBody(InThread, frozen=True):
    to: Annotated[str, Meta(min_length=1, max_length=512, examples=["claude", "claude,codex", "all"])]
    content: enums.Text
    reply_to: enums.Id | None = field(name="replyTo", default=None)
    urgent: bool = False


class LineBody(InThread, frozen=True):
    """A line that a person typed; `to` is the recipient of plain text, and `thread` is the displayed thread.

    `confirmed` is set if the person has confirmed the question in the response to the same line.
    """

    line: enums.MaybeText
    reply_to: enums.Id | None = field(name="replyTo", default=None)
    to: Annotated[str, Meta(min_length=1, max_length=512, examples=["claude", "claude,codex", "all"])] = "all"
    confirmed: bool = False


class Handoff(enums.Struct, frozen=True):
    to: enums.Name
    task: Annotated[str, Meta(min_length=1, max_length=500)]


Tokens = Annotated[int, Meta(ge=0, le=2**53)]


class Usage(enums.Struct, frozen=True):
    """Tokens and cost of one reply, as reported by the provider or the CLI's transcript.

    `input` is the total, including tokens read from a cache or written to one; `output` includes reasoning.
    `estimated`: nothing was reported, so the counts are estimated from the text length. `unpriced`: the
    provider's price for the model is unknown, whatever a model with that name costs elsewhere. `calls` is the
    number of model calls included; 0 if unknown. `context` is the number of tokens in the agent's context
    after the last of them, and `window` the number that fits into it; 0 if unknown.
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
    context: Tokens = 0
    window: Tokens = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def cached(self) -> int:
        """The cached part of the input."""
        return min(self.cache_read, self.input)

    @property
    def new(self) -> int:
        """The tokens that count towards limits: uncached input plus output."""
        return self.tokens - self.cached


class OutputBody(InThread, frozen=True):
    """Output of a participant.

    `activity` is text from the middle of a turn, not its answer; `local` answers text that a person typed in
    the pane, so it is posted only if the pane is shared; only a turn that broke off may have no content and
    may have a `reason`.
    """

    content: enums.MaybeText
    turn: enums.Id | None = None
    reply_to: enums.Id | None = field(name="replyTo", default=None)
    handoff: Handoff | None = None
    final: bool = False
    usage: Usage | None = None
    activity: bool = False
    local: bool = False
    ending: enums.Ending = enums.Ending.DONE
    reason: enums.Note = ""


class DeliveryBody(enums.Struct, frozen=True):
    id: enums.Id
    state: enums.ReportedState
    reason: enums.Note = ""
    agent: enums.Name | None = None


class Choice(enums.Struct, frozen=True):
    """An option of a dialog."""

    number: Annotated[int, Meta(ge=1, le=99)]
    label: Annotated[str, Meta(max_length=500)]


class Dialog(enums.Struct, frozen=True):
    """An agent's question to a person: the tool it wants to use, its input and the options.

    `runs` is the whole command line, if the CLI itself reports that the tool runs one; approval rules cover
    nothing else. It is never read from a screen and never truncated.
    """

    tool: Annotated[str, Meta(max_length=500)] = ""
    arguments: Annotated[str, Meta(max_length=8000)] = ""
    question: enums.Note = ""
    choices: Annotated[tuple[Choice, ...], Meta(max_length=30)] = ()
    runs: Annotated[str, Meta(max_length=8000)] = ""


class AgentNotice(enums.Struct, frozen=True):
    """A fact about an agent that people should know; `detail` is a version, a folder, a file or a name."""

    kind: enums.NoticeKind
    detail: enums.Note = ""


class StateBody(enums.Struct, frozen=True):
    """The state of an agent; `asks` is the kind of its dialog or screen: permission, login, trust ...

    `work` describes the branch and the changed files of its git worktree.
    """

    state: enums.ReportedAgentState
    detail: enums.Note = ""
    until: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    agent: enums.Name | None = None
    dialog: Dialog | None = None
    notice: AgentNotice | None = None
    asks: Annotated[str, Meta(pattern=r"^[a-z_]{0,32}\Z", examples=["login"])] = ""
    work: enums.Note = ""


class WorkingBody(enums.Struct, frozen=True):
    """A report that work on a turn continues; `usage` is the total usage of `turn` so far."""

    note: enums.Note = ""
    turn: enums.Id | None = None
    usage: Usage | None = None


class VoteBody(enums.Struct, frozen=True):
    """A vote in an open ballot; `session` is needed only if there are several."""

    label: Annotated[str, Meta(pattern=r"^[A-Za-z]{1,2}\Z", examples=["A"])]
    reason: enums.Note = ""
    session: enums.Id | None = None


class HandoffBody(Handoff, frozen=True):
    """The next agent after an open turn, effective with the reply."""

    session: enums.Id | None = None


Rounds = Annotated[int, Meta(ge=1, le=1000)]


class ModeBody(InThread, frozen=True):
    """The mode to set, its topic and its agents; without `agents`, all online agents take part.

    `on_limit` is the action at an agent's usage limit, `on_hard_limit` the one at the session's own limit;
    without them, the settings and the mode decide.
    """

    mode: Annotated[str, Meta(max_length=64, examples=["freeform"])]
    topic: enums.Text | None = None
    agents: Annotated[tuple[enums.Name, ...], Meta(max_length=1000)] | None = None
    rounds: Rounds | None = None
    steps: Rounds | None = None
    first: enums.Name | None = None
    synth: enums.Name | None = None
    ballot: bool = False
    respect_final: bool = False
    soft_turns: bool = False
    limits: Limits = Limits()
    on_limit: OnLimit | None = None
    on_hard_limit: OnHardLimit | None = None


class CollaborateBody(InThread, frozen=True):
    """A collaboration to start, or to continue if `session_id` is known.

    Omitted fields keep their value or, in a new collaboration, get the default: round_robin, 10 steps, one at
    a time, and 300 seconds per step. The result is posted in `thread`.
    """

    objective: enums.MaybeText = ""
    models: Annotated[tuple[enums.Name, ...], Meta(max_length=1000)] | None = None
    session_id: enums.Thread | None = None
    user_input: enums.MaybeText = ""
    mode: Annotated[str, Meta(max_length=64, examples=["round_robin"])] | None = None
    max_steps: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    parallel: Annotated[int, Meta(ge=1, le=1000)] | None = None
    timeout_per_step: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    cost_limit_usd: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    summarization_threshold: Annotated[int, Meta(ge=2, le=1_000_000)] | None = None


class SessionActionBody(Once, frozen=True):
    """The agent to skip or kick, or the number to extend by; without a number, open turns get more time.

    `choice` is the decision: for a tie, the label of the winner or `none`; near a limit, `ok` or `end`; at a
    limit that asks, `continue` or `end`; at an agent's usage limit, `continue`, `skip` or `end`.
    """

    agent: enums.Name | None = None
    choice: Annotated[str, Meta(max_length=32, examples=["B"])] | None = None
    rounds: Rounds | None = None
    minutes: Annotated[float, Meta(gt=0, le=1e6)] | None = None


class TurnBody(InThread, frozen=True):
    pass


class StopBody(InThread, frozen=True):
    """The thread to stop, or `all` of them."""

    all: bool = False


class ControlBody(Once, frozen=True):
    choice: Annotated[int, Meta(ge=1, le=99)] | None = None


class MessageActionBody(Once, frozen=True):
    """An action on a message; a resent message gets the id in `id`."""


class PruneBody(enums.Struct, frozen=True):
    before: Annotated[int, Meta(ge=1, le=2**53)]


class EnterBody(enums.Struct, frozen=True):
    """The code of a login link: the part after `#link=`."""

    code: Annotated[str, Meta(min_length=1, max_length=128)]


class LeaveBody(enums.Struct, frozen=True):
    """The pages to log out: all of them, or only the caller's."""

    all: bool = False


class ControlDoneBody(enums.Struct, frozen=True):
    id: enums.Id
    state: enums.ReportedState = enums.ReportedState.CONFIRMED
    reason: enums.Note = ""


class NoBody(enums.Struct, frozen=True):
    """An empty body; its content is ignored."""


Seq = Annotated[int, Meta(ge=0, le=2**53)]
WaitS = Annotated[float, Meta(ge=0, le=60)]


class NoQuery(enums.Struct, frozen=True):
    """No parameters."""


class HistoryParams(enums.Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    after: Seq | None = None
    before: Seq | None = None
    agent: Annotated[str, Meta(max_length=128)] | None = None
    session: enums.Id | None = None
    types: Annotated[str, Meta(pattern=r"^[a-z_.]{1,32}(,[a-z_.]{1,32})*\Z", max_length=400)] | None = None
    q: Annotated[str, Meta(max_length=1000)] | None = None
    wait: WaitS = 0


class MarkdownParams(enums.Struct, frozen=True):
    """Messages by their seq, notes by their id."""

    ids: Annotated[
        str, Meta(pattern=r"^(n-)?[1-9][0-9]{0,14}(,(n-)?[1-9][0-9]{0,14}){0,99}\Z", max_length=2000)
    ]


class InboxParams(enums.Struct, frozen=True):
    after: Seq = 0
    wait: WaitS = 0


class ThreadParams(enums.Struct, frozen=True):
    thread: enums.Thread = enums.DEFAULT_THREAD


class CollaborationParams(enums.Struct, frozen=True):
    """How long to wait for the end, or for more progress lines than the caller already has."""

    wait: WaitS = 0
    after: Seq | None = None


class WatchParams(enums.Struct, frozen=True):
    after: Seq | None = None


class WatchBody(enums.Struct, frozen=True):
    """The agent whose screen to watch or, without one, the seq after which all events are sent."""

    after: Seq | None = None
    screen: enums.Name | None = None


class Op(enums.Struct, frozen=True):
    """The head of a WebSocket operation; the rest of the object is the HTTP body of that name."""

    op: str
    ref: int | str | None = None
