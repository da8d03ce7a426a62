"""Terminal output with lines that scroll above a few fixed rows."""

from collections.abc import Callable
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output


class PaneOutput(Vt100_Output):
    """A terminal output that can delay writes, so that related output is written at once."""

    def __init__(
        self, stdout: TextIO, get_size: Callable[[], Size], term: str | None, *, has_colour: bool
    ) -> None:
        depth = None if has_colour else ColorDepth.DEPTH_1_BIT
        # Without cursor position requests (CPR), because the terminal's responses would mix with typed keys.
        super().__init__(stdout, get_size, term=term, default_color_depth=depth, enable_cpr=False)
        self.is_held = False

    def flush(self) -> None:
        """Write the drawn output, unless it is delayed."""
        if not self.is_held:
            super().flush()

    def erase_down(self) -> None:
        """Erase from the start of a line to the end of the screen.

        tmux treats erasing the whole screen as `clear` and would move the prompt into the scrollback whenever
        it is in the first row. Erasing from the second column avoids that.
        """
        self.write_raw("\x1b[K \x1b[J\b")

    def disable_bracketed_paste(self) -> None:
        """Leave bracketed paste on between renderings, because a paste may begin at any moment."""
        if not self.is_held:
            super().disable_bracketed_paste()

    def write_above(self, app: "Application[Any]", text: str) -> None:
        """Write lines above a running application's output, in a single write.

        prompt_toolkit's own method would temporarily switch the terminal to cooked mode: keys typed at that
        moment would be echoed into the text, and a paste would be split.
        """
        self.is_held = True
        try:
            app.renderer.erase()
            self.write_raw(text.replace("\n", "\r\n"))
        finally:
            self.is_held = False
        app._redraw()
        self.flush()
