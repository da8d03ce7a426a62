"""The table of roles: who may call what, which fields a caller may set.

Every route, WebSocket operation and MCP tool has one row here. The gateway asks this table before it does
anything, and serves nothing that has no row.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from csp.errors import Forbidden
from csp.protocol.enums import Role


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


class Row(NamedTuple):
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


Table = Mapping[str, Row]

_REVIEW: Final = "leave it out, or begin the run in a terminal: csp review --test COMMAND"
_MODEL: Final = "leave it out, or add the model in a terminal: csp add NAME --provider P --base-url URL"

# fmt: off
ROUTES: Final[Table] = {
    "GET /": Row(ANYBODY),
    "GET /page/{file}": Row(ANYBODY),
    "GET /health": Row(ANYBODY),
    "GET /openapi.json": Row(ANYBODY),
    "POST /page/enter": Row(ANYBODY),
    "GET /ws": Row(MEMBERS),
    "POST /mcp": Row(AGENTS),
    "POST /register": Row(AGENTS),
    "GET /me": Row(MEMBERS),
    "GET /agents": Row(MEMBERS),
    "POST /agents": Row(PEOPLE, {"base_url": _MODEL, "key_env": _MODEL}),
    "DELETE /agents/{id}": Row(SHELL),
    "GET /agents/{id}/screen": Row(MEMBERS),
    "POST /agents/{id}/{verb}": Row(PEOPLE),
    "POST /state": Row(AGENTS),
    "POST /message": Row(MEMBERS),
    "GET /messages/{id}": Row(MEMBERS),
    "POST /messages/{id}/{action}": Row(PEOPLE, {"action=redact": "use: csp history redact"}),
    "GET /inbox/{id}": Row(AGENTS),
    "POST /delivery": Row(AGENTS),
    "POST /agent-output": Row(AGENTS),
    "GET /queue": Row(PEOPLE),
    "GET /history": Row(MEMBERS),
    "POST /history/prune": Row(SHELL),
    "GET /mode": Row(MEMBERS),
    "POST /mode": Row(LEADS),
    "POST /turn/next": Row(LEADS),
    "POST /turn/working": Row(AGENTS),
    "POST /turn/vote": Row(AGENTS),
    "POST /turn/handoff": Row(AGENTS),
    "POST /stop": Row(LEADS),
    "GET /sessions": Row(MEMBERS),
    "POST /sessions": Row(LEADS),
    "GET /sessions/{id}": Row(MEMBERS),
    "POST /sessions/{id}/{change}": Row(LEADS),
    "POST /collaborations": Row(LEADS),
    "GET /collaborations/{id}": Row(MEMBERS),
    "POST /collaborations/{id}/stop": Row(LEADS),
    "GET /runs": Row(MEMBERS),
    "POST /runs": Row(LEADS, {"test": _REVIEW, "dir": _REVIEW}),
    "GET /runs/{id}": Row(MEMBERS),
    "POST /runs/{id}/message": Row(AGENTS),
    "POST /runs/{id}/{act}": Row(PEOPLE),
    "GET /board": Row(MEMBERS),
    "POST /board": Row(MEMBERS),
    "GET /board/search": Row(MEMBERS),
    "GET /board/export": Row(MEMBERS),
    "POST /board/summarise": Row(LEADS),
    "GET /board/{id}": Row(MEMBERS),
    "GET /usage": Row(MEMBERS),
    "POST /page/link": Row(SHELL),
    "POST /page/leave": Row(PEOPLE),
    "GET /metrics": Row(SHELL),
}
OPS: Final[Table] = {
    "message": Row(MEMBERS),
    "output": Row(AGENTS),
    "delivery": Row(AGENTS),
    "working": Row(AGENTS),
    "state": Row(AGENTS),
    "control_done": Row(AGENTS),
    "live": Row(AGENTS),
    "stop": Row(LEADS),
    "watch": Row(MEMBERS),
    "unwatch": Row(MEMBERS),
}
TOOLS: Final[Table] = {
    "send_message": Row(AGENTS),
    "broadcast": Row(AGENTS),
    "read_messages": Row(AGENTS),
    "list_agents": Row(AGENTS),
    "set_status": Row(AGENTS),
    "working": Row(AGENTS),
    "handoff": Row(AGENTS),
    "vote": Row(AGENTS),
    "board_add": Row(AGENTS),
    "board_search": Row(AGENTS),
    "query_log": Row(AGENTS),
    "mode_status": Row(AGENTS),
    "start_mode": Row(AGENTS & LEADS),
    "stop": Row(AGENTS & LEADS),
    "chatter_collaborate": Row(AGENTS & LEADS),
    "chatter_poll": Row(AGENTS & LEADS),
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


def row_of(table: Table, name: str) -> Row:
    """Return the row of a route, an operation or a tool; one without a row must not be served."""
    row = table.get(name)
    if row is None:
        raise LookupError(f"{name!r} has no row in the table of roles, see csp/room/roles.py")
    return row


def is_dangerous(field: str) -> bool:
    """Tell whether a field by its name may choose a command, a place, an address or a variable."""
    return _DANGEROUS.match(field) is not None


def check_row(name: str, row: Row, fields: Iterable[str]) -> None:
    """Raise LookupError if a field by which others could reach this machine is not in its row."""
    loose = [field for field in fields if is_dangerous(field) and field not in row.shell]
    if loose and row.parties != SHELL:
        raise LookupError(
            f"{name!r} takes {', '.join(loose)}, but its row in csp/room/roles.py does not say so"
        )


def check_call(row: Row, party: Party, what: str) -> None:
    """Raise Forbidden unless this caller may do `what`, such as POST /stop."""
    if party in row.parties:
        return
    if party is Party.PAGE:
        raise Forbidden(f"a page may not {what}", "do it in a terminal, see: csp --help")
    raise Forbidden(f"{party} may not {what}", f"it takes the {row.needs} token")


def check_fields(row: Row, party: Party, given: Iterable[str]) -> None:
    """Raise Forbidden where only the room's token may give a field, or `name=value` of a path."""
    if party is Party.ROOM or not row.shell:
        return
    for name in given:
        if name in row.shell:
            raise Forbidden(f"only the room's token may set {name!r}", row.shell[name])
