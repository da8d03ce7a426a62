"""Decode the running session from `GET /mode` and describe the state of its agents."""

from dataclasses import dataclass
from typing import Any, Final

YOUR_TURN: Final = "YOUR TURN"
WAITING: Final = "WAITING"
_IDLE: Final = "idle"
_FREEFORM: Final = "freeform"


def bracketed(word: str) -> str:
    """Put YOUR TURN and WAITING in brackets; return any other word unchanged."""
    return f"[{word}]" if word in (YOUR_TURN, WAITING) else word


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """The running session; fields that the gateway did not send have their defaults."""

    mode: str = _FREEFORM
    round: int = 0
    max_rounds: int = 0
    current: str = ""
    waiting_for: tuple[str, ...] = ()
    status: str = ""
    deadline: float | None = None
    id: str = ""
    phase: str = ""
    agents: tuple[str, ...] = ()

    @property
    def is_running(self) -> bool:
        return self.mode != _FREEFORM

    def word_for(self, agent: str, state: str) -> str:
        """Return an agent's state; for an idle agent in a session, return whether it has the turn."""
        if state != _IDLE or agent not in self.agents or not self.is_running:
            return state
        return YOUR_TURN if agent in self.waiting_for else WAITING


def session_of(answer: object) -> SessionStatus:
    """Decode the response to `GET /mode` from a gateway of any version."""
    given: dict[str, Any] = answer if isinstance(answer, dict) else {}
    names = {name: value for name, value in given.items() if isinstance(value, list)}
    numbers = {name: value for name, value in given.items() if isinstance(value, int | float)}
    return SessionStatus(
        mode=str(given.get("mode") or _FREEFORM),
        round=int(numbers.get("round", 0)),
        max_rounds=int(numbers.get("maxRounds", 0)),
        current=str(given.get("currentTurn") or ""),
        waiting_for=tuple(map(str, names.get("waitingFor", ()))),
        status=str(given.get("status") or ""),
        deadline=numbers.get("deadline"),
        id=str(given.get("sessionId") or ""),
        phase=str(given.get("phase") or ""),
        agents=tuple(map(str, names.get("turnOrder", ()))),
    )
