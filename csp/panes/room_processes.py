"""A room's processes on this machine, the files that record them, and their lock."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from csp.errors import Broken, Refused
from csp.fast_start.atomic_files import replace_file
from csp.http_client import GatewayClient
from csp.panes.members import PaneMember
from csp.panes.start_gateway import running_room
from csp.room_registry import RunningRoom, make_private_dir
from csp.sidecar.run_record import SidecarRecord, agents_dir

LOCK_PATIENCE_S: Final = 150.0
_POLL_S: Final = 0.05


class RoomProcesses:
    """The gateway, sidecars and members of one room; nothing is cached between calls."""

    def __init__(self, state_dir: Path, name: str) -> None:
        self.state_dir = state_dir
        self.name = name
        #: The folder that contains one folder per sidecar.
        self.agents_dir = agents_dir(state_dir, name)
        # Not *.json, because those files describe rooms.
        self._lineup = state_dir / f"{name}.lineup"

    def running(self) -> RunningRoom | None:
        """Return the running room, if its gateway has announced itself."""
        return running_room(self.state_dir, self.name)

    def gateway(self) -> GatewayClient:
        """Return a client for the gateway at its current address."""
        found = self.running()
        if found is None:
            raise Broken(f"the gateway of room {self.name!r} has ended", "see: csp logs gateway")
        return GatewayClient(found.url, found.token)

    def sidecars(self) -> list[SidecarRecord]:
        """Return the sidecars' readable records, including those of ended ones."""
        runs = [SidecarRecord.load(folder) for folder in sorted(self.agents_dir.glob("*/"))]
        return [run for run in runs if run is not None]

    def directories(self) -> dict[str, str]:
        """Return the working directory of each agent on this machine."""
        return {run.agent: run.cwd for run in self.sidecars()}

    def lineup(self) -> tuple[PaneMember, ...]:
        """Return the saved members, or none; they are stored as long as the room is up."""
        try:
            return tuple(
                PaneMember(**row | {"cwd": Path(row["cwd"]), "command": tuple(row["command"])})
                for row in json.loads(self._lineup.read_text("utf-8")) or []
            )
        except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
            return ()

    def save_prompt(self, member: PaneMember) -> str:
        """Save a member's initial instructions; return their path, or an empty string if there are none."""
        if not member.prompt:
            return ""
        path = prompt_path(self.agents_dir, member.agent)
        make_private_dir(self.agents_dir)
        replace_file(path, member.prompt.encode())
        return str(path)

    def save_lineup(self, members: Sequence[PaneMember]) -> None:
        """Save the members for a second `up`."""
        rows = [asdict(member) | {"cwd": str(member.cwd)} for member in members]
        replace_file(self._lineup, json.dumps(rows, indent=1).encode())


def prompt_path(agents_dir: Path, agent: str) -> Path:
    """Return the path of the file with an agent's initial instructions."""
    return agents_dir / f"{agent}.prompt"


# --- one `up`, `down` or `add` at a time -------------------------------------------------------------


def lock_path(state_dir: Path, room: str) -> Path:
    """Return the path of a room's lock file."""
    return state_dir / f"{room}.up.lock"


@contextmanager
def locked(state_dir: Path, room: str, show: Callable[[str], None]) -> Iterator[None]:
    """Hold the room's lock; call `show` while another process holds it."""
    path = lock_path(state_dir, room)
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        # `down` may remove the whole folder.
        make_private_dir(state_dir)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), path.stat()):
                break
        except (BlockingIOError, FileNotFoundError):
            show(f"waiting for another csp that is working on room {room}…")
        os.close(fd)
        if time.monotonic() >= deadline:
            problem = f"another csp has been working on room {room!r} for {LOCK_PATIENCE_S:g} s"
            raise Refused(problem, "end it, then try again")
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        os.close(fd)
