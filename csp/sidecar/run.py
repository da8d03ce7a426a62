"""The record of one sidecar: what its launcher decided, for the brains that come after it.

It lies in a folder of its own, `<state dir>/<room>.agents/<agent>/`, that only its user can read.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Self

_FILE: Final = "run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Who is behind the sidecar, where its room is, how its CLI was started."""

    name: str
    agent: str
    token: str
    url: str
    room: str
    role: str
    #: The relay, which is also the launcher; the folder is in use while it lives.
    pid: int
    profile: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    folder: str
    started: float
    session_id: str = ""
    spool: str = ""
    transcript: str = ""
    #: What the CLI writes to; what the one before it wrote to, where a message that it was given may stand.
    transcripts: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)
    initial_prompt: str = ""
    allow_shell: bool = False
    #: Which journal the room had when we joined; 0: not known.
    journal: int = 0
    injection_timeout_s: float = 10.0
    #: What the person asked to be run, before our own arguments were added.
    asked: list[str] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write it whole or not at all."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = folder / f".{_FILE}.{self.pid}"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
        fresh.replace(folder / _FILE)

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Return the record of a folder, or None if there is none that can be read."""
        try:
            return cls(**json.loads((folder / _FILE).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    @property
    def is_running(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def agents_dir(state_dir: Path, room: str) -> Path:
    """Return where the sidecars of a room keep their folders."""
    return state_dir / f"{room}.agents"


def left_behind(state_dir: Path, room: str, name: str) -> Run | None:
    """Return the record of a sidecar of that name which no longer runs, so that its id can be had again."""
    for folder in sorted(agents_dir(state_dir, room).glob("*/")):
        run = Run.load(folder)
        if run is not None and run.name == name and not run.is_running:
            return run
    return None
