"""What a demo agent's pane shows: the conversation, the composer below it."""

import re
from collections import deque
from dataclasses import dataclass
from typing import Final

from csp.agents.demo.composer import Composer
from csp.agents.demo.demo_screen import BOLD, FAINT, PLAIN, Screen
from csp.agents.demo.personas import Persona
from csp.agents.demo.text_rows import Place, cut_in_rows, place_in, wrapped

MAX_ITEMS: Final = 100
MAX_ECHO_ROWS: Final = 6
MAX_COMPOSER_ROWS: Final = 10
#: Rows of the bottom besides those of the composer.
_FURNITURE: Final = 6
_SIGN: Final = "❯ "
_SPINNER: Final = "·✢✳✶✻✽✻✶✳✢"
_FRAME_S: Final = 0.12
_STRONG: Final = re.compile(r"\*\*([^*]+)\*\*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """What is being done, since when it has been done, as text."""

    what: str
    elapsed_s: float

    def row(self, cols: int) -> str:
        mark = _SPINNER[int(self.elapsed_s / _FRAME_S) % len(_SPINNER)]
        text = f"{mark} {self.what}… ({int(self.elapsed_s)}s · esc to interrupt)"
        return f"{FAINT}{_fitted(text, cols)}{PLAIN}"


class Conversation:
    """Keeps what was said lately, so that it can be laid out again for another size."""

    def __init__(self, persona: Persona, name: str, screen: Screen, *, has_colour: bool = True) -> None:
        self._persona = persona
        self._name = name
        self._screen = screen
        self._colour = f"\x1b[{persona.colour}m" if has_colour else ""
        self._rows, self._cols = 24, 80
        self._items: deque[tuple[str, str]] = deque(maxlen=MAX_ITEMS)
        self._new: list[str] = []
        #: The answer that is on its way, with how many of its rows have gone up already.
        self._answer = ""
        self._gone_up = 0

    # --- what is said ----------------------------------------------------------------------------

    def fit(self, rows: int, cols: int) -> None:
        """Lay out what comes from now on for this size."""
        self._rows, self._cols = max(1, rows), max(4, cols)

    def show_again(self) -> None:
        """Lay out anew what fits on the screen, which is cleared for it."""
        self._screen.clear()
        said = [row for item in self._items for row in self._laid_out(item)]
        answer = self._answer_rows()
        self._gone_up = max(0, len(answer) - 1)
        self._new = [*said, *answer[: self._gone_up]][-self._rows :]

    def greet(self) -> None:
        who = (
            self._persona.name if self._name == self._persona.name else f"{self._name} ({self._persona.name})"
        )
        self._add(
            "plain",
            f"{who}: {self._persona.motto}\n"
            "A scripted demo agent of CSP. There is no model behind it, no key, no network: fixed rules make "
            "its answers from your words.",
        )

    def ask(self, prompt: str) -> None:
        self._add("prompt", prompt)

    def note(self, text: str) -> None:
        self._add("note", text)

    def stream(self, answer: str) -> None:
        """Show an answer as far as it has come."""
        self._answer = answer
        rows = self._answer_rows()
        self._new += rows[self._gone_up : -1]
        self._gone_up = max(0, len(rows) - 1)

    def finish(self) -> None:
        """Let the answer stay as it is."""
        self._new += self._answer_rows()[self._gone_up :]
        if self._answer:
            self._items.append(("answer", self._answer))
        self._answer, self._gone_up = "", 0

    def _add(self, kind: str, text: str) -> None:
        self._items.append((kind, text))
        self._new += self._laid_out((kind, text))

    def _answer_rows(self) -> list[str]:
        return self._laid_out(("answer", self._answer)) if self._answer else []

    def _laid_out(self, item: tuple[str, str]) -> list[str]:
        kind, text = item
        rows = wrapped(text.replace("\t", " "), self._cols - 2)
        if kind == "prompt":
            more = len(rows) - MAX_ECHO_ROWS
            last = _fitted(f"… {more} more rows", self._cols - 2)
            rows = [*rows[:MAX_ECHO_ROWS], last] if more > 1 else rows
            return ["", *(f"{FAINT}> {row}{PLAIN}" for row in rows)]
        if kind == "answer":
            mark = f"{self._colour}●{PLAIN} "
            return ["", *((mark if not at else "  ") + _emphasised(row) for at, row in enumerate(rows))]
        if kind == "note":
            return [f"{FAINT}  ⎿ {row}{PLAIN}" for row in wrapped(text, self._cols - 4)]
        first = f"{self._colour}{BOLD}"
        return [f"{FAINT if at else first}  {row}{PLAIN}" for at, row in enumerate(rows)]

    # --- the bottom ------------------------------------------------------------------------------

    def draw(self, composer: Composer, busy: Busy | None, hint: str) -> None:
        """Draw what is new, with the composer below it."""
        box, cursor = self._box(composer)
        partial = self._answer_rows()[self._gone_up :]
        above = [*partial, "", *([busy.row(self._cols), ""] if busy else [])]
        line = "─" * self._cols
        below = f"{FAINT}  {wrapped(hint, self._cols - 2)[0]}{PLAIN}"
        rows = [*above, f"{FAINT}{line}{PLAIN}", *box, f"{FAINT}{line}{PLAIN}", below]
        place = Place(len(above) + 1 + cursor.row, cursor.column)
        # A terminal that is too low shows the composer first of all.
        cut = min(place.row - cursor.row, max(0, len(rows) - self._rows))
        rows, place = rows[cut : cut + self._rows], Place(place.row - cut, place.column)
        staying, self._new = self._new, []
        self._screen.draw(staying, rows, place)

    def _box(self, composer: Composer) -> tuple[list[str], Place]:
        """Return the rows of the composer that are to be seen, with the place of the cursor in them."""
        if not composer.text:
            hint = _fitted(f"Say something to {self._name}", self._cols - len(_SIGN))
            return [f"{_SIGN}{FAINT}{hint}{PLAIN}"], Place(0, len(_SIGN))
        width = self._cols - len(_SIGN) - 1
        rows = cut_in_rows(composer.text.replace("\t", " "), width)
        cursor = place_in(composer.text.replace("\t", " "), composer.cursor, width)
        size = max(2, min(MAX_COMPOSER_ROWS, self._rows - _FURNITURE))
        first = max(0, min(cursor.row - size + 1, len(rows) - size))
        seen = rows[first : first + size]
        box = [(_SIGN if not at else "  ") + row for at, row in enumerate(seen)]
        return box, Place(cursor.row - first, cursor.column + len(_SIGN))


def _fitted(text: str, width: int) -> str:
    """Return a row that is no wider than this: the terminal would write its end over the last column."""
    return cut_in_rows(text, max(1, width))[0].rstrip()


def _emphasised(row: str) -> str:
    """Return a row with Markdown's strong words as strong ones."""
    return _STRONG.sub(lambda found: f"{BOLD}{found[1]}{PLAIN}", row)
