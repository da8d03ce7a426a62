"""The bottom line: agents, the running mode and waiting messages."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from csp.human.safe_text import minutes, one_line, visible
from csp.human.theme import Signs
from csp.protocol.enums import AgentState
from csp.session_status import SessionStatus

_WORDS: Final[dict[str, str]] = {
    AgentState.NEEDS_APPROVAL: "NEEDS APPROVAL",
    AgentState.NEEDS_HUMAN: "NEEDS YOU",
    AgentState.LIMITED: "limited",
}
#: Phases that follow the last round.
_LAST_PHASES: Final = ("ballot", "synthesis")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """One agent's entry in the bottom line."""

    id: str
    state: str
    queued: int = 0


def session_text(session: SessionStatus, signs: Signs, now: float) -> str:
    """Return the mode with its turn clock, such as Debate 2/3 · codex 0:42."""
    text = mode_text(session, signs)
    if text and session.current and session.deadline is not None:
        text += f" {minutes(session.deadline - now)}"
    return text


def mode_text(session: SessionStatus, signs: Signs) -> str:
    """Return the mode and the agent whose reply is due, such as Debate 2/3 · codex; empty in freeform."""
    if not session.is_running:
        return ""
    mode = session.mode.replace("_", " ").capitalize()
    number = session.round + 1
    rounds = f" {number}/{session.max_rounds}" if session.max_rounds else f" turn {number}"
    phase = f" {session.phase}" if session.phase in _LAST_PHASES else ""
    status = " (paused)" if session.status == "paused" else ""
    turn = session.current
    if turn and len(session.waiting_for) > 1:
        turn += f" +{len(session.waiting_for) - 1}"
    return visible(f"{mode}{rounds}{phase}{status}" + (f" {signs.dot} {turn}" if turn else ""))


def bottom_text(
    seats: list[AgentStatus], session: SessionStatus, signs: Signs, now: float, width: int, away: str = ""
) -> str:
    """Return the line, at most `width` columns wide; if space is short, count agents in the same state."""
    waiting = sum(seat.queued for seat in seats)
    rest = [session_text(session, signs, now), f"{waiting} waiting" if waiting else ""]
    words = [(seat.id, _WORDS.get(seat.state, visible(seat.state))) for seat in seats]
    counts = Counter(word for _, word in words)
    names = {word: agent for agent, word in words}
    # Agents that need attention are named first.
    order = sorted(counts, key=lambda word: (word not in _WORDS.values(), word))
    each = [f"{agent} {word}" for agent, word in words] or ["no agents yet"]
    counted = [f"{names[word] if counts[word] == 1 else counts[word]} {word}" for word in order]
    for presence in (f" {signs.dot} ".join(each), f" {signs.dot} ".join(counted)):
        parts = ["NO GATEWAY", presence if seats else "", *rest] if away else [presence, *rest]
        line = " | ".join(part for part in parts if part)
        if len(line) <= width:
            return line
    return one_line(line, width, signs.waits)
