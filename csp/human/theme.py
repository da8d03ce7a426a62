"""How the pane looks: signs by what the terminal can show, colours by agent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from csp.human.safe_text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The few characters that are not letters."""

    arrow: str = "→"
    done: str = "✓"
    sent: str = "~"
    failed: str = "✗"
    waits: str = "…"
    dot: str = "·"
    call: str = "▲"
    dash: str = "—"


UNICODE: Final = Signs()
ASCII: Final = Signs(arrow="->", done="ok", failed="FAILED", waits="...", dot="|", call="!!", dash="--")

#: Names of prompt_toolkit's 16 colours, which both dark and light terminals show; with their SGR codes.
_COLOURS: Final = ("36", "32", "35", "33", "34", "31", "96", "92", "95", "93", "94", "91")
_BOLD: Final = "1"
_FAINT: Final = "2"
_CODE: Final = "36"
_ALERT: Final = "1;31"


class Theme:
    """Draws names and lines; without colour the words alone say everything."""

    def __init__(self, signs: Signs, *, has_colour: bool) -> None:
        self.signs = signs
        self.has_colour = has_colour
        self._colours: dict[str, str] = {}
        #: How wide a line may be, and how many rows the screen has; 0 where nobody knows, as for a script.
        self.columns: Callable[[], int] = lambda: 0
        self.rows: Callable[[], int] = lambda: 0

    def name(self, agent: str) -> str:
        """Return a name in the colour that it keeps for as long as the pane lives."""
        return self.of(agent, agent)

    def of(self, agent: str, text: str) -> str:
        """Return a text in the colour of an agent."""
        if agent in ("human", "you"):
            return self._paint(_BOLD, visible(text))
        if agent not in self._colours:
            self._colours[agent] = _COLOURS[len(self._colours) % len(_COLOURS)]
        return self._paint(f"{_BOLD};{self._colours[agent]}", visible(text))

    def faint(self, text: str) -> str:
        """Return what matters less than the rest."""
        return self._paint(_FAINT, text)

    def strong(self, text: str) -> str:
        """Return what divides one part of the talk from the next."""
        return self._paint(_BOLD, text)

    def code(self, text: str) -> str:
        """Return what is code."""
        return self._paint(_CODE, text)

    def alert(self, text: str) -> str:
        """Return what somebody has to see."""
        return self._paint(_ALERT, text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_colour and text else text


def look_for(env: Mapping[str, str], encoding: str | None, *, is_terminal: bool) -> Theme:
    """Return the look for a stream of this encoding, in this environment."""
    is_unicode = (encoding or "").lower().replace("-", "").startswith("utf")
    is_plain = (
        not is_terminal or bool(env.get("NO_COLOR")) or env.get("TERM", "dumb") in ("dumb", "unknown", "")
    )
    return Theme(UNICODE if is_unicode else ASCII, has_colour=not is_plain)
