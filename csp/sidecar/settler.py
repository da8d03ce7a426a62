"""Takes the reply of a CLI that keeps no record: what its screen shows when it has come to rest."""

import time
from collections.abc import Callable
from typing import Final

from csp.core.capture import Ended, Item, Prompted, Submitted, Wrote
from csp.core.prompt import Prompt
from csp.core.settled import settled_text
from csp.sidecar.sight import Sight

LOOK_S: Final = 0.1


class Settler:
    """Waits for rest after each prompt, then hands over what is new on the screen."""

    def __init__(
        self, sight: Sight, before: Callable[[], list[str]], on_items: Callable[[list[Item]], None]
    ) -> None:
        self._sight = sight
        self._before = before
        self._on_items = on_items
        self._prompt: Prompt | None = None
        self._began = 0.0
        self._looked_at = -1

    def begin(self, prompt: Prompt) -> None:
        """Take what comes from now on for the answer to `prompt`."""
        self._prompt, self._began = prompt, time.monotonic()
        self._on_items([Submitted(text=prompt.text)])

    def end(self) -> None:
        """Take what there is for the answer: what comes next belongs to another prompt."""
        if self._prompt is not None:
            self._finish(self._prompt)

    async def run(self) -> None:
        """Hand over one reply for each prompt, until cancelled."""
        while True:
            if self._prompt is None:
                await self._sight.wait(None)
            elif self._is_over(self._prompt):
                self._finish(self._prompt)
            else:
                await self._sight.wait(time.monotonic() + LOOK_S)

    def _is_over(self, prompt: Prompt) -> bool:
        """Tell whether there is an answer; silence or a screen that never rests counts after a long time."""
        is_late = time.monotonic() - self._began >= self._sight.injection_timeout_s
        if is_late:
            return self._sight.is_at_rest or not self._sight.pane.looks_busy
        return self._sight.is_at_rest and self._has_answered(prompt)

    def _has_answered(self, prompt: Prompt) -> bool:
        if self._looked_at == self._sight.pane.generation:
            return False
        self._looked_at = self._sight.pane.generation
        return bool(self._answer(prompt))

    def _finish(self, prompt: Prompt) -> None:
        self._prompt = None
        text = self._answer(prompt)
        items: list[Item] = [Prompted(id=f"#{prompt.tag}", text=prompt.text)]
        if text:
            items.append(Wrote(id=f"#{prompt.tag} text", text=text))
        self._on_items([*items, Ended()])

    def _answer(self, prompt: Prompt) -> str:
        """Return what is new, from behind the echo of the prompt, without the composer."""
        pane = self._sight.pane
        after = pane.history()
        composer = self._sight.look().composer
        if composer is not None:
            shown = len(pane.screen.rows)
            after = after[: len(after) - shown + composer.first_row] if len(after) >= shown else after
        new = settled_text(self._before(), after, self._sight.profile.rules.furniture)
        # The echo comes first; the answer may quote it.
        _, found, behind = new.partition(prompt.footer)
        return (behind if found else new).strip("\n")
