"""A terminal in which lines scroll by above a few rows that stay."""

from collections.abc import Callable
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output


class PaneOutput(Vt100_Output):
    """A terminal that can be told to wait, so that what belongs together arrives in one write."""

    def __init__(
        self, stdout: TextIO, get_size: Callable[[], Size], term: str | None, *, has_colour: bool
    ) -> None:
        depth = None if has_colour else ColorDepth.DEPTH_1_BIT
        # A terminal that must answer where its cursor is would answer into what is being typed.
        super().__init__(stdout, get_size, term=term, default_color_depth=depth, enable_cpr=False)
        self.is_held = False

    def flush(self) -> None:
        """Write what was drawn, unless more belongs to it."""
        if not self.is_held:
            super().flush()

    def erase_down(self) -> None:
        """Erase from the start of a line to the end of the screen.

        tmux takes an erasure of the whole screen for `clear`, so it would move the prompt into the
        scrollback whenever it stands in the first row; from the second column on it is none.
        """
        self.write_raw("\x1b[K \x1b[J\b")

    def disable_bracketed_paste(self) -> None:
        """Leave it on between two drawings: a paste may begin at any moment."""
        if not self.is_held:
            super().disable_bracketed_paste()

    def write_above(self, app: "Application[Any]", text: str) -> None:
        """Write lines above what a running application draws, all in one go.

        prompt_toolkit's own way would switch the terminal to cooked mode in between: keys typed just then
        would be echoed into the text, and a paste would fall apart.
        """
        self.is_held = True
        try:
            app.renderer.erase()
            self.write_raw(text.replace("\n", "\r\n"))
        finally:
            self.is_held = False
        app._redraw()
        self.flush()
