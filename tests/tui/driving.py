"""Runs the scripted TUI in a terminal, with its log at hand."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.clis.terminal import Terminal
from tests.waiting import wait_until_sync

SCRIPT: Final = Path(__file__).parent / "__main__.py"


def command(*knobs: str) -> list[str]:
    """Return the command line that starts the TUI from any folder."""
    return [sys.executable, "-I", "-S", str(SCRIPT), *knobs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tui:
    """A TUI that runs."""

    terminal: Terminal
    log: Path

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        events = [json.loads(line) for line in lines]
        return [event for event in events if kind in ("", event["event"])]

    def texts(self, kind: str = "submitted") -> list[str]:
        return [event["text"] for event in self.events(kind)]

    def wait_event(self, kind: str, count: int = 1) -> dict[str, Any]:
        found = wait_until_sync(
            lambda: events if len(events := self.events(kind)) >= count else [], what=f"{count} {kind}"
        )
        return found[-1]


@contextmanager
def run_tui(folder: Path, *knobs: str) -> Iterator[Tui]:
    log = folder / "tui.jsonl"
    env = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
    with Terminal(command("--log", str(log), *knobs), env, folder, rows=24, columns=80) as terminal:
        yield Tui(terminal=terminal, log=log)
