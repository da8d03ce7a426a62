"""Who may keep a connection: places of people, of agents, of callers without a token.

Each kind has places of its own, so that none can take those of another.
"""

from collections.abc import Mapping
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
