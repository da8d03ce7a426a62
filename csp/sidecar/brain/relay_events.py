"""Handle the relay's frames: output, the person's keys and commands, and the child's phases and end."""

import asyncio
import json
import logging
import struct
import time
from collections.abc import Callable
from typing import Final

from csp.errors import CspError
from csp.http_client import GatewayClient, segment
from csp.sidecar.brain.reconnect import running_room
from csp.sidecar.inject.injector import Injector
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.relay import relay_frames
from csp.sidecar.run_record import SidecarRecord
from csp.sidecar.state.cli_state import CliState
from csp.terminal.screen import FRAME_S, Frames

log = logging.getLogger(__name__)

RESTARTED_S: Final = 15.0
_COMMANDS: Final = ("/share", "/noshare", "/pause")


class PaneCommands:
    """The commands that a person can type in the agent's own pane."""

    def __init__(self, run: SidecarRecord, claim: Callable[[tuple[str, ...]], None]) -> None:
        self._run = run
        self._claim = claim
        self._tasks: set[asyncio.Task[None]] = set()

    def claim(self, *, is_paused: bool) -> None:
        # Claude Code and Codex have their own /resume, so we intercept it only while the agent is paused.
        self._claim((*_COMMANDS, "/resume") if is_paused else _COMMANDS)

    def handle(self, word: bytes) -> None:
        """Run a command as the room's human, because the person at the pane can read that token anyway."""
        verb = word.decode().removeprefix("/")

        def obey() -> None:
            room = running_room(self._run)
            if room is None:
                log.warning("room is not running, so the command had no effect", extra={"word": verb})
                return
            try:
                GatewayClient(room.url, room.token).post(f"/agents/{segment(self._run.agent)}/{verb}")
            except CspError as error:
                log.warning("room refused", extra={"word": verb, "why": error.message})

        task = asyncio.ensure_future(asyncio.to_thread(obey))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class RelayEvents:
    """A handler that updates the pane's state from frames; `ended` is done when the child has ended."""

    def __init__(
        self,
        cli: CliState,
        progress: MessageProgress,
        injector: Injector,
        pane_commands: PaneCommands,
        on_enter: Callable[[], None],
    ) -> None:
        self._cli, self._pane = cli, cli.pane
        self._progress = progress
        self._injector = injector
        self._on_enter = on_enter
        #: The reason why the child ended.
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._restarted: asyncio.Future[str] | None = None
        self._drawing = Frames()
        self._draw_timer: asyncio.TimerHandle | None = None
        self._pane_commands = pane_commands

    def handle(self, kind: bytes, payload: bytes) -> None:
        """Handle one frame from the relay."""
        if kind not in (relay_frames.OUTPUT, relay_frames.KEYS):
            self._draw(self._drawing.release())
        match kind:
            case relay_frames.OUTPUT:
                self._handle_output(payload)
                return
            case relay_frames.KEYS:
                self._pane.count_keys(payload)
                if b"\r" in payload:
                    self._on_enter()
            case relay_frames.GAP:
                self._pane.forget_screen(int.from_bytes(payload, "big"))
            case relay_frames.SIZE:
                self._pane.resize(*struct.unpack("!HH", payload))
            case relay_frames.PHASE:
                self._handle_phase(payload)
            case relay_frames.ENDED:
                self._handle_end(payload)
            case relay_frames.WORD:
                self._pane_commands.handle(payload)
        self._cli.changed()

    def _handle_output(self, data: bytes) -> None:
        self._draw(self._drawing.feed(data, time.monotonic()))
        if self._drawing.due is not None and self._draw_timer is None:
            self._draw_timer = asyncio.get_running_loop().call_later(FRAME_S, self._draw_late)
        self._cli.changed() if self._progress.is_touching else self._cli.drawn()

    def _draw(self, data: bytes) -> None:
        if data:
            self._pane.feed(data)

    def _draw_late(self) -> None:
        """Draw a synchronised update that the program never completes."""
        self._draw_timer, due = None, self._drawing.due
        if due is None:
            return
        left_s = due - time.monotonic()
        if left_s > 0:
            self._draw_timer = asyncio.get_running_loop().call_later(left_s, self._draw_late)
        else:
            self._draw(self._drawing.release())
            self._cli.changed()

    def _handle_phase(self, phase: bytes) -> None:
        if phase in (relay_frames.STOPPED, relay_frames.CONTINUED, relay_frames.KEPT):
            self._pane.is_stopped = phase == relay_frames.STOPPED
        elif phase == relay_frames.RESTARTED:
            self._pane.begin_again()
            self._cli.is_end_known = False
            self._injector.start_over()
            self._note_restart("")
        elif phase.startswith(relay_frames.NOT_RESTARTED):
            self._note_restart(phase.removeprefix(relay_frames.NOT_RESTARTED).decode(errors="replace"))
        log.info("child phase changed", extra={"phase": phase.decode(errors="replace")})

    def _note_restart(self, problem: str) -> None:
        if self._restarted is not None and not self._restarted.done():
            self._restarted.set_result(problem)

    def _handle_end(self, payload: bytes) -> None:
        end = json.loads(payload)
        why = f"killed by signal {end['signal']}" if "signal" in end else f"with code {end.get('code')}"
        if not self.ended.done():
            self.ended.set_result(f"the CLI ended, {why}")

    async def restart_child(self, argv: list[str]) -> str:
        """Make the relay restart the child; return the problem, or ""."""
        self._restarted = asyncio.get_running_loop().create_future()
        self._pane.is_leaving = True
        self._cli.port.start_again(argv)
        try:
            return await asyncio.wait_for(self._restarted, RESTARTED_S)
        except TimeoutError:
            return "the CLI did not end"
        finally:
            self._pane.is_leaving = False
