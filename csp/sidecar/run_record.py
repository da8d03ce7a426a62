"""The record of one sidecar: what its launcher decided, for the brains that come after it.

It lies in a folder of its own, `<state dir>/<room>.agents/<agent>/`, that only its user can read.
"""

from pathlib import Path
from typing import Self

import msgspec

from csp.fast_start import room_files
from csp.sidecar.record_file import is_running, read_record, write_record


class SidecarRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who is behind the sidecar, where its room is, how its CLI was started."""

    name: str
    agent: str
    token: str
    url: str
    room: str
    role: str
    #: What the agent does, in one word; empty if nobody has said it.
    duty: str = ""
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
    transcripts: list[str] = []
    earlier: list[str] = []
    initial_prompt: str = ""
    allow_shell: bool = False
    #: Which journal the room had when we joined; 0: not known.
    journal: int = 0
    injection_timeout_s: float = 10.0
    #: What the person asked to be run, before our own arguments were added.
    asked: list[str] = []

    def save(self, folder: Path) -> None:
        """Write it whole or not at all."""
        write_record(str(folder), msgspec.structs.asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Return the record of a folder, or None if there is none that can be read."""
        try:
            return cls(**read_record(str(folder)) or {})
        except TypeError:
            return None

    @property
    def is_running(self) -> bool:
        return is_running(self.pid)


def agents_dir(state_dir: Path, room: str) -> Path:
    """Return where the sidecars of a room keep their folders."""
    return Path(room_files.agents_dir(str(state_dir), room))
