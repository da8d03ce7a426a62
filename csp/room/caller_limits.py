"""Limits for callers: the number of connections per kind of caller, and the request rate of agents.

People, agents and callers without a token have separate limits, so that none of them can exhaust those of
the others. Each agent has a token bucket, and all agents share one quota of operations.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from csp.protocol.enums import AgentId

#: File descriptors for everything except connections: the journal, indexes, child processes and pages.
RESERVED_FILES: Final = 64
MAX_CONNECTIONS: Final = 16_384
MAX_AGENTS: Final = 1024
MAX_STRANGERS: Final = 512
MAX_PER_AGENT: Final = 64
#: How long the headers of a request may take to arrive.
HEAD_S: Final = 10.0


class Lane(StrEnum):
    PEOPLE = "people"
    AGENTS = "agents"
    STRANGERS = "strangers"


class Places(NamedTuple):
    """The maximum number of connections for each kind of caller."""

    people: int
    agents: int
    strangers: int
    per_agent: int


class AdmissionVerdict(NamedTuple):
    """Whether a connection may stay and which agent, if any, loses a connection for it."""

    is_in: bool
    gives_way: AgentId | None = None


def places_for(max_files: int) -> Places:
    """Divide up the connections that a process with `max_files` file descriptors can have."""
    total = max(8, min(MAX_CONNECTIONS, max_files - RESERVED_FILES))
    agents = min(MAX_AGENTS, total // 2)
    strangers = min(MAX_STRANGERS, total // 4)
    return Places(total - agents - strangers, agents, strangers, min(MAX_PER_AGENT, agents))


def admit(agent: AgentId, counts: Mapping[AgentId, int], places: Places) -> AdmissionVerdict:
    """Decide whether an agent may have another connection; `counts` has the connections of all agents."""
    own = counts.get(agent, 0)
    if own >= places.per_agent:
        # It may replace one of its own idle connections.
        return AdmissionVerdict(False, agent)
    if sum(counts.values()) < places.agents:
        return AdmissionVerdict(True)
    greediest = max(counts, key=lambda other: counts[other])
    # Agents share the connections: an agent takes one from the agent with the most, while that one has more.
    return (
        AdmissionVerdict(True, greediest) if counts[greediest] > own + 1 else AdmissionVerdict(False, agent)
    )


#: Sustained rate of one agent; a busy agent needs a tenth of this.
OPERATIONS_PER_S: Final = 500.0
#: Burst size of an agent that has been idle.
BURST: Final = 2000.0
#: Maximum number of agent operations before the server serves the other callers.
MAX_QUOTA: Final = 8
#: Duration of a server pass above which agents get a smaller quota.
SLOW_PASS_S: Final = 0.005


class Bucket(NamedTuple):
    """A token bucket: the number of tokens left at a given time."""

    tokens: float
    at: float


def draw(bucket: Bucket | None, now: float) -> tuple[Bucket, float]:
    """Take one token; return the bucket and the seconds until the next token, or 0 if one was taken."""
    if bucket is None:
        return Bucket(BURST - 1, now), 0.0
    tokens = min(BURST, bucket.tokens + max(0.0, now - bucket.at) * OPERATIONS_PER_S)
    if tokens < 1:
        return Bucket(tokens, max(now, bucket.at)), (1 - tokens) / OPERATIONS_PER_S
    return Bucket(tokens - 1, max(now, bucket.at)), 0.0


def is_full(bucket: Bucket, now: float) -> bool:
    """Return whether a bucket can be forgotten because a new one would be equal."""
    return bucket.tokens + (now - bucket.at) * OPERATIONS_PER_S >= BURST


def next_quota(quota: int, took_s: float) -> int:
    """Return the quota of agent operations for the next pass, given the duration of the last one."""
    return max(1, quota // 2) if took_s > SLOW_PASS_S else min(MAX_QUOTA, quota + 1)


def in_turn(ready: Sequence[int], last: int, limit: int) -> list[int]:
    """Return at most `limit` of the ready callers, starting after the last one served and wrapping around.

    Every ready caller is served once before any is served twice.
    """
    if len(ready) <= limit:
        return list(ready)
    ordered = sorted(ready)
    after = [one for one in ordered if one > last]
    return (after + ordered)[:limit]
