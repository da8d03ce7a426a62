"""What a session is made of, as it stands in the journal."""

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


class TurnState(StrEnum):
    ASKED = "asked"
    DELIVERED = "delivered"
    WORKING = "working"
    BLOCKED = "blocked"
    REPLIED = "replied"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PhaseKind(StrEnum):
    RELAY = "relay"  # one speaker at a time
    GATHER = "gather"  # all at once
    BALLOT = "ballot"  # all at once, with votes
    SOLO = "solo"  # one agent, once
    REVIEW = "review"  # whoever the run of the session needs next


class Change(StrEnum):
    """What happened to a session as a whole."""

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


class Limits(Struct, frozen=True):
    """What ends a session in an emergency; what is left out does not."""

    turns: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    tokens: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    minutes: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    cost: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class Price(Struct, frozen=True):
    """What a million tokens of a model cost, in US dollars; `cached` is input that is read from a cache."""

    input: float
    output: float
    cached: float | None = None


class Collaboration(Struct, frozen=True):
    """What a session is run by that works for somebody in another thread."""

    #: Where the result is told, once.
    thread: str = DEFAULT_THREAD
    #: How many are asked at once, at most.
    parallel: int = 1
    #: How long a step may take.
    step_s: float = 300.0
    #: Notes after which the board of the session is summed up.
    summarise_at: int = 50


class Setup(Struct, frozen=True):
    """What a session was started with; `agents` is its turn order."""

    mode: Mode
    agents: tuple[AgentId, ...]
    topic: str = ""
    #: In the unit of the mode: cycles, turns or steps; None where nothing but the limits ends it.
    rounds: int | None = None
    lead: AgentId | None = None
    synth: AgentId | None = None
    ballot: bool = False
    respect_final: bool = False
    soft_turns: bool = False
    limits: Limits = Limits()
    #: Of those whose price is known.
    prices: dict[AgentId, Price] = field(default_factory=dict)
    collaboration: Collaboration | None = None


class Candidate(Struct, frozen=True):
    """Whose proposal stands behind a label of a ballot."""

    label: str
    agent: AgentId


class Stage(Struct, frozen=True):
    """One phase of a session: the `cycle`-th run of a row of its mode.

    `number` counts the phases of the session; what is sealed is so until the number moves on.
    """

    number: int
    kind: PhaseKind
    name: str
    row: int
    cycle: int = 1
    round: int = 1
    is_sealed: bool = False
    is_again: bool = False
    #: Nobody has a turn: it waits for a person, for a file, for CSP itself.
    is_waiting: bool = False
    candidates: tuple[Candidate, ...] = ()
