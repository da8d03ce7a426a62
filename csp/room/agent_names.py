"""Ids of participants: how they are derived from names, and which names are reserved."""

import re
from difflib import get_close_matches
from typing import Final

from csp.errors import BadInput
from csp.protocol.enums import AgentId, JoinRole

MAX_ID: Final = 32
RESERVED: Final = frozenset({"human", "all", "system", "router", "you", "user", "csp", "none", "mailbox"})
ORCHESTRATOR: Final = AgentId("orchestrator")

_OTHER: Final = re.compile(r"[^a-z0-9]+")


def to_id(name: str, role: JoinRole) -> AgentId:
    """Return the id for `name`; raise BadInput if it is empty or reserved."""
    wanted = _OTHER.sub("-", name.lower()).strip("-")[:MAX_ID].strip("-")
    if not wanted:
        raise BadInput(f"name {name!r} contains no letter or digit", "use a name such as 'claude'")
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
    """Return a hint that names the closest known word, or else all known words."""
    close = get_close_matches(word.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are: {', '.join(known)}" if known else "nobody has joined yet"
