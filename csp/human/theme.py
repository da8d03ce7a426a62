"""The pane's appearance: signs that the terminal can show, and a colour per agent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from csp.human.safe_text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The few signs that are not letters."""

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

#: The names and SGR codes of prompt_toolkit colours that are readable on dark and light terminals.
_COLOURS: Final = ("36", "32", "35", "33", "34", "31", "96", "92", "95", "93", "94", "91")
_BOLD: Final = "1"
_FAINT: Final = "2"
_CODE: Final = "36"
_ALERT: Final = "1;31"


class Theme:
    """Draws names and lines; without colour, the words alone are sufficient."""

    def __init__(self, signs: Signs, *, has_colour: bool) -> None:
        self.signs = signs
        self.has_colour = has_colour
        self._colours: dict[str, str] = {}
        #: The width of a line and the number of rows on the screen; 0 if unknown, such as for a script.
        self.columns: Callable[[], int] = lambda: 0
        self.rows: Callable[[], int] = lambda: 0

    def name(self, agent: str) -> str:
        """Return a name in a colour that it keeps for the lifetime of the pane."""
        return self.of(agent, agent)

    def of(self, agent: str, text: str) -> str:
        """Return a text in an agent's colour."""
        if agent in ("human", "you"):
            return self._paint(_BOLD, visible(text))
        if agent not in self._colours:
            self._colours[agent] = _COLOURS[len(self._colours) % len(_COLOURS)]
        return self._paint(f"{_BOLD};{self._colours[agent]}", visible(text))

    def faint(self, text: str) -> str:
        """Return text styled as less important."""
        return self._paint(_FAINT, text)

    def strong(self, text: str) -> str:
        """Return text in bold."""
        return self._paint(_BOLD, text)

    def code(self, text: str) -> str:
        """Return text styled as code."""
        return self._paint(_CODE, text)

    def alert(self, text: str) -> str:
        """Return text styled as an alert."""
        return self._paint(_ALERT, text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_colour and text else text


def look_for(env: Mapping[str, str], encoding: str | None, *, is_terminal: bool) -> Theme:
    """Return the theme for a stream with this encoding, in this environment."""
    is_unicode = (encoding or "").lower().replace("-", "").startswith("utf")
    is_plain = (
        not is_terminal or bool(env.get("NO_COLOR")) or env.get("TERM", "dumb") in ("dumb", "unknown", "")
    )
    return Theme(UNICODE if is_unicode else ASCII, has_colour=not is_plain)
