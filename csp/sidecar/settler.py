"""Takes the reply of a CLI that keeps no record: what its screen shows when it has come to rest."""

import time
from collections.abc import Callable
from typing import Final

from csp.core.capture import Ended, Item, Prompted, Submitted, Wrote
from csp.core.prompt import Prompt
from csp.core.settled import behind_echo, settled_text, without_last, without_scrollbar
from csp.sidecar.note import Unsettled
from csp.sidecar.sight import Sight

LOOK_S: Final = 0.1


class Settler:
    """Waits for rest after each prompt, then hands over what is new on the screen."""

    def __init__(
        self, sight: Sight, on_items: Callable[[list[Item]], None], left: Unsettled | None = None
    ) -> None:
        """Go on with the prompt that a brain before this one has `left`; its output is yet to come again."""
        self._sight = sight
        self._on_items = on_items
        #: The prompt whose answer is awaited.
        self.awaited = left
        self._began = time.monotonic()
        self._looked_at = -1
        self._mark = 0
        if left is not None:
            self._mark = left.mark
            sight.pane.remember_at(left.mark)

    def note_paste(self) -> None:
        """Take what there is for the last answer: what comes from now on belongs to another prompt."""
        if self.awaited is not None:
            self._finish(self.awaited)
        self._mark = self._sight.pane.written
        self._sight.pane.remember_at(self._mark)

    def begin(self, prompt: Prompt) -> None:
        """Take what has come since the paste for the answer to `prompt`."""
        self.awaited = Unsettled(tag=prompt.tag, header=prompt.header, footer=prompt.footer, mark=self._mark)
        self._began = time.monotonic()
        self._on_items([Submitted(text=prompt.header)])

    async def run(self) -> None:
        """Hand over one reply for each prompt, until cancelled."""
        if self.awaited is not None:
            self._on_items([Submitted(text=self.awaited.header)])
        while True:
            if self.awaited is None:
                await self._sight.wait(None)
            elif self._is_over(self.awaited):
                self._finish(self.awaited)
            else:
                await self._sight.wait(time.monotonic() + LOOK_S)

    def _is_over(self, prompt: Unsettled) -> bool:
        """Tell whether there is an answer; silence or a screen that never rests counts after a long time."""
        if self._sight.is_waived(self._began, time.monotonic()):
            return self._sight.is_at_rest or not self._sight.pane.looks_busy
        return self._sight.is_at_rest and self._has_answered(prompt)

    def _has_answered(self, prompt: Unsettled) -> bool:
        if self._looked_at == self._sight.pane.generation:
            return False
        self._looked_at = self._sight.pane.generation
        return bool(self._answer(prompt))

    def _finish(self, prompt: Unsettled) -> None:
        self.awaited = None
        text = self._answer(prompt)
        items: list[Item] = [Prompted(id=f"#{prompt.tag}", text=prompt.header)]
        if text:
            items.append(Wrote(id=f"#{prompt.tag} text", text=text))
        self._on_items([*items, Ended()])

    def _answer(self, prompt: Unsettled) -> str:
        """Return what is new, from behind the echo of the prompt, without the composer."""
        pane, rules = self._sight.pane, self._sight.profile.rules
        after = pane.history()
        reading = self._sight.look()
        if reading.composer is not None:
            shown = len(pane.screen.rows)
            after = after[: len(after) - shown + reading.composer.first_row] if len(after) >= shown else after
        before, after = (without_scrollbar(lines, pane.screen.cols) for lines in (pane.remembered, after))
        new = settled_text(before, after, rules.furniture)
        signs = [sign.pattern for sign in rules.busy] if reading.is_busy else []
        return without_last(behind_echo(new, prompt.footer), signs)
