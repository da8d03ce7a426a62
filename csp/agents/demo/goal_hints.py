"""What the one who set a goal wishes of the demo agents: when to end, in which shape to answer."""

import json
import re
from typing import Final

from csp.room.agent_text.grammar import Finish, HandOver, Spoken

_AT_ONCE: Final = re.compile(r"\bthen stop\b|\bin (?:1|one) sentence\b", re.IGNORECASE)
_ENDLESS: Final = re.compile(r"\bindefinitely\b|\bfor ?ever\b|\bwithout (?:an )?end\b", re.IGNORECASE)
_CAP: Final = re.compile(r"(?:≤|<=|at most|up to)\s*(?P<n>\d{1,3}) (?:rounds|turns|steps)\b", re.IGNORECASE)
_MALFORMED: Final = re.compile(r"\bmalformed json\b", re.IGNORECASE)
_JSON: Final = re.compile(r"\banswer in json\b", re.IGNORECASE)
_TIME: Final = re.compile(r"\btake your time\b", re.IGNORECASE)
_MODE: Final = re.compile(
    r"(?:please )?(?:start|set|run|begin) (?:an? |the )?(?:mode )?(?P<mode>[a-z_]{4,20}) "
    r'(?:on |about |of |for )?"(?P<topic>[^"\n\\]{1,200})"(?: in (?P<rounds>\d{1,2}) rounds)?[.!]?\Z',
    re.IGNORECASE,
)
_STATUS: Final = re.compile(r"(?:please )?(?:what is|show|ask for) the mode\b[^\n]{0,20}\Z", re.IGNORECASE)


def wants_end(goal: str) -> bool:
    """Tell whether the first answer should be the last."""
    return bool(_AT_ONCE.search(goal))


def wants_no_end(goal: str) -> bool:
    """Tell whether nobody should call the work done."""
    return bool(_ENDLESS.search(goal))


def wanted_cap(goal: str) -> int | None:
    """Return how many rounds the goal allows, if it says so."""
    found = _CAP.search(goal)
    return int(found["n"]) if found else None


def wants_time(goal: str) -> bool:
    """Tell whether an agent should ask for more time instead of answering."""
    return bool(_TIME.search(goal))


def mode_command(text: str) -> str:
    """Return the command that sets or shows the mode somebody asks an orchestrator for."""
    found = _MODE.match(text.strip())
    if found:
        rounds = f" --rounds {found['rounds']}" if found["rounds"] else ""
        return f'@mode.set {found["mode"].lower()} "{found["topic"]}"{rounds}'
    return "@mode.status" if _STATUS.match(text.strip()) else ""


def shaped(goal: str, said: str, command: Spoken | None, line: str) -> str:
    """Return an answer in the shape the goal asks for; `line` is how plain text has its command."""
    if _MALFORMED.search(goal):
        return json.dumps({"message": said, "handoff": {"to": getattr(command, "to", "nobody")}})
    if not _JSON.search(goal):
        return f"{said}\n\n{line}" if line else said
    envelope: dict[str, object] = {"message": said}
    if isinstance(command, HandOver):
        envelope["handoff"] = {"to": command.to, "task": command.task}
    if isinstance(command, Finish):
        envelope["final"] = True
    return json.dumps(envelope, ensure_ascii=False)
