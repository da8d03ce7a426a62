"""Announce a running room to its user's commands, and find the room for a command.

A gateway keeps `<state dir>/<room>.json` locked while it runs. The lock, not the pid, shows that the room is
running: the kernel releases it with the process, but a pid may belong to another process after a restart.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from csp.config import Settings, nearest
from csp.errors import BadInput, Broken, Refused, Unauthenticated, Unreachable
from csp.fast_start.fast_http import split_urls
from csp.fast_start.fast_json import dumps
from csp.fast_start.room_files import is_at, lock, read_running, token_path
from csp.fast_start.room_files import make_private_dir as make_private_dir
from csp.project import claim_room, claims_folder, project_of

NO_ROOM: Final = "no room is running; start one with: csp up"
# A command that checks whether a room is running holds its lock for an instant.
_LOCK_TRIES: Final = 25
_LOCK_PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a room; `room` is empty if the address is known only from the environment.

    `url` may be several gateways of the room, separated by commas.
    """

    url: str
    token: str = field(repr=False)
    room: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRoom:
    """The announcement of a gateway to local commands; `history` is the room's folder.

    `project` is the identity of the project that the room belongs to. `lan` is the address for other machines
    on the network, if there is one. `options` are the command-line options that made the gateway reachable.
    `joined` is the target of `csp join` if the room is on another machine; the process is then its link.
    `ca_file` contains certificates to trust for its gateways.
    """

    room: str
    url: str
    token: str = field(repr=False)
    pid: int
    supervisor: int | None = None
    dir: Path
    history: Path
    started: float
    project: str = ""
    lan: str = ""
    options: str = ""
    joined: str = ""
    ca_file: str = ""

    @property
    def identity(self) -> str:
        """The identity of the room's project; rooms from an earlier version have only the directory."""
        return self.project or project_of(self.dir).identity

    @property
    def address(self) -> Address:
        return Address(url=self.url, token=self.token, room=self.room)


@dataclass(frozen=True, slots=True)
class RoomFile:
    """The file of a room, locked by its gateway until `remove_room`."""

    path: Path
    fd: int


def write_room(state_dir: Path, room: RunningRoom) -> RoomFile:
    """Announce the room; raise Refused if a room of that name is already running."""
    path = state_dir / f"{room.room}.json"
    try:
        make_private_dir(state_dir)
        for _ in range(_LOCK_TRIES):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if lock(fd, fcntl.LOCK_EX) and is_at(fd, str(path)):
                os.fchmod(fd, 0o600)
                announce_again(RoomFile(path, fd), room)
                return RoomFile(path, fd)
            os.close(fd)
            time.sleep(_LOCK_PAUSE_S)
    except OSError as exc:
        raise Broken(f"cannot write {str(path)!r}: {(exc.strerror or '').lower()}") from exc
    raise Refused(f"room {room.room!r} is already running", "stop it, or choose another name with --room")


def announce_again(file: RoomFile, room: RunningRoom) -> None:
    """Replace what the announcement says; a reader sees the old or the new one, or looks again."""
    values = asdict(room) | {"dir": str(room.dir), "history": str(room.history)}
    data = dumps(values).encode("ascii")
    # Blanks after the end are valid, and a file that is never shorter is never read in part.
    os.pwrite(file.fd, data.ljust(os.fstat(file.fd).st_size), 0)


def remove_room(file: RoomFile) -> None:
    """Remove the announcement."""
    file.path.unlink(missing_ok=True)
    os.close(file.fd)


def claim(settings: Settings, env: Mapping[str, str]) -> Settings:
    """Record that the room belongs to its project; return the settings with the room's final name.

    If two projects with the same name start at the same time, the second one gets another name.
    """
    folder = claims_folder(env)
    if folder is None or settings.project is None:
        return settings
    named = settings.room if settings.is_set("room") else ""
    found = claim_room(folder, settings.project, settings.history_dir, time.time(), named=named)
    return replace(settings, room=found.room)


# --- finding -------------------------------------------------------------------------------------


def running_rooms(state_dir: Path) -> list[RunningRoom]:
    """Return the running rooms by name; remove the files of rooms that have ended."""
    try:
        paths = sorted(state_dir.glob("*.json"), key=lambda path: path.stem)
    except OSError:
        return []
    rooms = []
    for path in paths:
        values = read_running(str(path)) or {}
        with contextlib.suppress(TypeError, KeyError):
            places = {"dir": Path(values["dir"]), "history": Path(values["history"])}
            rooms.append(RunningRoom(**values | places))
    return rooms


def find_room(settings: Settings, cwd: Path) -> Address:
    """Return the room for a command: from the environment, by name, or by the directory's project."""
    rooms = running_rooms(settings.state_dir)
    if settings.gateway_url:
        return _by_environment(settings, rooms)
    if settings.is_set("room"):
        named = next((room for room in rooms if room.room == settings.room), None)
        if named is None:
            names = [room.room for room in rooms]
            elsewhere = (
                f"running: {', '.join(names)}" if names else f"start it with: csp up --room {settings.room}"
            )
            hint = nearest(settings.room, names) or elsewhere
            raise Unreachable(f"room {settings.room!r} is not running", hint)
        found = named
    else:
        found = _by_project(settings, rooms, cwd)
    return Address(url=found.url, token=_own_token(settings, found.room) or found.token, room=found.room)


def _own_token(settings: Settings, room: str) -> str:
    """Return the token to use, or "" for the room's own; inside a pane, return the agent's token or raise."""
    if settings.auth_token or not settings.agent:
        return settings.auth_token
    path = Path(token_path(str(settings.state_dir), room, settings.agent))
    try:
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeError):
        token = ""
    if not token:
        problem = f"no token of agent {settings.agent!r} in room {room!r}: expected one in {str(path)!r}"
        raise Unauthenticated(problem, "the sidecar writes it; unset CSP_AGENT to speak as the human")
    return token


def _by_environment(settings: Settings, rooms: list[RunningRoom]) -> Address:
    urls = split_urls(settings.gateway_url)
    here = next((room for room in rooms if set(split_urls(room.url)) & set(urls)), None)
    if settings.sources.get("room") == "--room" and here and here.room != settings.room:
        # The token in the environment is not valid for another room.
        raise BadInput(
            f"--room: expected {here.room!r}, the room of CSP_GATEWAY_URL, got {settings.room!r}",
            "unset CSP_GATEWAY_URL to talk to another room",
        )
    token = _own_token(settings, here.room if here else settings.room) or (here.token if here else "")
    if not token:
        raise BadInput(
            "CSP_AUTH_TOKEN: expected the token of the gateway in CSP_GATEWAY_URL, but it is not set"
        )
    return Address(url=settings.gateway_url, token=token, room=here.room if here else "")


def _by_project(settings: Settings, rooms: list[RunningRoom], cwd: Path) -> RunningRoom:
    """Return the running room of a directory's project, never one of another project."""
    if not rooms:
        raise Unreachable(NO_ROOM)
    own = rooms_of_project(settings, rooms, cwd)
    if len(own) == 1:
        return own[0]
    if own:
        raise Refused(f"several rooms are running here: {listed(own)}", "choose one with --room")
    raise Unreachable(
        f"the room of {str(cwd)!r} is not running; running elsewhere: {listed(rooms)}",
        "open it with: csp up; choose another one with --room NAME",
    )


def rooms_of_project(settings: Settings, rooms: list[RunningRoom], cwd: Path) -> list[RunningRoom]:
    """Return the running rooms of a directory's project: its own room, or else those that people named."""
    # The claims record the project; a room from an earlier version has no claim.
    known = {room.identity for room in rooms if not room.project}
    project = project_of(cwd, known | ({settings.project.identity} if settings.project else set()))
    own = [room for room in rooms if project.owns(room.identity)]
    return [room for room in own if room.room == settings.room] or own


def listed(rooms: Iterable[RunningRoom]) -> str:
    """Return the names of rooms with their directories."""
    return ", ".join(f"{room.room} ({room.dir})" for room in rooms)
