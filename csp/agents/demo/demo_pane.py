"""A demo agent's terminal, in which the conversation scrolls above the composer.

It scrolls the terminal itself and does not use the alternate screen, so the conversation moves into the
scrollback. Terminals differ in how they rewrap old rows after a resize, so the screen is cleared
first.
"""

import os
import re
from collections import deque
from collections.abc import Callable
from typing import Final, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    ConditionalContainer,
    Container,
    HSplit,
    Layout,
    VerticalAlign,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.utils import get_cwidth

from csp.pane_output import PaneOutput

MAX_ITEMS: Final = 100
MAX_ECHO_ROWS: Final = 6
MAX_COMPOSER_ROWS: Final = 10
#: The number of rows at the bottom besides those of the composer.
_FURNITURE: Final = 6
#: The maximum delay of bytes after an Escape that belong to the same key.
_ESCAPE_S: Final = 0.1
_FAINT: Final = "\x1b[2m"
_BOLD: Final = "\x1b[1m"
_PLAIN: Final = "\x1b[0m"
_STRONG: Final = re.compile(r"\*\*([^*]+)\*\*")


class DemoPane:
    """Shows the conversation and keeps its latest part, so that it can be laid out again after a resize."""

    def __init__(
        self,
        name: str,
        colour: int | None,
        keys: KeyBindings,
        busy: Callable[[], str],
        hint: Callable[[], str],
        term: str | None,
        stdout: TextIO,
        keyboard: Input,
    ) -> None:
        self._name = name
        self._stdout = stdout
        self._colour = "" if colour is None else f"\x1b[{colour}m"
        self._items: deque[tuple[str, str]] = deque(maxlen=MAX_ITEMS)
        #: The reply in progress, and the number of its rows that have already scrolled up.
        self._answer = ""
        self._gone_up = 0
        self.composer = Buffer(multiline=True)
        self._output = PaneOutput(stdout, self._size, term, has_colour=colour is not None)
        self.app: Application[int] = Application(
            layout=Layout(self._layout(busy, hint)),
            key_bindings=keys,
            input=keyboard,
            output=self._output,
            erase_when_done=True,
            enable_page_navigation_bindings=False,
        )
        self.app.ttimeoutlen = self.app.timeoutlen = _ESCAPE_S
        self.app._on_resize = self.show_again  # type: ignore[method-assign]  # its own loses old rows

    # --- the conversation ------------------------------------------------------------------------

    def add(self, kind: str, text: str) -> None:
        """Show a prompt, a note, or plain text of our own."""
        self._items.append((kind, text))
        self._show(self._rows(kind, text))

    def stream(self, answer: str) -> None:
        """Show the reply so far; its last row may still grow."""
        self._answer = answer
        rows = self._rows("answer", answer)
        whole, self._gone_up = rows[self._gone_up : -1], max(self._gone_up, len(rows) - 1)
        self._show(whole)

    def finish(self) -> None:
        """Complete the reply in progress."""
        answer, gone_up = self._answer, self._gone_up
        self._answer, self._gone_up = "", 0
        if answer:
            self._items.append(("answer", answer))
        self._show(self._rows("answer", answer)[gone_up:] if answer else [])

    def show_again(self) -> None:
        """Clear the screen and lay out as much of the conversation as fits on it."""
        rows = [row for kind, text in self._items for row in self._rows(kind, text)]
        answer = self._rows("answer", self._answer) if self._answer else []
        self._gone_up = max(0, len(answer) - 1)
        rows += answer[: self._gone_up]
        self.app.renderer.reset()
        self._output.write_raw("\x1b[H\x1b[J")
        self._show(rows[-self._size().rows :])

    def _show(self, rows: list[str]) -> None:
        text = "".join(f"{row}\n" for row in rows)
        if self.app.is_running and not self.app.is_done:
            self._output.write_above(self.app, text)
            return
        self._output.write_raw(text.replace("\n", "\r\n"))
        self._output.flush()

    def _rows(self, kind: str, text: str) -> list[str]:
        columns = self._size().columns
        rows = wrapped(text.replace("\t", " "), columns - 4 if kind == "note" else columns - 2)
        match kind:
            case "prompt":
                more = len(rows) - MAX_ECHO_ROWS
                if more > 1:
                    rows = [*rows[:MAX_ECHO_ROWS], f"… {more} more rows"[: columns - 2]]
                return ["", *(f"{_FAINT}> {row}{_PLAIN}" for row in rows)]
            case "answer":
                shown = [_STRONG.sub(rf"{_BOLD}\1{_PLAIN}", row) for row in rows]
                return ["", f"{self._colour}●{_PLAIN} {shown[0]}", *(f"  {row}" for row in shown[1:])]
            case "note":
                return [f"{_FAINT}  ⎿ {row}{_PLAIN}" for row in rows]
        return [f"{_FAINT if at else self._colour + _BOLD}  {row}{_PLAIN}" for at, row in enumerate(rows)]

    # --- the rows below the conversation ---------------------------------------------------------

    def _size(self) -> Size:
        size = os.get_terminal_size(self._stdout.fileno())
        return Size(rows=max(1, size.lines or 24), columns=max(4, size.columns or 80))

    def _layout(self, busy: Callable[[], str], hint: Callable[[], str]) -> HSplit:
        """Return the rows below the conversation; in a terminal with few rows, the composer has priority."""

        def partial() -> str:
            return self._rows("answer", self._answer)[self._gone_up :][-1] if self._answer else ""

        def row(text: Callable[[], str], rows: int, style: str = "") -> Container:
            shown = FormattedTextControl(lambda: ANSI(text()))
            return above(rows, Window(shown, height=1, style=style), lambda: bool(text()))

        def above(rows: int, window: Window, is_shown: Callable[[], bool] = lambda: True) -> Container:
            return ConditionalContainer(
                window, Condition(lambda: self._size().rows >= rows) & Condition(is_shown)
            )

        is_empty = Condition(lambda: not self.composer.text)
        placeholder = f"Say something to {self._name}"
        fitted = AfterInput(lambda: [("dim", placeholder[: self._size().columns - 3])])
        composer = Window(
            BufferControl(self.composer, input_processors=[ConditionalProcessor(fitted, is_empty)]),
            height=lambda: Dimension(
                min=1, max=max(2, min(MAX_COMPOSER_ROWS, self._size().rows - _FURNITURE))
            ),
            wrap_lines=True,
            dont_extend_height=True,
        )
        return HSplit(
            [
                row(partial, 8),
                above(7, Window(height=1)),
                row(busy, 6, "dim"),
                above(6, Window(height=1), lambda: bool(busy())),
                above(3, Window(height=1, char="─", style="dim")),
                VSplit([Window(FormattedTextControl("❯ "), width=2), composer]),
                above(3, Window(height=1, char="─", style="dim")),
                row(lambda: f"  {hint()}", 4, "dim"),
            ],
            align=VerticalAlign.TOP,
        )


def wrapped(text: str, width: int) -> list[str]:
    """Return the rows of a text, wrapped at spaces where possible."""
    rows: list[str] = []
    for line in text.split("\n"):
        while len(line) > 1 and get_cwidth(line) > width:
            end = 1
            while end < len(line) and get_cwidth(line[: end + 1]) <= max(2, width):
                end += 1
            blank = line.rfind(" ", 1, end + 1)
            cut = blank if blank > 0 and line[:blank].strip() else end
            rows.append(line[:cut])
            line = line[cut:].lstrip(" ") if cut == blank else line[cut:]
        rows.append(line)
    return rows
