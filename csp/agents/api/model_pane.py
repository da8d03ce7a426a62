"""A model's pane, which shows each request as one line, then the reply and its cost."""

import re
from collections import deque
from collections.abc import Callable
from typing import Final

from csp.protocol.enums import DeliverKind
from csp.protocol.requests import Usage
from csp.protocol.responses import Deliver
from csp.protocol.screen_frames import RunView, ScreenView
from csp.terminal.prompt_builder import without_controls

KEPT_ROWS: Final = 200
ROWS: Final = 50
COLS: Final = 100
_FAINT: Final = "\x1b[2m"
_BOLD: Final = "\x1b[1m"
_PLAIN: Final = "\x1b[0m"
_ASKED_CHARS: Final = 160
#: Matches an escape sequence whose end has not arrived yet.
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[()*+\-./#%])?\Z")
_MAX_HELD: Final = 256

Write = Callable[[str], None]


class ModelPane:
    """Writes lines to a terminal and keeps the last ones for remote viewers of the screen."""

    def __init__(self, write: Write, *, has_colour: bool = False) -> None:
        self._write = write
        self._has_colour = has_colour
        self._rows: deque[str] = deque(maxlen=KEPT_ROWS)
        self._line = ""
        self._held = ""

    def say(self, text: str) -> None:
        """Show part of a reply as it arrives; nothing in it can control the terminal."""
        text = self._held + text
        unfinished = _UNFINISHED.search(text)
        cut = unfinished.start() if unfinished and len(unfinished[0]) <= _MAX_HELD else len(text)
        text, self._held = text[:cut], text[cut:]
        plain = without_controls(text)
        *rows, self._line = (self._line + plain).split("\n")
        self._rows.extend(rows)
        self._write(plain)

    def finish(self) -> None:
        """End the current line of a reply."""
        self._held = ""
        if self._line:
            self.say("\n")

    def line(self, text: str, style: str = "") -> None:
        """Show a line that is not part of a reply."""
        self.finish()
        plain = without_controls(text)
        self._rows.append(plain)
        self._write(f"{style}{plain}{_PLAIN}\n" if style and self._has_colour else f"{plain}\n")

    def title(self, text: str) -> None:
        self.line(text, _BOLD)

    def note(self, text: str) -> None:
        self.line(f"  {text}", _FAINT)

    def ask(self, item: Deliver) -> None:
        """Show a request as one line."""
        is_turn = item.kind is DeliverKind.TURN
        # The first line of a turn contains the round; the rest is for the model.
        words = " ".join((item.text.partition("\n")[0] if is_turn else item.text).split())
        cut = words if len(words) <= _ASKED_CHARS else f"{words[: _ASKED_CHARS - 1]}…"
        who = f"turn {item.turn}" if is_turn else item.sender
        self.line("")
        self.line(f"> {who}: {cut}", _FAINT)

    def cost(self, usage: Usage, prices: str | None) -> None:
        self.note(cost_text(usage, prices))

    def screen(self) -> ScreenView:
        """Return the visible rows for remote viewers."""
        rows = [*self._rows, self._line][-ROWS:]
        return ScreenView(rows=tuple((RunView(row[:1000]),) if row else () for row in rows), cols=COLS)


def cost_text(usage: Usage, prices: str | None) -> str:
    """Return the usage and the cost of a reply as one line."""
    tokens = f"{usage.new:,} new tokens ({usage.output:,} output), {usage.cached:,} cached"
    if usage.estimated:
        tokens = f"about {tokens} (estimated)"
    if usage.cost_usd is None:
        return f"{tokens}; the price is unknown for {usage.model}"
    return f"{tokens}; ${usage.cost_usd:.6f} ({prices})"
