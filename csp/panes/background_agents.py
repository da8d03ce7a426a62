"""Start API models in the background, for a room without panes."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from csp.errors import Broken, CspError
from csp.fast_start.child_environment import CONNECTOR, MADE, child_environment
from csp.fast_start.failure_report import FailurePipe
from csp.http_client import GatewayClient, objects
from csp.panes.pane_borders import MARK
from csp.panes.room_processes import RoomProcesses
from csp.panes.tmux_session import room_key
from csp.panes.wait_ready import PATIENCE_S, StartOutcome

_POLL_S: Final = 0.1
_TAIL_BYTES: Final = 4096


def start_in_background(
    room: RoomProcesses,
    gateway: GatewayClient,
    name: str,
    argv: Sequence[str],
    dir: Path,
    env: Mapping[str, str],
    show: Callable[[str], None],
    keys: tuple[str, ...] = (),
) -> StartOutcome:
    """Start a model that keeps running after this command; `csp down` ends it.

    Return the outcome once it has joined, has ended, or time is up. `keys` are the variables that the SDK of
    its provider reads.
    """
    own = {MARK: room_key(room.state_dir, room.name), MADE: "1"}
    with tempfile.TemporaryFile() as said, FailurePipe() as pipe:
        process = subprocess.Popen(
            argv,
            cwd=dir,
            env=child_environment(CONNECTOR, env, own | pipe.variables, keys=keys),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
            pass_fds=(pipe.fd,),
        )
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            show(f"waiting for {name}…")
            if found := _joined(room, gateway, process.pid):
                return found
            if process.poll() is not None:
                message, hint = pipe.read()
                said.seek(max(0, said.seek(0, 2) - _TAIL_BYTES))
                lines = said.read().decode(errors="replace").splitlines() or ["it said nothing"]
                raise Broken(f"{name} has ended: {message or lines[-1]}", hint)
            time.sleep(_POLL_S)
        process.terminate()
        return StartOutcome(name, "offline", f"{name} has not joined after {PATIENCE_S:g} s")


def _joined(room: RoomProcesses, gateway: GatewayClient, pid: int) -> StartOutcome | None:
    """Return the agent of a process, if it is in the room."""
    agent = next((run.agent for run in room.sidecars() if run.pid == pid), None)
    if agent is None:
        return None
    try:
        agents = objects(gateway.get("/agents"))
    except CspError:
        return None
    states = {item.get("id"): str(item.get("state")) for item in agents if item.get("online")}
    is_here = states.get(agent, "starting") != "starting"
    return StartOutcome(agent, states[agent]) if is_here else None
