"""The parts of a session that are stored in the journal."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from csp.protocol.enums import DEFAULT_THREAD, AgentId, Mode, Struct


class Status(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"


class EndReason(StrEnum):
    FINAL = "final"
    NO_HANDOFF = "no_handoff"
    MALFORMED = "malformed"
    CAP_REACHED = "cap_reached"
    STOPPED_BY_USER = "stopped_by_user"
    CANCELED = "canceled"
    EMERGENCY_TURNS = "emergency_turns"
    EMERGENCY_TOKENS = "emergency_tokens"
    EMERGENCY_MINUTES = "emergency_minutes"
    EMERGENCY_COST = "emergency_cost"
    TOO_FEW = "too_few"
    ALL_FAILED = "all_failed"
    DONE = "done"
    TIE = "tie"
    NO_QUORUM = "no_quorum"
    SUPERSEDED = "superseded"
    ACCEPTED = "accepted"
    ABORTED = "aborted"
    HALTED = "halted"
    #: An agent reached a usage limit, and the session was set to stop then.
    AGENT_LIMITED = "agent_limited"


class TurnState(StrEnum):
    ASKED = "asked"
    DELIVERED = "delivered"
    WORKING = "working"
    BLOCKED = "blocked"
    #: Its agent cannot work on it now; it will be asked, or asked again, when `Wait` is over.
    WAITING = "waiting"
    REPLIED = "replied"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PhaseKind(StrEnum):
    RELAY = "relay"  # one speaker at a time
    GATHER = "gather"  # all at once
    BALLOT = "ballot"  # all at once, with votes
    SOLO = "solo"  # one agent, once
    REVIEW = "review"  # the agent that the session's run needs next


class Change(StrEnum):
    """A change to a session as a whole."""

    STARTED = "started"
    PHASE = "phase"
    PAUSED = "paused"
    RESUMED = "resumed"
    EXTENDED = "extended"
    KICKED = "kicked"
    CONTINUED = "continued"
    REMINDED = "reminded"
    WARNED = "warned"
    ENDED = "ended"
    #: A person decided an open question of the session: `agent` won a tie, or a limit was acknowledged.
    SETTLED = "settled"
    #: The machine slept for `minutes`, which no clock counts.
    SLEPT = "slept"


class OnLimit(StrEnum):
    """The action of a session when an agent reaches a usage limit of its account.

    With `wait`, it also waits for logins, dialogs and agents that are offline, however long that takes.
    """

    WAIT = "wait"
    SKIP = "skip"
    STOP = "stop"


class OnHardLimit(StrEnum):
    """The action of a session at its own limit: pause and ask a person, or stop."""

    ASK = "ask"
    STOP = "stop"


class WaitKind(StrEnum):
    RESET = "reset"  # the reset of a usage limit
    PERSON = "person"  # a login, a dialog, a draft in the way
    OFFLINE = "offline"  # an agent that has ended or cannot be reached
    RESUME = "resume"  # the end of a pause: the session was stopped by its limit or by a person


class Wait(Struct, frozen=True):
    """The obstacle of a turn; `until` is a reported reset, and at `at` the agent is asked again.

    Without `at`, only an event or a person ends the wait. `detail` is the kind of the obstacle, never a text
    of the agent.
    """

    kind: WaitKind
    since: float
    until: float | None = None
    at: float | None = None
    detail: str = ""


class Limits(Struct, frozen=True):
    """The limits of a session; an omitted limit does not apply."""

    turns: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    tokens: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    minutes: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    cost: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class Price(Struct, frozen=True):
    """The price of a million tokens in US dollars; `cached` is cached input."""

    input: float
    output: float
    cached: float | None = None


class Collaboration(Struct, frozen=True):
    """The terms of a collaboration."""

    #: The thread in which the result is posted.
    thread: str = DEFAULT_THREAD
    #: The maximum number of agents that work at the same time.
    parallel: int = 1
    #: The time limit of a step.
    step_s: float = 300.0
    #: The number of notes after which the session's board is summarised.
    summarise_at: int = 50


class Setup(Struct, frozen=True):
    """The setup of a session; `agents` is its turn order."""

    mode: Mode
    agents: tuple[AgentId, ...]
    topic: str = ""
    #: The length in the unit of the mode (cycles, turns or steps); None if only the limits end it.
    rounds: int | None = None
    lead: AgentId | None = None
    synth: AgentId | None = None
    ballot: bool = False
    respect_final: bool = False
    soft_turns: bool = False
    limits: Limits = Limits()
    #: Sessions from older journals skip an agent that has reached a usage limit.
    on_limit: OnLimit = OnLimit.SKIP
    on_hard_limit: OnHardLimit = OnHardLimit.STOP
    #: The known prices of the agents' models.
    prices: dict[AgentId, Price] = field(default_factory=dict)
    collaboration: Collaboration | None = None


class Candidate(Struct, frozen=True):
    """The author of a labelled proposal in a ballot."""

    label: str
    agent: AgentId


class Stage(Struct, frozen=True):
    """One phase of a session: the `cycle`-th run of a row of its mode.

    `number` counts the phases of the session; messages in a sealed phase stay sealed until it increases.
    """

    number: int
    kind: PhaseKind
    name: str
    row: int
    cycle: int = 1
    round: int = 1
    is_sealed: bool = False
    is_again: bool = False
    #: Whether the phase waits for a person, a file or CSP, so that no agent has a turn.
    is_waiting: bool = False
    candidates: tuple[Candidate, ...] = ()
