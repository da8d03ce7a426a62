"""The table of roles: which callers may make which calls, and which fields they may set.

Every route, WebSocket operation and MCP tool has one row here. The gateway checks this table before it acts
and serves no call without a row.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from csp.errors import Forbidden
from csp.protocol.enums import Role


class Party(StrEnum):
    """The kind of caller, from its token. A page acts for a person with fewer rights than the room."""

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
#: Callers that report or speak for themselves; the room's token may do so on behalf of an agent.
AGENTS: Final = MEMBERS - {Party.PAGE}
#: Callers with a shell on this machine, who may choose what runs there.
SHELL: Final = frozenset({Party.ROOM})


class RoleRow(NamedTuple):
    """The permitted callers, and the fields or path values that only the room's token may set, with hints."""

    parties: Parties
    shell: Mapping[str, str] = {}

    @property
    def needs(self) -> Role:
        """The lowest role that may make the call."""
        return _lowest(self.parties)


@cache
def _lowest(parties: Parties) -> Role:
    # This is called for every request, and looking up an enum member by its value is slow.
    return next(role for role in Role if Party(role) in parties)


Table = Mapping[str, RoleRow]

_REVIEW: Final = "omit it, or start the run in a terminal: csp review --test COMMAND"
_MODEL: Final = "omit it, or add the model in a terminal: csp add NAME --provider P --base-url URL"

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
    "GET /report": RoleRow(PEOPLE),
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

#: Names of fields that determine what runs on this machine, which files it reads or which hosts it contacts.
_DANGEROUS: Final = re.compile(
    r"(?:.*_)?(?:test|tests|command|cmd|shell|script|argv|exec|dir|cwd|folder|worktree|path|paths|file|files"
    r"|url|uri|host|port|address|env|variable|key|token|secret)\Z"
)


@cache
def party_of(role: Role, *, is_page: bool) -> Party:
    """Return the party of a token with this role."""
    return Party.PAGE if is_page else Party(role)


def row_of(table: Table, name: str) -> RoleRow:
    """Return the row of a route, an operation or a tool; raise LookupError if it has none."""
    row = table.get(name)
    if row is None:
        raise LookupError(f"{name!r} has no row in the table of roles; see csp/room/permissions.py")
    return row


def is_dangerous(field: str) -> bool:
    """Return whether a field's name suggests that it sets a command, a path, an address or a variable."""
    return _DANGEROUS.match(field) is not None


def check_row(name: str, row: RoleRow, fields: Iterable[str]) -> None:
    """Raise LookupError if a dangerous field is missing from the row of a call that others may make."""
    loose = [field for field in fields if is_dangerous(field) and field not in row.shell]
    if loose and row.parties != SHELL:
        raise LookupError(
            f"{name!r} takes {', '.join(loose)}, but its row in csp/room/permissions.py does not list them"
        )


def check_call(row: RoleRow, party: Party, what: str) -> None:
    """Raise Forbidden unless this party may do `what`, such as POST /stop."""
    if party in row.parties:
        return
    if party is Party.PAGE:
        raise Forbidden(f"a page may not {what}", "do it in a terminal, see: csp --help")
    raise Forbidden(f"{party} may not {what}", f"it requires the {row.needs} token")


def check_fields(row: RoleRow, party: Party, given: Iterable[str]) -> None:
    """Raise Forbidden if only the room's token may set one of the fields or path values (`name=value`)."""
    if party is Party.ROOM or not row.shell:
        return
    for name in given:
        if name in row.shell:
            raise Forbidden(f"only the room's token may set {name!r}", row.shell[name])
