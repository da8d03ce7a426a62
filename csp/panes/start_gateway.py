"""Start a room's gateway in the background."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from csp.config import Settings
from csp.errors import Broken, CspError, Refused, Unreachable, UntrustedCertificate
from csp.fast_start.child_environment import USER, child_environment
from csp.fast_start.failure_report import FailurePipe
from csp.http_client import GatewayClient
from csp.panes.members import CSP
from csp.panes.processes import end, family, is_child
from csp.room_registry import RunningRoom, running_rooms

READY_S: Final = 30.0
RESTART_S: Final = 10.0
_POLL_S: Final = 0.05
_MAX_LOG_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 4096


def log_path(state_dir: Path, room: str) -> Path:
    """Return the path of a background gateway's log."""
    return state_dir / f"{room}.gateway.log"


def running_room(state_dir: Path, name: str) -> RunningRoom | None:
    """Return the running room with this name, if any."""
    return next((room for room in running_rooms(state_dir) if room.room == name), None)


def start_gateway(
    settings: Settings,
    dir: Path,
    cwd: Path,
    env: Mapping[str, str],
    show: Callable[[str], None],
    history: Path | None = None,
    port: str = "",
    reach: Sequence[str] = (),
) -> RunningRoom:
    """Start a supervised gateway that outlives this command; return once it responds."""
    argv = [*CSP, "gateway", "--supervise", "--room", settings.room]
    argv += ["--dir", str(dir), "--history", str(history or settings.history_dir)]
    argv += [*(["--port", port] if port else []), *reach]
    return start_server(settings, argv, cwd, env, show)


def start_server(
    settings: Settings,
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    show: Callable[[str], None],
    what: str = "gateway",
) -> RunningRoom:
    """Start a process that announces the room and outlives this command; return once the room responds."""
    path = log_path(settings.state_dir, settings.room)
    with open_log(path) as log, FailurePipe() as pipe:
        before = log.tell()
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            # The gateway is not an agent and does not call another gateway.
            env=child_environment(USER, env, pipe.variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(pipe.fd,),
        )
        deadline = time.monotonic() + READY_S
        try:
            while time.monotonic() < deadline:
                show(f"starting the {what}…")
                room = running_room(settings.state_dir, settings.room)
                if room is not None and answers(room):
                    return room
                if process.poll() is not None:
                    message, hint = pipe.read()
                    problem = message or last_line(path, before)
                    raise Broken(f"the {what} did not start: {problem}", hint or f"its log is {path}")
                time.sleep(_POLL_S)
            raise Unreachable(f"the {what} did not answer within {READY_S:g} s", f"its log is {path}")
        except BaseException:
            # On a loaded machine, SIGTERM may be handled too late, and nothing else would end it.
            processes = family([process.pid])
            process.terminate()
            end(processes)
            process.poll()
            raise


def supervise_again(
    settings: Settings,
    room: RunningRoom,
    env: Mapping[str, str],
    show: Callable[[str], None],
    reach: Sequence[str] | None = None,
) -> RunningRoom:
    """Restart a room's gateway at the same address, with a supervisor.

    `reach` contains the options that define how it can be reached; None keeps the previous ones.
    """
    show("waiting for the gateway to end…")
    # The pid of a supervisor that is gone may belong to another process.
    pids = [room.pid] if room.supervisor is None or has_lost_supervisor(room) else [room.supervisor, room.pid]
    processes = family(pids)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pids[0], signal.SIGTERM)
    end(processes)
    port = room.url.rpartition(":")[2]
    words = shlex.split(room.options) if reach is None else reach
    return start_gateway(settings, room.dir, room.dir, env, show, room.history.parent, port, words)


def open_to_lan(
    settings: Settings, room: RunningRoom, address: str, env: Mapping[str, str], show: Callable[[str], None]
) -> RunningRoom:
    """Make a running room reachable at an address of this machine, by restarting its gateway."""
    reach = ["--lan", address]
    if room.joined:
        raise Refused(f"room {room.room!r} is on another machine", "run this command there")
    if shlex.split(room.options) == reach:
        return room
    if room.supervisor is None or room.options.partition(" ")[0] not in ("", "--lan"):
        why = "runs in its own terminal" if room.supervisor is None else f"was started with {room.options}"
        raise Refused(
            f"the gateway of room {room.room!r} {why}", "end it, then open the room with: csp up --lan"
        )
    return supervise_again(replace(settings, room=room.room), room, env, show, reach)


def has_lost_supervisor(room: RunningRoom) -> bool:
    """Return whether a gateway's supervisor, which would restart it, is gone."""
    return room.supervisor is not None and not is_child(room.pid, room.supervisor)


def open_log(path: Path) -> BinaryIO:
    """Open the log, readable only by the user; truncate it if it is long."""
    try:
        is_long = path.stat().st_size > _MAX_LOG_BYTES
    except FileNotFoundError:
        is_long = False
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if is_long else 0)
    return open(os.open(path, flags, 0o600), "ab")


def find_running(settings: Settings, show: Callable[[str], None]) -> RunningRoom | None:
    """Return the running room once it responds; a supervisor may be restarting it."""
    deadline = time.monotonic() + RESTART_S
    while room := running_room(settings.state_dir, settings.room):
        if answers(room):
            return room
        if not family([pid for pid in (room.supervisor, room.pid) if pid]):
            # A zombie still has its pid.
            (settings.state_dir / f"{room.room}.json").unlink(missing_ok=True)
            return None
        if time.monotonic() > deadline:
            hint = "end it with: csp down"
            raise Unreachable(f"the gateway of room {room.room!r} does not answer", hint)
        show("waiting for the gateway…")
        time.sleep(_POLL_S)
    return None


def answers(room: RunningRoom) -> bool:
    """Return whether a room's gateway responds; raise if its certificate is not trusted."""
    try:
        return bool(GatewayClient(room.url, room.token).get("/health"))
    except UntrustedCertificate:
        raise
    except CspError:
        return False


def last_line(log: Path, before: int) -> str:
    """Return the last line that a gateway logged after position `before`."""
    with log.open("rb") as file:
        file.seek(max(before, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return (lines or ["it said nothing"])[-1]
