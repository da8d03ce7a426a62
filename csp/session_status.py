"""Say in a word whose turn it is, as any terminal can show it."""

from collections.abc import Collection
from typing import Any, Final

YOUR_TURN: Final = "YOUR TURN"
WAITING: Final = "WAITING"
_IDLE: Final = "idle"
_FREEFORM: Final = "freeform"


def takes_part(view: dict[str, Any]) -> tuple[str, ...]:
    """Return who takes part in the mode that GET /mode shows; nobody once it has ended."""
    order = view.get("turnOrder")
    is_running = view.get("mode") not in (None, _FREEFORM) and isinstance(order, list)
    return tuple(map(str, order or ())) if is_running else ()


def owing(view: dict[str, Any]) -> tuple[str, ...]:
    """Return who owes a reply in the mode that GET /mode shows."""
    waiting = view.get("waitingFor")
    return tuple(map(str, waiting)) if isinstance(waiting, list) else ()


def turn_word(agent: str, state: str, everybody: Collection[str], owing: Collection[str]) -> str:
    """Return what an agent does; of one that rests while a mode runs, whether it is its turn."""
    if state != _IDLE or agent not in everybody:
        return state
    return YOUR_TURN if agent in owing else WAITING


def bracketed(word: str) -> str:
    """Return a word of a turn in brackets, any other as it is."""
    return f"[{word}]" if word in (YOUR_TURN, WAITING) else word
