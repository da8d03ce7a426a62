"""The table of roles: who may call what, which fields a caller may set, how often; names of participants.

Every route, WebSocket operation and MCP tool has one row here. The gateway asks this table before it does
anything, and serves nothing that has no row.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from csp.errors import BadInput, Forbidden
from csp.protocol.enums import AgentId, JoinRole, Role


class Party(StrEnum):
    """Who calls, as their token tells: a page speaks for a person, but may do less than the room's token."""

    NONE = "none"
    AGENT = "agent"
    ORCHESTRATOR = "orchestrator"
    PAGE = "page"
    ROOM = "room"


Parties = frozenset[Party]
ANYBODY: Final = frozenset(Party)
MEMBERS: Final = ANYBODY - {Party.NONE}
LEADS: Final = MEMBERS - {Party.AGENT}
PEOPLE: Final = frozenset({Party.PAGE, Party.ROOM})
#: Who reports on itself, or speaks for itself; the room's token may do it for an agent.
AGENTS: Final = MEMBERS - {Party.PAGE}
#: Who has a shell on this machine: it may choose what runs there.
SHELL: Final = frozenset({Party.ROOM})


class RoleRow(NamedTuple):
    """Who may call; which fields, or values of the path, only the room's token may give, with a hint."""

    parties: Parties
    shell: Mapping[str, str] = {}

    @property
    def needs(self) -> Role:
        """The lowest role that may call."""
        return _lowest(self.parties)


@cache
def _lowest(parties: Parties) -> Role:
    # Every request asks for it, and a member of an enum is slow to look up by its value.
    return next(role for role in Role if Party(role) in parties)


Table = Mapping[str, RoleRow]

_REVIEW: Final = "leave it out, or begin the run in a terminal: csp review --test COMMAND"
_MODEL: Final = "leave it out, or add the model in a terminal: csp add NAME --provider P --base-url URL"

# fmt: off
ROUTES: Final[Table] = {
    "GET /": RoleRow(ANYBODY),
    "GET /page/{file}": RoleRow(ANYBODY),
    "GET /health": RoleRow(ANYBODY),
    "GET /openapi.json": RoleRow(ANYBODY),
    "POST /page/enter": RoleRow(ANYBODY),
    "GET /ws": RoleRow(MEMBERS),
    "POST /mcp": RoleRow(AGENTS),
    "POST /register": RoleRow(AGENTS),
    "GET /me": RoleRow(MEMBERS),
    "GET /agents": RoleRow(MEMBERS),
    "POST /agents": RoleRow(PEOPLE, {"base_url": _MODEL, "key_env": _MODEL}),
    "DELETE /agents/{id}": RoleRow(SHELL),
    "GET /agents/{id}/screen": RoleRow(MEMBERS),
    "POST /agents/{id}/{verb}": RoleRow(PEOPLE),
    "POST /state": RoleRow(AGENTS),
    "POST /message": RoleRow(MEMBERS),
    "POST /line": RoleRow(PEOPLE),
    "GET /messages/{id}": RoleRow(MEMBERS),
    "POST /messages/{id}/{action}": RoleRow(PEOPLE, {"action=redact": "use: csp history redact"}),
    "GET /inbox/{id}": RoleRow(AGENTS),
    "POST /delivery": RoleRow(AGENTS),
    "POST /agent-output": RoleRow(AGENTS),
    "GET /queue": RoleRow(PEOPLE),
    "GET /attention": RoleRow(LEADS),
    "GET /rules": RoleRow(LEADS),
    "POST /rules": RoleRow(PEOPLE),
    "DELETE /rules/{number}": RoleRow(PEOPLE),
    "GET /history": RoleRow(MEMBERS),
    "POST /history/prune": RoleRow(SHELL),
    "GET /markdown": RoleRow(MEMBERS),
    "GET /mode": RoleRow(MEMBERS),
    "POST /mode": RoleRow(LEADS),
    "POST /turn/next": RoleRow(LEADS),
    "POST /turn/working": RoleRow(AGENTS),
    "POST /turn/vote": RoleRow(AGENTS),
    "POST /turn/handoff": RoleRow(AGENTS),
    "POST /stop": RoleRow(LEADS),
    "GET /sessions": RoleRow(MEMBERS),
    "POST /sessions": RoleRow(LEADS),
    "GET /sessions/{id}": RoleRow(MEMBERS),
    "POST /sessions/{id}/{change}": RoleRow(LEADS),
    "POST /collaborations": RoleRow(LEADS),
    "GET /collaborations/{id}": RoleRow(MEMBERS),
    "POST /collaborations/{id}/stop": RoleRow(LEADS),
    "GET /runs": RoleRow(MEMBERS),
    "POST /runs": RoleRow(LEADS, {"test": _REVIEW, "dir": _REVIEW}),
    "GET /runs/{id}": RoleRow(MEMBERS),
    "POST /runs/{id}/message": RoleRow(AGENTS),
    "POST /runs/{id}/{act}": RoleRow(PEOPLE),
    "GET /board": RoleRow(MEMBERS),
    "POST /board": RoleRow(MEMBERS),
    "GET /board/search": RoleRow(MEMBERS),
    "GET /board/export": RoleRow(MEMBERS),
    "POST /board/summarise": RoleRow(LEADS),
    "GET /board/{id}": RoleRow(MEMBERS),
    "GET /usage": RoleRow(MEMBERS),
    "GET /catalogue": RoleRow(MEMBERS),
    "POST /page/link": RoleRow(SHELL),
    "POST /page/leave": RoleRow(PEOPLE),
    "GET /metrics": RoleRow(SHELL),
}
OPS: Final[Table] = {
    "message": RoleRow(MEMBERS),
    "output": RoleRow(AGENTS),
    "delivery": RoleRow(AGENTS),
    "working": RoleRow(AGENTS),
    "state": RoleRow(AGENTS),
    "control_done": RoleRow(AGENTS),
    "live": RoleRow(AGENTS),
    "stop": RoleRow(LEADS),
    "line": RoleRow(PEOPLE),
    "watch": RoleRow(MEMBERS),
    "unwatch": RoleRow(MEMBERS),
}
TOOLS: Final[Table] = {
    "send_message": RoleRow(AGENTS),
    "broadcast": RoleRow(AGENTS),
    "read_messages": RoleRow(AGENTS),
    "list_agents": RoleRow(AGENTS),
    "set_status": RoleRow(AGENTS),
    "working": RoleRow(AGENTS),
    "handoff": RoleRow(AGENTS),
    "vote": RoleRow(AGENTS),
    "board_add": RoleRow(AGENTS),
    "board_search": RoleRow(AGENTS),
    "query_log": RoleRow(AGENTS),
    "mode_status": RoleRow(AGENTS),
    "start_mode": RoleRow(AGENTS & LEADS),
    "stop": RoleRow(AGENTS & LEADS),
    "chatter_collaborate": RoleRow(AGENTS & LEADS),
    "chatter_poll": RoleRow(AGENTS & LEADS),
}
# fmt: on

#: Names of fields that choose what runs on this machine, what it reads, whom it calls.
_DANGEROUS: Final = re.compile(
    r"(?:.*_)?(?:test|tests|command|cmd|shell|script|argv|exec|dir|cwd|folder|worktree|path|paths|file|files"
    r"|url|uri|host|port|address|env|variable|key|token|secret)\Z"
)


@cache
def party_of(role: Role, *, is_page: bool) -> Party:
    """Return who calls with a token of this role."""
    return Party.PAGE if is_page else Party(role)


def row_of(table: Table, name: str) -> RoleRow:
    """Return the row of a route, an operation or a tool; one without a row must not be served."""
    row = table.get(name)
    if row is None:
        raise LookupError(f"{name!r} has no row in the table of roles, see csp/room/roles.py")
    return row


def is_dangerous(field: str) -> bool:
    """Tell whether a field by its name may choose a command, a place, an address or a variable."""
    return _DANGEROUS.match(field) is not None


def check_row(name: str, row: RoleRow, fields: Iterable[str]) -> None:
    """Raise LookupError if a field by which others could reach this machine is not in its row."""
    loose = [field for field in fields if is_dangerous(field) and field not in row.shell]
    if loose and row.parties != SHELL:
        raise LookupError(
            f"{name!r} takes {', '.join(loose)}, but its row in csp/room/roles.py does not say so"
        )


def check_call(row: RoleRow, party: Party, what: str) -> None:
    """Raise Forbidden unless this caller may do `what`, such as POST /stop."""
    if party in row.parties:
        return
    if party is Party.PAGE:
        raise Forbidden(f"a page may not {what}", "do it in a terminal, see: csp --help")
    raise Forbidden(f"{party} may not {what}", f"it takes the {row.needs} token")


def check_fields(row: RoleRow, party: Party, given: Iterable[str]) -> None:
    """Raise Forbidden where only the room's token may give a field, or `name=value` of a path."""
    if party is Party.ROOM or not row.shell:
        return
    for name in given:
        if name in row.shell:
            raise Forbidden(f"only the room's token may set {name!r}", row.shell[name])


# --- names and ids --------------------------------------------------------------------------------


MAX_ID: Final = 32
RESERVED: Final = frozenset({"human", "all", "system", "router", "you", "user", "csp", "none", "mailbox"})
ORCHESTRATOR: Final = AgentId("orchestrator")

_OTHER: Final = re.compile(r"[^a-z0-9]+")


def to_id(name: str, role: JoinRole) -> AgentId:
    """Return the id that `name` asks for, or say why nobody can have it."""
    wanted = _OTHER.sub("-", name.lower()).strip("-")[:MAX_ID].strip("-")
    if not wanted:
        raise BadInput(f"name {name!r} has no letter or digit in it", "use a name such as 'claude'")
    if wanted in RESERVED:
        raise BadInput(f"name {wanted!r} is reserved", f"reserved are: {', '.join(sorted(RESERVED))}")
    if wanted == ORCHESTRATOR and role is not JoinRole.ORCHESTRATOR:
        raise BadInput("name 'orchestrator' is reserved for that role", "register with role 'orchestrator'")
    return AgentId(wanted)


def numbered(wanted: AgentId, number: int) -> AgentId:
    """Return the id of the `number`-th participant with this name: claude, claude-2, claude-3."""
    if number == 1:
        return wanted
    suffix = f"-{number}"
    return AgentId(wanted[: MAX_ID - len(suffix)].rstrip("-") + suffix)


def nearest(word: str, known: list[str]) -> str:
    """Return a hint that names the closest known word, or all of them."""
    close = get_close_matches(word.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are: {', '.join(known)}" if known else "nobody has joined yet"


# --- how many connections, how fast ---------------------------------------------------------------
#
# People, agents and callers without a token have connections of their own, so that none can take those of
# another. Each agent has a bucket of tokens, all agents share a quota of operations.


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


# --- how fast an agent may go ------------------------------------------------------------------------


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
