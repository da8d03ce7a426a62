"""Handle the room's control commands: approve, deny, interrupt and restart."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from csp.client import Client
from csp.clis.profile import DialogAnswer
from csp.errors import CspError, Unreachable
from csp.protocol.enums import ControlVerb, ReportedState
from csp.protocol.responses import Deliver
from csp.sidecar.inject.injector import Injector
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.state.cli_state import CliState
from csp.terminal.dialog_command import shows_command
from csp.terminal.screen_reader import ENTERED, ScreenDialog
from csp.terminal.submit_machine import UNKNOWN

log = logging.getLogger(__name__)

#: The timeouts for a dialog to close and for an answer to stop.
ANSWERED_S: Final = 2.5
PRESSES: Final = 2
#: How long a slow CLI may take to redraw a moved selection: two such waits end before the control does.
MOVED_S: Final = 10.0
STOPPED_S: Final = 8.0
#: The timeout for removing a prompt from the composer.
GIVEN_UP_S: Final = 15.0
BEGUN_KEPT: Final = 50
#: A dialog that is still being drawn may not accept keys yet.
DRAWN_S: Final = 0.15
UP: Final = b"\x1b[A"
DOWN: Final = b"\x1b[B"
#: The maximum number of moves for selecting the wanted choice in a list.
MOVES: Final = 12


class AgentControls:
    """An executor of controls, which reports whether each one worked or why it failed."""

    def __init__(
        self,
        cli: CliState,
        client: Client,
        progress: MessageProgress,
        injector: Injector,
        restart: Callable[[], Awaitable[str]],
        hand_over: Callable[[], None],
        asked_command: Callable[[], str] = str,
        begun: Iterable[str] = (),
    ) -> None:
        self._cli = cli
        self._client = client
        self._progress = progress
        self._injector = injector
        self._restart = restart
        self._hand_over = hand_over
        #: The command that the CLI is asking to run.
        self._asked_command = asked_command
        #: Controls started by this brain or its predecessors.
        self.begun = dict.fromkeys(list(begun)[-BEGUN_KEPT:])
        self._tasks: set[asyncio.Task[None]] = set()

    def obey(self, item: Deliver) -> None:
        """Execute a control now, independently of all other work."""
        if item.id in self.begun:
            # An earlier brain may have pressed the key; pressing it again could answer another dialog.
            task = asyncio.ensure_future(self._report(item, UNKNOWN))
        else:
            self.begun[item.id] = None
            self._hand_over()
            task = asyncio.ensure_future(self._obey(item))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report(self, item: Deliver, problem: str) -> None:
        state = ReportedState.FAILED if problem else ReportedState.CONFIRMED
        try:
            await self._client.control_done(item.id, state, problem)
        except Unreachable:
            pass  # the room lets it expire
        except CspError as error:
            log.warning("control was refused", extra={"message_id": item.id, "why": error.message})

    async def _obey(self, item: Deliver) -> None:
        self._cli.observe()
        keys, rules = self._cli.profile.keys, self._cli.profile.rules.dialog
        # The room handles the other controls itself and only notifies us.
        problem = ""
        match item.control:
            case ControlVerb.APPROVE:
                problem = await self._answer(keys.approve, item.choice, rules.yes, item.about)
            case ControlVerb.DENY:
                problem = await self._answer(keys.deny, item.choice, rules.no)
            case ControlVerb.INTERRUPT:
                problem = await self._interrupt(item.turn)
            case ControlVerb.RESTART:
                problem = await self._restart()
        log.info("control obeyed", extra={"control": item.control, "problem": problem})
        await self._report(item, problem)

    @property
    def _dialog(self) -> ScreenDialog | None:
        """The dialog currently on the screen: a tool's question or a start screen."""
        reading = self._cli.pane.reading
        return reading.dialog or reading.blocking

    async def _answer(
        self,
        answer: DialogAnswer | None,
        choice: int | None,
        label: re.Pattern[str] | None,
        about: str = "",
    ) -> str:
        dialog = self._dialog
        facts = self._cli.snapshot(time.monotonic())
        if not (dialog or facts.has_dialog or facts.is_asking):
            return "no dialog is open"
        if answer is None:
            return f"profile {self._cli.profile.name} has no key for that"
        if dialog is None:
            # The CLI has only just asked, and a dialog that is still being drawn may not accept keys yet.
            await self._until(lambda: self._dialog is not None, ANSWERED_S * PRESSES)
            await asyncio.sleep(DRAWN_S)
            self._cli.observe()
            dialog = self._dialog
        if dialog is None:
            return "the dialog did not appear on the screen"
        if about and not (self._asked_command() == about and shows_command(dialog.subject, about)):
            # An approval rule covers exactly this command.
            return "the dialog does not show the command that the rule covers"
        if choice is not None and choice > 9:
            return "only choices 1 to 9 have a key"
        numbers = [each.number for each in dialog.choices]
        if choice is not None and (numbers or dialog.kind == ENTERED) and choice not in numbers:
            return f"there is no choice {choice}" + (f" (1-{len(numbers)})" if numbers else "")
        chosen = choice or dialog.choice_for(label)
        if chosen and not dialog.is_numbered:
            return await self._select(dialog, dialog.choices[chosen - 1].label)
        is_entered = dialog.kind == ENTERED and answer is self._cli.profile.keys.approve
        keys = self._cli.profile.keys.submit if is_entered else answer.keys_for(chosen or None)
        is_there = not keys.isdigit() or int(keys) in numbers
        if not is_there or (not chosen and dialog == self._cli.pane.reading.blocking):
            return "no choice of the dialog clearly matches; choose one by its number"
        return await self._press(keys, dialog)

    async def _select(self, dialog: ScreenDialog, label: str) -> str:
        """Move the selection to a choice, and press Enter only once that choice is selected."""
        for attempt in range(PRESSES):
            # After a paste, Claude ignores Enter until the selection has been moved.
            if attempt and not await self._move(UP if dialog.choices[0].label != label else DOWN):
                break
            for _ in range(MOVES):
                now = self._dialog
                if now is None or not dialog.is_same(now):
                    return self._note_answered() if attempt else "the dialog has changed"
                wanted = next((each.number for each in now.choices if each.label == label), 0)
                if now.selected == wanted:
                    break
                if not await self._move(DOWN if now.selected < wanted else UP):
                    return f"the choice {label!r} could not be selected"
            else:
                return f"the choice {label!r} could not be selected"
            self._cli.port.write(self._cli.profile.keys.submit.encode())
            if await self._is_closed(dialog):
                return ""
        return "the dialog stayed open"

    async def _press(self, keys: str, dialog: ScreenDialog) -> str:
        """Press keys until this dialog is gone; press again only if it has dropped the first press.

        A dialog that was only just drawn drops keys, but a slow CLI may still be processing them. The second
        press would then answer the next dialog or end up in the composer.
        """
        for _ in range(PRESSES):
            self._cli.port.write(keys.encode())
            if await self._is_closed(dialog):
                return ""
            if not await self._has_read_keys(dialog):
                break
        return "the dialog stayed open" if dialog.is_same(self._dialog) else self._note_answered()

    async def _has_read_keys(self, dialog: ScreenDialog) -> bool:
        """Return whether the dialog has read all keys and is still open.

        A CLI reads keys in order, so it has read the earlier ones if it moves its selection. The selection
        is moved back, because Enter confirms the selected choice. Claude may have selected the choice whose
        number it has read without accepting it.
        """
        now = self._dialog
        back = now.selected if now is not None and dialog.is_same(now) else None
        if len(dialog.choices) < 2 or not back:
            return False
        away = DOWN if back < len(dialog.choices) else UP
        for key in (away, UP if away == DOWN else DOWN):
            if not await self._move(key) or not dialog.is_same(self._dialog):
                return False
        return self._dialog is not None and self._dialog.selected == back

    async def _move(self, key: bytes) -> bool:
        """Move the selection of the dialog; return whether it has moved or the dialog is gone."""
        before = self._dialog
        self._cli.port.write(key)

        def has_moved() -> bool:
            now = self._dialog
            return now is None or before is None or not before.is_same(now) or now.selected != before.selected

        return await self._until(has_moved, MOVED_S)

    async def _is_closed(self, dialog: ScreenDialog) -> bool:
        """Wait until this dialog is gone; another one may already have replaced it."""
        is_closed = await self._until(lambda: not dialog.is_same(self._dialog), ANSWERED_S)
        if is_closed:
            self._note_answered()
        return is_closed

    def _note_answered(self) -> str:
        self._cli.pane.note_answered()
        return ""

    async def _interrupt(self, turn: str | None) -> str:
        if turn is not None:
            was_typed = self._injector.give_up(turn)
            await self._until(lambda: not self._progress.is_at(turn), GIVEN_UP_S)
            if turn not in self._cli.tracker.tags:
                # The room must not stop a turn that a person has started in the pane in the meantime.
                return "" if was_typed else f"it is not working on {turn}"
        if not self._cli.is_busy and self._cli.pane.reading.dialog is None:
            return "nothing is running"
        if not self._cli.profile.keys.interrupt:
            return f"profile {self._cli.profile.name} has no key for that"
        self._cli.interrupt()
        is_over = await self._until(lambda: not self._cli.is_busy, STOPPED_S)
        return "" if is_over else "it is still working: the key had no visible effect"

    async def _until(self, is_true: Callable[[], bool], for_s: float) -> bool:
        deadline = time.monotonic() + for_s
        while not is_true():
            now = time.monotonic()
            if now >= deadline:
                return False
            await self._cli.wait(min(deadline, now + 0.1))
        return True
