"""Terminal emulators: bytes in, rows of styled text out."""

import logging
from typing import Final, Protocol

from csp.errors import Broken
from csp.terminal.screen import Screen

log = logging.getLogger(__name__)

HISTORY_LINES: Final = 2000
KINDS: Final = ("ghostty", "pyte")


class Emulator(Protocol):
    """What a sidecar asks of a terminal emulator."""

    dirty: int
    """Grows with every change; equal numbers mean that nothing has come in between."""

    def feed(self, data: bytes) -> None: ...

    def resize(self, rows: int, cols: int) -> None: ...

    def screen(self) -> Screen: ...

    def history(self, *, unwrap: bool = False) -> list[str]: ...

    def drain_osc(self) -> list[tuple[int, str]]: ...


def make_emulator(
    rows: int, cols: int, *, prefer: str = "ghostty", history_lines: int = HISTORY_LINES
) -> Emulator:
    """Make the preferred emulator, or the one in pure Python where that cannot run."""
    if prefer == "ghostty":
        try:
            from csp.sidecar.emulator.ghostty_emulator import GhosttyEmulator

            return GhosttyEmulator(rows, cols, history_lines)
        except (ImportError, OSError, AttributeError, Broken) as exc:
            log.warning("native emulator not usable, fell back to pyte", extra={"reason": str(exc)})
    from csp.sidecar.emulator.pyte_emulator import PyteEmulator

    return PyteEmulator(rows, cols, history_lines)
