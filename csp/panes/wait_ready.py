"""Wait until the agents are in the room; start API models in the background in a room without panes."""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from csp.errors import Broken, CspError, Unreachable
from csp.fast_start.child_environment import CONNECTOR, MADE, child_environment
from csp.fast_start.failure_report import FailurePipe
from csp.http_client import GatewayClient, field, objects, segment
from csp.panes.pane_borders import MARK
from csp.panes.room_processes import RoomProcesses
from csp.panes.tmux_session import AgentPane, TmuxSession, room_key
from csp.sidecar.run_record import SidecarRecord

PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.1
_TAIL_BYTES: Final = 4096
#: Checking panes costs a process, but querying the gateway does not.
_LOOK_S: Final = 0.5
_STARTING: Final = "starting"


class StartOutcome(NamedTuple):
    """The outcome of starting an agent; `problem` is empty if it has joined."""

    agent: str
    state: str
    problem: str = ""


class ReadyWait:
    """Waits for agents whose panes were just started; `folder` is the sidecars' folder."""

    def __init__(self, gateway: Callable[[], GatewayClient], panes: TmuxSession, folder: Path) -> None:
        self._gateway = gateway
        self._panes = panes
        self._folder = folder
        #: Agents whose brains have responded. Before that, the room may show the state of an earlier sidecar.
        self._here: set[str] = set()

    def run(
        self, agents: Sequence[str], show: Callable[[str], None], patience_s: float = PATIENCE_S
    ) -> list[StartOutcome]:
        """Return each agent's outcome once all have joined or ended, or time is up."""
        deadline = time.monotonic() + patience_s
        look_at = 0.0
        seats: dict[str, AgentPane] = {}
        while True:
            now = time.monotonic()
            if now >= look_at:
                seats, look_at = self._panes.seats(), now + _LOOK_S
            try:
                found = objects(self._gateway().get("/agents"))
            except Unreachable:
                found = []
            states = {
                field(item, "id", str): field(item, "state", str)
                for item in found
                if item.get("online") and item.get("id") in agents
            }
            late = [agent for agent in agents if not self._is_settled(seats.get(agent), states.get(agent))]
            if not late or now >= deadline:
                break
            show(f"waiting for {', '.join(late)} ({len(agents) - len(late)} of {len(agents)} here)…")
            time.sleep(_POLL_S)
        seats = self._panes.seats()
        return [self._outcome(agent, states.get(agent, ""), seats.get(agent), patience_s) for agent in agents]

    def _is_settled(self, seat: AgentPane | None, state: str | None) -> bool:
        """Return whether an agent needs no more waiting."""
        if seat is None or seat.is_dead:
            return True
        if state is None:
            return False
        if seat.agent in self._here:
            return state != _STARTING
        run = SidecarRecord.load(self._folder / seat.agent)
        if run is not None and run.pid == seat.pid:
            # Its brain responds only after it has reported its state.
            with contextlib.suppress(CspError):
                self._gateway().get(f"/agents/{segment(seat.agent)}/screen")
                self._here.add(seat.agent)
        return False

    def _outcome(self, agent: str, state: str, seat: AgentPane | None, patience_s: float) -> StartOutcome:
        is_there = seat is not None and not seat.is_dead
        if is_there and agent in self._here and state and state != _STARTING:
            return StartOutcome(agent, state)
        said = self._panes.last_line(seat.pane) if seat else ""
        shown = f": {said}" if said else ""
        if not is_there:
            return StartOutcome(agent, "offline", f"{agent} has ended{shown}")
        what = "is still starting" if state else "has not joined"
        return StartOutcome(agent, state or "offline", f"{agent} {what} after {patience_s:g} s{shown}")


# --- models without a pane ---------------------------------------------------------------------------


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
    """Start a model that keeps running after this command and is ended by `csp down`.

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
    """Return a process's agent if it is in the room."""
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
