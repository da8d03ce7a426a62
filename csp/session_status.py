"""The running session as `GET /mode` shows it, and the word for whose turn it is."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

YOUR_TURN: Final = "YOUR TURN"
WAITING: Final = "WAITING"
_IDLE: Final = "idle"
_FREEFORM: Final = "freeform"


def takes_part(view: dict[str, Any]) -> tuple[str, ...]:
    """Return the agents of the session in a `GET /mode` answer; none once it has ended."""
    order = view.get("turnOrder")
    is_running = view.get("mode") not in (None, _FREEFORM) and isinstance(order, list)
    return tuple(map(str, order or ())) if is_running else ()


def owing(view: dict[str, Any]) -> tuple[str, ...]:
    """Return the agents that owe a reply in a `GET /mode` answer."""
    waiting = view.get("waitingFor")
    return tuple(map(str, waiting)) if isinstance(waiting, list) else ()


def turn_word(agent: str, state: str, everybody: Collection[str], owing: Collection[str]) -> str:
    """Return the state of an agent; for an idle one in a session, whether it is its turn."""
    if state != _IDLE or agent not in everybody:
        return state
    return YOUR_TURN if agent in owing else WAITING


def bracketed(word: str) -> str:
    """Put YOUR TURN and WAITING in brackets; return any other word unchanged."""
    return f"[{word}]" if word in (YOUR_TURN, WAITING) else word


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """The running session; a field that the gateway did not send has its default."""

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
        """Return the state of an agent, or whether it is its turn."""
        return turn_word(agent, state, self.agents, self.waiting_for)


def session_of(answer: object) -> SessionStatus:
    """Read the answer to `GET /mode`, from a gateway of any version."""
    given: dict[str, Any] = answer if isinstance(answer, dict) else {}
    deadline = given.get("deadline")
    return SessionStatus(
        mode=str(given.get("mode") or _FREEFORM),
        round=_int(given.get("round")),
        max_rounds=_int(given.get("maxRounds")),
        current=str(given.get("currentTurn") or ""),
        waiting_for=owing(given),
        status=str(given.get("status") or ""),
        deadline=float(deadline) if isinstance(deadline, int | float) else None,
        id=str(given.get("sessionId") or ""),
        phase=str(given.get("phase") or ""),
        agents=takes_part(given),
    )


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
