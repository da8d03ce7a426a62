"""The human pane in a terminal: the conversation scrolls above a fixed input line.

It is drawn inline, not on the alternate screen, so tmux keeps the scrollback, and copy mode, the mouse and
selection work as in any other pane.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Final, TextIO

from prompt_toolkit.application import Application, get_app, run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from csp.human.chat import Chat, ChatOrder
from csp.human.completion import LineCompleter, choices_row, common_start, completions, last_word
from csp.human.message_text import hanging, height
from csp.human.needs import row_text
from csp.human.pager import pager_command, read_through, show_in_popup, text_file
from csp.human.safe_text import count
from csp.human.saved_state import SavedState
from csp.human.status_bar import bottom_text
from csp.human.theme import Theme
from csp.pane_output import PaneOutput
from csp.sidecar.relay.job_control import has_shell_above

FLUSH_S: Final = 0.08
#: The maximum size of one write, so that a slow terminal does not delay the keyboard for long.
_MAX_WRITE: Final = 32 * 1024
_MAX_INPUT_ROWS: Final = 6
#: The rows below a command's output: the input line and the state of the room.
_BELOW: Final = 2
_CLOCK_S: Final = 1.0
#: A terminal that does not mark a paste sends it as keys: this many of them wait after an Enter at once.
_BURST_LINES: Final = 3
_BURST_KEYS: Final = 200
_BURST_S: Final = 0.3
_ENTERS: Final = (Keys.ControlM, Keys.ControlJ)
_STYLE: Final = Style.from_dict(
    {"bottom": "reverse", "prompt": "bold", "chosen": "bold underline", "needs": "bold"}
)


class _Typed(History):
    """The input history."""

    def __init__(self, memory: SavedState) -> None:
        super().__init__()
        self._memory = memory

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines, newest first."""
        return reversed(self._memory.typed())

    def store_string(self, string: str) -> None:
        """Store a new line."""
        self._memory.add_typed(string)


class ChatPane:
    """An input line with the conversation above it."""

    def __init__(self, order: ChatOrder, look: Theme, stdout: TextIO, keyboard: Input) -> None:
        self._look = look
        self._lines: list[str] = []
        self._news = asyncio.Event()
        self._has_bell = False
        self._is_reading = False
        self._stdout = stdout
        self._empty_breaks = 0
        self._burst_until = 0.0
        look.columns = lambda: self._size().columns
        look.rows = lambda: self._size().rows
        self.chat = Chat(order, self, look)
        self._output = PaneOutput(stdout, self._size, order.env.get("TERM"), has_colour=look.has_colour)
        self._buffer = Buffer(
            history=_Typed(order.memory),
            completer=LineCompleter(self.chat.roster.names),
            complete_while_typing=True,
            multiline=True,
            accept_handler=self._accept,
        )
        self._search = SearchToolbar()
        self._app: Application[None] = Application(
            layout=Layout(self._layout()),
            key_bindings=self._keys(),
            style=_STYLE,
            input=keyboard,
            output=self._output,
            erase_when_done=True,
            enable_page_navigation_bindings=False,
        )

    def _size(self) -> Size:
        try:
            size = os.get_terminal_size(self._stdout.fileno())
        except OSError:
            return Size(rows=24, columns=80)
        return Size(rows=max(2, size.lines), columns=max(10, size.columns))

    # --- drawing ---------------------------------------------------------------------------------

    def _layout(self) -> HSplit:
        typing = Window(
            BufferControl(self._buffer, search_buffer_control=self._search.control, preview_search=True),
            height=lambda: Dimension(min=1, max=self._input_rows()),
            get_line_prefix=self.line_prefix,
            wrap_lines=True,
            dont_extend_height=True,
        )
        bottom = Window(FormattedTextControl(self._drawn_bottom), height=1, always_hide_cursor=True)
        fold = ConditionalContainer(
            Window(FormattedTextControl(self.fold_line), height=1), Condition(self.is_folded)
        )
        needs = ConditionalContainer(
            Window(FormattedTextControl(self.needs_row), height=1, style="class:needs"),
            Condition(lambda: bool(self.chat.needs.urgent)),
        )
        return HSplit([needs, fold, typing, self._search, bottom], align=VerticalAlign.TOP)

    def line_prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        """Return the prompt, or the margin for a continuation line."""
        if line or wrapped:
            return [("", "  ")]
        arrow = "" if self.chat.question else self._look.signs.arrow
        return [("class:prompt", f"{arrow}{self.chat.prompt}> ")]

    def is_folded(self) -> bool:
        """Return whether more lines were typed than are shown."""
        return self._buffer.document.line_count > self._input_rows()

    def _input_rows(self) -> int:
        return max(1, min(_MAX_INPUT_ROWS, self._size().rows // 2 - 1))

    def fold_line(self) -> StyleAndTextTuples:
        """Return the note about typed lines that are not all visible."""
        lines = count(self._buffer.text.rstrip("\n").count("\n") + 1, "line")
        return [("class:prompt", f"{lines} to {self.chat.target}: Enter sends them as one message")]

    def needs_row(self) -> StyleAndTextTuples:
        """Return the newest item that needs the user, with its keys."""
        return [("", row_text(self.chat.needs.urgent, self._look.signs.call, self._size().columns))]

    def bottom_line(self) -> StyleAndTextTuples:
        """Return the state of the room, or the choices while a word is completed."""
        chat = self.chat
        # Not in a menu: a pane with few rows would scroll to show it and lose the conversation.
        if self._buffer.complete_state:
            return choices_row(self._buffer.complete_state, self._size().columns)
        if not chat.roster.is_known and not chat.away:
            return [("", "joining the room")]
        roster, width = chat.roster, self._size().columns
        text = bottom_text(roster.seats, roster.session, self._look.signs, time.time(), width, chat.away)
        return [("", text)]

    def _drawn_bottom(self) -> StyleAndTextTuples:
        # Only the text has a style: a row that is filled to the right edge would be wrapped into several by a
        # narrower terminal, which pushes the prompt into the scrollback before it can be erased.
        return [(f"class:bottom {part[0]}", part[1]) for part in self.bottom_line()]

    # --- output ----------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        """Show lines above the input line, with the next batch."""
        self._lines.append(text)
        self._news.set()

    async def page(self, title: str, lines: list[str]) -> None:
        """Show a command's output below its title if it fits in the pane, else in a popup or pager."""
        size = self._size()
        rows = [row for line in lines for row in line.split("\n")]
        text = "\n".join(hanging(row, size.columns) for row in rows)
        taken = sum(height(row, size.columns) for row in text.split("\n"))
        heading = self._look.faint(f"{self._look.signs.dot} {title}")
        is_short = taken + 1 <= size.rows - _BELOW or not self._app.is_running
        whole = f"{heading}\n{text}"
        if not is_short and await show_in_popup(self.chat.order.env, whole):
            return
        if is_short or not await self._read_through(whole):
            self.put(whole)

    async def _read_through(self, text: str) -> bool:
        """Show a text in a pager over the pane; show events that arrive meanwhile when it is closed."""
        env = self.chat.order.env
        with text_file(text) as file:
            command = pager_command(file, is_mouse=False)
            if command is None:
                return False
            self._is_reading = True
            try:
                with set_app(self._app):
                    await run_in_terminal(lambda: read_through(command, env), in_executor=True)
            finally:
                self._is_reading = False
                self._news.set()
        return True

    def talk(self, text: str) -> None:
        """Show a line that is not about the room's talk."""
        first, *more = hanging(f"  {text}", self._size().columns, further=2).split("\n")
        self.put("\n".join([self._look.faint(f"{self._look.signs.dot} ") + first[2:], *more]))

    def bell(self) -> None:
        """Ring the bell with the next batch, which makes tmux mark the window."""
        self._has_bell = True
        self._news.set()

    def refresh(self) -> None:
        """Redraw the prompt and the bottom line."""
        self._app.invalidate()

    def leave(self) -> None:
        """Close the pane."""
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    async def flush_batches(self) -> None:
        """Show queued lines in batches."""
        while True:
            await self._news.wait()
            await asyncio.sleep(FLUSH_S)
            while (self._lines or self._has_bell) and not self._is_reading:
                self._show_batch()
                await asyncio.sleep(0.005)
            self._news.clear()

    def _show_batch(self) -> None:
        """Write a batch above the prompt in one operation."""
        text = self.next_batch()
        if not self._app.is_running or self._app.is_done:
            self._stdout.write(text)
            self._stdout.flush()
            return
        self._output.write_above(self._app, text)

    def next_batch(self) -> str:
        """Return the text to show in the next write."""
        size = taken = 0
        for line in self._lines:
            size += len(line) + 1
            taken += 1
            if size >= _MAX_WRITE:
                break
        batch, self._lines = self._lines[:taken], self._lines[taken:]
        bell, self._has_bell = "\a" if self._has_bell else "", False
        return "".join(f"{line}\n" for line in batch) + bell

    # --- keys ------------------------------------------------------------------------------------

    def _accept(self, buffer: Buffer) -> bool:
        self._empty_breaks = 0
        self.chat.enter(buffer.text)
        return False

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        is_typing = ~is_searching
        is_empty = Condition(lambda: not self._buffer.text)
        keys.add("enter", filter=is_typing)(self._enter)
        keys.add("c-j", filter=is_typing)(self._enter)
        keys.add("escape", "enter", filter=is_typing)(lambda event: self._buffer.insert_text("\n"))
        keys.add("c-c", filter=is_typing)(self.clear_or_explain)
        keys.add("<sigint>", filter=is_typing)(self.clear_or_explain)
        keys.add("tab", filter=is_typing)(self.complete)
        keys.add("c-d", filter=is_typing & is_empty)(lambda event: self.chat.quit())
        keys.add("c-z")(self.suspend)
        for key in ("y", "n"):
            keys.add("escape", key, filter=is_typing)(lambda event, key=key: self.chat.answer(key))
        keys.add("f12")(lambda event: self.chat.stop())
        return keys

    def _enter(self, event: KeyPressEvent) -> None:
        """Send the input; treat lines that arrive faster than anyone can type as one pasted message."""
        now = time.monotonic()
        ahead = event.key_processor.input_queue
        lines_ahead = sum(press.key in _ENTERS for press in ahead)
        is_burst = lines_ahead >= _BURST_LINES or len(ahead) >= _BURST_KEYS
        if not is_burst and now >= self._burst_until:
            self._buffer.validate_and_handle()
            return
        self._buffer.insert_text("\n")
        if ahead:
            self._burst_until = now + _BURST_S

    def complete(self, event: KeyPressEvent) -> None:
        """Complete a unique match immediately, so that typing ahead is safe; otherwise offer the choices.

        Once all choices are offered, each further press takes the next one.
        """
        buffer = self._buffer
        if buffer.complete_state and buffer.complete_state.complete_index is not None:
            buffer.complete_next()
            return
        text = buffer.document.text_before_cursor
        word = last_word(text)
        choices = [choice for choice, _ in completions(text, self.chat.roster.names())]
        if not choices:
            return
        end = " " if len(choices) == 1 else ""
        if buffer.complete_state and not end and common_start(choices) == word:
            buffer.complete_next()
            return
        buffer.delete_before_cursor(len(word))
        buffer.insert_text(common_start(choices) + end)
        if not end:
            buffer.start_completion(select_first=False)

    def clear_or_explain(self, event: KeyPressEvent) -> None:
        """Clear the input; on the second press with empty input, explain how to leave."""
        if self._buffer.text or self.chat.question:
            self._empty_breaks = 0
            self._buffer.reset()
            self.chat.take_back_question()
            return
        self._empty_breaks += 1
        if self._empty_breaks >= 2:
            self._empty_breaks = 0
            self.talk("to leave: Ctrl-D or /quit; to stop the agents: Allstop or F12")

    def suspend(self, event: KeyPressEvent) -> None:
        """Suspend the pane and return to the shell, if there is one."""
        if has_shell_above():
            get_app().suspend_to_background()
        else:
            self.talk("Ctrl-Z does nothing here. To leave, detach (prefix d).")

    # --- lifecycle -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until the user leaves; raise if the room cannot be joined."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave)
        helpers = [asyncio.ensure_future(work) for work in (self.flush_batches(), self.tick_clock())]
        async with self.chat:
            serving = asyncio.ensure_future(self.chat.serve())
            serving.add_done_callback(lambda task: self.leave())
            try:
                with contextlib.suppress(EOFError):
                    await self._app.run_async(set_exception_handler=False)
            finally:
                serving.cancel()
                await asyncio.wait([serving])
        for task in helpers:
            task.cancel()
        while self._lines:
            self._show_batch()
        if not serving.cancelled():
            serving.result()

    async def tick_clock(self) -> None:
        """Update the turn clock."""
        while True:
            await asyncio.sleep(_CLOCK_S)
            if self.chat.roster.session.deadline is not None:
                self.refresh()


async def run_pane(order: ChatOrder, look: Theme) -> int:
    """Run the human pane in this terminal; return the exit code."""
    pane = ChatPane(order, look, sys.stdout, create_input(sys.stdin))
    await pane.run()
    return 0
