"""The state of a session: its open turns, messages, spending and progress."""

from typing import Final

import msgspec
from msgspec.structs import replace

from csp.protocol.enums import AgentId, MessageId, SessionId, TurnId
from csp.protocol.requests import Handoff, Usage
from csp.protocol.review_messages import RunPhase
from csp.protocol.session_parts import (
    Candidate,
    EndReason,
    Limits,
    PhaseKind,
    Price,
    Setup,
    Stage,
    Status,
    TurnState,
    Wait,
    WaitKind,
)

#: Number of consecutive timeouts after which an agent gets no turns until it speaks.
STRIKES: Final = 2
OPEN: Final = frozenset(
    {TurnState.ASKED, TurnState.DELIVERED, TurnState.WORKING, TurnState.BLOCKED, TurnState.WAITING}
)
FAILED: Final = frozenset({TurnState.FAILED, TurnState.TIMED_OUT})
#: The phases of a review run in which a person decides.
FOR_PERSON: Final = frozenset({RunPhase.APPROVAL, RunPhase.ESCALATED, RunPhase.HALTED})
_FIRST: Final = Stage(number=0, kind=PhaseKind.RELAY, name="", row=-1)


class _State(msgspec.Struct, frozen=True, omit_defaults=True):
    pass


class Turn(_State, frozen=True):
    """An open turn, whose clock started at `since`."""

    id: TurnId
    agent: AgentId
    message: MessageId
    round: int
    state: TurnState
    asked_at: float
    since: float
    prompt_tokens: int = 0
    #: Its time limit, if the session sets one.
    timeout_s: float | None = None
    #: The estimated cost of its call and the upper bound.
    foreseen_usd: float = 0.0
    allowed_usd: float = 0.0
    max_output: int | None = None
    delivered_at: float | None = None
    warned: bool = False
    is_repair: bool = False
    #: The next speaker, unless the reply names one.
    handoff: Handoff | None = None
    #: Its obstacle, and how often it has been asked again after a usage limit.
    wait: Wait | None = None
    tries: int = 0

    @property
    def is_waiting(self) -> bool:
        """Whether its agent cannot work on it until somebody or something else acts."""
        return self.wait is not None or self.state in (TurnState.BLOCKED, TurnState.WAITING)

    def waits_for(self, kind: WaitKind) -> bool:
        """Return whether it has to be asked again when a wait of this kind is over."""
        return self.state is TurnState.WAITING and self.wait is not None and self.wait.kind is kind


class UsageGauge(_State, frozen=True):
    """Maxima over an agent's calls: output, input in excess of our own estimate, and cost."""

    output: int = 0
    over: int = 0
    cost_usd: float = 0.0


class FinishedTurn(_State, frozen=True):
    """A turn that is over."""

    agent: AgentId
    round: int
    state: TurnState


class TurnOutput(_State, frozen=True):
    """An agent's text in its turn."""

    message: MessageId
    round: int
    text: str
    phase: int


class TurnRecord(_State, frozen=True):
    """A finished turn, for the progress report of the session."""

    agent: AgentId
    round: int
    state: TurnState
    phase: str
    reason: str = ""


class WindowItem(_State, frozen=True):
    """A message for the windows of those agents that may read it."""

    id: MessageId
    sender: AgentId
    target: AgentId
    text: str
    sealed: int = 0
    #: Other sealed phases that its sender was in, by session.
    seals: dict[SessionId, int] = msgspec.field(default_factory=dict)


class TurnReply(_State, frozen=True):
    """The reply to the last turn that was answered."""

    turn: TurnId
    agent: AgentId
    to: AgentId | None = None
    final: bool = False
    malformed: bool = False


class BallotVote(_State, frozen=True):
    """The vote of one agent."""

    label: str
    reason: str = ""


# --- spending: tokens and cost by agent and model -------------------------------------------------


#: Agents choose the names of their models; beyond this many rows, the model is omitted.
MOST_ROWS: Final = 256
#: Maximum number of turns with provisional usage; beyond it, the oldest counts with its last report.
MOST_UNDER_WAY: Final = 256
_MILLION: Final = 1_000_000


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The usage of one agent's replies with one model; some may have no known price or be estimates."""

    agent: AgentId
    model: str = ""
    replies: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    estimated: int = 0
    cached: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def new(self) -> int:
        """The tokens that count towards limits: all except input that was read from a cache."""
        return self.tokens - self.cached

    @property
    def known_cost(self) -> float | None:
        """The cost, or None if no reply has a price."""
        return None if self.unpriced == self.replies else self.cost_usd


class RunningUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The usage so far of a turn in progress."""

    agent: AgentId
    usage: Usage


Ledger = tuple[Spent, ...]
Unsettled = dict[TurnId, RunningUsage]


def priced(usage: Usage, price: Price | None) -> Usage:
    """Return the usage of a reply, with its cost added if the agent reports only tokens."""
    is_known = usage.cost_usd is not None or usage.unpriced
    if price is None or is_known:
        return usage
    read = price.input if price.cached is None else price.cached
    uncached = usage.input - usage.cached
    cost = (uncached * price.input + usage.cached * read + usage.output * price.output) / _MILLION
    return replace(usage, cost_usd=cost) if cost else usage


def spend(ledger: Ledger, agent: AgentId, usage: Usage) -> Ledger:
    """Return the ledger with another reply added."""
    model = usage.model or ""
    place = _place(ledger, agent, model)
    if place is None and len(ledger) >= MOST_ROWS:
        model = ""
        place = _place(ledger, agent, model)
    before = Spent(agent, model) if place is None else ledger[place]
    after = Spent(
        agent,
        model,
        replies=before.replies + 1,
        input=before.input + usage.input,
        output=before.output + usage.output,
        cost_usd=before.cost_usd + (usage.cost_usd or 0.0),
        unpriced=before.unpriced + (usage.cost_usd is None),
        estimated=before.estimated + usage.estimated,
        cached=before.cached + usage.cached,
    )
    return (*ledger, after) if place is None else (*ledger[:place], after, *ledger[place + 1 :])


def spent_so_far(ledger: Ledger, unsettled: Unsettled) -> Ledger:
    """Return the ledger as if every turn in progress ended with its current usage."""
    for turn in unsettled.values():
        ledger = spend(ledger, turn.agent, turn.usage)
    return ledger


def is_more(usage: Usage, known: RunningUsage | None) -> bool:
    """Return whether a count exceeds the recorded usage of the same turn; counts only grow."""
    return known is None or usage.tokens > known.usage.tokens


def without(unsettled: Unsettled, turn: str | None) -> Unsettled:
    """Return the usage in progress without that of one turn."""
    return {key: one for key, one in unsettled.items() if key != turn}


def _place(ledger: Ledger, agent: AgentId, model: str) -> int | None:
    return next((i for i, row in enumerate(ledger) if (row.agent, row.model) == (agent, model)), None)


# --- the session ----------------------------------------------------------------------------------


class Session(_State, frozen=True):
    id: SessionId
    seq: int
    thread: str
    setup: Setup
    started_at: float
    agents: tuple[AgentId, ...]
    stage: Stage = _FIRST
    status: Status = Status.RUNNING
    reason: EndReason | None = None
    ended_at: float | None = None
    paused_at: float | None = None
    #: Total duration of earlier pauses and waits, and the start of the current one.
    idle_s: float = 0.0
    idle_since: float | None = None
    #: The limit at which it paused to ask a person, and by how much a person extends each limit.
    held: EndReason | None = None
    amounts: Limits = Limits()
    #: The reason why the session will end once its synthesis is written.
    winding: EndReason | None = None
    #: Open turns, by agent.
    turns: dict[AgentId, Turn] = msgspec.field(default_factory=dict)
    #: Finished turns of this phase.
    done: tuple[FinishedTurn, ...] = ()
    last: TurnReply | None = None
    outputs: dict[AgentId, tuple[TurnOutput, ...]] = msgspec.field(default_factory=dict)
    #: The last concluding message with a text: a synthesis, or the message that ended the session.
    result: TurnOutput | None = None
    votes: dict[AgentId, BallotVote] = msgspec.field(default_factory=dict)
    #: The phase of the first ballot, and the candidates of the last ballot once it is over.
    first_ballot: int = 0
    counted: tuple[Candidate, ...] = ()
    items: tuple[WindowItem, ...] = ()
    #: Number of turns requested in this session, in this phase and in its relays, and number answered.
    asked: int = 0
    asked_here: int = 0
    steps: int = 0
    replies: int = 0
    #: The last speaker of a relay, and whether one of the agents asked together declared the result final.
    cursor: AgentId | None = None
    has_final: bool = False
    #: The last finished turns, their total number, and the reason why an agent's last turn failed.
    course: tuple[TurnRecord, ...] = ()
    courses: int = 0
    failed: dict[AgentId, str] = msgspec.field(default_factory=dict)
    tokens: int = 0
    cost_usd: float = 0.0
    #: Maxima over each agent's calls, and the possible cost of calls that broke off without a report.
    gauges: dict[AgentId, UsageGauge] = msgspec.field(default_factory=dict)
    unsettled: dict[TurnId, float] = msgspec.field(default_factory=dict)
    reminders: int = 0
    #: Limits about which people have been warned.
    warned: tuple[EndReason, ...] = ()
    #: When they were warned, whether the session's open question has been decided, and who won a tie.
    warned_at: float = 0.0
    is_settled: bool = False
    chosen: AgentId | None = None
    #: Consecutive failed turns of any agent, and consecutive turns of the lead without a handoff.
    fails: int = 0
    stalls: int = 0
    #: Consecutive timeouts, by agent.
    strikes: dict[AgentId, int] = msgspec.field(default_factory=dict)
    #: A hash of each agent's last message, to detect repetition, and the number of consecutive repetitions.
    echoes: dict[AgentId, tuple[str, int]] = msgspec.field(default_factory=dict)
    models: dict[AgentId, str] = msgspec.field(default_factory=dict)
    spent: Ledger = ()
    #: The part of `tokens` that was read from a cache, and the usage of turns without a final report.
    cached: int = 0
    under_way: Unsettled = msgspec.field(default_factory=dict)

    @property
    def used(self) -> Usage:
        """The total usage of the session, including turns in progress."""
        seen = [turn.usage for turn in self.under_way.values()]
        output = sum(row.output for row in self.spent) + sum(usage.output for usage in seen)
        tokens = self.tokens + sum(usage.tokens for usage in seen)
        return Usage(
            input=max(tokens - output, 0),
            output=output,
            cache_read=self.cached + sum(usage.cached for usage in seen),
            cost_usd=self.cost_usd + sum(usage.cost_usd or 0.0 for usage in seen),
            estimated=any(row.estimated for row in self.spent),
        )

    @property
    def spent_so_far(self) -> Ledger:
        """The spending of each agent, including turns in progress."""
        return spent_so_far(self.spent, self.under_way)

    @property
    def is_over(self) -> bool:
        return self.status is Status.ENDED

    @property
    def is_running(self) -> bool:
        return self.status is Status.RUNNING

    @property
    def is_idle(self) -> bool:
        """Whether no time counts: it is paused, or all of its open turns wait."""
        if self.status is not Status.RUNNING:
            return self.status is Status.PAUSED
        if not self.turns:
            return self.stage.is_waiting and self.stage.name in FOR_PERSON
        return all(turn.is_waiting for turn in self.turns.values())

    @property
    def width(self) -> int:
        """How many agents of a relay may speak at once."""
        terms = self.setup.collaboration
        is_led = self.setup.lead is not None
        return 1 if terms is None or is_led else max(min(terms.parallel, len(self.agents)), 1)

    def is_benched(self, agent: AgentId) -> bool:
        """Return whether an agent is benched, that is, gets no turns until it speaks."""
        return self.strikes.get(agent, 0) >= STRIKES

    @property
    def seal(self) -> int:
        """The number of the sealed phase whose texts others may not read yet, or 0."""
        return self.stage.number if self.stage.is_sealed and not self.is_over else 0

    def binds(self, agent: AgentId) -> bool:
        """Return whether messages from `agent` are sealed now: it takes part, or did until it was kicked."""
        return bool(self.seal) and (agent in self.agents or any(one.agent == agent for one in self.done))

    @property
    def waiting_for(self) -> tuple[AgentId, ...]:
        """Agents with an open turn, in turn order; an agent outside the turn order is last."""
        inside = tuple(agent for agent in self.setup.agents if agent in self.turns)
        return inside + tuple(agent for agent in self.turns if agent not in inside)

    @property
    def synthesis(self) -> str:
        """The text of the synthesis, or an empty string."""
        said = [one for outputs in self.outputs.values() for one in outputs if one.phase == self.stage.number]
        return said[-1].text if said and self.stage.kind is PhaseKind.SOLO else ""

    @property
    def current(self) -> AgentId | None:
        """The first agent with an open turn."""
        return next(iter(self.waiting_for), None)


# --- tokens ------------------------------------------------------------------------------------------


CHARS_PER_TOKEN: Final = 4
_CUT: Final = " [cut]"


def tokens_in(text: str) -> int:
    """Return an estimate of the number of tokens in a text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def cut(text: str, chars: int) -> str:
    """Return the text, truncated to `chars` characters with an ellipsis if it is longer."""
    return text if len(text) <= chars else text[: max(chars - len(_CUT), 0)] + _CUT
