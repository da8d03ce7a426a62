"""The record of one sidecar: its launcher's decisions, for all its brains.

It is stored in its own folder, `<state dir>/<room>.agents/<agent>/`, which only its user can read.
"""

from pathlib import Path
from typing import Self

import msgspec

from csp.fast_start import room_files
from csp.sidecar.record_file import is_running, read_record, write_record


class SidecarRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a sidecar, the address of its room, and the command and environment of its CLI."""

    name: str
    agent: str
    token: str
    url: str
    room: str
    role: str
    #: The agent's duty, in one word; empty if none was given.
    duty: str = ""
    #: The pid of the relay, which is also the launcher; the folder is in use while it is running.
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
    #: The transcripts of the CLI, and those of its predecessor, which may contain a message that was typed.
    transcripts: list[str] = []
    earlier: list[str] = []
    initial_prompt: str = ""
    allow_shell: bool = False
    #: The id of the room that we joined; empty if it is not known.
    room_id: str = ""
    injection_timeout_s: float = 10.0
    #: The command as the person typed it, without our own arguments.
    asked: list[str] = []

    def save(self, folder: Path) -> None:
        """Write the record atomically."""
        write_record(str(folder), msgspec.structs.asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Return the record in a folder, or None if there is no readable one.

        Sidecars of other versions write fields that this one does not have.
        """
        found = read_record(str(folder)) or {}
        try:
            return cls(**{name: found[name] for name in cls.__struct_fields__ if name in found})
        except TypeError:
            return None

    @property
    def is_running(self) -> bool:
        return is_running(self.pid)


def agents_dir(state_dir: Path, room: str) -> Path:
    """Return the directory that contains the folders of the room's sidecars."""
    return Path(room_files.agents_dir(str(state_dir), room))
