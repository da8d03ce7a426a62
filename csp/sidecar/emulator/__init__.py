"""Terminal emulators, which turn a program's output into rows of styled text."""

import logging
from typing import Final, Protocol

from csp.errors import Broken
from csp.terminal.screen import Screen

log = logging.getLogger(__name__)

HISTORY_LINES: Final = 2000
KINDS: Final = ("ghostty", "pyte")


class Emulator(Protocol):
    """The interface of a terminal emulator, as a sidecar uses it."""

    dirty: int
    """A counter that grows with every change; equal values mean that nothing has changed in between."""

    def feed(self, data: bytes) -> None: ...

    def resize(self, rows: int, cols: int) -> None: ...

    def screen(self) -> Screen: ...

    def history(self, *, unwrap: bool = False) -> list[str]: ...

    def drain_osc(self) -> list[tuple[int, str]]: ...


def make_emulator(
    rows: int, cols: int, *, prefer: str = "ghostty", history_lines: int = HISTORY_LINES
) -> Emulator:
    """Return the preferred emulator, or the pure Python one if the preferred one cannot run."""
    if prefer == "ghostty":
        try:
            from csp.sidecar.emulator.ghostty_emulator import GhosttyEmulator

            return GhosttyEmulator(rows, cols, history_lines)
        except (ImportError, OSError, AttributeError, Broken) as exc:
            log.warning("native emulator not usable, fell back to pyte", extra={"reason": str(exc)})
    from csp.sidecar.emulator.pyte_emulator import PyteEmulator

    return PyteEmulator(rows, cols, history_lines)
