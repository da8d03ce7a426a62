"""How many connections each kind of caller may have, and how fast agents may go.

People, agents and callers without a token have connections of their own, so that none can take those of
another. Each agent has a bucket of tokens, and all agents share a quota of operations.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from csp.protocol.enums import AgentId

#: Descriptors for everything that is not a connection: the journal, indexes, child processes, pages.
RESERVED_FILES: Final = 64
MAX_CONNECTIONS: Final = 16_384
MAX_AGENTS: Final = 1024
MAX_STRANGERS: Final = 512
MAX_PER_AGENT: Final = 64
#: How long the head of a request may take.
HEAD_S: Final = 10.0


class Lane(StrEnum):
    PEOPLE = "people"
    AGENTS = "agents"
    STRANGERS = "strangers"


class Places(NamedTuple):
    """How many connections each kind of caller may have."""

    people: int
    agents: int
    strangers: int
    per_agent: int


class AdmissionVerdict(NamedTuple):
    """Whether a connection may stay, and whose connection makes room for it, if any."""

    is_in: bool
    gives_way: AgentId | None = None


def places_for(max_files: int) -> Places:
    """Share out the connections that a process with so many descriptors can have."""
    total = max(8, min(MAX_CONNECTIONS, max_files - RESERVED_FILES))
    agents = min(MAX_AGENTS, total // 2)
    strangers = min(MAX_STRANGERS, total // 4)
    return Places(total - agents - strangers, agents, strangers, min(MAX_PER_AGENT, agents))


def admit(agent: AgentId, counts: Mapping[AgentId, int], places: Places) -> AdmissionVerdict:
    """Decide about one more connection of an agent; `counts` are the connections of all."""
    own = counts.get(agent, 0)
    if own >= places.per_agent:
        # It may replace a connection of its own that is idle.
        return AdmissionVerdict(False, agent)
    if sum(counts.values()) < places.agents:
        return AdmissionVerdict(True)
    greediest = max(counts, key=lambda other: counts[other])
    # Agents share what there is: one takes a place from the other while that has more.
    return (
        AdmissionVerdict(True, greediest) if counts[greediest] > own + 1 else AdmissionVerdict(False, agent)
    )


#: What one agent may do in a second for as long as it likes; a busy agent needs a tenth of it.
OPERATIONS_PER_S: Final = 500.0
#: What an agent that has been quiet may do at once.
BURST: Final = 2000.0
#: Operations of all agents between which the server looks after everybody else.
MAX_QUOTA: Final = 8
#: How much time a pass of the server may use before agents get a smaller quota.
SLOW_PASS_S: Final = 0.005


class Bucket(NamedTuple):
    """The tokens that were left at a time."""

    tokens: float
    at: float


def draw(bucket: Bucket | None, now: float) -> tuple[Bucket, float]:
    """Take one token; return the bucket with the seconds until there is one, 0 if it was taken."""
    if bucket is None:
        return Bucket(BURST - 1, now), 0.0
    tokens = min(BURST, bucket.tokens + max(0.0, now - bucket.at) * OPERATIONS_PER_S)
    if tokens < 1:
        return Bucket(tokens, max(now, bucket.at)), (1 - tokens) / OPERATIONS_PER_S
    return Bucket(tokens - 1, max(now, bucket.at)), 0.0


def is_full(bucket: Bucket, now: float) -> bool:
    """Tell whether a bucket can be forgotten, because a new one would be as good."""
    return bucket.tokens + (now - bucket.at) * OPERATIONS_PER_S >= BURST


def next_quota(quota: int, took_s: float) -> int:
    """Return how many operations agents get in the next pass, after one that took so long."""
    return max(1, quota // 2) if took_s > SLOW_PASS_S else min(MAX_QUOTA, quota + 1)


def in_turn(ready: Sequence[int], last: int, limit: int) -> list[int]:
    """Return at most `limit` of those that are ready: the ones after the last served, then the first.

    Everybody who is ready is served once before anybody is served twice.
    """
    if len(ready) <= limit:
        return list(ready)
    ordered = sorted(ready)
    after = [one for one in ordered if one > last]
    return (after + ordered)[:limit]
