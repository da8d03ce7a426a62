"""Read the reply of a CLI without a transcript from its screen, once the screen is idle."""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from csp.sidecar.state.cli_state import CliState
from csp.terminal.generic_screen import Surround, has_echo, settled_text, without_last, without_scrollbar
from csp.terminal.prompt_builder import Prompt
from csp.terminal.reply_tracker import Ended, Item, Prompted, Submitted, Wrote

LOOK_S: Final = 0.1


class AwaitedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt whose reply has yet to be read from the screen."""

    tag: str
    header: str
    footer: str
    #: The number of bytes the program had written when the prompt was pasted.
    mark: int


class ScreenCapture:
    """A reader that waits after each prompt until the screen is idle and returns its new text."""

    def __init__(
        self,
        cli: CliState,
        on_items: Callable[[list[Item]], None],
        left: AwaitedReply | None = None,
        surround: Surround | None = None,
    ) -> None:
        """Continue with the prompt that an earlier brain `left`; its output will arrive again."""
        self._cli = cli
        self._on_items = on_items
        #: The prompt whose reply is awaited.
        self.awaited = left
        self._began = time.monotonic()
        self._looked_at = self._seen_at = -1
        self._mark = 0
        #: The known text around the conversation.
        self.surround = surround
        #: Whether the screen has shown the echo of the prompt.
        self._was_echoed = False
        #: Whether the program used the alternate screen at the time of the paste or later.
        self._was_alternate = True
        if left is not None:
            self._mark = left.mark
            cli.pane.remember_at(left.mark)

    def note_paste(self) -> None:
        """Finish the last reply with the output so far; later output belongs to another prompt."""
        if self.awaited is not None:
            self._finish(self.awaited)
        pane = self._cli.pane
        self._mark = pane.written
        pane.remember_at(self._mark)
        self._was_alternate = pane.screen.alternate
        rows = self._shown_conversation()
        known = self.surround or Surround(above=rows, below=rows)
        self.surround = known.shared_with(rows)

    def note_enter(self) -> None:
        """Replace the surrounding text if the program has started since the paste; it has not replied yet."""
        if self._cli.pane.screen.alternate and not self._was_alternate:
            self._was_alternate = True
            rows = self._shown_conversation()
            self.surround = Surround(above=rows, below=rows)

    def begin(self, prompt: Prompt) -> None:
        """Treat the output since the paste as the reply to `prompt`."""
        self.awaited = AwaitedReply(
            tag=prompt.tag, header=prompt.header, footer=prompt.footer, mark=self._mark
        )
        self._began = time.monotonic()
        self._was_echoed = False
        self._on_items([Submitted(text=prompt.header)])

    async def run(self) -> None:
        """Produce one reply for each prompt, until cancelled."""
        if self.awaited is not None:
            self._on_items([Submitted(text=self.awaited.header)])
        self._cli.observe()
        while True:
            if self.awaited is None:
                await self._cli.wait(None)
                continue
            generation = self._cli.pane.generation
            if not self._was_echoed and self._seen_at != generation:
                self._seen_at = generation
                self._was_echoed = has_echo(*self._outputs(), self.awaited.footer)
            if self._has_answer(self.awaited):
                self._finish(self.awaited)
            else:
                await self._cli.wait(time.monotonic() + LOOK_S)

    def _has_answer(self, prompt: AwaitedReply) -> bool:
        """Return whether there is a reply; after a long time, no output or a busy screen also counts."""
        if self._cli.pane.reading.dialog is not None:
            # It is a question to a person, and the reply follows after its answer.
            self._began = time.monotonic()
            return False
        if self._cli.is_waived(self._began, time.monotonic()):
            return self._cli.is_at_rest or not self._cli.pane.looks_busy
        # Check each screen state only once.
        if not self._cli.is_at_rest or self._looked_at == self._cli.pane.generation:
            return False
        self._looked_at = self._cli.pane.generation
        return bool(self._answer(prompt))

    def _finish(self, prompt: AwaitedReply) -> None:
        self.awaited = None
        text = self._answer(prompt)
        items: list[Item] = [Prompted(id=f"#{prompt.tag}", text=prompt.header)]
        if text:
            items.append(Wrote(id=f"#{prompt.tag} text", text=text))
        self._on_items([*items, Ended()])

    def _answer(self, prompt: AwaitedReply) -> str:
        """Return the new text after the echo of the prompt, without the composer."""
        reading, rules = self._cli.pane.reading, self._cli.profile.rules
        before, after = self._outputs()
        text = settled_text(
            before,
            after,
            prompt.footer,
            header=prompt.header,
            surround=self.surround,
            furniture=rules.furniture,
            # An alternate screen has no history, so text that has scrolled off is lost.
            is_cut=self._was_echoed and self._cli.pane.screen.alternate,
        )
        return without_last(text, [sign.pattern for sign in rules.busy] if reading.is_busy else [])

    def _outputs(self) -> tuple[list[str], list[str]]:
        """Return the program's output at the time of the paste and its current output."""
        pane = self._cli.pane
        return without_scrollbar(pane.remembered, pane.screen.cols), self._conversation()

    def _shown_conversation(self) -> tuple[str, ...]:
        """Return the visible part of the conversation."""
        return tuple(self._conversation()[-len(self._cli.pane.screen.rows) :])

    def _conversation(self) -> list[str]:
        """Return the program's output without the composer and the lines below it."""
        pane = self._cli.pane
        composer = pane.reading.composer
        lines = _without_blank_end(pane.history())
        if composer is not None:
            # Counted from the end, because further up a line may span several rows.
            below = _without_blank_end([row.text for row in pane.screen.rows[composer.first_row :]])
            lines = lines[: len(lines) - len(below)]
        return without_scrollbar(lines, pane.screen.cols)


def _without_blank_end(lines: list[str]) -> list[str]:
    last = max((at for at, line in enumerate(lines) if line.strip()), default=-1)
    return lines[: last + 1]
